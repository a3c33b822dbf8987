"""A sweep gets more trials than it was submitted with, while it runs or when it has ended.

That the definition says so is one transaction, in which no planning job runs that it concerns. Those that wait read the
definition when they begin; those that have ended begin anew, and make what their generation has more of now and the
planning of the next. If the process dies in between, the next call finds those that do not know of all trials.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import takewhile

from jobtable.errors import JobStateError, ValueRefusedError
from jobtable.jobs.engine import Jobs
from jobtable.jobs.stored.entities import Job, JobDependency
from jobtable.jobs.stored.fields import Status
from jobtable.model import unchanged
from jobtable.store import TryAgain
from jobtable.systems.sweeps.entities import SweepEntry
from jobtable.systems.sweeps.parameters import MOST_POINTS
from jobtable.systems.sweeps.planner import planning_id, planning_job_id
from jobtable.systems.sweeps.samplers import Grid
from jobtable.systems.sweeps.sweep import Sweep, get_parent, sweep_of
from jobtable.systems.sweeps.trials import final_name


class Extension:
    """Enlarges sweeps. What is made and decided is what a sweep that had been so large from the beginning comes to."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._store = jobs.store

    def extend(self, sweep_id: str, by: str, *, more: int, total: int | None) -> int:
        """Give a sweep so many trials `more`, or so many in `total`; gives how many it has. See Sweeps.extend."""

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
        """A sweep whose target is reached plans no trials, however many it may have."""
        if sweep.target is None:
            return
        highest = sweep.direction == "maximize"
        best = self._jobs.queries.find_best_metric(sweep_id, final_name(sweep.objective), highest=highest)
        if best is not None and sweep.is_reached_by(best.value):
            raise JobStateError(
                f"sweep {sweep_id} has reached its target of {sweep.target:g} with {best.value:g}, and makes no more "
                "trials: submit another sweep, with another target or none"
            )

    def _declare(self, parent: Job, wanted: Sweep) -> None:
        """Let the definition say how many trials there are, unless a worker plans or something has changed."""
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
        """Let planning jobs begin anew that ended without knowing of all trials.

        One whose result does not say of how many it knew counts as having known of `known`.
        """

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
            limit=1 if sweep.is_in_generations else None,  # each generation is planned behind the last
        )
        for job in self._jobs.queries.read_jobs(edge.dependency_job_id for edge in edges):
            if job is None or job.status is not Status.COMPLETED:
                continue
            total = job.result.get("total", known) if isinstance(job.result, dict) else known
            if sweep.has_changed(int(job.definition.params["generation"]), total):
                yield job


def _enlarged(parent: Job, known: int, total: int) -> Sweep:
    """The definition with so many trials; ValueRefusedError or JobStateError if it cannot have them."""
    sweep = sweep_of(parent)
    if parent.status not in (Status.RUNNING, Status.COMPLETED):
        raise JobStateError(f"sweep {parent.job_id} is {parent.status}: resume it before it is extended")
    if total < known:
        raise ValueRefusedError(f"sweep {parent.job_id} has {known:,} trials already, and cannot have {total:,}")
    if total > MOST_POINTS:
        raise ValueRefusedError(f"sweep {parent.job_id} cannot have {total:,} trials: {MOST_POINTS:,} are the most")
    if total == known:
        return sweep
    wanted = sweep.model_copy(update={"trials": total})
    if isinstance(sweep.sampler, Grid) and (sweep.trials is None or wanted.trial_count() < total):
        points = known if sweep.trials is None else wanted.trial_count()
        raise ValueRefusedError(f"the grid of sweep {parent.job_id} has {points:,} points, and no {total:,} trials")
    return wanted


def _concerned(sweep: Sweep, known: int) -> list[int]:
    """The generations for which a planner that knows of only that many trials decides otherwise, the last first."""
    last = sweep.generation_count(known) - 1
    return list(takewhile(lambda generation: sweep.has_changed(generation, known), range(last, -1, -1)))
