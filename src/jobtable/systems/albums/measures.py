"""What an execution took, measured: time, operations, state, compute, and what that costs on AWS by a dated table.

Nothing is multiplied that was not counted: calls of functions record their own time and write units, jobs their waits
and interruptions, and the workflows their events and operations.
"""

from __future__ import annotations

import tomllib
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any

from jobtable.jobs.engine import Jobs
from jobtable.jobs.stored.entities import JobStatus
from jobtable.jobs.stored.field_types import Status
from jobtable.systems.albums.entities import Execution, FunctionCall, WorkflowType
from jobtable.systems.albums.usage import Usage
from jobtable.systems.albums.workflow_runs import WorkflowRuns, runs_of

_GB = 1024**3
_DAYS_OF_A_MONTH = 30


@dataclass(frozen=True)
class Figures:
    """What was measured of one execution that has ended."""

    work_ms: int
    """How long its functions ran, all together."""
    queue_ms: int
    """How long its jobs were ready before a worker took them."""
    wait_ms: int
    """How long it waited for people, which no other figure contains."""
    elapsed_ms: int
    """From start to end, without the wait for people."""
    transitions: int
    operations: int
    state_bytes: int
    attempts: int
    """How often workers took its jobs."""
    requests: int
    gb_seconds: float
    write_units: float
    """Of the records of albums and tasks, as DynamoDB would count them."""
    recovery_ms: int | None
    """From the loss of a worker that died until another one took its job; None if none died."""
    cost: float
    prices: str
    """The version of the price table."""

    def as_json(self) -> dict[str, Any]:
        """Return the figures for the item of their execution."""
        return asdict(self)


@cache
def read_prices() -> dict[str, Any]:
    """Return the price table."""
    return tomllib.loads(files("jobtable.systems.albums").joinpath("prices.toml").read_text(encoding="utf-8"))


def measure(jobs: Jobs, execution: Execution) -> Figures | None:
    """Return the figures of an execution that has ended; None if no workflow of this version ran it."""
    runs: WorkflowRuns = runs_of(jobs, execution.workflow_type)
    usage = runs.usage(execution)
    if usage is None:
        return None
    calls = list(jobs.store.query(FunctionCall.key(execution_id=execution.execution_id)))
    job_ids = {*runs.job_ids(execution), *(call.job_id for call in calls if call.job_id)}
    histories = [list(jobs.store.query(JobStatus.key(job_id=job_id))) for job_id in sorted(job_ids)]
    work_ms = sum(_milliseconds(call.started_at, call.ended_at) for call in calls)
    if usage.invocations is None:
        requests = len(calls)
        gb_seconds = sum(_gb_seconds(_milliseconds(each.started_at, each.ended_at), each.memory_mb) for each in calls)
    else:
        requests, gb_seconds = usage.invocations, _gb_seconds(usage.invoked_ms, usage.memory_mb)
    write_units = sum(call.write_units for call in calls)
    recoveries = [gap for history in histories for gap in _gaps(history, Status.INTERRUPTED)]
    return Figures(
        work_ms=work_ms,
        queue_ms=sum(gap for history in histories for gap in _gaps(history, Status.PENDING)),
        wait_ms=execution.waited_ms or 0,
        elapsed_ms=execution.duration_ms or 0,
        transitions=usage.transitions,
        operations=usage.operations,
        state_bytes=usage.state_bytes,
        attempts=sum(each.status is Status.RUNNING for history in histories for each in history),
        requests=requests,
        gb_seconds=round(gb_seconds, 6),
        write_units=write_units,
        recovery_ms=max(recoveries) if recoveries else None,
        cost=cost_of(usage, requests, gb_seconds, write_units, execution.workflow_type),
        prices=read_prices()["version"],
    )


def cost_of(usage: Usage, requests: int, gb_seconds: float, write_units: float, workflow_type: WorkflowType) -> float:
    """Return what an execution costs on AWS by the price table."""
    prices = read_prices()
    cost = requests * prices["lambda"]["request"] + gb_seconds * prices["lambda"]["gb-second"]
    cost += write_units * prices["dynamodb"]["write-unit"]
    if workflow_type is WorkflowType.STEP_FUNCTIONS:
        cost += usage.transitions * prices["step-functions"]["transition"]
    else:
        of = prices["durable-functions"]
        gigabytes = usage.state_bytes / _GB
        cost += usage.operations * of["operation"] + gigabytes * of["written-gb"]
        cost += gigabytes * of["retained-gb-month"] * usage.retention_days / _DAYS_OF_A_MONTH
    return float(round(cost, 9))


def _gaps(history: list[JobStatus], status: Status) -> list[int]:
    """Return how long each wait took that began with a status and ended when a worker took the job."""
    gaps, since = [], None
    for each, following in pairwise(history):
        if each.status is status and since is None:
            since = each.updated_at
        if following.status is Status.RUNNING and since is not None:
            gaps.append(_milliseconds(since, following.updated_at))
            since = None
    return gaps


def _milliseconds(begin: datetime, end: datetime) -> int:
    return max(0, round((end - begin).total_seconds() * 1000))


def _gb_seconds(milliseconds: int, memory_mb: int) -> float:
    return milliseconds / 1000 * memory_mb / 1024
