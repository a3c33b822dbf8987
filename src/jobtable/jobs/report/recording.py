"""What is recorded of a run besides its status, and by which rules."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from operator import index
from typing import Any, Literal, SupportsFloat, SupportsIndex, TypeVar

from jobtable.clock import Clock
from jobtable.errors import ValueRefusedError
from jobtable.jobs.lifecycle.leases import Lease
from jobtable.jobs.report.buffer import RecordBuffer
from jobtable.jobs.report.checkpoints import Checkpoints
from jobtable.jobs.report.log_text import LogText, RunText, TextSpool
from jobtable.jobs.report.run_files import Artifacts
from jobtable.jobs.stored.entities import Job, JobMetric
from jobtable.jobs.submit.definition import RollUp, refusing
from jobtable.objects import ObjectStore
from jobtable.store import Store, requests
from jobtable.store.retries import insist
from jobtable.system import System, declared

T = TypeVar("T")

_LARGEST = 9.99e125
_SMALLEST = 1e-130
_LARGEST_STEP = 10**38


@dataclass(frozen=True)
class ReportRules:
    """What a job's definition says about its reports."""

    roll_up: RollUp | None = None
    metrics_ttl_seconds: float | None = None
    """How long the job's own metrics are kept."""
    logs_ttl_seconds: float | None = None
    """How long log lines are kept."""
    keep_checkpoints: int | None = None
    """How many of the last checkpoints are kept, besides the best."""

    def copies(self, metric: JobMetric, now_seconds: float) -> list[JobMetric]:
        """Return the copy of a reported value that the roll-up rule asks for, if it does."""
        rule = self.roll_up
        if rule is None or metric.metric_name not in rule.metrics:
            return []
        expiry = expiry_of(rule.ttl_seconds, now_seconds)
        return [metric.replace(job_id=rule.job_id, child_job_id=metric.job_id, time_to_live=expiry)]

    @staticmethod
    def of(job: Job) -> ReportRules:
        return ReportRules(
            roll_up_of(job),
            _positive(job, "metrics_ttl_seconds", "number of seconds"),
            _positive(job, "logs_ttl_seconds", "number of seconds"),
            _positive(job, "keep_checkpoints", "whole number"),
        )


def roll_up_of(job: Job) -> RollUp | None:
    """Return the rule that a job carries, or that its system has for it; ValueRefusedError if it is malformed."""
    config = _config_of(job)
    for member, read in _rule_readers().items():
        if member in config:
            with refusing(f"the roll-up rule of job {job.job_id}"):
                if (rule := read(config[member])) is not None:
                    return rule
    return None


@cache
def _rule_readers() -> dict[str, Callable[[Any], RollUp | None]]:
    """Return what reads a rule, by the member of `job_config` that holds it; a system is loaded when it reads one."""

    readers: dict[str, Callable[[Any], RollUp | None]] = {
        member: partial(_read_form, system, path)
        for system, paths in declared("roll_ups")
        for member, path in paths.items()
    }
    readers["roll_up"] = RollUp.model_validate
    return readers


def _read_form(system: System, path: str, member: object) -> RollUp | None:
    rule: RollUp | None = system.load(path)(member)
    return rule


def find_roll_up(job: Job) -> RollUp | None:
    """Return the rule of a job, or None; a malformed one fails the run when its context is made."""
    with suppress(ValueRefusedError):
        return roll_up_of(job)
    return None


def _config_of(job: Job) -> dict[str, Any]:
    return job.job_config if isinstance(job.job_config, dict) else {}


def final_metrics(job: Job, result: Any, now: datetime) -> list[JobMetric]:
    """Return the metrics that a COMPLETED job's result becomes, under itself and under the job of its roll-up rule."""
    rule = find_roll_up(job)
    if rule is None or not isinstance(result, dict):
        return []
    found = []
    for member, name in rule.results.items():
        value = result.get(member)
        if isinstance(value, int | float) and (stored := stored_number(value)) is not None:
            own = JobMetric(job_id=job.job_id, metric_name=name, timestamp=rule.recorded_at or now, value=stored)
            found += [own, own.model_copy(update={"job_id": rule.job_id, "child_job_id": job.job_id})]
    return found


def expiry_of(seconds: float | None, now_seconds: float) -> int | None:
    """Return when something that is kept for so long expires, in seconds of the epoch."""
    return None if seconds is None else math.ceil(now_seconds + seconds)


def number(name: str, value: SupportsFloat) -> float:
    """Return the value of a metric as a float, also from numpy and torch, or raise ValueRefusedError."""
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise ValueRefusedError(f"metric {name} must be a number, not {value!r:.100}") from error


def stored_number(value: float) -> float | None:
    """Return a value as the table can hold it, or None.

    DynamoDB has no NaN, no infinity, and nothing from 1e126 on; what is nearer to zero than 1e-130 becomes zero.
    """
    if not math.isfinite(value) or abs(value) > _LARGEST:
        return None
    return value if abs(value) >= _SMALLEST else 0.0


def whole_number(name: str, value: SupportsIndex | None) -> int | None:
    """Return a step or an epoch as an integer, or raise ValueRefusedError."""
    try:
        whole = None if value is None else index(value)
    except TypeError as error:
        raise ValueRefusedError(f"the {name} must be a whole number, not {value!r:.100}") from error
    if whole is not None and abs(whole) >= _LARGEST_STEP:
        raise ValueRefusedError(f"the {name} is {str(whole)[:50]}..., and an item holds at most 38 digits")
    return whole


def refuse_unstorable(metric: JobMetric) -> None:
    """Raise ValueRefusedError now, in the task, for a metric that the store would reject later.

    Only the name and the unit of a metric can be such; its numbers are storable already.
    """
    requests.put(metric, None)


def _positive(job: Job, name: str, what: Literal["number of seconds", "whole number"]) -> Any:
    """Return a member of `job_config`, or None if it is missing; ValueRefusedError if it is not positive."""
    given: Any = _config_of(job).get(name)
    is_number = isinstance(given, int if what == "whole number" else int | float) and not isinstance(given, bool)
    if given is None or (is_number and given > 0):
        return given
    raise ValueRefusedError(f"job {job.job_id}: {name} in job_config must be a positive {what}, not {given!r}")


class Recording:
    """Where runs record their reports and files: here, directly in the store and object storage."""

    def __init__(self, store: Store, objects: ObjectStore, clock: Clock) -> None:
        self._store = store
        self._objects = objects
        self._clock = clock

    def insist(self, call: Callable[[], T], what: str) -> T:
        """Retry a call for which the task must wait while a store or object storage is away."""
        return insist(call, what, self._clock)

    def buffer(self, lease: Lease, job_id: str, *, most_seconds: float) -> RecordBuffer:
        """Return the buffer of a run's lines and metrics for its own job, or for that of its roll-up rule."""
        return RecordBuffer(self._store, job_id, most_seconds=most_seconds)

    def log_text(self, lease: Lease, spool: TextSpool | None = None) -> LogText:
        """Return the writer of a run's full output."""
        return LogText(self.run_text(lease), self._clock, spool)

    def run_text(self, lease: Lease) -> RunText:
        """Where the full output of a run is kept."""
        return RunText(self._store, self._objects, self._clock, lease)

    def checkpoints(self, lease: Lease) -> Checkpoints:
        return Checkpoints(self._store, self._objects, self._clock, lease)

    def artifacts(self, lease: Lease) -> Artifacts:
        return Artifacts(self._store, self._objects, self._clock, lease)
