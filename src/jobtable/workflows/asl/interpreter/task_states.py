"""Task: what is handed over, when it times out, and what its end means."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Literal

from jobtable.workflows.asl.interpreter.dataflow import (
    RUNTIME,
    Leaving,
    check_size,
    effective_input,
    evaluate,
    leave_with_result,
    payload,
    read_number,
)
from jobtable.workflows.asl.interpreter.strand import Call, Phase, Strand, keep_instant, kept_instant
from jobtable.workflows.asl.interpreter.task_events import record_scheduled
from jobtable.workflows.asl.machine import StateFault
from jobtable.workflows.asl.resources import Pattern, Resource, ResourceKind, parse_resource
from jobtable.workflows.asl.run import (
    CallFunction,
    CallService,
    Command,
    Json,
    ScheduleActivity,
    StartExecution,
)

_AWAITS: dict[Pattern, Literal["start", "end", "end_as_json", "token"]] = {
    Pattern.RESPONSE: "start",
    Pattern.SYNC: "end",
    Pattern.SYNC_JSON: "end_as_json",
    Pattern.TOKEN: "token",
}


def resource_of(strand: Strand) -> Resource:
    """Return the resource of a Task state."""
    text = strand.fields["Resource"]
    resource = parse_resource(text)
    if resource is None:
        raise StateFault(RUNTIME, f"The resource '{text}' is not supported")
    return resource


def start_task(strand: Strand) -> None:
    """Hand over the task of a Task state."""
    resource = resource_of(strand)
    exists = strand.run.has_activity
    if resource.kind is ResourceKind.ACTIVITY and exists is not None and not exists(resource.arn):
        raise StateFault(RUNTIME, f"The activity {resource.arn} does not exist.")
    frame = strand.frame
    frame.visit += 1
    token: str | None = None
    if resource.pattern is Pattern.TOKEN or resource.kind is ResourceKind.ACTIVITY:
        token = strand.run.new_token(frame.frame_id, frame.visit)
    if resource.pattern is Pattern.TOKEN and token is not None:
        strand.memory["token"] = token
    value = effective_input(strand)
    handed = payload(strand, value)
    check_size(handed, resource.arn if resource.kind is ResourceKind.FUNCTION else resource.history_type)
    timeout = read_number(strand, "TimeoutSeconds", value)
    heartbeat = read_number(strand, "HeartbeatSeconds", value)
    limits = (timeout, heartbeat)
    role = _role(strand, resource, value)
    command = _command(strand, resource, handed, token, limits)
    record_scheduled(strand, resource, handed, limits, role)
    strand.run.commands.append(command)
    now = strand.run.now()
    strand.memory["call"] = Call(
        started=False,
        is_async=_is_async_invocation(resource, handed),
        timeout_at=None if timeout is None else keep_instant(now + timedelta(seconds=timeout)),
        heartbeat_at=None if heartbeat is None else keep_instant(now + timedelta(seconds=heartbeat)),
        heartbeat_seconds=heartbeat,
    )
    await_call(strand)


def _role(strand: Strand, resource: Resource, value: Json) -> str | None:
    """Return the role of the Credentials, which activities do not have."""
    if "Credentials" not in strand.fields or resource.kind is ResourceKind.ACTIVITY:
        return None
    role: str | None = evaluate(strand, "Credentials", strand.fields["Credentials"], value).get("RoleArn")
    return role


def await_call(strand: Strand) -> None:
    """Let the frame wait for a signal, its timeout, or a missed heartbeat."""
    call = strand.call
    instants = [at for at in (kept_instant(call["timeout_at"]), kept_instant(call["heartbeat_at"])) if at is not None]
    strand.suspend(Phase.CALLING, min(instants, default=None))


def leave_task(strand: Strand) -> Leaving:
    """Leave a Task state whose task succeeded."""
    return leave_with_result(strand, strand.result)


def _command(
    strand: Strand, resource: Resource, handed: Json, token: str | None, limits: tuple[float | None, float | None]
) -> Command:
    at = (strand.frame.frame_id, strand.frame.visit)
    timeout, heartbeat = limits
    if resource.kind is ResourceKind.FUNCTION:
        return CallFunction(*at, resource.action, handed, timeout, qualifier=resource.qualifier)
    if resource.kind is ResourceKind.ACTIVITY:
        return ScheduleActivity(*at, resource.arn, handed, token or "", timeout, heartbeat)
    if resource.kind is ResourceKind.SERVICE and resource.service == "lambda":
        return _invocation(at, resource, _members(resource, handed), timeout, token)
    if resource.kind is ResourceKind.SERVICE and resource.service == "states":
        arguments = _members(resource, handed)
        machine_arn = _required(resource, arguments, "StateMachineArn")
        return StartExecution(*at, machine_arn, arguments, _AWAITS[resource.pattern], token)
    return CallService(*at, resource.service, resource.action, handed, token)


def _invocation(
    at: tuple[str, int], resource: Resource, arguments: dict[str, Any], timeout: float | None, token: str | None
) -> CallFunction:
    name, qualifier = _function_name(_required(resource, arguments, "FunctionName"))
    return CallFunction(
        *at,
        name,
        arguments.get("Payload", {}),
        timeout,
        is_async=_is_async_invocation(resource, arguments),
        token=token,
        qualifier=arguments.get("Qualifier") or qualifier,
    )


def _is_async_invocation(resource: Resource, handed: Json) -> bool:
    return (
        resource.kind is ResourceKind.SERVICE
        and resource.service == "lambda"
        and resource.pattern is Pattern.RESPONSE
        and isinstance(handed, dict)
        and handed.get("InvocationType") == "Event"
    )


def _function_name(text: str) -> tuple[str, str | None]:
    """Return the name in a name, an ARN, or a part of an ARN, and its version or alias."""
    if ":function:" in text:
        text = text.partition(":function:")[2]
    name, _, qualifier = text.partition(":")
    return name, qualifier or None


def _members(resource: Resource, handed: Json) -> dict[str, Any]:
    if not isinstance(handed, dict):
        raise StateFault(RUNTIME, f"The Parameters of '{resource.arn}' must be a JSON object")
    return handed


def _required(resource: Resource, arguments: dict[str, Any], name: str) -> str:
    value = arguments.get(name)
    if not isinstance(value, str) or not value:
        raise StateFault(RUNTIME, f"The field '{name}' is required by '{resource.arn}' but was missing")
    return value
