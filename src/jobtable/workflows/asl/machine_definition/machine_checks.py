"""Checks a whole definition: its machines, one after the other, and what connects their states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from jobtable.workflows.asl.entities import MachineType
from jobtable.workflows.asl.machine import Language, StateType
from jobtable.workflows.asl.machine_definition.document import TOO_DEEP, Members, find_repeated, levels_of
from jobtable.workflows.asl.machine_definition.findings import ERROR, Findings, Place, Scope
from jobtable.workflows.asl.machine_definition.map_checks import mode_of, processor_of
from jobtable.workflows.asl.machine_definition.object_checks import Shape
from jobtable.workflows.asl.machine_definition.state_fields import BRANCH, MACHINE, PROCESSOR, STATES
from jobtable.workflows.asl.machine_definition.target_checks import check_transitions
from jobtable.workflows.asl.machine_definition.value_checks import short_name
from jobtable.workflows.asl.machine_definition.variable_checks import check_variables

_LONGEST_NAME = 80
_MOST_MACHINES = 50
"""How deep machines may be nested in machines."""
_MOST_LEVELS = 100
"""How deep arrays and objects may be nested in a member of a state."""
_INNER = ("Branches", "ItemProcessor", "Iterator")
_TYPES = ", ".join(("Task", "Wait", "Pass", "Succeed", "Fail", "Choice", "Parallel", "Map"))


@dataclass(frozen=True)
class _Inner:
    """A machine that is still to be checked."""

    definition: Any
    shape: Shape
    place: Place
    machine_type: MachineType
    """The type of the executions that run it."""
    depth: int = 0


def check_document(document: Mapping[str, Any], machine_type: MachineType, findings: Findings) -> None:
    """Report all faults of a definition that is a JSON object."""
    place = Place(findings, Scope(), _language_of(document, Language.JSONPATH), machine_type)
    walk = _Walk(findings, place.language)
    todo = [_Inner(document, MACHINE, place, machine_type)]
    while todo:
        inner = todo.pop()
        todo += reversed(list(walk.check(inner)))
    for path, name in find_repeated(document):
        if path not in walk.paths_of_states:
            findings.add(ERROR, "INVALID_JSON_DESCRIPTION", f"Duplicate field '{name}'", path or "/")
    check_variables(findings)


class _Walk:
    """What is known across the machines of a definition."""

    def __init__(self, findings: Findings, language: Language) -> None:
        self._findings = findings
        self._language = language
        self._names: set[str] = set()
        self._labels: set[str] = set()
        self.paths_of_states: set[str] = set()

    def check(self, inner: _Inner) -> Iterator[_Inner]:
        """Check a machine, and yield the machines in it."""
        self._findings.scopes.append(inner.place.scope)
        inner.shape(inner.definition, inner.place)
        place = replace(inner.place, machine_type=inner.machine_type)
        states = inner.definition.get("States") if isinstance(inner.definition, dict) else None
        if not isinstance(states, dict):
            if isinstance(inner.definition, dict) and "States" in inner.definition:
                place.member("States").error("Expected value of type [OBJECT]")
            return
        at = place.member("States")
        self.paths_of_states.add(at.path)
        if not states:
            at.error("Value cannot be empty")
        for name in states.repeated if isinstance(states, Members) else ():
            at.member(name).error(f"Duplicate State name: {name}", "DUPLICATE_STATE_NAME")
        for name, state in states.items():
            self._check_name(name, at.member(name))
            yield from self._check_state(name, state, replace(at.member(name), state=name), inner.depth)
        check_transitions(inner.definition, states, place, is_whole=inner.shape is MACHINE)

    def _check_name(self, name: str, place: Place) -> None:
        if name in self._names:
            place.error(f"Duplicate State name: {name}", "DUPLICATE_STATE_NAME")
        self._names.add(name)
        if short_name(name, "State", _LONGEST_NAME, place) and any("\ud800" <= each <= "\udfff" for each in name):
            place.error(f"Invalid State name: '{name}' contains unpaired surrogates", "INVALID_STATE_NAME")

    def _check_state(self, name: str, state: Any, place: Place, depth: int) -> Iterator[_Inner]:
        if not isinstance(state, dict):
            place.error("Expected value of type [OBJECT]")
            return
        if "Type" not in state:
            place.error("These fields are required: [Type]")
            return
        if state["Type"] not in list(StateType):
            place.member("Type").error(f"The field 'Type' should have one of these values: [{_TYPES}]")
            return
        place = replace(place, language=self._language_of_state(state, place))
        if self._is_too_deep(state, place):
            return
        # `"End": false` says nothing.
        said = {name: member for name, member in state.items() if (name, member) != ("End", False)}
        STATES[StateType(state["Type"])](said, place)
        self._check_label(state, place)
        yield from self._inner_machines(state, place, depth)

    def _language_of_state(self, state: Mapping[str, Any], place: Place) -> Language:
        if self._language is Language.JSONATA and state.get("QueryLanguage") == Language.JSONPATH:
            place.error("'QueryLanguage' can not be 'JSONPath' if set to 'JSONata' for whole state machine")
        return _language_of(state, self._language)

    def _is_too_deep(self, state: Mapping[str, Any], place: Place) -> bool:
        deep = [name for name, value in state.items() if name not in _INNER and levels_of(value) > _MOST_LEVELS]
        for name in deep:
            message = f"Field '{name}' is nested more than {_MOST_LEVELS} levels deep"
            place.member(name).error(message, TOO_DEEP)
        return bool(deep)

    def _check_label(self, state: Mapping[str, Any], place: Place) -> None:
        label = state.get("Label")
        if isinstance(label, str):
            if label in self._labels:
                place.member("Label").error(f"Duplicate Label name: {label}", "DUPLICATE_LABEL_NAME")
            self._labels.add(label)

    def _inner_machines(self, state: Mapping[str, Any], place: Place, depth: int) -> Iterator[_Inner]:
        found = list(_inner_definitions(state, place))
        if found and depth >= _MOST_MACHINES:
            place.error(f"States are nested more than {_MOST_MACHINES} levels deep", TOO_DEEP)
            return
        is_distributed = state["Type"] == StateType.MAP and mode_of(state) == "DISTRIBUTED"
        machine_type = place.machine_type
        if is_distributed and processor_of(state).get("ExecutionType") == MachineType.EXPRESS:
            machine_type = MachineType.EXPRESS
        for definition, shape, at in found:
            # The executions of a distributed Map do not see the variables around it.
            scope = Scope(None if is_distributed else place.scope)
            inner = replace(at, scope=scope, language=self._language, state="")
            yield _Inner(definition, shape, inner, machine_type, depth + 1)


def _inner_definitions(state: Mapping[str, Any], place: Place) -> Iterator[tuple[Any, Shape, Place]]:
    branches = state.get("Branches")
    if state["Type"] == StateType.PARALLEL and isinstance(branches, list):
        for index, branch in enumerate(branches):
            yield branch, BRANCH, place.member("Branches").element(index)
    if state["Type"] == StateType.MAP:
        for name in _INNER[1:]:
            if name in state:
                yield state[name], PROCESSOR, place.member(name)


def _language_of(value: Mapping[str, Any], inherited: Language) -> Language:
    """Return the language that AWS takes: every value but the exact "JSONPath" is JSONata."""
    if "QueryLanguage" not in value:
        return inherited
    return Language.JSONPATH if value["QueryLanguage"] == Language.JSONPATH else Language.JSONATA
