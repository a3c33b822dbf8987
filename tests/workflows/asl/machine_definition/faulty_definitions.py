"""Reads `faults.yaml`: faulty definitions, each with all of its faults."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from tests.workflows.asl.case_files import CaseLoader

from jobtable.workflows.asl.entities import MachineType
from jobtable.workflows.asl.machine import Diagnostic
from jobtable.workflows.asl.machine_definition import diagnose

_FILE = Path(__file__).parent / "faults.yaml"
_SCHEMA = "SCHEMA_VALIDATION_FAILED"
WARNINGS = {"NO_DOLLAR", "NO_PATH", "PASS_RESULT_IS_STATIC", "UNDEFINED_VARIABLE"}


@dataclass(frozen=True)
class Faulty:
    """A faulty definition."""

    name: str
    text: str
    machine_type: MachineType
    faults: tuple[tuple[str, str, str], ...]
    """The code, the location and a part of the message of each fault."""

    def __str__(self) -> str:
        return self.name

    def diagnose(self) -> list[Diagnostic]:
        """Return what is found."""
        return diagnose(self.text, self.machine_type)


def read_faulty_definitions() -> Iterator[Faulty]:
    """Read all of the file."""
    for members in yaml.load(_FILE.read_text(), Loader=CaseLoader):
        text = members.get("text")
        if text is None:
            text = json.dumps(members.get("definition") or _around(members))
        faults = (fault if len(fault) == 3 else [_SCHEMA, *fault] for fault in members["faults"])
        machine_type = MachineType(members.get("type", "STANDARD"))
        yield Faulty(members["name"], text, machine_type, tuple((code, at, part) for code, at, part in faults))


def _around(members: dict[str, Any]) -> dict[str, Any]:
    """Return a machine around one state A, and Z if it may lead there."""
    states = {"A": members["state"], **members.get("states", {})}
    if '"Z"' in json.dumps(members["state"]) and "Z" not in states:
        states["Z"] = {"Type": "Succeed"}
    return {"StartAt": members.get("start", "A"), **members.get("machine", {}), "States": states}
