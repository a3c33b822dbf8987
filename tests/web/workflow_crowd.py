"""Machines and functions with many executions, and many of them, written as items."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.web.crowd import at

from jobtable.app import Services
from jobtable.model import Entity
from jobtable.workflows.asl.catalogue.records import Activity, StateMachine, StateMachineAlias, StateMachineVersion
from jobtable.workflows.asl.definition_texts import Definitions
from jobtable.workflows.asl.entities import Execution, ExecutionEvent, ExecutionStatus, MachineType, MapRun
from jobtable.workflows.durable.entities import (
    DurableEvents,
    DurableExecution,
    DurableOperation,
    DurableStatus,
    OperationStatus,
    OperationType,
)
from jobtable.workflows.function_records import FunctionRecord

IDS = {"alias": "alias-0", "function": "run", "machine": "run", "map_run_id": "map", "name": "run", "number": "1"}
"""What paths of routes say, by the name of the parameter."""
WHOLE = {
    "/api/v1/functions/{function}/executions/{name}/history": "events name their operations, so all of these are read",
    "/workflows/functions": "all functions, which are as many as somebody has written",
    "/workflows/executions/{machine}/{name}": "the progress of every state, from all events",
    "/workflows/durable/{function}/{name}": "the tree of all operations",
}
"""What is asked for as a whole, and is as large as it is."""
_PLACE: dict[str, Any] = {"region": "us-east-1", "account": "000000000000"}
_ROLE = "arn:aws:iam::000000000000:role/crowd"
_DEFINITION = json.dumps({"StartAt": "S", "States": {"S": {"Type": "Pass", "Next": "S"}}})


def fill(services: Services, count: int) -> None:
    """Write so many of everything."""
    _ = services.executions  # with its table
    digest = Definitions(services.store, services.objects).keep(_DEFINITION)
    services.store.batch_put(_machines(count, digest))
    services.store.batch_put(_executions(count, digest))
    services.store.batch_put(_functions(count))


def _machines(count: int, digest: str) -> Iterator[Entity]:
    of_machine: dict[str, Any] = {"type": MachineType.STANDARD, "definition_sha256": digest, "role_arn": _ROLE}
    for name in ("run", *(f"machine-{n}" for n in range(count))):
        yield StateMachine(name=name, settings={}, created_at=at(0), updated_at=at(0), **of_machine, **_PLACE)
        yield Activity(name=name, settings={}, created_at=at(0), **_PLACE)
    for n in range(count):
        yield StateMachineVersion(machine="run", number=n + 1, settings={}, created_at=at(n), **of_machine)
        yield StateMachineAlias(
            machine="run", name=f"alias-{n}", weights=[[1, 100]], created_at=at(n), updated_at=at(n)
        )


def _executions(count: int, digest: str) -> Iterator[Entity]:
    def execution(machine: str, name: str, status: ExecutionStatus, **more: Any) -> Execution:
        of_it: dict[str, Any] = {"definition_sha256": digest, "input": "{}", "started_at": at(0), **_PLACE, **more}
        return Execution(machine=machine, name=name, job_id="job", status=status, **of_it)

    yield execution("run", "run", ExecutionStatus.RUNNING, last_event_id=count)
    run: dict[str, Any] = {"machine": "run", "name": "run", "label": "Each", "started_at": at(0)}
    yield MapRun(map_run_id="map", execution_count=count, **run)
    for n in range(count):
        for status in ExecutionStatus:
            yield execution("run", f"{status}-{n}", status)
        yield execution("run/Each", f"child-{n}", ExecutionStatus.RUNNING, map_run_id="map")
        yield MapRun(map_run_id=f"map-{n}", **run)
        yield ExecutionEvent(
            machine="run",
            name="run",
            event_id=n + 1,
            previous_id=n,
            type="PassStateEntered" if n else "ExecutionStarted",
            at=at(n),
            details={"stateEnteredEventDetails": {"name": "S", "input": "{}"}} if n else None,
        )


def _functions(count: int) -> Iterator[Entity]:
    def execution(name: str, status: DurableStatus) -> DurableExecution:
        return DurableExecution(
            function="run",
            name=name,
            execution_id=name,
            status=status,
            input="{}",
            input_sha256="0",
            started_at=at(0),
            **_PLACE,
        )

    yield execution("run", DurableStatus.RUNNING)
    yield FunctionRecord(name="run", path="m:run", durable={})
    for n in range(count):
        yield FunctionRecord(name=f"function-{n}", path="m:f")
        for status in DurableStatus:
            yield execution(f"{status}-{n}", status)
        yield DurableOperation(
            function="run",
            execution="run",
            number=n + 1,
            operation_id=str(n),
            type=OperationType.CALLBACK,
            status=OperationStatus.STARTED,
            revision=1,
            started_at=at(n),
        )
        event = {"type": "ExecutionStarted", "at": at(n).timestamp()}
        yield DurableEvents(function="run", execution="run", first_id=n + 1, events=json.dumps([event]))
