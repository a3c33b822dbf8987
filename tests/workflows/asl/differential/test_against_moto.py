"""Machines of every kind end in the interpreter as in moto's, or moto has a fault that is listed."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from tests.workflows.asl.case_files import Case
from tests.workflows.asl.differential.machine_strategies import INPUTS, machines
from tests.workflows.asl.differential.moto_interpreter import MotoInterpreter, Outcome, moto_interpreter
from tests.workflows.asl.differential.reasons import REASONS, Reason
from tests.workflows.asl.memory_runner import run_case

# A worker of moto that is stopped while its branch enters a state raises in its thread.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")


FAILURES = {"ExecutionFailed", "ParallelStateFailed", "MapStateFailed"}


@pytest.fixture(scope="module")
def moto() -> Iterator[MotoInterpreter]:
    with moto_interpreter() as interpreter:
        yield interpreter


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Let moto not log the whole state with each failure."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def run(definition: dict[str, Any], payload: Any) -> Outcome:
    runner, ended = run_case(Case("differential", "drawn", definition, {}, payload))
    return Outcome(ended.status, ended.error, ended.cause, ended.output, tuple(event.type for event in runner.history))


def find_difference(ours: Outcome, theirs: Outcome, *, in_order: bool) -> str | None:
    """Compare two outcomes; the causes of Step Functions' own errors differ in their words."""
    for name in ("status", "error", "output"):
        if getattr(ours, name) != getattr(theirs, name):
            return name
    if not (ours.error or "").startswith("States.") and ours.cause != theirs.cause:
        return "cause"
    if in_order:
        return None if ours.events == theirs.events else "events"
    # moto runs branches in threads: their events come in any order, and some or none after a failure.
    is_whole = not FAILURES & set(ours.events)
    is_same = not is_whole or Counter(ours.events) == Counter(theirs.events)
    return None if is_same else "events"


def has_branches_at_once(machine: dict[str, Any]) -> bool:
    states = machine["States"].values()
    inner = [each for state in states for each in state.get("Branches", ())]
    inner += [state["ItemProcessor"] for state in states if "ItemProcessor" in state]
    return any(
        len(state.get("Branches", ())) > 1 or (state["Type"] == "Map" and state.get("MaxConcurrency") != 1)
        for state in states
    ) or any(map(has_branches_at_once, inner))


def test_drawn_machines_end_alike(moto: MotoInterpreter) -> None:
    tally: Counter[str] = Counter()

    @settings(
        max_examples=100,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )
    @given(machines(), INPUTS)
    def compare(definition: dict[str, Any], payload: Any) -> None:
        ours, theirs = run(definition, payload), moto.run(definition, payload)
        difference = find_difference(ours, theirs, in_order=not has_branches_at_once(definition))
        reason = (
            None if difference is None else next((r for r in REASONS if r.explains(ours, theirs, definition)), None)
        )
        assert difference is None or reason is not None, (difference, ours, theirs)
        tally["agreed" if difference is None else "explained"] += 1

    compare()

    assert tally["agreed"] > 2 * tally["explained"], tally


@pytest.mark.parametrize("reason", REASONS, ids=lambda reason: reason.name)
def test_moto_has_the_fault(moto: MotoInterpreter, reason: Reason) -> None:
    definition = {"StartAt": next(iter(reason.states)), "States": reason.states}

    ours, theirs = run(definition, reason.input), moto.run(definition, reason.input)

    assert find_difference(ours, theirs, in_order=True) is not None, "moto was mended: remove the reason"
    assert reason.explains(ours, theirs, definition)
