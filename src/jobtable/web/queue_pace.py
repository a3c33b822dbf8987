"""How fast the jobs of a queue end, and how long those that wait may take at that pace."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from jobtable.clock import wall_time
from jobtable.jobs.stored.entities import Job, JobStatus, Queue
from jobtable.jobs.stored.fields import Status
from jobtable.store import Store

_SPAN = timedelta(hours=1)
_MOST_ENDS = 100
"""How many ends of each kind are looked at; where jobs end faster, a shorter time is."""
_SHORTEST = timedelta(seconds=1)


@dataclass(frozen=True)
class Pace:
    """How many jobs of a queue ended within the last seconds."""

    ended: int
    seconds: float

    def seconds_for(self, count: int) -> float:
        """How long so many jobs take if they go on ending as fast."""
        return count * self.seconds / self.ended


def read_pace(store: Store, queue: Queue) -> Pace | None:
    """The pace of a queue in the last hour, or in a shorter time where much ends; None where none of its jobs did."""
    now = wall_time(store.clock)
    ends, since = [], now - _SPAN
    for status in (Status.COMPLETED, Status.FAILED):
        newest = store.query(JobStatus.by_status(status=status), after=since, newest_first=True, limit=_MOST_ENDS)
        changes = list(newest)
        ends += changes
        if len(changes) == _MOST_ENDS:
            since = changes[-1].updated_at
    ids = {end.job_id for end in ends if end.updated_at >= since}
    jobs = store.batch_get((Job.key(job_id=each) for each in ids), consistent=False)
    ended = sum(job is not None and job.queue_name == queue.queue_name for job in jobs)
    return Pace(ended, max(now - since, _SHORTEST).total_seconds()) if ended else None
