"""Lambda's operations on durable executions."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice
from typing import Any

from jobtable.errors import OperationRefused
from jobtable.workflows.asl.aws_api.page_tokens import page_of
from jobtable.workflows.durable.entities import DurableExecution, DurableStatus
from jobtable.workflows.durable.lambda_calls import LambdaCall, invalid_marker
from jobtable.workflows.durable.lambda_errors import lambda_error


def checkpoint(call: LambdaCall) -> dict[str, Any]:
    """Record what a handler did; return what others did meanwhile."""
    request = call.request
    answer = call.service.checkpoints.checkpoint(
        call.execution_arn, request["CheckpointToken"], request.get("Updates") or (), request.get("ClientToken")
    )
    state = {"NewExecutionState": {"Operations": answer.operations}}
    return state if answer.token is None else {"CheckpointToken": answer.token, **state}


def execution_state(call: LambdaCall) -> dict[str, Any]:
    """Return a page of the operations, for a handler that is replayed. The first has the execution itself."""
    after, core = call.numeric_marker(), call.service.core
    state = call.service.checkpoints.read_state(call.execution_arn, call.request["CheckpointToken"])
    page, marker = call.service.calls.page(state, after, call.page_size())
    operations = core.shapes.operations(state.progress, page)
    if after == 0:
        execution = core.get_execution(state.progress.function, state.progress.name)
        operations.insert(0, core.shapes.execution(execution))
    return {"Operations": operations, **_next(marker)}


def describe_execution(call: LambdaCall) -> dict[str, Any]:
    """Return an execution, with its input and outcome unless they are not wanted."""
    execution = call.execution()
    is_whole = call.request.get("IncludeExecutionData", True)
    answer = _summary(call, execution) | {
        "Version": execution.version,
        "ExecutionDataIncluded": is_whole,
        "DurableConfig": {
            "ExecutionTimeout": execution.timeout_seconds,
            "RetentionPeriodInDays": execution.retention_days,
        },
    }
    if is_whole:
        answer["InputPayload"] = call.service.input_of(execution)
        if (output := call.service.output_of(execution)) is not None:
            answer["Result"] = output
        if execution.error is not None:
            answer["Error"] = execution.error
    return answer


def execution_history(call: LambdaCall) -> dict[str, Any]:
    """Return a page of the events of an execution."""
    request, size = call.request, call.page_size()
    events = call.service.core.events.read(
        call.execution(),
        after=call.numeric_marker(),
        newest_first=request.get("ReverseOrder", False),
        with_data=request.get("IncludeExecutionData", True),
    )
    page = list(islice(events, size + 1))
    marker = str(page[size - 1]["EventId"]) if len(page) > size else ""
    return {"Events": page[:size], **_next(marker)}


def list_executions(call: LambdaCall) -> dict[str, Any]:
    """Return a page of the executions of a function, the newest first unless the order is reversed."""
    request, target = call.request, call.target()
    function = target.name
    if call.service.core.functions.find_record(function) is None:
        raise call.no_function(function)
    version = None if target.qualifier is None else call.version(target)
    statuses = set(request.get("Statuses") or ())
    keys: dict[str, Any] = {"function": function}
    if len(statuses) == 1:
        selection = DurableExecution.by_status(**keys, status=DurableStatus(*statuses))
    else:
        selection = DurableExecution.by_function(**keys)
    found = call.service.core.store.query(
        selection,
        newest_first=not request.get("ReverseOrder", False),
        after=_instant(call, "StartedAfter"),
        before=_instant(call, "StartedBefore"),
    )
    name = request.get("DurableExecutionName")

    def is_wanted(execution: DurableExecution) -> bool:
        is_named = name in (None, execution.name) and version in (None, execution.version)
        return is_named and (not statuses or execution.status in statuses)

    paging = {"maxResults": call.page_size(), "nextToken": request.get("Marker")}
    try:
        page, marker = page_of(found, paging, call.service.core.now(), keep=is_wanted)
    except OperationRefused as error:
        raise invalid_marker() from error
    return {"DurableExecutions": [_summary(call, each) for each in page], **_next(marker)}


def stop_execution(call: LambdaCall) -> dict[str, Any]:
    """Stop an execution; one that has ended stays as it is."""
    execution = call.execution()
    stopped = call.service.stop(execution.function, execution.name, error=call.request.get("Error"))
    return {"StopTimestamp": stopped.ended_at}


def _summary(call: LambdaCall, execution: DurableExecution) -> dict[str, Any]:
    arn = call.service.core.arn_of(execution)
    summary: dict[str, Any] = {
        "DurableExecutionArn": str(arn),
        "DurableExecutionName": execution.name,
        "FunctionArn": arn.function_arn,
        "Status": execution.status.value,
        "StartTimestamp": execution.started_at,
    }
    return summary if execution.ended_at is None else {**summary, "EndTimestamp": execution.ended_at}


def _next(marker: str | None) -> dict[str, str]:
    return {"NextMarker": marker} if marker else {}


def _instant(call: LambdaCall, member: str) -> datetime | None:
    seconds = call.request.get(member)
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError) as error:
        message = f"{member} must lie between the years 1 and 9999"
        raise lambda_error("InvalidParameterValueException", message) from error
