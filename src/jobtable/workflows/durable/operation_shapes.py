"""Operations in Lambda's form, with instants as datetimes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from jobtable.workflows.durable.durable_tokens import CallbackId, DurableTokens
from jobtable.workflows.durable.entities import DurableExecution, DurableOperation, DurableProgress, OperationType
from jobtable.workflows.durable.large_payloads import LargePayloads

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
