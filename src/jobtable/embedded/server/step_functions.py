"""Step Functions' API over HTTP, from any function that executes its operations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from pydantic_core import to_json

from jobtable.embedded.server.aws_protocol import region_of
from jobtable.embedded.server.http1 import HttpRequest, HttpResponse
from jobtable.embedded.server.json_protocol import (
    COMMON_STATUSES,
    CORAL_NAMESPACES,
    JsonProtocol,
    json_response,
    unknown_operation,
)
from jobtable.embedded.server.sigv4 import SignatureCheck
from jobtable.store.backend import Request

_PREFIX = "AWSStepFunctions."
_NAMESPACE = "com.amazonaws.swf.service.v2.model#"
_STATUSES = COMMON_STATUSES | {"ConflictException": 409, "ServiceQuotaExceededException": 402}
_TRACED = frozenset({"StartExecution", "StartSyncExecution"})


class Operations(Protocol):
    """Executes the operations of one service of AWS."""

    def execute(self, operation: str, request: Request, *, region: str | None = None) -> Mapping[str, Any]:
        """Run one operation, or raise OperationRefused. New ARNs name the region."""
        ...


class StepFunctionsProtocol(JsonProtocol):
    """Answers the requests of Step Functions."""

    def __init__(self, operations: Operations, signatures: SignatureCheck | None = None) -> None:
        super().__init__(signatures)
        self._operations = operations

    def handles(self, request: HttpRequest) -> bool:
        return request.headers.get("x-amz-target", "").startswith(_PREFIX)

    def operation_of(self, target: str) -> str:
        if not target.startswith(_PREFIX):
            raise unknown_operation(target)
        return target[len(_PREFIX) :]

    def execute(self, operation: str, body: Request, request: HttpRequest) -> bytes:
        trace = request.headers.get("x-amzn-trace-id")
        if trace is not None and operation in _TRACED:
            body = {**body, "traceHeader": trace}  # AWS prefers the header to the member
        return to_json(self._operations.execute(operation, body, region=region_of(request)))

    def envelope(self, status: int | None, code: str, message: str, details: Mapping[str, Any]) -> HttpResponse:
        kind = CORAL_NAMESPACES.get(code, _NAMESPACE) + code
        return json_response(status or _STATUSES.get(code, 400), {"__type": kind, "message": message, **details})
