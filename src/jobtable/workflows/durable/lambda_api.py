"""Lambda's API in process: operations by name, with requests and answers in wire form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeAlias

from jobtable.errors import JobtableError
from jobtable.workflows.asl.aws_api.member_rules import check
from jobtable.workflows.durable.durable_service import DurableService
from jobtable.workflows.durable.lambda_calls import LambdaCall
from jobtable.workflows.durable.lambda_catalogue import describe_function, function_configuration, list_functions
from jobtable.workflows.durable.lambda_errors import lambda_error, refusal_of
from jobtable.workflows.durable.lambda_executions import (
    checkpoint,
    describe_execution,
    execution_history,
    execution_state,
    list_executions,
    stop_execution,
)
from jobtable.workflows.durable.lambda_invokes import beat_callback, fail_callback, invoke, succeed_callback
from jobtable.workflows.durable.lambda_requests import REQUESTS
from jobtable.workflows.durable.lambda_versions import (
    create_alias,
    delete_alias,
    get_alias,
    list_aliases,
    list_versions,
    publish_version,
    update_alias,
)

Response: TypeAlias = dict[str, Any]
_OPERATIONS: dict[str, Callable[[LambdaCall], Response]] = {
    "CheckpointDurableExecution": checkpoint,
    "GetDurableExecutionState": execution_state,
    "GetDurableExecution": describe_execution,
    "GetDurableExecutionHistory": execution_history,
    "ListDurableExecutionsByFunction": list_executions,
    "StopDurableExecution": stop_execution,
    "SendDurableExecutionCallbackSuccess": succeed_callback,
    "SendDurableExecutionCallbackFailure": fail_callback,
    "SendDurableExecutionCallbackHeartbeat": beat_callback,
    "Invoke": invoke,
    "GetFunction": describe_function,
    "GetFunctionConfiguration": function_configuration,
    "ListFunctions": list_functions,
    "PublishVersion": publish_version,
    "ListVersionsByFunction": list_versions,
    "CreateAlias": create_alias,
    "UpdateAlias": update_alias,
    "GetAlias": get_alias,
    "ListAliases": list_aliases,
    "DeleteAlias": delete_alias,
}


class LambdaApi:
    """The operations of Lambda on registered functions and durable executions.

    Requests are in wire form: `execute("Invoke", {"FunctionName": ..., "Payload": b"{}"})`. Times in requests and
    answers are seconds since 1970. Workers run the functions.
    """

    def __init__(self, service: DurableService) -> None:
        self._service = service

    def execute(self, operation: str, request: Mapping[str, Any], *, region: str | None = None) -> Response:
        """Run one operation, or raise OperationRefused with AWS's code. New ARNs name the region."""
        if operation not in _OPERATIONS:
            raise lambda_error("UnknownOperationException", f"Lambda's operation {operation!r} is not available here")
        arns = self._service.core.arns if region is None else replace(self._service.core.arns, region=region)
        try:
            check(REQUESTS[operation], request)
            answer = _OPERATIONS[operation](LambdaCall(request, arns, self._service))
        except JobtableError as error:
            raise refusal_of(error) from error
        found: Response = _in_wire_form(answer)
        return found


def _in_wire_form(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _in_wire_form(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_in_wire_form(each) for each in value]
    return round(value.timestamp(), 3) if isinstance(value, datetime) else value
