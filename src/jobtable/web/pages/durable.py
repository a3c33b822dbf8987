"""The pages of functions, and of executions of durable functions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Annotated, Any

from fastapi import Query, Request, Response

from jobtable.access.entities import Role
from jobtable.app import Services
from jobtable.clock import wall_time
from jobtable.errors import ValueRefusedError
from jobtable.jobs.stored.entities import Job
from jobtable.web.formats import segment
from jobtable.web.guard import READ, allow
from jobtable.web.injection import AllServices, path_id
from jobtable.web.pages.frame import page_router, render
from jobtable.web.pages.gantt import Row, Span, span_of
from jobtable.web.pages.machines import shown_json
from jobtable.workflows.durable.entities import (
    DurableExecution,
    DurableOperation,
    DurableStatus,
    OperationStatus,
    OperationType,
)
from jobtable.workflows.function_records import FunctionRecord

router = page_router()

_PAGE = 30
_EVENTS = 50
_MOST_OPERATIONS = 1000
_MOST_ROWS = 100
_MOST_EVENTS = 5_000
"""How many events are read to show the attempts of steps."""
FunctionName = Annotated[str, path_id("charge")]
DurableName = Annotated[str, path_id("order-7")]
_OPEN = frozenset({OperationStatus.STARTED, OperationStatus.PENDING, OperationStatus.READY})


@dataclass(frozen=True)
class Branch:
    """An operation with those inside it."""

    operation: DurableOperation
    status: str
    result: str
    input: str
    child: str | None
    """The address of the execution that it started."""
    callback_id: str | None
    """If the reader may answer it."""
    inner: list[Branch]


@router.get("/workflows/functions")
@allow(READ)
def show_functions(request: Request, services: AllServices) -> Response:
    """Show the registered functions, by name."""
    records = list(services.store.query(FunctionRecord.key()).take(1000)) if services.durable else []
    last = {
        each.name: next(iter(services.durable.list(each.name).take(1)), None)
        for each in records
        if each.durable is not None
    }
    return render(request, "workflows/functions.html", title="Functions", functions=records, last=last)


@router.get("/workflows/durable/{function}")
@allow(READ)
def show_durable_executions(
    request: Request, function: FunctionName, services: AllServices, only: str = "", cursor: str = ""
) -> Response:
    """Show the executions of a durable function, the newest first."""
    if only and only not in set(DurableStatus):
        raise ValueRefusedError(f"unknown status {only[:40]!r}; must be one of {', '.join(DurableStatus)}")
    status = DurableStatus(only) if only else None
    page = services.durable.list(function, status=status).page(cursor or None, size=_PAGE)
    return render(
        request,
        "workflows/durable_executions.html",
        title=function,
        function=function,
        page=page,
        only=only,
        cursor=cursor,
        statuses=list(DurableStatus),
    )


@router.get("/workflows/durable/{function}/{name}")
@allow(READ)
def show_durable_execution(
    request: Request,
    function: FunctionName,
    name: DurableName,
    services: AllServices,
    order: Annotated[str, Query(pattern="^(newest|oldest)$")] = "newest",
    page: Annotated[int, Query(ge=1, le=10_000)] = 1,
) -> Response:
    """Show one execution of a durable function: the tree of its operations, and its history."""
    durable = services.durable
    execution = durable.get(function, name)
    operations = list(durable.operations(function, name).take(_MOST_OPERATIONS + 1))
    may_write = request.state.caller.role is Role.FULL
    start = (page - 1) * _EVENTS
    found = durable.history(function, name, newest_first=order == "newest")
    events = list(islice(found, start, start + _EVENTS + 1))
    shown = operations[:_MOST_OPERATIONS]
    span = _span(services, execution, shown)
    return render(
        request,
        "workflows/durable_execution.html",
        title=f"{name} of {function}",
        execution=execution,
        is_ended=execution.status is not DurableStatus.RUNNING,
        input=shown_json(durable.input_of(execution)),
        output=shown_json(durable.output_of(execution)),
        parent=_address(execution.parent),
        tree=list(_branches(services, execution, shown, may_answer=may_write)),
        operation_count=len(shown),
        has_more_operations=len(operations) > _MOST_OPERATIONS,
        rows=_rows(services, execution, span, shown),
        span=span,
        events=events[:_EVENTS] if may_write else [_without_callback_id(each) for each in events[:_EVENTS]],
        has_more_events=len(events) > _EVENTS,
        order=order,
        page=page,
        job=services.store.find(Job.key(job_id=execution.execution_id)),
    )


def _without_callback_id(event: dict[str, Any]) -> dict[str, Any]:
    """Return an event without the id with which its callback can be answered."""
    details = event.get("CallbackStartedDetails")
    if details is None:
        return event
    return {**event, "CallbackStartedDetails": {name: value for name, value in details.items() if name != "CallbackId"}}


def _address(child: Any) -> str | None:
    if not isinstance(child, dict):
        return None
    if "name" in child:
        return f"/workflows/durable/{segment(child['function'])}/{segment(child['name'])}"
    return f"/jobs/{segment(child['job_id'])}" if "job_id" in child else None


def _branches(
    services: Services, execution: DurableExecution, operations: list[DurableOperation], *, may_answer: bool
) -> Iterator[Branch]:
    by_parent: dict[str | None, list[DurableOperation]] = defaultdict(list)
    known = {each.operation_id for each in operations}
    for each in operations:
        by_parent[each.parent_id if each.parent_id in known else None].append(each)

    def branch(operation: DurableOperation) -> Branch:
        can_answer = operation.type is OperationType.CALLBACK and operation.status in _OPEN and may_answer
        return Branch(
            operation,
            status_of(operation),
            _text(services, operation.result),
            _text(services, operation.input),
            _address(operation.child),
            services.durable.callback_id(operation)
            if can_answer and execution.status is DurableStatus.RUNNING
            else None,
            [branch(each) for each in by_parent[operation.operation_id]],
        )

    return (branch(each) for each in by_parent[None] if each.type is not OperationType.EXECUTION)


def _text(services: Services, stored: Any) -> str:
    """Return a payload, from the object store if it is too large for an item."""
    if isinstance(stored, dict):
        return shown_json(services.objects.get(stored["object"]).decode())
    return shown_json(stored)


_WAITS = frozenset({OperationType.WAIT, OperationType.CALLBACK})


def status_of(operation: DurableOperation) -> str:
    """Return the status of an operation in the words of the pages."""
    if operation.status in (OperationStatus.PENDING, OperationStatus.READY):
        return "retrying"
    if operation.status is OperationStatus.STARTED:
        return "waiting" if operation.type in _WAITS else "running"
    return {"SUCCEEDED": "succeeded", "FAILED": "failed", "TIMED_OUT": "failed"}.get(operation.status, "aborted")


def _span(services: Services, execution: DurableExecution, operations: list[DurableOperation]) -> Span:
    now = wall_time(services.store.clock)
    starts = [execution.started_at, *(each.started_at for each in operations)]
    return span_of(starts, [execution.ended_at, *(each.ended_at for each in operations)], execution.ended_at or now)


def _rows(services: Services, execution: DurableExecution, span: Span, operations: list[DurableOperation]) -> list[Row]:
    shown = operations[-_MOST_ROWS:]
    attempts = _attempts_of(services, execution) if any(each.attempt > 1 for each in shown) else {}
    parents = {each.operation_id: each.parent_id for each in operations}
    return [_row(each, span, parents, attempts.get(each.operation_id, [])) for each in shown]


def _row(
    operation: DurableOperation, span: Span, parents: Mapping[str, str | None], attempts: list[OperationAttempt]
) -> Row:
    depth, above = 0, operation.parent_id
    while above is not None and above in parents and depth < 20:
        depth, above = depth + 1, parents[above]
    name, status = operation.name or operation.type.value.lower(), status_of(operation)
    ground = f"{status}-ground" if len(attempts) > 1 else status
    bars = [span.bar(operation.started_at, operation.ended_at, ground, f"{name}: {status}")]
    for number, each in enumerate(attempts if len(attempts) > 1 else [], start=1):
        bars.append(span.bar(each.started_at, each.ended_at, each.status, f"{name}: attempt {number} {each.status}"))
    return Row(name, tuple(bars), depth, f"#operation-{operation.number}")


@dataclass
class OperationAttempt:
    """One attempt of a step, as the history shows it."""

    started_at: datetime
    ended_at: datetime | None = None
    status: str = "running"


def _attempts_of(services: Services, execution: DurableExecution) -> dict[str, list[OperationAttempt]]:
    """Return the attempts of each step, from the first events of the history."""
    attempts: dict[str, list[OperationAttempt]] = defaultdict(list)
    for event in islice(services.durable.history(execution.function, execution.name), _MOST_EVENTS):
        match event["EventType"]:
            case "StepStarted":
                attempts[event["Id"]].append(OperationAttempt(event["EventTimestamp"]))
            case "StepFailed" | "StepSucceeded" as kind if attempts[event["Id"]]:
                last = attempts[event["Id"]][-1]
                last.ended_at, last.status = event["EventTimestamp"], kind.removeprefix("Step").lower()
    return attempts
