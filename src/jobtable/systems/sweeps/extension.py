"""Extensions: a running or completed sweep gets more trials than it was submitted with.

One transaction changes the definition, provided that no planning job that it concerns is running. Waiting planning jobs
read the definition when they start; ended ones restart, and make the additional trials of their generation and the next
planning job. If the process dies in between, the next call finds the planning jobs that missed some trials.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import takewhile

from jobtable.errors import JobStateError, ValueRefusedError
from jobtable.jobs.engine import Jobs
from jobtable.jobs.stored.entities import Job, JobDependency
from jobtable.jobs.stored.field_types import Status
from jobtable.model import unchanged
from jobtable.store import TryAgain
from jobtable.systems.sweeps.entities import SweepEntry
from jobtable.systems.sweeps.parameters import MOST_POINTS
from jobtable.systems.sweeps.planner import planning_id, planning_job_id
from jobtable.systems.sweeps.samplers import Grid
from jobtable.systems.sweeps.sweep import Sweep, get_parent, sweep_of
from jobtable.systems.sweeps.trials import final_name


class Extension:
    """Extends sweeps; an extended sweep makes the same decisions as one of that size from the start."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._store = jobs.store

    def extend(self, sweep_id: str, by: str, *, more: int, total: int | None) -> int:
        """Extend a sweep by `more` trials or to `total`; return its number of trials. See Sweeps.extend."""

        def declare(parent: Job) -> tuple[int, int]:
            known = sweep_of(parent).trial_count()
            wanted = _enlarged(parent, known, known + more if total is None else total)
            if wanted.trial_count() > known:
                self._refuse_reached(sweep_id, wanted)
            self._declare(parent, wanted)
            return known, wanted.trial_count()

        known, count = self._store.retrying(
            lambda: get_parent(self._store, sweep_id),
            declare,
            f"extend sweep {sweep_id}",
            backoff=replace(self._store.backoff, attempts=400, first_seconds=0.1, most_seconds=0.1),
        )
        self.plan_the_rest(sweep_id, known, by)
        return count

    def _refuse_reached(self, sweep_id: str, sweep: Sweep) -> None:
        """Raise JobStateError if the target is reached: such a sweep plans no more trials."""
        if sweep.target is None:
            return
        highest = sweep.direction == "maximize"
        best = self._jobs.queries.find_best_metric(sweep_id, final_name(sweep.objective), highest=highest)
        if best is not None and sweep.is_reached_by(best.value):
            message = f"sweep {sweep_id} reached its target of {sweep.target:g} with {best.value:g}"
            raise JobStateError(message, hint="submit another sweep, with another target or none")

    def _declare(self, parent: Job, wanted: Sweep) -> None:
        """Change the number of trials in the definition, unless a worker plans or something changed."""
        known = sweep_of(parent).trial_count()
        tx = self._store.transaction()
        same = unchanged(parent, Job.status, Job.changed_at, Job.job_config)
        tx.update(parent, Job.job_config.set({**parent.job_config, **wanted.job_config()}), when=same)
        tx.update(SweepEntry.key(job_id=parent.job_id), SweepEntry.trial_count.set(wanted.trial_count()))
        ids = [planning_job_id(parent.job_id, generation) for generation in _concerned(wanted, known)]
        for job_id, job in zip(ids, self._store.batch_get(Job.key(job_id=each) for each in ids), strict=True):
            if job is None:
                tx.check(Job.key(job_id=job_id), Job.status.missing())
            elif job.status is Status.RUNNING:
                raise TryAgain("its trials are being planned")
            else:
                tx.check(job, unchanged(job, Job.status, Job.changed_at))
        tx.commit()

    def plan_the_rest(self, sweep_id: str, known: int, by: str) -> None:
        """Restart planning jobs that ended before they knew of all trials; without a total, they knew of `known`."""

        def restart(outdated: list[Job]) -> None:
            for job in outdated:
                with suppress(JobStateError):  # another caller was faster
                    self._jobs.begin_for_system(job.job_id, by=by)
            if outdated:
                raise TryAgain("its planning kept changing")

        self._store.retrying(lambda: list(self._find_outdated(sweep_id, known)), restart, f"extend sweep {sweep_id}")

    def _find_outdated(self, sweep_id: str, known: int) -> Iterator[Job]:
        sweep = sweep_of(self._jobs.queries.get_job(sweep_id))
        edges = self._store.query(
            JobDependency.key(job_id=planning_id(sweep_id)),
            newest_first=True,
            limit=1 if sweep.is_in_generations else None,  # each generation is planned after the last
        )
        for job in self._jobs.queries.read_jobs(edge.dependency_job_id for edge in edges):
            if job is None or job.status is not Status.COMPLETED:
                continue
            total = job.result.get("total", known) if isinstance(job.result, dict) else known
            if sweep.has_changed(int(job.definition.params["generation"]), total):
                yield job


def _enlarged(parent: Job, known: int, total: int) -> Sweep:
    """Return the definition with more trials, or raise ValueRefusedError or JobStateError."""
    sweep = sweep_of(parent)
    if parent.status not in (Status.RUNNING, Status.COMPLETED):
        raise JobStateError(f"sweep {parent.job_id} is {parent.status}", hint="resume it before you extend it")
    if total < known:
        raise ValueRefusedError(f"sweep {parent.job_id} already has {known:,} trials and cannot have {total:,}")
    if total > MOST_POINTS:
        raise ValueRefusedError(f"sweep {parent.job_id} can have at most {MOST_POINTS:,} trials, not {total:,}")
    if total == known:
        return sweep
    wanted = sweep.model_copy(update={"trials": total})
    if isinstance(sweep.sampler, Grid) and (sweep.trials is None or wanted.trial_count() < total):
        points = known if sweep.trials is None else wanted.trial_count()
        raise ValueRefusedError(f"the grid of sweep {parent.job_id} has only {points:,} points, not {total:,}")
    return wanted


def _concerned(sweep: Sweep, known: int) -> list[int]:
    """Return the generations that a planner would plan differently with only `known` trials, last first."""
    last = sweep.generation_count(known) - 1
    return list(takewhile(lambda generation: sweep.has_changed(generation, known), range(last, -1, -1)))
