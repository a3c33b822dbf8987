"""Whoever waits for the start of a job is told of it, now or later."""

from __future__ import annotations

import logging
import threading

from jobtable.errors import JobtableError
from jobtable.jobs.lifecycle.endings import Endings
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.stored.fields import Status
from jobtable.jobs.worker.patience import is_passing
from jobtable.store import Store

_LOG = logging.getLogger("jobtable.worker")


class Starts:
    """Tells of starts. The jobs run already, so a store that fails now is no reason to stop: the rest is told later."""

    def __init__(self, store: Store, endings: Endings) -> None:
        self._store = store
        self._endings = endings
        self._untold: list[Job] = []
        """Jobs that were claimed, and whose start has not been told to all who wait for it."""
        self._lock = threading.Lock()

    def tell(self, jobs: list[Job]) -> None:
        """Tell those who wait for the start of these jobs; `tell_untold` tells later whom this cannot reach."""
        waited_for = [job for job in jobs if job.dependents]
        if not waited_for:
            return
        try:
            untold = self._endings.tell_started(waited_for)
        except JobtableError as error:
            if not is_passing(error):
                raise
            _LOG.warning("who waits for the start of jobs could not be told, and will be: %s", error)
            untold = waited_for
        self.tell_later(untold)

    def tell_later(self, jobs: list[Job]) -> None:
        """Leave it to the next `tell_untold`."""
        with self._lock:
            self._untold += jobs

    def tell_untold(self) -> None:
        """Tell those who could not be told when the jobs were claimed."""
        with self._lock:
            untold, self._untold = self._untold, []
        if not untold:
            return
        try:
            found = self._store.batch_get([Job.key(job_id=job.job_id) for job in untold])
        except JobtableError:
            self.tell_later(untold)
            raise
        runs = [(before, now) for before, now in zip(untold, found, strict=True) if now is not None]
        # The end of a run tells everyone, so only those that still run are left to tell of.
        self.tell([n for b, n in runs if n.status is Status.RUNNING and n.lease_epoch == b.lease_epoch])
