"""The progress of groups, from stored counts, so that a million children cost what one does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from jobtable.jobs.stored.entities import Job, JobGates
from jobtable.jobs.stored.field_types import Status
from jobtable.store import Store
from jobtable.system import declared


@dataclass(frozen=True)
class GroupProgress:
    """How many children of a group have ended, of those that it has or will have."""

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
