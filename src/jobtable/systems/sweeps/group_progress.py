"""How far groups of jobs are, sweeps among them: by counts that are kept, so a million children cost what one does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from jobtable.jobs.stored.entities import Job, JobDependency, JobGates, SweepEntry
from jobtable.jobs.stored.fields import Status
from jobtable.model.selection import Selection
from jobtable.store import Store
from jobtable.systems.sweeps.planner import planning_id
from jobtable.systems.sweeps.sweep import SWEEP


@dataclass(frozen=True)
class GroupProgress:
    """How many of a group's jobs have ended, of those that it has or will have."""

    ended: int
    total: int
    failed: int = 0
    """How many of those that have ended are FAILED."""

    @property
    def percent(self) -> float:
        """The share that has ended."""
        return 100 * self.ended / self.total if self.total else 0.0


def read_group_progress(store: Store, jobs: Iterable[Job]) -> dict[str, GroupProgress]:
    """The progress of those jobs that are groups and not complete, by their ids; one batch of reads for all."""
    return _read(store, [job for job in jobs if job.definition.is_group and job.status is not Status.COMPLETED])


def find_group_progress(store: Store, job: Job) -> GroupProgress | None:
    """The progress of one group, complete or not; None of a job that is none."""
    return _read(store, [job]).get(job.job_id) if job.definition.is_group else None


def percent_of(job: Job, group: GroupProgress | None) -> float:
    """How many percent of a job are done: of a group that is not complete, the share of its jobs that has ended."""
    return job.progress if group is None or job.status is Status.COMPLETED else round(group.percent, 1)


def _read(store: Store, groups: Sequence[Job]) -> dict[str, GroupProgress]:
    keys: list[Selection[Any]] = []
    for job in groups:
        keys.append(JobGates.key(job_id=job.job_id))
        if job.job_type == SWEEP:
            keys.append(SweepEntry.key(job_id=job.job_id))
            keys.append(JobDependency.key(job_id=job.job_id, dependency_job_id=planning_id(job.job_id)))
    found: dict[tuple[type, str], Any] = {
        (type(each), each.job_id): each for each in store.batch_get(keys, consistent=False) if each is not None
    }
    return {
        job.job_id: _progress(gates, found.get((SweepEntry, job.job_id)), found.get((JobDependency, job.job_id)))
        for job in groups
        if (gates := found.get((JobGates, job.job_id))) is not None
    }


def _progress(gates: JobGates, entry: SweepEntry | None, planning: JobDependency | None) -> GroupProgress:
    failed = gates.failed
    ended = gates.completed + failed + gates.stopped + gates.cancelled
    total = ended + gates.open_completions
    if planning is not None:  # a sweep waits for its planning as it does for its trials; people count trials
        ended -= planning.outcome is not None
        failed -= planning.outcome == Status.FAILED
        total -= 1
    return GroupProgress(ended, total if entry is None else max(total, entry.trial_count), failed)
