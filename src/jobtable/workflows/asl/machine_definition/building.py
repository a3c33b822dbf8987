"""Builds a machine from a definition that has no faults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jobtable.workflows.asl.machine import Language, Machine, State, StateType


def build_machine(definition: Mapping[str, Any], path: str = "", language: Language = Language.JSONPATH) -> Machine:
    """Return the machine of a definition, which lies at a path of the whole one."""
    language = Language(definition.get("QueryLanguage", language))
    return Machine(
        start_at=definition["StartAt"],
        states={
            name: _build_state(name, fields, f"{path}/States/{name}", language)
            for name, fields in definition["States"].items()
        },
        language=language,
        timeout_seconds=definition.get("TimeoutSeconds"),
        comment=definition.get("Comment") or "",
        processor_config=definition.get("ProcessorConfig") or {},
    )


def _build_state(name: str, fields: Mapping[str, Any], path: str, language: Language) -> State:
    return State(
        name=name,
        type=StateType(fields["Type"]),
        language=Language(fields.get("QueryLanguage", language)),
        fields=fields,
        path=path,
        branches=tuple(build_machine(inner, f"{path}/{place}", language) for place, inner in inner_machines(fields)),
    )


def inner_machines(fields: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The machines inside a state, each with its place in it."""
    for number, branch in enumerate(fields.get("Branches", ())):
        yield f"Branches[{number}]", branch
    for name in ("ItemProcessor", "Iterator"):
        if name in fields:
            yield name, fields[name]
