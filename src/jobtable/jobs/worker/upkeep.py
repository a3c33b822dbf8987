"""What every worker does on behalf of all: it makes due jobs ready, and takes jobs from dead workers."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from jobtable.errors import ConflictError
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.verbs import WorkVerbs

_LOG = logging.getLogger("jobtable.worker")
_PROMOTE_SECONDS = 1.0
_SORT_SECONDS = 5.0
_QUIET_SECONDS = 1.0


class Upkeep:
    """Does what is due, whenever it is asked to."""

    def __init__(self, jobs: WorkVerbs, queues: Sequence[str], lease_seconds: float) -> None:
        self.queues = list(queues)
        """The most urgent first; among those of one priority, the one that was served longest ago."""
        self._priorities: dict[str, int] = {}
        self._served: dict[str, int] = dict.fromkeys(queues, 0)
        self._jobs = jobs
        self._observer = jobs.observer()
        self._recover_seconds = lease_seconds / 3
        now = jobs.clock.monotonic()
        self._promote_at = self._recover_at = self._sort_at = now
        self._quiet_since: float | None = None
        self._recovered_at: float | None = None

    @property
    def next_at(self) -> float:
        """When there is something to do again, on the monotonic clock."""
        return min(self._promote_at, self._recover_at, self._sort_at)

    def run(self) -> list[Job]:
        """Do what is due; gives the jobs that were taken from dead workers.

        What cannot be done for one queue, again and again, holds up no other: it raises after the rest is done.
        """
        now = self._jobs.clock.monotonic()
        if now >= self._sort_at:
            self._sort_at = now + _SORT_SECONDS
            self._sort()
        problem: ConflictError | None = None
        if now >= self._promote_at:
            self._promote_at = now + _PROMOTE_SECONDS
            for name in self.queues:
                try:
                    self._jobs.promote_due(name)
                except ConflictError as error:
                    problem = error
        recovered = self._recover(now) if now >= self._recover_at else []
        if problem is not None:
            raise problem
        return recovered

    def _recover(self, now: float) -> list[Job]:
        self._recover_at = now + self._recover_seconds
        recovered = self._observer.recover()
        self._recovered_at = now
        for job in recovered:
            _LOG.warning("job %s is %s: %s", job.job_id, job.status, job.message)
        return recovered

    def serve(self, queue: str) -> None:
        """Note that jobs of a queue were claimed: those with the same priority have their turn before it."""
        self._served[queue] = max(self._served.values()) + 1
        self._order()

    def is_all_done(self) -> bool:
        """Whether the queues are empty, or what is in them waits for something that does not happen here.

        A queue with jobs in it must have been quiet for a while, and meanwhile there was a look for groups that nobody
        could tell of their last child's end. Then the table itself is asked: an index may not show a job yet.
        """
        there = self._jobs.queue_states(self.queues)
        if not any(queue.job_count for queue in there):
            return True
        if any(queue.running_count or queue.has_work for queue in there):
            self._quiet_since = None
            return False
        now = self._jobs.clock.monotonic()
        if self._quiet_since is None:
            self._quiet_since = now
        if now - self._quiet_since < _QUIET_SECONDS:
            return False
        if self._recovered_at is None or self._recovered_at <= self._quiet_since:
            self._recover_at = now
            return False
        if any(queue.has_work for queue in self._jobs.queue_states(self.queues, certain=True)):
            self._quiet_since = None
            return False
        return True

    def _sort(self) -> None:
        self._priorities = {queue.queue_name: queue.priority for queue in self._jobs.queue_states(self.queues)}
        self._order()

    def _order(self) -> None:
        self.queues.sort(key=lambda name: (-self._priorities.get(name, 0), self._served[name]))
