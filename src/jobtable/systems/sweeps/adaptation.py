"""Reordering of the waiting trials by early results: the most promising ones run first.

This changes when a trial runs, never what it does or what is decided about it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jobtable.jobs.engine import Jobs
from jobtable.jobs.stored.entities import Job, JobMetric
from jobtable.jobs.stored.field_types import MOST_URGENT, Status
from jobtable.systems.sweeps.parameters import Params
from jobtable.systems.sweeps.samplers import Direction
from jobtable.systems.sweeps.space import Space
from jobtable.systems.sweeps.sweep import Sweep
from jobtable.systems.sweeps.trials import final_name

_NEIGHBOURS = 5
_MOST_KNOWN = 200
_MOST_WAITING = 1000
_PROMISING_PART = 4
"""One in so many waiting trials is promising."""
_RAISE = 50
_NEAREST = 1e-6


def expected(space: Space, known: Sequence[tuple[Params, float]], params: Params) -> float:
    """Estimate the objective of a trial: the mean of its nearest known trials, weighted by nearness."""
    nearest = sorted((space.distance(params, other), value) for other, value in known)[:_NEIGHBOURS]
    weights = [1 / max(distance, _NEAREST) for distance, _ in nearest]
    return sum(weight * value for weight, (_, value) in zip(weights, nearest, strict=True)) / sum(weights)


def promising(
    space: Space, known: Sequence[tuple[Params, float]], waiting: Mapping[str, Params], direction: Direction
) -> set[str]:
    """Return the waiting trials that are nearest to good known ones."""
    if not known:
        return set()
    sign = 1 if direction == "minimize" else -1
    by_promise = sorted((sign * expected(space, known, params), job_id) for job_id, params in waiting.items())
    return {job_id for _, job_id in by_promise[: len(by_promise) // _PROMISING_PART]}


class Adaptation:
    """Reorders the waiting trials of a sweep, which is always safe and never necessary."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs

    def adapt(self, sweep_id: str, sweep: Sweep) -> int:
        """Raise the priority of the most promising waiting trials, and reset the others; return the number changed."""
        waiting = self._waiting(sweep_id, sweep)
        params = {job_id: sweep.space.restored(job.definition.params) for job_id, job in waiting.items()}
        chosen = promising(sweep.space, self._known(sweep_id, sweep), params, sweep.direction)
        changed = 0
        for job_id, job in waiting.items():
            wanted = min(sweep.priority + _RAISE, MOST_URGENT) if job_id in chosen else sweep.priority
            if job.priority != wanted:
                self._jobs.prioritise(job_id, wanted)
                changed += 1
        return changed

    def _known(self, sweep_id: str, sweep: Sweep) -> list[tuple[Params, float]]:
        finals = JobMetric.key(job_id=sweep_id, metric_name=final_name(sweep.objective))
        metrics = list(self._jobs.store.query(finals, newest_first=True, limit=_MOST_KNOWN))
        found = self._jobs.store.batch_get(Job.key(job_id=str(metric.child_job_id)) for metric in metrics)
        pairs = zip(found, metrics, strict=True)
        return [(sweep.space.restored(job.definition.params), metric.value) for job, metric in pairs if job is not None]

    def _waiting(self, sweep_id: str, sweep: Sweep) -> dict[str, Job]:
        places = self._jobs.queries.list_ready(sweep.queue, limit=_MOST_WAITING)
        ids = [place.job_id for place in places if place.group_id == sweep_id]
        found = self._jobs.store.batch_get(Job.key(job_id=job_id) for job_id in ids)
        return {
            job.job_id: job
            for job in found
            if job is not None and job.status is Status.PENDING and job.parent_job_id == sweep_id
        }
