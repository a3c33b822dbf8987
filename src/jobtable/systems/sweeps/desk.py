"""What the jobs of a sweep ask for while they run, each for itself: locally or through a server."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from jobtable.errors import ValueRefusedError
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import Lease
from jobtable.jobs.stored.entities import Job, JobMetric
from jobtable.systems.sweeps.adaptation import Adaptation
from jobtable.systems.sweeps.planner import Planner
from jobtable.systems.sweeps.sweep import PLANNING, Sweep, sweep_of
from jobtable.systems.sweeps.trials import TrialRecords, config_of, rung_name, stopped_name


class EarlierRuns(BaseModel):
    """What the earlier runs of a trial recorded."""

    model_config = ConfigDict(frozen=True)

    at_rungs: dict[int, float]
    stopped_at: int | None
    """The epoch at which a stopper ended it, even if its worker died before it could report that."""
    last_report: float | None
    """Of the objective."""


class _PlanningParams(BaseModel):
    sweep_id: str
    generation: Annotated[int, Field(ge=0)]


class SweepDesk:
    """The sweep of one held job, a trial or a planning job. Every call may be repeated.

    Get it with `jobs.desk(SweepDesk, lease)`, which asks the server for a remote worker.
    """

    def __init__(self, jobs: Jobs, lease: Lease) -> None:
        self._jobs = jobs
        self._lease = lease

    def get_definition(self) -> Sweep:
        """Return the definition of the sweep."""
        job = self._lease.job
        sweep_id = _part_of(job).sweep_id if job.job_type == PLANNING else config_of(job).sweep_id
        return sweep_of(self._jobs.queries.get_job(sweep_id))

    # --- for planning jobs

    def plan(self, *, is_inline: bool) -> int:
        """Make the trials of this planning job and the next planning job; return the number of trials.

        `is_inline` says whether the task may run in a worker's own process, which only a process with the task knows.
        """
        part = _part_of(self._lease.job)
        return Planner(self._jobs).plan(part.sweep_id, part.generation, is_inline=is_inline)

    # --- for trials

    def find_earlier_runs(self) -> EarlierRuns:
        """Return what earlier runs of this trial recorded."""
        records = TrialRecords(self._jobs.store, self._lease)
        objective = config_of(self._lease.job).objective
        stopped, last = records.find(stopped_name(objective)), records.find(objective)
        return EarlierRuns(
            at_rungs=records.values_at_rungs(),
            stopped_at=None if stopped is None else stopped.epoch,
            last_report=None if last is None else last.value,
        )

    def keep_rung(self, rung: int, value: float, *, epoch: int, is_stopped: bool) -> None:
        """Record the value at a rung, and whether the trial ends there; LeaseLostError if another worker has it."""
        objective = config_of(self._lease.job).objective
        names = [rung_name(objective, rung)] + ([stopped_name(objective)] if is_stopped else [])
        TrialRecords(self._jobs.store, self._lease).keep(dict.fromkeys(names, value), epoch=epoch)

    def keep_stop(self, value: float, *, epoch: int | None) -> None:
        """Record the value at which the trial stopped itself; LeaseLostError if another worker has it."""
        name = stopped_name(config_of(self._lease.job).objective)
        TrialRecords(self._jobs.store, self._lease).keep({name: value}, epoch=epoch)

    def list_others_at(self, rung: int) -> list[float]:
        """Return the values of the other trials at a rung so far."""
        job = self._lease.job
        config = config_of(job)
        at_rung = JobMetric.key(job_id=config.sweep_id, metric_name=rung_name(config.objective, rung))
        return [metric.value for metric in self._jobs.store.query(at_rung) if metric.child_job_id != job.job_id]

    def adapt(self) -> int:
        """Reorder the waiting trials, most promising first; return the number changed."""
        sweep_id = config_of(self._lease.job).sweep_id
        return Adaptation(self._jobs).adapt(sweep_id, self.get_definition())


def _part_of(job: Job) -> _PlanningParams:
    try:
        if job.job_type == PLANNING:
            return _PlanningParams.model_validate(job.definition.params)
    except ValidationError as error:
        problem = error.errors()[0]["msg"]
        raise ValueRefusedError(f"job {job.job_id} has invalid planning parameters: {problem}") from error
    raise ValueRefusedError(f"job {job.job_id} does not plan trials: its type is {job.job_type!r}")
