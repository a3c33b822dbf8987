"""The metrics that a job reports, as the table can hold them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import index
from typing import Any, SupportsFloat, SupportsIndex

from jobtable.errors import ValueRefusedError
from jobtable.jobs.stored.entities import Job, JobMetric
from jobtable.store import requests

_LARGEST = 9.99e125
_SMALLEST = 1e-130
_LARGEST_STEP = 10**38


@dataclass(frozen=True)
class ReportRules:
    """What a job's definition says about its reports."""

    sweep_id: str | None = None
    """The sweep whose child the job is."""
    objective: str | None = None
    """The metric that is stored under the sweep as well."""
    metrics_ttl_seconds: float | None = None
    """How long the job's own metrics are kept."""
    sweep_metrics_ttl_seconds: float | None = None
    """How long their copies under the sweep are kept."""
    logs_ttl_seconds: float | None = None
    """How long log lines are kept."""
    keep_checkpoints: int | None = None
    """How many of the last checkpoints are kept, beside the best."""

    @staticmethod
    def of(job: Job) -> ReportRules:
        """The rules in `job_config`."""
        config, sweep = _config_of(job), sweep_config_of(job)
        return ReportRules(
            sweep.get("sweep_id"),
            sweep.get("objective"),
            _seconds(job, config, "metrics_ttl_seconds"),
            _seconds(job, sweep, "metrics_ttl_seconds"),
            _seconds(job, config, "logs_ttl_seconds"),
            _count(job, config, "keep_checkpoints"),
        )


def sweep_config_of(job: Job) -> dict[str, Any]:
    """What `job_config` says of the sweep whose child the job is; empty for any other job."""
    sweep = _config_of(job).get("sweep")
    return sweep if isinstance(sweep, dict) else {}


def _config_of(job: Job) -> dict[str, Any]:
    return job.job_config if isinstance(job.job_config, dict) else {}


def final_name(objective: str) -> str:
    """The metric that holds what the children of a sweep that are COMPLETED have come to."""
    return f"{objective}.final"


def final_metrics(job: Job, result: Any) -> list[JobMetric]:
    """What a COMPLETED child of a sweep has come to: the objective in its result, under itself and under the sweep.

    It stands at an instant that the sweep has chosen for the child, so that no two children meet.
    """
    sweep = sweep_config_of(job)
    if "recorded_at" not in sweep or not isinstance(result, dict):
        return []
    value = result.get(sweep["objective"])
    if value is None:
        return []
    own = JobMetric(
        job_id=job.job_id, metric_name=final_name(sweep["objective"]), timestamp=sweep["recorded_at"], value=value
    )
    return [own, own.model_copy(update={"job_id": sweep["sweep_id"], "child_job_id": job.job_id})]


def number(name: str, value: SupportsFloat) -> float:
    """The value of a metric, or ValueRefusedError for what is no number. Numbers of numpy and torch are numbers."""
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise ValueRefusedError(f"the metric {name} is {value!r:.100}, which is no number") from error


def stored_number(value: float) -> float | None:
    """The number that stands for a value in the table; None for what no number there can stand for.

    DynamoDB has no NaN, no infinity, and nothing from 1e126 on; what is nearer to zero than 1e-130 becomes zero.
    """
    if not math.isfinite(value) or abs(value) > _LARGEST:
        return None
    return value if abs(value) >= _SMALLEST else 0.0


def whole_number(name: str, value: SupportsIndex | None) -> int | None:
    """A step or an epoch, or ValueRefusedError for what is no whole number."""
    try:
        whole = None if value is None else index(value)
    except TypeError as error:
        raise ValueRefusedError(f"the {name} is {value!r:.100}, which is no whole number") from error
    if whole is not None and abs(whole) >= _LARGEST_STEP:
        raise ValueRefusedError(f"the {name} is {str(whole)[:50]}..., and an item holds at most 38 digits")
    return whole


def refuse_unstorable(metric: JobMetric) -> None:
    """Raise ValueRefusedError now, where the task can see it, for what the store would refuse later.

    Only the name and the unit of a metric can be such; its numbers are storable already.
    """
    requests.put(metric, None)


def _seconds(job: Job, config: dict[str, Any], name: str) -> float | None:
    given = config.get(name)
    if given is None:
        return None
    if isinstance(given, int | float) and not isinstance(given, bool) and given > 0:
        return float(given)
    raise ValueRefusedError(f"job {job.job_id}: {name} in job_config is {given!r}; it is a number of seconds over 0")


def _count(job: Job, config: dict[str, Any], name: str) -> int | None:
    given = config.get(name)
    if given is None or (isinstance(given, int) and not isinstance(given, bool) and given > 0):
        return given
    raise ValueRefusedError(f"job {job.job_id}: {name} in job_config is {given!r}; it is a whole number over 0")
