"""Operations and histories in Lambda's form, with instants as datetimes.

An event is stored with what its operation does not keep: its type, instant and operation, and for a step that is
retried its attempt, delay and outcome. Results are read from their operations, where they are stored once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias

from jobtable.store import Store
from jobtable.store.patterns import access_pattern
from jobtable.workflows.durable.durable_arns import ExecutionArn
from jobtable.workflows.durable.durable_tokens import CallbackId, DurableTokens
from jobtable.workflows.durable.entities import (
    DurableEvents,
    DurableExecution,
    DurableOperation,
    DurableProgress,
    OperationType,
)
from jobtable.workflows.durable.large_payloads import LargePayloads
from jobtable.workflows.functions import LATEST

Named: TypeAlias = DurableExecution | DurableProgress


class OperationShapes:
    """Writes operations as Lambda shows them."""

    def __init__(self, payloads: LargePayloads, tokens: DurableTokens) -> None:
        self._payloads = payloads
        self._tokens = tokens

    def execution(self, execution: DurableExecution) -> dict[str, Any]:
        """Return the operation that stands for the execution itself."""
        return {
            "Id": execution.execution_id,
            "Type": "EXECUTION",
            "Status": "STARTED",
            "Name": execution.name,
            "StartTimestamp": execution.started_at,
            "ExecutionDetails": {"InputPayload": self._payloads.read(execution.input)},
        }

    def operations(self, execution: Named, operations: Iterable[DurableOperation]) -> list[dict[str, Any]]:
        """Return operations of an execution."""
        return [self.operation(execution, each) for each in operations]

    def operation(self, execution: Named, operation: DurableOperation) -> dict[str, Any]:
        """Return one operation of an execution."""
        shape: dict[str, Any] = {
            "Id": operation.operation_id,
            "ParentId": operation.parent_id,
            "Name": operation.name,
            "Type": operation.type.value,
            "SubType": operation.sub_type,
            "StartTimestamp": operation.started_at,
            "EndTimestamp": operation.ended_at,
            "Status": operation.status.value,
        }
        name, details = self._details(execution, operation)
        return {member: value for member, value in shape.items() if value is not None} | {name: details}

    def callback_id(self, execution: Named, number: int) -> str:
        """Return the id by which a callback is answered."""
        return self._tokens.callback_id(CallbackId(execution.function, execution.name, execution.execution_id, number))

    def _details(self, execution: Named, operation: DurableOperation) -> tuple[str, dict[str, Any]]:
        ended: dict[str, Any] = {}
        if operation.result is not None:
            ended["Result"] = self._payloads.read(operation.result)
        if operation.error is not None:
            ended["Error"] = operation.error
        match operation.type:
            case OperationType.STEP:
                step: dict[str, Any] = {"Attempt": operation.attempt, **ended}
                if operation.due_at is not None:
                    step["NextAttemptTimestamp"] = operation.due_at
                return "StepDetails", step
            case OperationType.WAIT:
                return "WaitDetails", {"ScheduledEndTimestamp": operation.due_at}
            case OperationType.CALLBACK:
                return "CallbackDetails", {"CallbackId": self.callback_id(execution, operation.number), **ended}
            case OperationType.CHAINED_INVOKE:
                return "ChainedInvokeDetails", ended
            case _:
                return "ContextDetails", {"ReplayChildren": operation.replays_children, **ended}


DETAILS = {
    "Started": "",
    "Succeeded": "Result",
    "Failed": "Error",
    "TimedOut": "Error",
    "Stopped": "Error",
    "Cancelled": "",
}
"""For each way in which an event's type ends the member that its details have."""


class HistoryEvents:
    """Reads the histories of one store."""

    def __init__(self, store: Store, payloads: LargePayloads, shapes: OperationShapes) -> None:
        self._store = store
        self._payloads = payloads
        self._shapes = shapes

    @access_pattern("Read the history of a durable execution")
    def read(
        self, execution: DurableExecution, *, after: int = 0, newest_first: bool = False, with_data: bool = True
    ) -> Iterator[dict[str, Any]]:
        """Yield the events of an execution, from the one after `after` (or before it, if the newest come first)."""
        keys = {"function": execution.function, "execution": execution.name}
        operations = {each.number: each for each in self._store.query(DurableOperation.key(**keys))}
        pages = self._store.query(DurableEvents.key(**keys), newest_first=newest_first)
        for page in pages:
            numbered = list(enumerate(json.loads(page.events), page.first_id))
            for event_id, stored in reversed(numbered) if newest_first else numbered:
                if after and (event_id >= after if newest_first else event_id <= after):
                    continue
                number = stored.get("operation")
                if number is not None and number not in operations:  # it was started after the operations were read
                    operations[number] = self._store.get(DurableOperation.key(**keys, number=number))
                operation = None if number is None else operations[number]
                yield self._event(event_id, stored, execution, operation, with_data=with_data)

    def _event(
        self,
        event_id: int,
        stored: Mapping[str, Any],
        execution: DurableExecution,
        operation: DurableOperation | None,
        *,
        with_data: bool,
    ) -> dict[str, Any]:
        event_type = str(stored["type"])
        event = {"EventId": event_id, "EventType": event_type, "EventTimestamp": _instant(stored["at"])}
        if operation is not None:
            named = {
                "Id": operation.operation_id,
                "Name": operation.name,
                "SubType": operation.sub_type,
                "ParentId": operation.parent_id,
            }
            event |= {member: value for member, value in named.items() if value is not None}
        elif event_type.startswith("Execution"):
            event |= {"Id": execution.execution_id, "Name": execution.name}
        event[f"{event_type}Details"] = self._details(event_type, stored, execution, operation, with_data=with_data)
        return event

    def _details(
        self,
        event_type: str,
        stored: Mapping[str, Any],
        execution: DurableExecution,
        operation: DurableOperation | None,
        *,
        with_data: bool,
    ) -> dict[str, Any]:
        if event_type == "InvocationCompleted":
            return _invocation(stored, with_data=with_data)
        if event_type == "ExecutionStarted":
            given = self._payload(execution.input, with_data=with_data)
            return {"Input": given, "ExecutionTimeout": execution.timeout_seconds}
        if operation is not None and event_type in ("WaitStarted", "CallbackStarted", "ChainedInvokeStarted"):
            return self._start(event_type, execution, operation, with_data=with_data)
        if operation is not None and event_type == "WaitSucceeded":
            return {"Duration": _seconds_of(operation)}
        details: dict[str, Any] = {}
        member = next(DETAILS[end] for end in DETAILS if event_type.endswith(end))
        if member == "Result":
            result = stored.get("payload", operation.result if operation is not None else execution.output)
            details["Result"] = self._payload(result, with_data=with_data)
        elif member == "Error":
            error = stored.get("error", operation.error if operation is not None else execution.error)
            details["Error"] = {"Payload": error, "Truncated": False} if with_data else {"Truncated": True}
        if event_type in ("StepSucceeded", "StepFailed"):
            retry = {"CurrentAttempt": stored.get("attempt", 1), "NextAttemptDelaySeconds": stored.get("delay", 0)}
            details["RetryDetails"] = retry
        return details

    def _start(
        self, event_type: str, execution: DurableExecution, operation: DurableOperation, *, with_data: bool
    ) -> dict[str, Any]:
        if event_type == "WaitStarted":
            return {"Duration": _seconds_of(operation), "ScheduledEndTimestamp": operation.due_at}
        if event_type == "CallbackStarted":
            return {
                "CallbackId": self._shapes.callback_id(execution, operation.number),
                "Timeout": operation.timeout_seconds,
                "HeartbeatTimeout": operation.heartbeat_seconds,
            }
        details: dict[str, Any] = {"FunctionName": operation.target}
        if operation.input is not None:
            details["Input"] = self._payload(operation.input, with_data=with_data)
        child = operation.child or {}
        if "execution_id" in child:
            arn = ExecutionArn(
                child["function"],
                child["name"],
                child["execution_id"],
                execution.region,
                execution.account,
                child.get("version", LATEST),
            )
            details |= {"DurableExecutionArn": str(arn), "ExecutedVersion": arn.version}
        return details

    def _payload(self, stored: Any, *, with_data: bool) -> dict[str, Any]:
        if not with_data:
            return {"Truncated": True}
        text = self._payloads.read(stored)
        return {"Truncated": False} if text is None else {"Payload": text, "Truncated": False}


def _invocation(stored: Mapping[str, Any], *, with_data: bool) -> dict[str, Any]:
    details: dict[str, Any] = {
        "StartTimestamp": _instant(stored["started"]),
        "EndTimestamp": _instant(stored["at"]),
        "RequestId": stored["request"],
    }
    if (error := stored.get("error")) is not None:
        details["Error"] = {"Payload": error, "Truncated": False} if with_data else {"Truncated": True}
    return details


def _seconds_of(operation: DurableOperation) -> int:
    due = operation.due_at or operation.started_at
    return round((due - operation.started_at).total_seconds())


def _instant(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
