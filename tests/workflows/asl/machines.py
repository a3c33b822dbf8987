"""Machines for tests."""

from __future__ import annotations

from typing import Any

from jobtable.workflows.asl.machine import Language, Machine, State, StateType


def read_machine(definition: dict[str, Any], path: str = "", language: str = "JSONPath") -> Machine:
    language = definition.get("QueryLanguage", language)
    states = {}
    for name, fields in definition["States"].items():
        at = f"{path}/States/{name}"
        own = fields.get("QueryLanguage", language)
        branches = tuple(
            read_machine(each, f"{at}/Branches/{number}", own if False else language)
            for number, each in enumerate(fields.get("Branches", ()))
        )
        for key in ("ItemProcessor", "Iterator"):
            if key in fields:
                branches = (read_machine(fields[key], f"{at}/{key}", language),)
        states[name] = State(name, StateType(fields["Type"]), Language(own), fields, at, branches)
    return Machine(
        definition["StartAt"],
        states,
        Language(language),
        definition.get("TimeoutSeconds"),
        definition.get("Comment", ""),
        definition.get("ProcessorConfig", {}),
    )
