"""Any order of what happens to calls, while requests to the store are throttled, collide, and lose their answers."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize

from jobtable.assist.ledger import StoreLedger
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import Lease
from jobtable.store import Backoff, Store
from jobtable.testing import Faults, FaultyBackend
from tests.assist.ledgers import ledger_of
from tests.assist.test_ledger_machine import LedgerMachine

FAULTS = Faults(throttled=0.05, unavailable=0.03, conflict=0.1, lost_response=0.1, index_lag=0.5)


class CloudLedgerMachine(LedgerMachine):
    """The ledgers use a store that misbehaves as a cloud does; the records are checked on the same store without."""

    @initialize(seed=st.integers(0, 2**32))
    def begin_to_fail(self, seed: int) -> None:
        self.seed = seed

    def ledger_of(self, lease: Lease) -> StoreLedger:
        backend = FaultyBackend(self.store.backend, FAULTS, seed=self.seed, clock=self.clock)
        store = Store(backend, clock=self.clock, backoff=Backoff(attempts=2, clock=self.clock))
        return ledger_of(Jobs(store, self.jobs.objects, clock=self.clock), lease)


TestCloudLedgerMachine: Any = CloudLedgerMachine.TestCase
TestCloudLedgerMachine.settings = settings(
    max_examples=25, stateful_step_count=25, suppress_health_check=[HealthCheck.too_slow]
)
