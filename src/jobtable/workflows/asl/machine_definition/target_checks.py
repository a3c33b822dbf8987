"""The transitions of a machine: their targets, and the states that none leads to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jobtable.workflows.asl.machine import StateType
from jobtable.workflows.asl.machine_definition.findings import Place

MISSING_TARGET = "MISSING_TRANSITION_TARGET"
_ENDS = frozenset({StateType.SUCCEED, StateType.FAIL})


def check_transitions(
    definition: Mapping[str, Any], states: Mapping[str, Any], place: Place, *, is_whole: bool
) -> None:
    """Report missing targets, unreachable states, and a whole definition that cannot end.

    As on AWS, a definition that cannot end says nothing about unreachable states.
    """
    start = definition.get("StartAt")
    targets = {
        name: list(_targets(state, place.member("States").member(name)))
        for name, state in states.items()
        if isinstance(state, dict)
    }
    first = [(start, place.member("StartAt"))] if isinstance(start, str) else []
    for target, at in [*first, *(each for found in targets.values() for each in found)]:
        if target not in states:
            at.error(f"Missing 'Next' target: {target}", MISSING_TARGET)
    if is_whole and states and not any(_is_end(state) for state in states.values()):
        place.findings.add("ERROR", "MISSING_END_STATE", "Workflow has no terminal state", "")
    elif isinstance(start, str):
        reached = _reach(start, {name: [target for target, _ in found] for name, found in targets.items()})
        for name in states:
            if name not in reached:
                place.member("States").member(name).error(f'State "{name}" is not reachable.', MISSING_TARGET)


def _targets(state: Mapping[str, Any], place: Place) -> Iterator[tuple[str, Place]]:
    for name in ("Next", "Default"):
        if isinstance(state.get(name), str):
            yield state[name], place.member(name)
    for name in ("Choices", "Catch"):
        clauses = state.get(name)
        for index, clause in enumerate(clauses if isinstance(clauses, list) else ()):
            if isinstance(clause, dict) and isinstance(clause.get("Next"), str):
                yield clause["Next"], place.member(name).element(index).member("Next")


def _is_end(state: Any) -> bool:
    return isinstance(state, dict) and (state.get("Type") in list(_ENDS) or state.get("End") is True)


def _reach(start: str, targets: Mapping[str, list[str]]) -> set[str]:
    reached: set[str] = set()
    todo = [start]
    while todo:
        name = todo.pop()
        if name not in reached:
            reached.add(name)
            todo += targets.get(name, ())
    return reached
