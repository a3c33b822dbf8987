"""The verbs of sweeps: submit, stop, resume and extend them, and read their progress and best trials."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from jobtable.errors import ConflictError, JobStateError, ValueRefusedError, missing
from jobtable.jobs.engine import Jobs
from jobtable.jobs.read.progress import GroupProgress
from jobtable.jobs.report.recording import refuse_unstorable
from jobtable.jobs.stored.entities import Job, JobDependency, JobGates, JobMetric
from jobtable.jobs.stored.field_types import Status
from jobtable.jobs.submit.definition import NewJob, ParentWaits
from jobtable.store import Query, Store
from jobtable.systems.sweeps.entities import SweepEntry
from jobtable.systems.sweeps.extension import Extension
from jobtable.systems.sweeps.parameters import MOST_POINTS, Params
from jobtable.systems.sweeps.planner import new_planning, planning_id
from jobtable.systems.sweeps.sweep import PLANNING, SWEEP, TRAINING, Sweep, get_parent, sweep_of
from jobtable.systems.sweeps.trials import LAST_RUNG, config_of, final_name, rung_name, stopped_name, trial_id

_READ_AT_ONCE = 100


@dataclass(frozen=True)
class TrialResult:
    """One trial and its result."""

    number: int
    job_id: str
    status: Status
    params: Params
    value: float | None
    """Its objective if it completed; its last value if a stopper ended it."""
    message: str | None


@dataclass(frozen=True)
class Progress:
    """The progress of a sweep. The counts are exact at one instant, and add up to the trials made so far."""

    sweep_id: str
    name: str
    status: Status
    objective: str
    total: int
    completed: int
    stopped: int
    failed: int
    cancelled: int
    open: int
    """Waiting and running trials."""
    best: TrialResult | None
    problem: str | None = None
    """Why the sweep failed."""
    target: float | None = None
    """The objective that is good enough."""
    has_reached_target: bool = False
    """Whether the best trial reached the target, so that no more are planned."""

    @property
    def made(self) -> int:
        """The number of trials made so far."""
        return self.completed + self.stopped + self.failed + self.cancelled + self.open


class Sweeps:
    """Sweeps in one store. The workers of a sweep's queue plan its trials and run them."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._store = jobs.store

    def submit(self, sweep: Sweep, *, sweep_id: str | None = None, user: str = "local") -> Job:
        """Submit a sweep, whole or not at all; return its parent job. The same id again finds the first one.

        ValueRefusedError if the sampler rejects its options or is not installed, or the objective's name is too long.
        """
        sweep_id = sweep_id or str(uuid.uuid4())
        parent = self._store.find(Job.key(job_id=sweep_id))
        if parent is None:
            _refuse_options(sweep)
            _refuse_objective(sweep, sweep_id)
        else:
            _refuse_another(parent, sweep)
        if parent is None or not parent.is_final:
            user = user if parent is None else parent.created_by
            family = (
                _new_parent(sweep, sweep_id, user),
                _new_planning_group(sweep, sweep_id, user),
                new_planning(sweep_id, user, sweep, 0),
            )
            created_at = self._jobs.clock.now() if parent is None else parent.created_at
            entry = _entry(sweep, sweep_id, user, created_at)
            parent = self._jobs.submit_together(family, also=lambda tx: tx.put(entry))[0]
        _refuse_another(parent, sweep)
        return parent

    def stop(self, sweep_id: str, *, by: str = "local") -> Job:
        """Make no more trials, let the running ones end properly, and keep all results."""
        sweep_of(get_parent(self._store, sweep_id))
        # Alone first, so that an ended sweep is refused without reading each of its trials.
        self._jobs.stop(sweep_id, by=by, tree=False)
        return self._jobs.stop(sweep_id, by=by, tree=True)

    def resume(self, sweep_id: str, *, by: str = "local") -> int:
        """Requeue every trial that ended without being COMPLETED, from its last checkpoint; return their number.

        Trials that a stopper ended stay ended, because it would decide the same again. Any worker takes over the
        trials of a dead worker without this. JobStateError while workers still have to end what was stopped.
        """
        sweep = sweep_of(get_parent(self._store, sweep_id))
        planning = self._store.find(Job.key(job_id=planning_id(sweep_id)))
        for job in self._awaited_by(planning_id(sweep_id)):
            _refuse_while_it_ends(job)
        stopped = self._jobs.queries.list_metric(sweep_id, stopped_name(sweep.objective))
        settled = {metric.child_job_id for metric in stopped}
        requeued = []
        for job in self._awaited_by(sweep_id):
            if job.job_type != TRAINING or job.status is Status.COMPLETED:
                continue
            _refuse_while_it_ends(job)
            if job.is_final and job.job_id not in settled:
                requeued.append(job.job_id)
        for job_id in requeued:
            self._jobs.retry(job_id, by=by)
        if planning is not None and planning.status is not Status.COMPLETED:  # also if it runs: its jobs may have ended
            self._jobs.retry(planning.job_id, by=by, tree=True)
        self.submit(sweep, sweep_id=sweep_id)
        Extension(self._jobs).plan_the_rest(sweep_id, sweep.trial_count(), by)
        parent = get_parent(self._store, sweep_id)
        if parent.is_final and parent.status is not Status.COMPLETED:  # it was stopped after everything was done
            self._jobs.retry(sweep_id, by=by)
        return len(requeued)

    def _awaited_by(self, job_id: str) -> Iterator[Job]:
        """Yield the jobs that a group waits for, read consistently."""
        edges = self._store.query(JobDependency.key(job_id=job_id))
        found = self._jobs.queries.read_jobs(edge.dependency_job_id for edge in edges)
        return (job for job in found if job is not None)

    def extend(self, sweep_id: str, *, trials: int | None = None, total: int | None = None, by: str = "local") -> int:
        """Extend a running or completed sweep by `trials` or to a `total`; return its number of trials.

        It decides as if it had been that large from the start. With a `total` the same call again changes nothing, or
        finishes an interrupted extension. JobStateError if the target is reached.
        """
        if (total is None) == (trials is None) or (trials is not None and trials <= 0):
            raise ValueRefusedError("give either a positive number of trials, or a total")
        return Extension(self._jobs).extend(sweep_id, by, more=trials or 0, total=total)

    def get_definition(self, sweep_id: str) -> Sweep:
        """Return the definition of a sweep, or raise NotFoundError."""
        return sweep_of(get_parent(self._store, sweep_id))

    def list_sweeps(self) -> Query[SweepEntry]:
        """List all sweeps, newest first."""
        return self._store.query(SweepEntry.by_creation(), newest_first=True)

    def find_best(self, sweep_id: str) -> TrialResult | None:
        """Return the best completed trial, or None; it takes two reads at any size."""
        return self._find_best(sweep_id, self.get_definition(sweep_id))

    def _find_best(self, sweep_id: str, sweep: Sweep) -> TrialResult | None:
        highest = sweep.direction == "maximize"
        best = self._jobs.queries.find_best_metric(sweep_id, final_name(sweep.objective), highest=highest)
        job = None if best is None else self._store.find(Job.key(job_id=str(best.child_job_id)))
        return None if best is None or job is None else _result(sweep, job, best.value)

    def list_best(self, sweep_id: str, *, limit: int) -> list[TrialResult]:
        """Return the best completed trials, best first."""
        sweep = self.get_definition(sweep_id)
        values = JobMetric.by_value(job_id=sweep_id, metric_name=final_name(sweep.objective))
        metrics = list(self._store.query(values, newest_first=sweep.direction == "maximize", limit=limit))
        found = self._store.batch_get(Job.key(job_id=str(metric.child_job_id)) for metric in metrics)
        pairs = zip(found, metrics, strict=True)
        return [_result(sweep, job, metric.value) for job, metric in pairs if job is not None]

    def list_latest_reports(self, sweep_id: str, *, limit: int) -> list[JobMetric]:
        """Return the latest reports of the objective by any trial, newest first."""
        reports = JobMetric.key(job_id=sweep_id, metric_name=self.get_definition(sweep_id).objective)
        return list(self._store.query(reports, newest_first=True, limit=limit))

    def list_trials(self, sweep_id: str, *, first: int = 0) -> Iterator[TrialResult]:
        """Yield every planned trial by number, starting at `first`, read page by page."""
        sweep = self.get_definition(sweep_id)
        while first < MOST_POINTS:
            numbered = (trial_id(sweep_id, first), trial_id(sweep_id, MOST_POINTS - 1))
            children = JobDependency.key(job_id=sweep_id)
            ids = [e.dependency_job_id for e in self._store.query(children, between=numbered, limit=_READ_AT_ONCE)]
            found = self._store.batch_get(Job.key(job_id=job_id) for job_id in ids)
            there = [job for job in found if job is not None]
            values = self._values(sweep_id, sweep, there)
            yield from (_result(sweep, job, values.get(job.job_id)) for job in there)
            if len(ids) < _READ_AT_ONCE:
                return
            first = int(ids[-1].rpartition("-")[2]) + 1

    def _values(self, sweep_id: str, sweep: Sweep, trials: Sequence[Job]) -> dict[str | None, float]:
        """Return the values of some trials, given by number, by trial."""
        if not trials:
            return {}
        instants = (config_of(trials[0]).recorded_at, config_of(trials[-1]).recorded_at)
        values: dict[str | None, float] = {}
        for name in (stopped_name(sweep.objective), final_name(sweep.objective)):
            metrics = self._store.query(JobMetric.key(job_id=sweep_id, metric_name=name), between=instants)
            values.update((metric.child_job_id, metric.value) for metric in metrics)
        return values

    def find_last_planning(self, sweep_id: str) -> Job | None:
        """Return the job that planned, or plans, the last trials so far; None if there is none."""
        plannings = JobDependency.key(job_id=planning_id(sweep_id))
        edge = self._store.query(plannings, newest_first=True).first()
        return None if edge is None else self._store.find(Job.key(job_id=edge.dependency_job_id))

    def get_progress(self, sweep_id: str) -> Progress:
        """Return the progress of a sweep, with few reads at any size, or raise NotFoundError."""
        progress = self.find_progress(sweep_id)
        if progress is None:
            get_parent(self._store, sweep_id)
            raise missing("sweep", sweep_id, hint="what remains of it is being deleted")
        return progress

    def find_progress(self, sweep_id: str) -> Progress | None:
        """Return the progress of a sweep, or None if it is missing or being deleted."""
        planning = JobDependency.key(job_id=sweep_id, dependency_job_id=planning_id(sweep_id))
        parent, gates, edge = self._store.get_together(
            Job.key(job_id=sweep_id), JobGates.key(job_id=sweep_id), planning
        )
        if parent is None or gates is None or parent.job_type != SWEEP:
            return None
        sweep = sweep_of(parent)
        entry = self._store.find(SweepEntry.key(job_id=sweep_id))
        # The sweep waits for its planning as it does for its trials; that one is not counted here.
        outcome = None if edge is None else edge.outcome
        best = self._find_best(sweep_id, sweep)
        return Progress(
            sweep_id=sweep_id,
            name=sweep.name,
            status=parent.status,
            objective=sweep.objective,
            total=sweep.trial_count() if entry is None else entry.trial_count,
            completed=gates.completed - (outcome is Status.COMPLETED),
            stopped=gates.stopped - (outcome is Status.STOPPED),
            failed=gates.failed - (outcome is Status.FAILED),
            cancelled=gates.cancelled - (outcome is Status.CANCELLED),
            open=gates.open_completions - (edge is not None and outcome is None),
            best=best,
            problem=self._problem(parent) if parent.status is Status.FAILED else None,
            target=sweep.target,
            has_reached_target=best is not None and best.value is not None and sweep.is_reached_by(best.value),
        )

    def _problem(self, parent: Job) -> str | None:
        """Return why the planning failed, which is the only way that a sweep fails."""
        failed = (job for job in self._awaited_by(planning_id(parent.job_id)) if job.status is Status.FAILED)
        return next((job.message for job in failed), parent.message)


def _refuse_options(sweep: Sweep) -> None:
    """Checked only at submission: what samplers accept changes, and old sweeps must stay readable."""
    if (problem := sweep.sampler.find_problem()) is not None:
        raise ValueRefusedError(problem)


def _refuse_objective(sweep: Sweep, sweep_id: str) -> None:
    """Find at once what every trial would find only at its end."""
    name, instant = rung_name(sweep.objective, LAST_RUNG), datetime.min.replace(tzinfo=UTC)
    child = trial_id(sweep_id, MOST_POINTS - 1)
    try:
        refuse_unstorable(JobMetric(job_id=sweep_id, metric_name=name, timestamp=instant, value=0, child_job_id=child))
    except ValueRefusedError as error:
        raise ValueRefusedError(f"cannot record the objective {sweep.objective[:50]!r}: {error}") from error


def _refuse_another(parent: Job, given: Sweep) -> None:
    sweep_id = parent.job_id
    if parent.job_type != SWEEP:
        raise ConflictError(f"job {sweep_id} is not a sweep but a {parent.job_type!r}", hint="use another id")
    kept = sweep_of(parent)
    if kept.job_config() == given.job_config():
        return
    if kept.model_copy(update={"trials": given.trials}).job_config() == given.job_config():
        raise ConflictError(f"sweep {sweep_id} has {kept.trials} trials, not {given.trials}", hint="extend it instead")
    hint = "use another id, or the same definition"
    raise ConflictError(f"sweep {sweep_id} has another definition", hint=hint)


def _new_parent(sweep: Sweep, sweep_id: str, user: str) -> NewJob:
    return NewJob(
        name=sweep.name,
        job_id=sweep_id,
        job_type=SWEEP,
        queue=sweep.queue,
        user=user,
        priority=sweep.priority,
        config=sweep.job_config(),
        group_id=sweep_id,
    )


def _new_planning_group(sweep: Sweep, sweep_id: str, user: str) -> NewJob:
    return NewJob(
        name=f"{sweep.name}: planning",
        job_id=planning_id(sweep_id),
        job_type=PLANNING,
        queue=sweep.queue,
        user=user,
        parent_job_id=sweep_id,
        parent_waits=ParentWaits(PLANNING),
        group_id=sweep_id,
    )


def _entry(sweep: Sweep, sweep_id: str, user: str, created_at: datetime) -> SweepEntry:
    return SweepEntry(
        job_id=sweep_id,
        name=sweep.name,
        created_at=created_at,
        created_by=user,
        objective=sweep.objective,
        direction=sweep.direction,
        trial_count=sweep.trial_count(),
    )


def _refuse_while_it_ends(job: Job) -> None:
    """Refuse a job that was asked to end: it would end after the sweep is resumed, which would continue without it."""
    if job.requested is not None:
        raise JobStateError(
            f"job {job.job_id} was asked to {job.requested} and has not ended yet",
            hint="resume the sweep when it has; if its worker is dead, any `jobtable worker` ends it",
        )


def _result(sweep: Sweep, job: Job, value: float | None) -> TrialResult:
    return TrialResult(
        number=config_of(job).number,
        job_id=job.job_id,
        status=job.status,
        params=sweep.space.restored(job.definition.params),
        value=value,
        message=job.message,
    )


def count_trials(store: Store, groups: Sequence[Job], counted: Mapping[str, GroupProgress]) -> dict[str, GroupProgress]:
    """Correct the progress of the groups that are sweeps: people count trials, planned or not, rather than jobs."""
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
