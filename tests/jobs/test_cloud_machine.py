"""Random sequences of everything that can happen to jobs, on a store that misbehaves as a cloud does."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize
from tests.jobs.test_engine_machine import JobsMachine

from jobtable.errors import JobtableError
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import Lease, Outcome
from jobtable.store import Backoff, Store
from jobtable.store.retries import is_passing
from jobtable.testing import Faults, FaultyBackend

FAULTS = Faults(throttled=0.05, unavailable=0.03, conflict=0.1, unprocessed=0.1, lost_response=0.1, index_lag=0.5)
ITEMS_BEHIND = 30
MOST_REPETITIONS = 200
FEW_REPETITIONS = 5
VERBS = (
    *("submit", "submit_many", "open_group", "seal", "cancel", "stop", "retry", "prioritise", "delete"),
    *("add_dependency", "pause_queue", "resume_queue", "change_queue", "delete_queue"),
    *("claim", "heartbeat", "finish", "finish_many", "release", "promote_due"),
)


def repeating(call: Callable[..., Any]) -> Callable[..., Any]:
    """Who calls a verb again when it has failed for a reason that passes, as people and workers do."""

    def repeat(*args: Any, **options: Any) -> Any:
        number = 0
        while True:
            number += 1
            try:
                return call(*args, **options)
            except JobtableError as error:
                # A conflict may be one that stays, as that of a queue which is to be deleted and has jobs in it.
                most = MOST_REPETITIONS if error.retryable else FEW_REPETITIONS
                if number >= most or not is_passing(error):
                    raise

    return repeat


class CloudJobsMachine(JobsMachine):
    """The same, where requests are throttled, answers are lost, transactions collide and indexes lag behind.

    Whatever fails is repeated. The records are right all the time, and once the faults are over every job ends.
    """

    def __init__(self) -> None:
        super().__init__()
        self.cloud = self.backend.backend
        self.store.backoff = Backoff(attempts=2, clock=self.clock, random=Random(1))  # so that verbs do fail
        self.records = Jobs(Store(self.cloud), self.jobs.objects, clock=self.clock)
        for verb in VERBS:
            setattr(self.jobs, verb, repeating(getattr(self.jobs, verb)))
        self.ensure_queue = repeating(self.ensure_queue)  # type: ignore[method-assign]
        self.observer.recover = repeating(self.observer.recover)  # type: ignore[method-assign]

    @initialize(seed=st.integers(0, 2**32))
    def begin_to_fail(self, seed: int) -> None:
        self.faulty = FaultyBackend(self.cloud, FAULTS, seed=seed, lagging=ITEMS_BEHIND, clock=self.clock)
        self.backend.backend = self.faulty

    def end(self, lease: Lease, outcome: Outcome) -> None:
        super().end(lease, outcome)
        job = next(iter(self.records.look_at([lease])))
        assert not lease.is_held_in(job), "a run that was ended goes on"

    def drain(self) -> None:
        self.faulty.stop()
        super().drain()


TestCloudJobsMachine = CloudJobsMachine.TestCase
TestCloudJobsMachine.settings = settings(
    max_examples=10, stateful_step_count=20, suppress_health_check=[HealthCheck.too_slow]
)
