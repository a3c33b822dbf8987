"""What happens in the transaction in which the job of an execution or of a function ends, however it ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from jobtable.clock import wall_time
from jobtable.jobs.lifecycle.last_acts import JobEnd
from jobtable.jobs.stored.field_types import Status
from jobtable.workflows.durable.entities import DurableExecution, DurableStatus, OperationStatus
from jobtable.workflows.durable.execution_endings import complete_invoke, end_execution
from jobtable.workflows.durable.execution_state import Change, ExecutionState


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
