"""A worker that dies behind any of its writes, before it learns of it, changes nothing about how an execution ends.

The worker is not asked: from the moment of its death it can neither read nor write, and another one takes its jobs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.workflows.asl.case_files import Case
from tests.workflows.asl.execution.store_runner import StoreRunner

from jobtable.embedded import EmbeddedBackend
from jobtable.jobs.lifecycle.leases import Lease
from jobtable.store.backend import Request, Response
from jobtable.workflows.functions import function
from jobtable.workflows.remembered import Remembered

_CALLS_OF_A_CHANGE = 14
_WRITES = frozenset({"TransactWriteItems", "PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem"})


class KilledError(BaseException):
    """The worker is dead."""


class MortalBackend:
    """Kills whoever uses it behind these writes, and every time from then on until it is revived."""

    def __init__(self, deadly: Collection[int]) -> None:
        self._backend = EmbeddedBackend(None, durability="normal")
        self._deadly = deadly
        self.is_armed = False
        self.is_dead = False
        self.writes = 0

    def execute(self, operation: str, request: Request) -> Response:
        if self.is_dead:
            raise KilledError
        counts = self.is_armed and operation in _WRITES
        dies = counts and self.writes in self._deadly
        self.writes += counts
        response = self._backend.execute(operation, request)
        if dies:
            self.is_dead = True
            raise KilledError
        return response

    def close(self) -> None:
        self._backend.close()


class MortalRunner(StoreRunner):
    """A runner whose worker of executions may die; what it remembered dies with it."""

    def __init__(self, case: Case, backend: MortalBackend) -> None:
        super().__init__(case, backend=backend)
        self._mortal = backend

    def move(self, lease: Lease) -> None:
        self._mortal.is_armed = True
        try:
            super().move(lease)
        except BaseException:
            if not self._mortal.is_dead:
                raise
        finally:
            self._mortal.is_armed = False
        if self._mortal.is_dead:
            self._mortal.is_dead = False
            self.executions.mover._remembered = Remembered()
            self.jobs.interrupt_lost(self.jobs.queries.get_job(lease.job.job_id))


def _function(name: str, **members: Any) -> dict[str, Any]:
    return {"Type": "Task", "Resource": f"arn:aws:lambda:us-east-1:000000000000:function:{name}", **members}


def _machine(**state: Any) -> dict[str, Any]:
    return {"StartAt": "S", "States": {"S": {**state, "End": True}}}


_ASK = {
    "Type": "Task",
    "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken",
    "Parameters": {"QueueUrl": "q", "MessageBody": {"t.$": "$$.Task.Token"}},
}
_NESTED = {
    "Type": "Task",
    "Resource": "arn:aws:states:::states:startExecution.sync:2",
    "Parameters": {"StateMachineArn": "arn:aws:states:us-east-1:000000000000:stateMachine:inner", "Input": {}},
    "OutputPath": "$.Output",
}
_MANY = {
    "StartAt": "P",
    "States": {
        "P": {
            "Type": "Parallel",
            "Branches": [
                _machine(**_function("work", Retry=[{"ErrorEquals": ["Boom"], "IntervalSeconds": 1}])),
                _machine(Type="Wait", Seconds=5),
                _machine(**_ASK, HeartbeatSeconds=4),
                _machine(**_NESTED),
                _machine(Type="Task", Resource="arn:aws:states:us-east-1:000000000000:activity:paint"),
            ],
            "Next": "M",
        },
        "M": {
            "Type": "Map",
            "ItemsPath": "$",
            "ItemProcessor": _machine(**_function("each")),
            "Next": "D",
        },
        "D": {
            "Type": "Map",
            "Label": "Far",
            "MaxConcurrency": 2,
            "ItemProcessor": {
                "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
                **_machine(**_function("each")),
            },
            "End": True,
        },
    },
}
_SHORT = {"$output": {"ok": 1}, "$submitted": {"MessageId": "m"}, "after": 3, "$beats": [2]}
_CALLED: list[int] = []


@function(name="noted", inline=True)
def noted(event: int) -> int:
    """Runs in the process of the execution, and notes it."""
    _CALLED.append(event)
    return event


CASES = {
    "inline": Case(
        "kills", "inline", _machine(Type="Map", ItemProcessor=_machine(**_function("noted"))), {}, list(range(30))
    ),
    "many": Case(
        "kills",
        "many",
        _MANY,
        {},
        answers={
            "work": [{"$error": "Boom"}, 1],
            "each": [{"$echo": True}],
            "sqs:sendMessage": [_SHORT],
            "activity:paint": [{"$output": "red"}],
        },
        machines={"inner": _machine(Type="Wait", Seconds=2)},
    ),
    "cut": Case(
        "kills",
        "cut",
        {
            "StartAt": "P",
            "States": {
                "P": {
                    "Type": "Parallel",
                    "Branches": [
                        _machine(**_function("fails")),
                        _machine(**_function("never")),
                        _machine(**_NESTED),
                        _machine(
                            Type="Map",
                            Label="Far",
                            ItemsPath="$.items",
                            ItemProcessor={
                                "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
                                **_machine(**_function("never")),
                            },
                        ),
                    ],
                    "End": True,
                }
            },
        },
        {},
        input={"items": [1, 2]},
        answers={"fails": [{"$error": "Boom", "after": 1}], "never": [{"$never": True}]},
        machines={"inner": _machine(Type="Wait", Seconds=50)},
    ),
    "redriven": Case(
        "kills",
        "redriven",
        {
            "StartAt": "M",
            "States": {
                "M": {
                    "Type": "Map",
                    "Label": "Far",
                    "ItemProcessor": {
                        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
                        **_machine(**_function("flaky")),
                    },
                    "End": True,
                }
            },
        },
        {},
        input=[1],
        answers={"flaky": [{"$error": "Boom"}, 2]},
        events=[{"redrive": True}],
    ),
}


def _run(case: Case, *deadly: int) -> tuple[MortalRunner, MortalBackend]:
    backend = MortalBackend(deadly)
    runner = MortalRunner(case, backend)
    runner.run()
    return runner, backend


def _seen(runner: MortalRunner) -> tuple[Any, ...]:
    """Return what must be the same, whether or not a worker died."""
    history = runner.front.history()
    assert [event_id for event_id, _, _, _ in history] == list(range(1, len(history) + 1))
    children = Counter((job.job_type, job.status) for job in runner.jobs.queries.list_jobs())
    events = Counter(kind for _, _, kind, _ in history)
    return runner.front.outcome()[:2], events, children, dict(runner.world.asked).get("each")


@pytest.mark.parametrize("name", CASES)
def test_a_death_at_any_write_changes_nothing(name: str) -> None:
    quiet, backend = _run(CASES[name])
    expected = _seen(quiet)
    assert quiet.leftovers() == []
    assert backend.writes > 5
    for deadly in range(backend.writes):
        _CALLED.clear()
        disturbed, _ = _run(CASES[name], deadly)
        assert set(Counter(_CALLED).values()) <= {1, 2}, "a task whose end was recorded ran again"
        assert len(_CALLED) - len(set(_CALLED)) < _CALLS_OF_A_CHANGE, "so did others than those of one change"
        assert _seen(disturbed) == expected, f"write {deadly}"
        assert disturbed.leftovers() == [], f"write {deadly}"


@cache
def _quiet() -> tuple[Any, ...]:
    return _seen(_run(CASES["many"])[0])


@settings(max_examples=15)
@given(st.sets(st.integers(0, 400), min_size=2, max_size=25))
def test_many_deaths_change_nothing(deadly: set[int]) -> None:
    disturbed, _ = _run(CASES["many"], *deadly)
    assert _seen(disturbed) == _quiet()
    assert disturbed.leftovers() == []
