"""What services answer, as boto3 describes it, in the form in which the package keeps it for TestState.

`python -m tests.workflows.asl.aws_api.answer_shapes` writes the file anew.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import boto3

from jobtable.workflows.asl.aws_api import mocked_results
from jobtable.workflows.asl.resources import _SDK_ACTIONS, _SERVICES

FILE = Path(mocked_results.__file__).with_name("answer_shapes.json")
_CLIENTS = {"states": "stepfunctions"}
_NUMBERS = frozenset({"integer", "long", "float", "double"})


def described() -> dict[str, Any]:
    """Return the answers of all actions that a Task state may name, by service."""
    actions = {service: {*_SERVICES.get(service, ()), *_SDK_ACTIONS.get(service, ())} for service in _SERVICES}
    actions["s3"] = set(_SDK_ACTIONS["s3"])
    actions["states"].add("describeExecution")  # which `.sync` answers with
    return {service: _service(service, sorted(names)) for service, names in sorted(actions.items())}


def written() -> str:
    """Return the text of the file."""
    return json.dumps(described(), separators=(",", ":"), sort_keys=True) + "\n"


def _service(service: str, actions: list[str]) -> dict[str, Any]:
    client: Any = boto3.client(_CLIENTS.get(service, service), region_name="us-east-1")
    model = client.meta.service_model
    shapes: dict[str, Any] = {}
    answers = {}
    for action in actions:
        shape = model.operation_model(action[0].upper() + action[1:]).output_shape
        if shape is not None:
            answers[action] = shape.name
            _add(shape, shapes)
    return {"answers": answers, "shapes": shapes}


def _add(shape: Any, shapes: dict[str, Any]) -> str:
    name: str = shape.name
    if name in shapes:
        return name
    described = shapes[name] = dict[str, Any]()
    if shape.type_name == "structure":
        # AWS writes MD5OfMessageBody otherwise, and does not recognize it in a mock.
        named = {key[0].upper() + key[1:]: each for key, each in shape.members.items() if not key.startswith("MD5")}
        described["members"] = {key: _add(each, shapes) for key, each in named.items()}
        if required := [key[0].upper() + key[1:] for key in shape.required_members if not key.startswith("MD5")]:
            described["required"] = required
    elif shape.type_name == "list":
        described["list"] = _add(shape.member, shapes)
    elif shape.type_name == "map":
        described["map"] = _add(shape.value, shapes)
    else:
        described["type"] = _type(shape.type_name)
        described |= {key: shape.metadata[key] for key in ("min", "max", "enum") if key in shape.metadata}
    return name


def _type(name: str) -> str:
    if name == "boolean":
        return "a boolean"
    return "a number" if name in _NUMBERS else "a string"


if __name__ == "__main__":
    FILE.write_text(written())
