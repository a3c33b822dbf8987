"""A machine with two versions and an alias, its executions, one with a map run, and a function with durable ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from jobtable.model import Entity
from jobtable.objects.memory import MemoryObjectStore
from jobtable.store import Store
from jobtable.workflows.asl.arns import ACCOUNT, REGION
from jobtable.workflows.asl.catalogue.activities import Activities
from jobtable.workflows.asl.catalogue.machine_reads import MachineReads
from jobtable.workflows.asl.catalogue.records import Activity, StateMachine, StateMachineAlias, StateMachineVersion
from jobtable.workflows.asl.entities import (
    Execution,
    ExecutionEvent,
    ExecutionStatus,
    MachineType,
    MapRun,
    MapRunStatus,
)
from jobtable.workflows.asl.execution.execution_reads import ExecutionReads
from jobtable.workflows.durable.durable_reads import DurableReads
from jobtable.workflows.durable.durable_tokens import DurableTokens
from jobtable.workflows.durable.entities import (
    DurableEvents,
    DurableExecution,
    DurableOperation,
    DurableStatus,
    OperationStatus,
    OperationType,
)
from jobtable.workflows.durable.lambda_shapes import HistoryEvents, OperationShapes
from jobtable.workflows.durable.large_payloads import LargePayloads
from jobtable.workflows.function_records import FunctionRecord, FunctionRecords
from jobtable.workflows.table_and_queues import workflows
from tests.access_patterns import Question, World

START = datetime(2025, 11, 1, 20, 30, tzinfo=UTC)
_PLACE: dict[str, Any] = {"region": REGION, "account": ACCOUNT}
_FAILED, _DONE = ExecutionStatus.FAILED, ExecutionStatus.SUCCEEDED
_EXECUTIONS = {"order-1": _DONE, "order-2": _FAILED, "order-3": _DONE}
_RUNS = {"may": DurableStatus.SUCCEEDED, "june": DurableStatus.FAILED, "july": DurableStatus.SUCCEEDED}


def at(second: int) -> datetime:
    """A second after the start."""
    return START + timedelta(seconds=second)


def _machines() -> Iterator[Entity]:
    of_machine: dict[str, Any] = {"definition_sha256": "0", "role_arn": "r", "settings": {}, "created_at": START}
    for name in ("orders", "prices"):
        yield StateMachine(name=name, type=MachineType.STANDARD, updated_at=START, **_PLACE, **of_machine)
    for number in (1, 2):
        yield StateMachineVersion(machine="orders", number=number, type=MachineType.STANDARD, **of_machine)
    yield StateMachineAlias(machine="orders", name="live", weights=[[2, 100]], created_at=START, updated_at=START)
    for name in ("paint", "weigh"):
        yield Activity(name=name, settings={}, created_at=START, **_PLACE)


def _execution(machine: str, name: str, second: int, status: ExecutionStatus, **members: Any) -> Execution:
    return Execution(
        machine=machine,
        name=name,
        job_id=name,
        status=status,
        definition_sha256="0",
        input="{}",
        started_at=at(second),
        last_event_id=2,
        **_PLACE,
        **members,
    )


def _executions() -> Iterator[Entity]:
    for second, (name, status) in enumerate(_EXECUTIONS.items()):
        yield _execution("orders", name, second, status)
    for event_id, kind in ((1, "ExecutionStarted"), (2, "ExecutionSucceeded"), (3, "NotYetTrue")):
        yield ExecutionEvent(
            machine="orders", name="order-1", event_id=event_id, previous_id=event_id - 1, type=kind, at=at(event_id)
        )
    for second, run in enumerate(("run-1", "run-2")):
        yield MapRun(
            map_run_id=run,
            machine="orders",
            name="order-1",
            label="Each",
            status=MapRunStatus.SUCCEEDED,
            started_at=at(second),
        )
        yield _execution("orders/Each", f"of-{run}", second, _DONE, map_run_id=run)


def _durable() -> Iterator[Entity]:
    for name in ("settle", "weigh"):
        yield FunctionRecord(name=name, path=f"shop:{name}")
    for second, (name, status) in enumerate(_RUNS.items()):
        yield DurableExecution(
            function="settle",
            name=name,
            execution_id=name,
            status=status,
            input="{}",
            input_sha256="0",
            started_at=at(second),
            **_PLACE,
        )
    for number in (1, 2):
        yield DurableOperation(
            function="settle",
            execution="may",
            number=number,
            operation_id=f"o-{number}",
            type=OperationType.STEP,
            status=OperationStatus.SUCCEEDED,
            revision=number,
            started_at=at(number),
            ended_at=at(number),
        )
    events = '[{"type": "ExecutionStarted", "at": 1}, {"type": "ExecutionSucceeded", "at": 2}]'
    yield DurableEvents(function="settle", execution="may", first_id=1, events=events)


def items() -> Iterator[Entity]:
    """The world."""
    yield from _machines()
    yield from _executions()
    yield from _durable()


def _machine_reads(ask: Callable[[MachineReads], Iterable[Any]]) -> Callable[[Store], Iterable[Any]]:
    return lambda store: ask(MachineReads(store, MemoryObjectStore()))


def _executions_of(ask: Callable[[ExecutionReads], Iterable[Execution]]) -> Callable[[Store], Iterable[Any]]:
    return lambda store: [each.name for each in ask(ExecutionReads(store))]


def _durable_of(ask: Callable[[DurableReads], Iterable[DurableExecution]]) -> Callable[[Store], Iterable[Any]]:
    return lambda store: [each.name for each in ask(DurableReads(store, MemoryObjectStore()))]


def _history(store: Store) -> list[str]:
    payloads = LargePayloads(MemoryObjectStore())
    events = HistoryEvents(store, payloads, OperationShapes(payloads, DurableTokens(store)))
    execution = DurableReads(store, MemoryObjectStore()).get("settle", "may")
    return [event["EventType"] for event in events.read(execution)]


_MACHINES: dict[str, Question] = {
    "Get a state machine": Question(_machine_reads(lambda m: [m.get("orders").name]), ["orders"]),
    "List state machines by name": Question(_machine_reads(lambda m: [e.name for e in m.list()]), ["orders", "prices"]),
    "Get a version of a machine": Question(_machine_reads(lambda m: [m.get_version("orders", 2).number]), [2]),
    "List the versions of a machine": Question(
        _machine_reads(lambda m: [each.number for each in m.versions("orders")]), [2, 1]
    ),
    "Get an alias of a machine": Question(_machine_reads(lambda m: [m.get_alias("orders", "live").name]), ["live"]),
    "List the aliases of a machine": Question(
        _machine_reads(lambda m: [each.name for each in m.aliases("orders")]), ["live"]
    ),
    "Get an activity": Question(lambda s: [Activities(s).get("paint").name], ["paint"]),
    "List activities by name": Question(lambda s: [each.name for each in Activities(s).list()], ["paint", "weigh"]),
}
_MOVED: dict[str, Question] = {
    "Get an execution": Question(_executions_of(lambda e: [e.get("orders", "order-2")]), ["order-2"]),
    "List the executions of a machine": Question(
        _executions_of(lambda e: e.list("orders")), ["order-3", "order-2", "order-1"]
    ),
    "List the executions of a machine by status": Question(
        _executions_of(lambda e: e.list("orders", status=_DONE)), ["order-3", "order-1"]
    ),
    "Read the history of an execution": Question(
        lambda s: [event.type for event in ExecutionReads(s).history("orders", "order-1")],
        ["ExecutionStarted", "ExecutionSucceeded"],
    ),
    "Get a map run": Question(lambda s: [ExecutionReads(s).get_map_run("run-1").label], ["Each"]),
    "List the map runs of an execution": Question(
        lambda s: [run.map_run_id for run in ExecutionReads(s).list_map_runs("orders", "order-1")], ["run-1", "run-2"]
    ),
    "List the executions of a map run": Question(_executions_of(lambda e: e.children("orders", "run-1")), ["of-run-1"]),
}
_FUNCTIONS: dict[str, Question] = {
    "Get a function": Question(
        lambda s: [record.path for record in [FunctionRecords(s).find_record("settle")] if record], ["shop:settle"]
    ),
    "List functions by name": Question(
        lambda s: [record.name for record in FunctionRecords(s).query()], ["settle", "weigh"]
    ),
    "Get a durable execution": Question(_durable_of(lambda d: [d.get("settle", "may")]), ["may"]),
    "List the executions of a durable function": Question(
        _durable_of(lambda d: d.list("settle")), ["july", "june", "may"]
    ),
    "List the executions of a durable function by status": Question(
        _durable_of(lambda d: d.list("settle", status=DurableStatus.SUCCEEDED)), ["july", "may"]
    ),
    "List the operations of a durable execution": Question(
        lambda s: [each.number for each in DurableReads(s, MemoryObjectStore()).operations("settle", "may")], [1, 2]
    ),
    "Get an operation of a durable execution": Question(
        lambda s: [DurableReads(s, MemoryObjectStore()).get_operation("settle", "may", 2).operation_id], ["o-2"]
    ),
    "Read the history of a durable execution": Question(_history, ["ExecutionStarted", "ExecutionSucceeded"]),
}

WORLD = World(
    name="workflows",
    tables=(workflows,),
    items=items,
    questions={("workflows", title): question for title, question in {**_MACHINES, **_MOVED, **_FUNCTIONS}.items()},
)
