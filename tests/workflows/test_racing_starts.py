"""First starts of one execution that race: one of them happens, whole, and the others find it or are refused."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import pytest
from aws_durable_execution_sdk_python import DurableContext, durable_execution

from jobtable.errors import AlreadyExistsError
from jobtable.jobs.engine import Jobs
from jobtable.jobs.stored.entities import Job, main
from jobtable.objects.memory import MemoryObjectStore
from jobtable.store import Store
from jobtable.store.backend import Backend, Request, Response
from jobtable.workflows.asl.arns import Arns
from jobtable.workflows.asl.entities import Execution
from jobtable.workflows.asl.execution.executions import Executions
from jobtable.workflows.asl.verbs import RunnableMachine
from jobtable.workflows.durable.durable_service import DurableService
from jobtable.workflows.durable.entities import DurableExecution, DurableProgress
from jobtable.workflows.functions import function
from jobtable.workflows.table_and_queues import QUEUES, workflows

T = TypeVar("T")
STARTERS = 4
MACHINE = RunnableMachine("racing", '{"StartAt": "P", "States": {"P": {"Type": "Pass", "End": true}}}')


@function(name="raced")
@durable_execution
def raced(_event: Any, _context: DurableContext) -> None:
    """Is started, and never runs."""


class StartingLine:
    """A backend on which nobody writes a job before all starters have read that there is none."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._line = threading.Barrier(STARTERS)
        self._passed = threading.local()

    def execute(self, operation: str, request: Request) -> Response:
        is_start = operation == "TransactWriteItems" and threading.current_thread() is not threading.main_thread()
        if is_start and not getattr(self._passed, "line", False):
            self._passed.line = True
            self._line.wait(timeout=60)
        return self._backend.execute(operation, request)

    def close(self) -> None:
        self._backend.close()


@pytest.fixture
def jobs(each_store: Store) -> Jobs:
    each_store.tables.create(main, workflows)
    jobs = Jobs(Store(StartingLine(each_store.backend), prefix=each_store.prefix), MemoryObjectStore())
    for queue in QUEUES:
        jobs.create_queue(queue)
    return jobs


def race(start: Callable[[int], T]) -> list[T | AlreadyExistsError]:
    """Start so many times at once."""

    def attempt(number: int) -> T | AlreadyExistsError:
        try:
            return start(number)
        except AlreadyExistsError as error:
            return error

    with ThreadPoolExecutor(STARTERS) as threads:
        return list(threads.map(attempt, range(STARTERS)))


@pytest.mark.parametrize("is_same", [True, False], ids=["one payload", "several payloads"])
def test_one_durable_execution_is_started(jobs: Jobs, is_same: bool) -> None:
    service = DurableService(jobs)
    service.core.get_function("raced")  # recorded before the race
    found = race(lambda number: service.start("raced", {"n": 0 if is_same else number}, name="once"))
    execution = service.get("raced", "once")
    progress = jobs.store.get(DurableProgress.key(function="raced", name="once"))
    started = [each for each in found if isinstance(each, DurableExecution)]
    assert len(started) == (STARTERS if is_same else 1)
    assert {each.execution_id for each in started} == {execution.execution_id} == {progress.execution_id}
    assert [job.job_id for job in jobs.store.scan(Job)] == [execution.execution_id]
    assert [event["EventType"] for event in service.history("raced", "once")] == ["ExecutionStarted"]


@pytest.mark.parametrize("is_same", [True, False], ids=["one input", "several inputs"])
def test_one_execution_of_a_machine_is_started(jobs: Jobs, is_same: bool) -> None:
    executions = Executions(jobs)
    executions.core.keep_definition(MACHINE.definition)
    found = race(lambda number: executions.start(MACHINE, "0" if is_same else str(number), "once", arns=Arns()))
    execution = executions.get("racing", "once")
    started = [each for each in found if isinstance(each, Execution)]
    assert len(started) == (STARTERS if is_same else 1)
    assert {(each.job_id, each.input) for each in started} == {(execution.job_id, execution.input)}
    assert [job.job_id for job in jobs.store.scan(Job)] == [execution.job_id]
