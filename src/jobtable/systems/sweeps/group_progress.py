"""How far sweeps are: people count trials, not the jobs that plan them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from jobtable.jobs.read.group_progress import GroupProgress
from jobtable.jobs.stored.entities import Job, JobDependency
from jobtable.jobs.stored.fields import Status
from jobtable.store import Store
from jobtable.systems.sweeps.entities import SweepEntry
from jobtable.systems.sweeps.planner import planning_id
from jobtable.systems.sweeps.sweep import SWEEP


def count_trials(store: Store, groups: Sequence[Job], counted: Mapping[str, GroupProgress]) -> dict[str, GroupProgress]:
    """Return the progress of those groups that are sweeps, of which the jobs are counted: in trials, planned or not."""
    sweeps = [job.job_id for job in groups if job.job_type == SWEEP and job.job_id in counted]
    entries = store.batch_get((SweepEntry.key(job_id=each) for each in sweeps), consistent=False)
    edges = (JobDependency.key(job_id=each, dependency_job_id=planning_id(each)) for each in sweeps)
    plannings = store.batch_get(edges, consistent=False)
    return {
        job_id: _in_trials(counted[job_id], entry, planning)
        for job_id, entry, planning in zip(sweeps, entries, plannings, strict=True)
    }


def _in_trials(counted: GroupProgress, entry: SweepEntry | None, planning: JobDependency | None) -> GroupProgress:
    if planning is not None:  # a sweep waits for its planning as it does for its trials
        ended = counted.ended - (planning.outcome is not None)
        failed = counted.failed - (planning.outcome == Status.FAILED)
        counted = GroupProgress(ended, counted.total - 1, failed)
    return counted if entry is None else replace(counted, total=max(counted.total, entry.trial_count))
