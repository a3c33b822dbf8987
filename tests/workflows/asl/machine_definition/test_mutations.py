"""Definitions that are changed anywhere: either faults are found, or they run to an end, to a fault, or wait."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.workflows.asl.case_files import Case, read_cases
from tests.workflows.asl.memory_runner import MemoryRunner, NothingHappensError, World

from jobtable.workflows.asl.entities import MachineType
from jobtable.workflows.asl.machine import Diagnostic, Language
from jobtable.workflows.asl.machine_definition import diagnose, read_definition
from jobtable.workflows.asl.machine_definition.state_fields import STATES

CASES = [case for case in read_cases() if len(json.dumps(case.definition)) < 4000]
NAMES = sorted(
    {name for shape in STATES.values() for language in Language for name in (*shape.members, *shape.of(language))}
    | {"ErrorEquals", "Variable", "IsPresent", "And", "Not", "Condition", "StartAt", "States", "ProcessorConfig", "a.$"}
)
_LEAVES = [
    *(None, True, False, 0, 1, -1, 2.5, 10**12, "", "a", "Z", "$", "$.a", "$.a[0]", "$.a[*]", "$$", "$$.Execution.Id"),
    *("$v", "$v.a", "{% 1 %}", "{% $states.input %}", "{% $v %}", "{% 'a' %}", "{% [1] %}", "{% {'a': 1} %}"),
    *("States.UUID()", "States.ArrayLength($.a)", "JSONata", "JSONPath", "States.ALL", "2026-01-02T03:04:06Z"),
    *("Pass", "Task", "Map", "Parallel", "Choice", "Wait", "Succeed", "Fail", "DISTRIBUTED", "STANDARD", "INLINE"),
    *("arn:aws:lambda:us-east-1:000000000000:function:f", "arn:aws:states:::lambda:invoke"),
    *("arn:aws:states:::states:startExecution.sync:2", "arn:aws:states:us-east-1:000000000000:activity:a"),
    *("arn:aws:states:::s3:getObject", "arn:aws:states:::aws-sdk:dynamodb:query"),
]
leaves = st.sampled_from(_LEAVES)
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=2)
)


def containers(value: Any) -> Iterator[Any]:
    """Yield the arrays and objects of a value."""
    if isinstance(value, dict | list):
        yield value
        for member in value.values() if isinstance(value, dict) else value:
            yield from containers(member)


def members_of_states() -> dict[str, list[tuple[str, str]]]:
    """The members that states of each type have in the cases, as JSON."""
    found: dict[str, set[tuple[str, str]]] = {}
    for case in CASES:
        for each in containers(case.definition):
            if isinstance(each, dict) and isinstance(each.get("Type"), str):
                members = ((name, json.dumps(value)) for name, value in each.items() if name not in {"Type", "Next"})
                found.setdefault(each["Type"], set()).update(members)
    return {state_type: sorted(members) for state_type, members in found.items()}


GRAFTS = members_of_states()


class AnyWorld(World):
    """A world in which every function, service, machine and object answers something."""

    def answer(self, name: str) -> Any:
        """Return what the case says, or else an object."""
        return super().answer(name) if self.answers.get(name) else {"a": [1]}


class AnyMachines(dict[str, Any]):
    """Machines of every name."""

    def __missing__(self, name: str) -> Any:
        return {"StartAt": "Z", "States": {"Z": {"Type": "Succeed"}}}


@st.composite
def mutants(draw: st.DrawFn) -> tuple[Case, Any]:
    """A case, and its definition after up to four changes."""
    case = draw(st.sampled_from(CASES))
    definition = json.loads(json.dumps(case.definition))
    for _ in range(draw(st.integers(1, 3))):
        holders = list(containers(definition))
        states = [each for each in holders if isinstance(each, dict) and str(each.get("Type")) in GRAFTS]
        kind = draw(st.sampled_from(["delete", "replace", "add", "copy", *["graft"] * 6]))
        if kind == "graft" and states:
            state = draw(st.sampled_from(states))
            name, grafted = draw(st.sampled_from(GRAFTS[state["Type"]]))
            state[name] = json.loads(grafted)
            continue
        holder = draw(st.sampled_from(holders))
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        if kind == "add" or not keys:
            add(holder, draw(st.sampled_from(NAMES)), draw(values))
        elif kind == "delete":
            del holder[draw(st.sampled_from(keys))]
        else:
            value = draw(values) if kind == "replace" else json.loads(json.dumps(draw(st.sampled_from(holders))))
            holder[draw(st.sampled_from(keys))] = value
    return case, definition


def add(holder: Any, name: str, value: Any) -> None:
    """Add a member or an element."""
    if isinstance(holder, dict):
        holder[name] = value
    else:
        holder.append(value)


@given(mutants())
@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_a_changed_definition_has_faults_or_runs(mutant: tuple[Case, Any]) -> None:
    case, definition = mutant
    text = json.dumps(definition)
    faults = diagnose(text, MachineType(case.type))
    assert all(isinstance(each, Diagnostic) for each in faults)
    assert diagnose(text, MachineType(case.type)) == faults
    if any(each.severity == "ERROR" for each in faults):
        return
    world = AnyWorld(case.answers, AnyMachines(case.machines))
    world.fill(case.objects)
    runner = MemoryRunner(read_definition(text), case.input, world, most_events=400)
    try:
        ended = runner.finish()
    except NothingHappensError:
        return
    assert ended.status in {"SUCCEEDED", "FAILED", "TIMED_OUT"}


texts = st.recursive(
    leaves | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=3), inner, max_size=5)
    ),
    max_leaves=30,
)


@given(texts.map(json.dumps) | st.text(), st.sampled_from(MachineType))
def test_every_text_has_an_answer(text: str, machine_type: MachineType) -> None:
    found = diagnose(text, machine_type)
    for each in found:
        assert each.severity in {"ERROR", "WARNING"}
        assert (each.code + each.message + each.location).encode()


@given(st.integers(0, len(CASES) - 1), st.integers(0, 4000), st.integers(0, 4000), st.text(max_size=3))
def test_a_text_cut_anywhere_has_an_answer(number: int, start: int, stop: int, between: str) -> None:
    text = json.dumps(CASES[number].definition)
    diagnose(text[:start] + between + text[stop:], MachineType.STANDARD)
