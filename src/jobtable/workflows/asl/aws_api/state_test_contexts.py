"""The context objects that TestState accepts with a mock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobtable.errors import OperationRefused
from jobtable.workflows.asl.aws_api.refusals import invalid
from jobtable.workflows.asl.machine import State, StateType
from jobtable.workflows.asl.resources import Pattern, parse_resource

_TEXT, _NUMBER, _ANY = "string", "number", "any"
_MEMBERS: Mapping[str, Mapping[str, str]] = {
    "Execution": {
        "Id": _TEXT,
        "Input": _ANY,
        "Name": _TEXT,
        "RoleArn": _TEXT,
        "StartTime": _TEXT,
        "RedriveCount": _NUMBER,
        "RedriveTime": _TEXT,
    },
    "State": {"EnteredTime": _TEXT, "Name": _TEXT, "RetryCount": _NUMBER},
    "StateMachine": {"Id": _TEXT, "Name": _TEXT},
    "Task": {"Token": _TEXT},
}


def check_context(context: dict[str, Any], state: State) -> dict[str, Any]:
    """Return a context object, or raise OperationRefused."""
    for name, members in context.items():
        if name == "Map":
            raise _refused("'Map' field is not supported when mocking a Context object")
        if name not in _MEMBERS:
            raise _refused(f"Field '{name}' is not allowed")
        if not isinstance(members, dict):
            raise _refused(f"{name} must be an object")
        for member, value in members.items():
            _check_member(name, member, value)
    if "Task" in context and not _has_token(state):
        raise _refused(
            "Context object contains 'Task' when state is not a Task state with a '.sync' or '.waitForTaskToken' "
            "service integration pattern"
        )
    return context


def _check_member(name: str, member: str, value: Any) -> None:
    kind = _MEMBERS[name].get(member)
    if kind is None:
        raise _refused(f"Field '{member}' is not allowed")
    if kind == _TEXT and not isinstance(value, str):
        raise _refused(f"{name}.{member} must be a string")
    if kind == _NUMBER and (isinstance(value, bool) or not isinstance(value, int)):
        raise _refused(f"{name}.{member} must be a number")


def _has_token(state: State) -> bool:
    resource = parse_resource(state.fields["Resource"]) if state.type is StateType.TASK else None
    return resource is not None and resource.pattern is not Pattern.RESPONSE


def _refused(why: str) -> OperationRefused:
    return invalid(f"Invalid Context object provided: {why}")
