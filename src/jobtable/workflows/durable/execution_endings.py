"""The ends of executions and of chained invokes, each in one transaction with what waits for it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast

from jobtable.clock import wall_time
from jobtable.jobs.lifecycle.last_acts import JobEnd
from jobtable.jobs.lifecycle.waking import add_wake
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.stored.field_types import Status
from jobtable.store import Store
from jobtable.store.transactions import Transaction
from jobtable.workflows.asl.execution.signals import report_function
from jobtable.workflows.durable.entities import DurableExecution, DurableStatus, OperationStatus
from jobtable.workflows.durable.execution_state import Change, ExecutionState
from jobtable.workflows.durable.operation_changes import end_operation

_EVENTS = {
    DurableStatus.SUCCEEDED: "ExecutionSucceeded",
    DurableStatus.FAILED: "ExecutionFailed",
    DurableStatus.TIMED_OUT: "ExecutionTimedOut",
    DurableStatus.STOPPED: "ExecutionStopped",
}


def end_execution(
    store: Store,
    change: Change,
    execution: DurableExecution,
    status: DurableStatus,
    *,
    output: Any = None,
    output_for_parent: Any = None,
    error: Mapping[str, Any] | None = None,
) -> None:
    """Let an execution end with a change; what started it goes on with the outcome.

    An output is as stored: a large one has an object for the execution, and another for its
    parent, which may be kept longer.
    """
    change.is_last = True
    change.record(_EVENTS[status])

    def write(tx: Transaction) -> None:
        tx.update(
            execution,
            DurableExecution.status.set(status),
            DurableExecution.output.set(output),
            DurableExecution.error.set(None if error is None else dict(error)),
            DurableExecution.ended_at.set(change.now),
            when=DurableExecution.status == DurableStatus.RUNNING,
        )
        if execution.parent is not None:
            outcome = _outcome_for_parent(execution, status, output_for_parent, error)
            complete_invoke(store, tx, change.now, execution.parent, *outcome)

    change.beside.append(write)


def complete_invoke(
    store: Store,
    tx: Transaction,
    now: datetime,
    parent: Mapping[str, Any],
    status: OperationStatus,
    result: Any,
    error: Mapping[str, Any] | None,
) -> None:
    """End the chained invoke of an execution and wake its job, with the rest of a transaction.

    If the execution has ended, or no longer waits for it, nothing is added. A state machine gets a signal instead.
    """
    if "machine" in parent:
        has_failed = status is not OperationStatus.SUCCEEDED
        report_function(store, tx, now, parent, payload=result, error=(error or {}) if has_failed else None)
        return
    state = ExecutionState.find_with(store, parent["function"], parent["name"], parent["number"])
    if state is None or state.progress.execution_id != parent["execution_id"]:
        return
    (operation,) = state.operations.values()
    if operation.status is not OperationStatus.STARTED:
        return
    change = Change(state, now)
    end_operation(change, operation, status, result=result, error=error)
    change.add_to(tx)
    add_wake(store, tx, store.find(Job.key(job_id=state.progress.execution_id)))


def _outcome_for_parent(
    execution: DurableExecution, status: DurableStatus, output: Any, error: Mapping[str, Any] | None
) -> tuple[OperationStatus, Any, Mapping[str, Any] | None]:
    if status is DurableStatus.SUCCEEDED:
        return OperationStatus.SUCCEEDED, output, None
    if status is DurableStatus.TIMED_OUT:
        message = f"CHAINED_INVOKE timed out after {execution.timeout_seconds} seconds."
        return OperationStatus.TIMED_OUT, None, {"ErrorMessage": message, "ErrorType": "ChainedInvoke.Timeout"}
    return OperationStatus(status.value), None, error or {"ErrorMessage": "Chained invoke failed."}


def end_execution_with_job(end: JobEnd) -> None:
    """End an execution whose job was cancelled or has failed for good; if it has ended, add nothing."""
    params = end.job.definition.params
    function, name = params["function"], params["name"]
    state = ExecutionState.find(end.store, function, name)
    execution = end.store.find(DurableExecution.key(function=function, name=name))
    if state is None or execution is None or state.progress.execution_id != end.job.job_id:
        return
    is_stopped = end.status in (Status.CANCELLED, Status.STOPPED)
    error = {"ErrorMessage": end.message or f"its job was {end.status.lower()}", "ErrorType": "Runtime.ExitError"}
    change = Change(state, wall_time(end.clock))
    end_execution(
        end.store, change, execution, DurableStatus.STOPPED if is_stopped else DurableStatus.FAILED, error=error
    )
    change.add_to(end.tx)


def report_call(end: JobEnd) -> None:
    """End the chained invoke for which a function was called."""
    parent = cast("Mapping[str, Any]", end.job.definition.params["parent"])
    result = end.result if isinstance(end.result, Mapping) else {}
    is_done = end.status is Status.COMPLETED
    status = OperationStatus.SUCCEEDED if is_done else OperationStatus.FAILED
    error = None if is_done else result.get("error") or error_of_crash(end.message)
    complete_invoke(end.store, end.tx, wall_time(end.clock), parent, status, result.get("payload"), error)


def error_of_crash(message: str | None) -> dict[str, str]:
    """Return Lambda's error for a function whose process ended without an answer."""
    why = message or "the function ended without an answer"
    if why.startswith("timeout"):
        return {"ErrorType": "Sandbox.Timedout", "ErrorMessage": f"Task timed out: {why.removeprefix('timeout: ')}"}
    return {"ErrorType": "Runtime.ExitError", "ErrorMessage": why}
