"""Trials: the children of a sweep, their ids, and the metrics that record their results.

In addition to the reports of the objective, which the job context stores under the child and under the sweep, there are

    <objective>.rung.<n>    the value of a trial at rung n, which stoppers compare
    <objective>.stopped     the last value of a trial that a stopper ended
    <objective>.final       the objective of a completed trial; the best of them is the sweep's best

under the child and, with the child's id and in order of value, under the sweep. Their timestamp belongs to one trial
alone (the creation of the sweep plus the trial's number in microseconds), so a trial that runs again after its worker
died overwrites its records. The final value is stored in the transaction that completes the trial.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from jobtable.errors import TransactionFailedError, ValueRefusedError
from jobtable.jobs.lifecycle.leases import Lease, check_lease
from jobtable.jobs.stored.entities import Job, JobMetric
from jobtable.jobs.submit.definition import RollUp
from jobtable.model import Timestamp
from jobtable.store import Store

LAST_RUNG = 10**15 - 1
"""Rungs have seven digits, or more if they count steps."""


class TrialConfig(BaseModel):
    """What the `job_config` of a trial says about its sweep."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sweep_id: str
    objective: str
    number: int
    recorded_at: Timestamp
    """The timestamp of its records."""
    generation: int = 0
    cutoffs: dict[int, float] = {}
    """What the trial must reach at each rung, if that was decided in advance."""
    memory: dict[str, Any] = {}
    """The notes of the sampler."""
    metrics_ttl_seconds: float | None = None
    """How long reports are kept under the sweep."""

    @property
    def sweep_created_at(self) -> datetime:
        """When the sweep was created."""
        return self.recorded_at - timedelta(microseconds=self.number)


def config_of(job: Job) -> TrialConfig:
    """Return the configuration of a trial, or raise ValueRefusedError for another job."""
    config = job.job_config if isinstance(job.job_config, Mapping) else {}
    place = config.get("sweep")
    if not isinstance(place, Mapping) or "sweep_id" not in place:
        raise ValueRefusedError(f"job {job.job_id} is not a trial of a sweep")
    try:
        return TrialConfig.model_validate(place)
    except ValidationError as error:
        problem = error.errors()[0]
        named = f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}"
        raise ValueRefusedError(f"job {job.job_id} has no valid trial configuration: {named}") from error


def trial_id(sweep_id: str, number: int) -> str:
    """Return the job id of a trial."""
    return f"{sweep_id}-{number:06d}"


def recorded_at(created_at: datetime, number: int) -> datetime:
    """Return the timestamp of the records of a trial."""
    return created_at + timedelta(microseconds=number)


def stopped_name(objective: str) -> str:
    """Return the metric with the last values of trials that a stopper ended."""
    return f"{objective}.stopped"


def final_name(objective: str) -> str:
    """The metric that holds the objectives of the trials that ran to their end."""
    return f"{objective}.final"


def roll_up_of(member: object) -> RollUp | None:
    """Return what is recorded of a trial under its sweep: each report of the objective, and its final value."""
    if not isinstance(member, Mapping) or "sweep_id" not in member:
        return None
    objective, at = member.get("objective"), member.get("recorded_at")
    return RollUp(
        job_id=member["sweep_id"],
        metrics=() if objective is None else (objective,),
        results={} if objective is None or at is None else {objective: final_name(objective)},
        recorded_at=at,
        ttl_seconds=member.get("metrics_ttl_seconds"),
    )


def rung_name(objective: str, rung: int) -> str:
    """Return the metric with the values of trials at a rung."""
    return f"{objective}.rung.{rung:07d}"


def find_rungs(store: Store, job_id: str, objective: str) -> Iterator[tuple[int, JobMetric]]:
    """Yield the values at every rung under a trial or a sweep, by rung, read consistently."""
    first = JobMetric.key(job_id=job_id, metric_name=rung_name(objective, 0))
    last = JobMetric.key(job_id=job_id, metric_name=rung_name(objective, LAST_RUNG))
    for metric in store.collection(first, until=last):
        if isinstance(metric, JobMetric):
            yield int(metric.metric_name.rpartition(".")[2]), metric


class TrialRecords:
    """The records of one trial, under itself and under its sweep."""

    def __init__(self, store: Store, lease: Lease) -> None:
        self._store = store
        self._lease = lease
        self._job = lease.job
        self._config = config_of(lease.job)

    def keep(self, values: Mapping[str, float], *, epoch: int | None = None) -> None:
        """Store values by metric, all or none, over earlier ones; LeaseLostError if another worker has the trial."""
        tx = self._store.transaction()
        check_lease(tx, self._lease)
        for name, value in values.items():
            at = self._config.recorded_at
            own = JobMetric(job_id=self._job.job_id, metric_name=name, timestamp=at, value=value, epoch=epoch)
            tx.put(own)
            tx.put(own.replace(job_id=self._config.sweep_id, child_job_id=self._job.job_id))
        try:
            tx.commit()
        except TransactionFailedError as error:
            raise self._lease.lost() from error

    def values_at_rungs(self) -> dict[int, float]:
        """Return what earlier runs of the trial recorded, by rung."""
        own = find_rungs(self._store, self._job.job_id, self._config.objective)
        return {rung: metric.value for rung, metric in own}

    def find(self, name: str) -> JobMetric | None:
        """Return the last value of one of the trial's metrics from any run, or None."""
        own = JobMetric.key(job_id=self._job.job_id, metric_name=name)
        return self._store.query(own, newest_first=True, limit=1).first()
