"""GetExecutionHistory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobtable.workflows.asl.aws_api.aws_calls import Call, Response, seconds, without_none
from jobtable.workflows.asl.aws_api.executions_found import find_execution
from jobtable.workflows.asl.aws_api.page_tokens import page_of
from jobtable.workflows.asl.aws_api.refusals import invalid_arn
from jobtable.workflows.asl.entities import ExecutionEvent, MachineType

_DATA = ("input", "output", "assignedVariables")


def history(call: Call) -> Response:
    """GetExecutionHistory."""
    execution = find_execution(call, call.request["executionArn"])
    if execution.type is MachineType.EXPRESS:
        raise invalid_arn("Resource type not valid in this context: express")
    query = call.executions.history(
        execution.machine, execution.name, newest_first=bool(call.request.get("reverseOrder"))
    )
    found, token = page_of(query, call.request, call.now)
    has_data = call.request.get("includeExecutionData") is not False
    return without_none(events=[event_members(each, has_data=has_data) for each in found], nextToken=token)


def event_members(event: ExecutionEvent, *, has_data: bool = True) -> Response:
    """Return an event as AWS has it, with or without inputs, outputs and variables."""
    return {
        "timestamp": seconds(event.at),
        "type": event.type,
        "id": event.event_id,
        "previousEventId": event.previous_id,
        **{name: _details(members, has_data=has_data) for name, members in (event.details or {}).items()},
    }


def _details(members: Mapping[str, Any], *, has_data: bool) -> Response:
    shown: Response = {}
    for name, value in members.items():
        if name not in _DATA:
            shown[name] = value
            continue
        if has_data:
            shown[name] = value
        shown[f"{name}Details"] = {"truncated": False}
    return shown
