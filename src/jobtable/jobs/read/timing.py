"""How long a job has been running, and when it may end, as far as its progress tells."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from jobtable.clock import Clock, wall_time
from jobtable.jobs.stored.entities import Job, JobStatus
from jobtable.jobs.stored.fields import Status
from jobtable.jobs.submit.definition import LONGEST_SECONDS
from jobtable.store import Query, Store

_MOST_REPORTS = 20
"""Among how many lines of history a report of progress is looked for; a job may report messages alone."""


@dataclass(frozen=True)
class Timing:
    """How long the present run of a job has taken, and its end as it looks now; None where nothing tells of that."""

    elapsed_seconds: float
    ends_at: datetime | None


@dataclass(frozen=True)
class _Mark:
    """How far the run was at an instant."""

    at: datetime
    percent: float


class Timings:
    """Estimates by what running jobs report: that they go on as fast as they did in this run."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def of(self, job: Job, *, percent: float | None = None) -> Timing | None:
        """The timing of a job that runs, None for any other; of a group, `percent` is the share that has ended."""
        if job.status is not Status.RUNNING or job.started_at is None:
            return None
        now = wall_time(self._clock)
        elapsed_seconds = max(0.0, (now - job.started_at).total_seconds())
        return Timing(elapsed_seconds, self._end_of(job, job.started_at, now, percent))

    def _end_of(self, job: Job, started_at: datetime, now: datetime, percent: float | None) -> datetime | None:
        if percent is not None:
            return _extrapolated(_Mark(started_at, 0), _Mark(now, percent), now)
        last = _first_report(self._reports(job, started_at, newest_first=True))
        if last is not None:
            return _extrapolated(self._beginning(job, started_at), last, now)
        expected = None if job.estimated_duration is None else _behind(started_at, job.estimated_duration)
        return expected if expected is not None and expected > now else None

    def _beginning(self, job: Job, started_at: datetime) -> _Mark | None:
        """Where this run began. One that is not the first may resume from a checkpoint, so its first report tells."""
        if job.lease_epoch == 1:
            return _Mark(started_at, 0)
        return _first_report(self._reports(job, started_at, newest_first=False))

    def _reports(self, job: Job, started_at: datetime, *, newest_first: bool) -> Query[JobStatus]:
        return self._store.query(JobStatus.key(job_id=job.job_id), after=started_at, newest_first=newest_first)


def _first_report(lines: Query[JobStatus]) -> _Mark | None:
    some = lines.page(size=_MOST_REPORTS).items
    return next((_Mark(each.updated_at, each.progress) for each in some if each.progress is not None), None)


def _extrapolated(first: _Mark | None, last: _Mark, now: datetime) -> datetime | None:
    """When it will be at 100 percent. If that is past already, it has become slower, and is estimated from now."""
    if first is None or last.percent <= first.percent or last.percent >= 100:
        return None
    left = (100 - last.percent) / (last.percent - first.percent)
    due = _behind(last.at, (last.at - first.at).total_seconds() * left)
    return due if due is None or due > now else _behind(now, (now - first.at).total_seconds() * left)


def _behind(moment: datetime, seconds: float) -> datetime | None:
    """That many seconds later; None where that is too far away to be an estimate, or beyond the calendar."""
    return moment + timedelta(seconds=seconds) if seconds <= LONGEST_SECONDS else None
