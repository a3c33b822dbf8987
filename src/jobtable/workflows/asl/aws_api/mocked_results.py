"""Whether the mocked result of a task is what its service could have answered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from jobtable.workflows.asl.aws_api.refusals import invalid
from jobtable.workflows.asl.resources import Pattern, Resource, ResourceKind

STRICT, NONE = "STRICT", "NONE"
_SYNC = frozenset({Pattern.SYNC, Pattern.SYNC_JSON})
_AS_JSON = frozenset({"Input", "Output"})
"""What `.sync:2` answers with as JSON, not as text."""


def check_result(result: Any, resource: Resource, mode: str) -> None:
    """Raise OperationRefused for a result that the service of a resource cannot answer with.

    What functions, activities and the holders of task tokens answer has no form. Unknown members are not judged.
    """
    if mode == NONE or resource.kind not in (ResourceKind.SERVICE, ResourceKind.SDK):
        return
    if resource.pattern is Pattern.TOKEN:
        return
    service = _services()[resource.service]
    action = "describeExecution" if resource.pattern in _SYNC else resource.action
    if action not in service["answers"]:
        return
    for fault in _Check(service["shapes"], is_strict=mode == STRICT).faults(result, service["answers"][action], ""):
        if resource.pattern is Pattern.SYNC_JSON and fault.field in _AS_JSON:
            continue
        raise invalid(f"Mock result schema validation error: {fault.text}")


@dataclass(frozen=True)
class _Fault:
    """What is wrong with a field, in AWS's words."""

    field: str
    text: str


class _Check:
    def __init__(self, shapes: dict[str, Any], *, is_strict: bool) -> None:
        self._shapes = shapes
        self._is_strict = is_strict

    def faults(self, value: Any, name: str, field: str) -> Iterator[_Fault]:
        """Yield what is wrong with a value of a shape."""
        shape = self._shapes[name]
        if "members" in shape:
            yield from self._members(value, shape, field)
        elif "list" in shape:
            if not isinstance(value, list):
                yield _wrong_type(field, "an array")
                return
            for each in value:
                yield from self.faults(each, shape["list"], field)
        elif "map" in shape:
            if not isinstance(value, dict):
                yield _wrong_type(field, "an object")
                return
            for each in value.values():
                yield from self.faults(each, shape["map"], field)
        else:
            yield from _scalar(value, shape, field)

    def _members(self, value: Any, shape: dict[str, Any], field: str) -> Iterator[_Fault]:
        if not isinstance(value, dict):
            yield _wrong_type(field or "result", "an object")
            return
        for name in shape.get("required", ()) if self._is_strict else ():
            if name not in value:
                yield _Fault(name, f"Required field '{name}' is missing")
        for name, each in value.items():
            if name in shape["members"]:
                yield from self.faults(each, shape["members"][name], name)


def _scalar(value: Any, shape: dict[str, Any], field: str) -> Iterator[_Fault]:
    kind = shape["type"]
    if _type_of(value) != kind:
        yield _wrong_type(field, kind)
    elif value not in shape.get("enum", (value,)):
        yield _Fault(field, f"Field '{field}' is not an expected value")
    elif kind == "a string":
        if len(value) < shape.get("min", 0):
            yield _Fault(field, f"Field '{field}' is smaller than the minimum length")
        elif len(value) > shape.get("max", len(value)):
            yield _Fault(field, f"Field '{field}' exceeds the maximum length")
    elif kind == "a number":
        if value < shape.get("min", value):
            yield _Fault(field, f"Field '{field}' is less than the minimum value")
        elif value > shape.get("max", value):
            yield _Fault(field, f"Field '{field}' exceeds the maximum value")


def _type_of(value: Any) -> str:
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    return "a string" if isinstance(value, str) else ""


def _wrong_type(field: str, kind: str) -> _Fault:
    return _Fault(field, f"Field '{field}' must be {kind}")


@cache
def _services() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        files("jobtable.workflows.asl.aws_api").joinpath("answer_shapes.json").read_text()
    )
    return found
