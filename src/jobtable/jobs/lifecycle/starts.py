"""Dependents are notified of the start of jobs, now or later."""

from __future__ import annotations

import logging
import threading

from jobtable.errors import JobtableError
from jobtable.jobs.lifecycle.endings import Endings
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.stored.fields import Status
from jobtable.store import Store
from jobtable.store.retries import is_passing

_LOG = logging.getLogger("jobtable.worker")


class Starts:
    """Notifies of starts. The jobs already run, so a store that fails now does not stop them: it retries later."""

    def __init__(self, store: Store, endings: Endings) -> None:
        self._store = store
        self._endings = endings
        self._pending: list[Job] = []
        """Claimed jobs whose dependents have not all been notified of the start."""
        self._lock = threading.Lock()

    def notify(self, jobs: list[Job]) -> None:
        """Notify the dependents of the start of these jobs; `notify_pending` retries what fails."""
        awaited = [job for job in jobs if job.dependents]
        if not awaited:
            return
        try:
            pending = self._endings.notify_of_start(awaited)
        except JobtableError as error:
            if not is_passing(error):
                raise
            _LOG.warning("could not notify jobs waiting for a start; will retry: %s", error)
            pending = awaited
        self.notify_later(pending)

    def notify_later(self, jobs: list[Job]) -> None:
        """Leave it to the next `notify_pending`."""
        with self._lock:
            self._pending += jobs

    def notify_pending(self) -> None:
        """Notify the dependents that could not be notified when the jobs were claimed."""
        with self._lock:
            pending, self._pending = self._pending, []
        if not pending:
            return
        try:
            found = self._store.batch_get([Job.key(job_id=job.job_id) for job in pending])
        except JobtableError:
            self.notify_later(pending)
            raise
        runs = [(before, now) for before, now in zip(pending, found, strict=True) if now is not None]
        # The end of a run notifies everyone, so only those that still run are left.
        self.notify([n for b, n in runs if n.status is Status.RUNNING and n.lease_epoch == b.lease_epoch])
