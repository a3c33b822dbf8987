"""AWS's durable execution SDK in the worker's process: its service client, and the call of a handler with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aws_durable_execution_sdk_python.exceptions import CheckpointError, GetExecutionStateError
from aws_durable_execution_sdk_python.execution import (
    DurableExecutionInvocationInputWithClient,
    InitialExecutionState,
)
from aws_durable_execution_sdk_python.lambda_service import (
    CheckpointOutput,
    CheckpointUpdatedExecutionState,
    DurableServiceClient,
    Operation,
    OperationUpdate,
    StateOutput,
)

from jobtable.errors import JobtableError
from jobtable.workflows.durable.durable_arns import read_execution_arn
from jobtable.workflows.durable.durable_service import DurableService
from jobtable.workflows.durable.handler_calls import Answered, Call, Raised
from jobtable.workflows.durable.lambda_errors import refusal_of
from jobtable.workflows.function_calls import FunctionContext
from jobtable.workflows.functions import Function


class StoreClient(DurableServiceClient):
    """The SDK's way to the store, without HTTP between them."""

    def __init__(self, service: DurableService, should_stop: Callable[[], bool]) -> None:
        self._service = service
        self._should_stop = should_stop
        self.has_stopped = False
        """Whether the handler was told to return before its end."""

    def checkpoint(
        self,
        durable_execution_arn: str,
        checkpoint_token: str,
        updates: list[OperationUpdate],
        client_token: str | None,
    ) -> CheckpointOutput:
        arn = read_execution_arn(durable_execution_arn)
        sent = [dict(each.to_dict()) for each in updates]
        try:
            answer = self._service.checkpoints.checkpoint(arn, checkpoint_token, sent, client_token)
        except JobtableError as error:
            raise _as_sdk_error(CheckpointError, error) from error
        is_ended = any(each["Type"] == "EXECUTION" for each in sent)
        if not is_ended and self._should_stop():
            self.has_stopped = True
        token = None if self.has_stopped else answer.token
        return CheckpointOutput(token, CheckpointUpdatedExecutionState(_operations(answer.operations)))

    def get_execution_state(
        self, durable_execution_arn: str, checkpoint_token: str, next_marker: str, max_items: int = 1000
    ) -> StateOutput:
        arn = read_execution_arn(durable_execution_arn)
        try:
            state = self._service.checkpoints.read_state(arn, checkpoint_token)
        except JobtableError as error:
            raise _as_sdk_error(GetExecutionStateError, error) from error
        page, marker = self._service.calls.page(state, int(next_marker), max_items)
        shapes = self._service.core.shapes.operations(state.progress, page)
        return StateOutput(_operations(shapes), marker or None)


def call_durable(
    service: DurableService, function: Function, call: Call, context: FunctionContext, should_stop: Callable[[], bool]
) -> Answered | Raised:
    """Call a handler and return what it answers; an exception is an answer too."""
    client = StoreClient(service, should_stop)
    event = DurableExecutionInvocationInputWithClient(
        durable_execution_arn=str(call.arn),
        checkpoint_token=call.token,
        initial_execution_state=InitialExecutionState(_operations(call.operations), call.next_marker),
        updated_operation_ids=call.updated_ids,
        service_client=client,
    )
    try:
        output = function.handler(event, context)
    except Exception as error:  # whatever a user's handler raises is its answer
        return Raised({"ErrorMessage": str(error), "ErrorType": type(error).__name__})
    return Answered(output, client.has_stopped)


def _operations(shapes: list[dict[str, Any]]) -> list[Operation]:
    return [Operation.from_dict(each) for each in shapes]


def _as_sdk_error(kind: Any, error: JobtableError) -> Exception:
    """Return the SDK's error for one of ours, with the parts by which it decides whether another call may help."""
    refused = refusal_of(error)
    details = {
        "Error": {"Code": refused.code, "Message": refused.message},
        "ResponseMetadata": {"HTTPStatusCode": refused.status},
    }
    raised = RuntimeError(f"{refused.code}: {refused.message}")
    raised.response = details  # type: ignore[attr-defined]
    found: Exception = kind.from_exception(raised)
    return found
