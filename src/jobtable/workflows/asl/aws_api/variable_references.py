"""The variables that the states of a definition use."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_VARIABLE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
_JSONATA = re.compile(r"\s*\{%.*%\}\s*", re.DOTALL)


def variable_references(definition: str) -> dict[str, list[str]]:
    """Return the variables that each state uses, of those that a state of the definition assigns."""
    states = list(_states(json.loads(definition)))
    assigned = {name for _, state in states for name in _assigned(state)}
    found = {name: sorted(set(_used(state)) & assigned) for name, state in states}
    return {name: variables for name, variables in found.items() if variables}


def _states(machine: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the states of a machine and of the machines in its states."""
    if not isinstance(machine, dict):
        return
    for name, state in machine.get("States", {}).items():
        yield name, state
        for inner in (*state.get("Branches", ()), state.get("ItemProcessor"), state.get("Iterator")):
            yield from _states(inner)


def _assigned(state: Mapping[str, Any]) -> Iterator[str]:
    rules = (*state.get("Catch", ()), *state.get("Choices", ()))
    for each in (state, *rules):
        for name in each.get("Assign", {}):
            yield name.removesuffix(".$")


def _used(state: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names after a dollar sign in the expressions of a state."""
    for name, member in state.items():
        if name not in {"Branches", "ItemProcessor", "Iterator", "Result", "Comment"}:
            yield from _used_in(name, member)


def _used_in(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for inner, member in value.items():
            yield from _used_in(inner, member)
    elif isinstance(value, list):
        for member in value:
            yield from _used_in(name, member)
    elif isinstance(value, str) and (name.endswith((".$", "Path", "Variable")) or _JSONATA.fullmatch(value)):
        yield from _VARIABLE.findall(value)
