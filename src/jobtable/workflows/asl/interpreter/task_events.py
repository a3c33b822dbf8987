"""The events of a task, whose names and details depend on its resource."""

from __future__ import annotations

from datetime import datetime

from jobtable.workflows.asl.arns import REGION, find_states_arn
from jobtable.workflows.asl.interpreter.history import record, without_none
from jobtable.workflows.asl.interpreter.strand import Strand, dump
from jobtable.workflows.asl.resources import Resource, ResourceKind
from jobtable.workflows.asl.run import Json

_FAMILIES = {ResourceKind.FUNCTION: "LambdaFunction", ResourceKind.ACTIVITY: "Activity"}


def record_scheduled(
    strand: Strand, resource: Resource, handed: Json, limits: tuple[float | None, float | None], role: str | None
) -> None:
    """Record that a task was handed over, with its timeout and heartbeat, for a role other than the machine's."""
    timeout, heartbeat = limits
    more = without_none(
        timeoutInSeconds=timeout,
        heartbeatInSeconds=heartbeat,
        taskCredentials=None if role is None else {"roleArn": role},
    )
    if resource.kind in _FAMILIES:
        details = {"input": dump(handed), "resource": resource.arn, **more}
    else:
        details = {"parameters": dump(handed), "region": _region(strand), **_names(resource), **more}
    _record(strand, resource, "Scheduled", details)


def record_started(strand: Strand, resource: Resource, worker: str | None = None, at: datetime | None = None) -> None:
    """Record that a task has started, by default now."""
    details: dict[str, Json] | None = _names(resource)
    if resource.kind is ResourceKind.FUNCTION:
        details = None
    elif resource.kind is ResourceKind.ACTIVITY:
        details = without_none(workerName=worker)
    _record(strand, resource, "Started", details, at)


def record_submitted(strand: Strand, resource: Resource, output: Json) -> None:
    """Record that a request was accepted which somebody else completes."""
    _record(strand, resource, "Submitted", {"output": dump(output), **_names(resource)})


def record_succeeded(strand: Strand, resource: Resource, output: Json) -> None:
    """Record the result of a task."""
    _record(strand, resource, "Succeeded", {"output": dump(output), **_names(resource)})


def record_failed(strand: Strand, resource: Resource, ending: str, error: str | None, cause: str | None) -> None:
    """Record the failure of a task; the ending is Failed, TimedOut, StartFailed or SubmitFailed."""
    _record(strand, resource, ending, {**without_none(error=error, cause=cause), **_names(resource)})


def _record(
    strand: Strand, resource: Resource, ending: str, details: dict[str, Json] | None, at: datetime | None = None
) -> None:
    record(strand, f"{_FAMILIES.get(resource.kind, 'Task')}{ending}", details, at)


def _names(resource: Resource) -> dict[str, Json]:
    if resource.kind in _FAMILIES:
        return {}
    return {"resource": resource.history_name, "resourceType": resource.history_type}


def _region(strand: Strand) -> str:
    arn = find_states_arn(strand.run.context.get("StateMachine", {}).get("Id", ""))
    return REGION if arn is None else arn.arns.region
