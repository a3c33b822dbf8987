"""What happens in the same transaction as the end of a job: its definition names a function that adds it."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass

from jobtable.clock import Clock
from jobtable.jobs.lifecycle.waking import add_wake
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.stored.field_types import Status
from jobtable.model import Json
from jobtable.store import Store
from jobtable.store.transactions import Transaction


@dataclass(frozen=True)
class JobEnd:
    """The end of a job, as its `on_end` function sees it before it is committed.

    What the function reads may change before the commit, so it adds a condition for it; a failed one repeats both.
    """

    store: Store
    clock: Clock
    tx: Transaction
    job: Job
    """The job before its end."""
    status: Status
    message: str | None
    result: Json

    def wake(self, job_id: str) -> None:
        """Wake another job with the transaction."""
        add_wake(self.store, self.tx, self.store.find(Job.key(job_id=job_id)))


def add_last_act(end: JobEnd, path: str) -> None:
    """Add to the transaction what the function at a path makes of the end of the job."""
    act: Callable[[JobEnd], None] = pkgutil.resolve_name(path)
    act(end)
