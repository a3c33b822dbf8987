"""How operations change: by a handler's updates, by time, and by the answers of others. With each its event."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from jobtable.workflows.durable.entities import DurableOperation, OperationStatus, OperationType
from jobtable.workflows.durable.execution_state import Change
from jobtable.workflows.durable.large_payloads import LargePayloads, PayloadOwner
from jobtable.workflows.durable.operation_updates import Action, OperationUpdate

_EVENT_NAMES = {
    OperationType.CONTEXT: "Context",
    OperationType.STEP: "Step",
    OperationType.WAIT: "Wait",
    OperationType.CALLBACK: "Callback",
    OperationType.CHAINED_INVOKE: "ChainedInvoke",
}
_ENDS = {
    OperationStatus.SUCCEEDED: "Succeeded",
    OperationStatus.FAILED: "Failed",
    OperationStatus.CANCELLED: "Cancelled",
    OperationStatus.TIMED_OUT: "TimedOut",
    OperationStatus.STOPPED: "Stopped",
}


def apply_update(change: Change, update: OperationUpdate, payloads: LargePayloads) -> DurableOperation:
    """Change an operation as a checked update says."""
    progress = change.state.progress
    current = change.find(update.operation_id)
    owner = PayloadOwner(progress.function, progress.execution_id, progress.name)
    payload = payloads.store(update.payload, owner)
    if update.action is Action.START:
        return _start(change, update, current, payload)
    if current is None:  # an operation may be recorded only when it ends
        current = _start(change, update, None, None)
    if update.action is Action.RETRY:
        return _retry(change, update, current, payload)
    status = {
        Action.SUCCEED: OperationStatus.SUCCEEDED,
        Action.FAIL: OperationStatus.FAILED,
        Action.CANCEL: OperationStatus.CANCELLED,
    }[update.action]
    members: dict[str, Any] = {"replays_children": update.replays_children}
    if current.type is OperationType.STEP:
        members |= {"attempt": current.attempt + 1, "due_at": None}
    return end_operation(change, current, status, result=payload, error=update.error, **members)


def end_operation(
    change: Change,
    operation: DurableOperation,
    status: OperationStatus,
    *,
    result: Any = None,
    error: Mapping[str, Any] | None = None,
    **members: Any,
) -> DurableOperation:
    """End an operation with a stored result or an error."""
    ended = change.update(
        operation,
        status=status,
        ended_at=change.now,
        result=result,
        error=None if error is None else dict(error),
        **members,
    )
    details = {"attempt": ended.attempt} if ended.type is OperationType.STEP else {}
    change.record(f"{_EVENT_NAMES[ended.type]}{_ENDS[status]}", ended, **details)
    return ended


def end_what_is_due(change: Change, now: datetime) -> None:
    """End the waits and callbacks whose time is over, and make the steps ready whose next attempt is due."""
    for operation in change.state.awaited_operations():
        due = min((at for at in (operation.due_at, operation.beat_due_at) if at is not None), default=None)
        if due is None or due > now:
            continue
        if operation.type is OperationType.WAIT:
            end_operation(change, operation, OperationStatus.SUCCEEDED)
        elif operation.type is OperationType.STEP:
            change.update(operation, status=OperationStatus.READY, due_at=None)
        else:
            is_overdue = operation.due_at is not None and operation.due_at <= now
            end_operation(change, operation, OperationStatus.TIMED_OUT, error=_timeout(is_overdue))


def _start(change: Change, update: OperationUpdate, current: DurableOperation | None, payload: Any) -> DurableOperation:
    if current is not None:  # the next attempt of a step, which keeps the outcome of the one before
        started = change.update(current, status=OperationStatus.STARTED, due_at=None)
    else:
        started = change.add(
            update.operation_id,
            parent_id=update.parent_id,
            name=update.name,
            type=update.type,
            sub_type=update.sub_type,
            status=OperationStatus.STARTED,
            **_members_of_start(change, update, payload),
        )
    change.record(f"{_EVENT_NAMES[started.type]}Started", started)
    return started


def _members_of_start(change: Change, update: OperationUpdate, payload: Any) -> dict[str, Any]:
    match update.type:
        case OperationType.WAIT:
            return {"due_at": change.now + timedelta(seconds=update.wait_seconds)}
        case OperationType.CALLBACK:
            return {
                "timeout_seconds": update.timeout_seconds,
                "heartbeat_seconds": update.heartbeat_seconds,
                "due_at": after(change.now, update.timeout_seconds),
                "beat_due_at": after(change.now, update.heartbeat_seconds),
            }
        case OperationType.CHAINED_INVOKE:
            return {"target": update.target, "input": payload}
        case _:
            return {}


def after(now: datetime, seconds: int) -> datetime | None:
    """Return the instant so many seconds later; None for 0, which stands for no limit."""
    return now + timedelta(seconds=seconds) if seconds else None


def _retry(change: Change, update: OperationUpdate, current: DurableOperation, payload: Any) -> DurableOperation:
    delay = update.delay_seconds or 1
    retried = change.update(
        current,
        status=OperationStatus.PENDING,
        attempt=current.attempt + 1,
        due_at=change.now + timedelta(seconds=delay),
        result=payload,
        error=None if update.error is None else dict(update.error),
    )
    outcome = {"payload": payload} if update.error is None else {"error": dict(update.error)}
    kind = "StepSucceeded" if update.error is None else "StepFailed"
    change.record(kind, retried, attempt=retried.attempt, delay=delay, **outcome)
    return retried


def _timeout(is_overdue: bool) -> dict[str, str]:
    if is_overdue:
        return {"ErrorMessage": "Callback timed out", "ErrorType": "Callback.Timeout"}
    return {"ErrorMessage": "Callback timed out on heartbeat", "ErrorType": "Callback.Heartbeat"}
