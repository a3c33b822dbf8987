"""Task states: what they call, with which arguments, and for how long."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from jobtable.workflows.asl.entities import MachineType
from jobtable.workflows.asl.machine import Language
from jobtable.workflows.asl.machine_definition.findings import Place
from jobtable.workflows.asl.machine_definition.value_checks import is_expression, template
from jobtable.workflows.asl.query_languages.payload_templates import DYNAMIC
from jobtable.workflows.asl.resources import SUPPORTED, Pattern, Resource, ResourceKind, parse_resource

_ARN = re.compile(r"arn:[\w-]+:[\w-]+:[\w-]*:\d*:\S+")
_REQUIRED = {
    ("lambda", "invoke"): ("FunctionName",),
    ("dynamodb", "getItem"): ("TableName", "Key"),
    ("dynamodb", "putItem"): ("TableName", "Item"),
    ("dynamodb", "updateItem"): ("TableName", "Key"),
    ("dynamodb", "deleteItem"): ("TableName", "Key"),
    ("sqs", "sendMessage"): ("QueueUrl", "MessageBody"),
    ("sns", "publish"): ("Message",),
    ("states", "startExecution"): ("StateMachineArn",),
}
_PATTERNS = {Pattern.SYNC: ".sync", Pattern.SYNC_JSON: ".sync", Pattern.TOKEN: ".waitForTaskToken"}
"""How AWS names the patterns that express machines do not have."""


def resource(value: Any, place: Place) -> None:
    """The resource of a Task state."""
    if not isinstance(value, str):
        place.error("Expected value of type [STRING]")
        return
    if _ARN.fullmatch(value) is None:
        place.error("Value is not a valid resource ARN")
        return
    parsed = parse_resource(value)
    if parsed is None:
        place.error(
            f"The resource provided {value} is not recognized. The value is not a valid resource ARN, or the resource"
            f" is not available in this region. State '{place.state}' may call: {SUPPORTED}"
        )
    elif place.machine_type is MachineType.EXPRESS:
        _check_express(parsed, place)


def credentials(value: Any, place: Place) -> None:
    """The role that a task takes on."""
    template(value, place)
    if isinstance(value, dict):
        require_members(value, ("RoleArn",), place)
    elif place.language is Language.JSONATA and not is_expression(value):
        place.error("Expected value of type [OBJECT]")


def task(value: Mapping[str, Any], place: Place) -> None:
    """What the members of a Task state mean for each other."""
    named = value.get("Resource")
    parsed = parse_resource(named) if isinstance(named, str) else None
    if parsed is not None:
        _check_arguments(value, parsed, place)
        if parsed.kind is ResourceKind.ACTIVITY and "Credentials" in value:
            place.member("Credentials").error("The field 'Credentials' is not supported for activities")
    timeout, heartbeat = value.get("TimeoutSeconds"), value.get("HeartbeatSeconds")
    if isinstance(timeout, int) and isinstance(heartbeat, int) and heartbeat >= timeout:
        place.member("HeartbeatSeconds").error("HeartbeatSeconds must be smaller than TimeoutSeconds")


def require_members(value: Any, names: tuple[str, ...], place: Place) -> None:
    """Report the members that a template lacks, as values or as paths."""
    for name in names if isinstance(value, dict) else ():
        if name not in value and not (place.language is Language.JSONPATH and f"{name}{DYNAMIC}" in value):
            place.error(f"The field '{name}' is required but was missing")


def _check_express(parsed: Resource, place: Place) -> None:
    if parsed.kind is ResourceKind.ACTIVITY:
        place.error("Express state machine does not support Activity ARN")
    elif parsed.pattern in _PATTERNS:
        # The space at the end is AWS's.
        place.error(f"Express state machine does not support '{_PATTERNS[parsed.pattern]}' service integration ")


def _check_arguments(value: Mapping[str, Any], parsed: Resource, place: Place) -> None:
    if parsed.kind not in {ResourceKind.SERVICE, ResourceKind.SDK}:
        return
    name = "Arguments" if place.language is Language.JSONATA else "Parameters"
    if name not in value:
        place.error(f"{name} field is required for resource ARN: {parsed.arn}")
    elif parsed.kind is ResourceKind.SERVICE:
        required = _REQUIRED[parsed.service, parsed.action]
        require_members(value[name], required, place.member(name))
