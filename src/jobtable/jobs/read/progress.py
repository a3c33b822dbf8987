"""How far jobs are: how long they have been running, when they may end, and how many children of a group have ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from jobtable.clock import Clock, wall_time
from jobtable.jobs.stored.entities import Job, JobGates, JobStatus
from jobtable.jobs.stored.field_types import Status
from jobtable.jobs.submit.definition import LONGEST_SECONDS
from jobtable.store import Store
from jobtable.system import declared


@dataclass(frozen=True)
class GroupProgress:
    """How many children of a group have ended, of those that it has or will have, by stored counts."""

    ended: int
    total: int
    failed: int = 0
    """How many of the ended ones are FAILED."""

    @property
    def percent(self) -> float:
        """The share that has ended, in percent."""
        return 100 * self.ended / self.total if self.total else 0.0


def read_group_progress(store: Store, jobs: Iterable[Job]) -> dict[str, GroupProgress]:
    """Return the progress of those jobs that are groups and not complete, by their ids, with one batch of reads."""
    return _read(store, [job for job in jobs if job.definition.is_group and job.status is not Status.COMPLETED])


def find_group_progress(store: Store, job: Job) -> GroupProgress | None:
    """Return the progress of one group, or None of any other job."""
    return _read(store, [job]).get(job.job_id) if job.definition.is_group else None


def percent_of(job: Job, group: GroupProgress | None) -> float:
    """Return the progress of a job in percent: of an incomplete group, the share of ended children."""
    return job.progress if group is None or job.status is Status.COMPLETED else round(group.percent, 1)


def _read(store: Store, groups: Sequence[Job]) -> dict[str, GroupProgress]:
    keys = [JobGates.key(job_id=job.job_id) for job in groups]
    counted = {gates.job_id: _progress(gates) for gates in store.batch_get(keys, consistent=False) if gates is not None}
    for system, path in declared("group_progress"):
        counted |= system.load(path)(store, groups, counted)
    return counted


def _progress(gates: JobGates) -> GroupProgress:
    ended = gates.completed + gates.failed + gates.stopped + gates.cancelled
    return GroupProgress(ended, ended + gates.open_completions, gates.failed)


_MOST_REPORTS = 20
"""How many lines of history are searched for a report of progress; a job may report messages alone."""


@dataclass(frozen=True)
class Timing:
    """How long the current run of a job has taken, and its estimated end if there is one."""

    elapsed_seconds: float
    ends_at: datetime | None


@dataclass(frozen=True)
class _Mark:
    """The progress of a run at an instant."""

    at: datetime
    percent: float


def timing_of(job: Job, store: Store, clock: Clock, *, percent: float | None = None) -> Timing | None:
    """Return the timing of a running job, or None of any other; of a group, `percent` is the share that has ended.

    The end is estimated from what this run has reported, as if it went on at the same speed.
    """
    if job.status is not Status.RUNNING or job.started_at is None:
        return None
    now = wall_time(clock)
    elapsed_seconds = max(0.0, (now - job.started_at).total_seconds())
    return Timing(elapsed_seconds, _end_of(job, job.started_at, now, store, percent))


def _end_of(job: Job, started_at: datetime, now: datetime, store: Store, percent: float | None) -> datetime | None:
    if percent is not None:
        return _extrapolate(_Mark(started_at, 0), _Mark(now, percent), now)

    def report(*, newest_first: bool) -> _Mark | None:
        history = JobStatus.key(job_id=job.job_id)
        lines = store.query(history, after=started_at, newest_first=newest_first).page(size=_MOST_REPORTS).items
        return next((_Mark(each.updated_at, each.progress) for each in lines if each.progress is not None), None)

    last = report(newest_first=True)
    if last is not None:
        # A later attempt may resume from a checkpoint, so its first report counts.
        first = _Mark(started_at, 0) if job.lease_epoch == 1 else report(newest_first=False)
        return _extrapolate(first, last, now)
    expected = None if job.estimated_duration is None else _later(started_at, job.estimated_duration)
    return expected if expected is not None and expected > now else None


def _extrapolate(first: _Mark | None, last: _Mark, now: datetime) -> datetime | None:
    """Return when it reaches 100 percent; if that is past, it has become slower and is estimated from now."""
    if first is None or last.percent <= first.percent or last.percent >= 100:
        return None
    left = (100 - last.percent) / (last.percent - first.percent)
    due = _later(last.at, (last.at - first.at).total_seconds() * left)
    return due if due is None or due > now else _later(now, (now - first.at).total_seconds() * left)


def _later(moment: datetime, seconds: float) -> datetime | None:
    """Return the moment that many seconds later, or None if that is too far away to be an estimate."""
    return moment + timedelta(seconds=seconds) if seconds <= LONGEST_SECONDS else None
