"""The ledger of a worker at the store."""

from __future__ import annotations

from jobtable.assist.calls import Calls
from jobtable.assist.one_sender import OneSender
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import Lease


class StoreLedger(OneSender):
    """Records the calls of one run on the store. Get it with `work.desk(StoreLedger, lease)`."""

    def __init__(self, jobs: Jobs, lease: Lease) -> None:
        super().__init__(Calls(jobs, lease), lease)
