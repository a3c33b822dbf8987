"""DynamoDB's API over HTTP, from any backend."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic_core import to_json

from jobtable.embedded.server.aws_protocol import plain_response
from jobtable.embedded.server.http1 import HttpError, HttpRequest, HttpResponse
from jobtable.embedded.server.json_protocol import (
    COMMON_STATUSES,
    CORAL_NAMESPACES,
    JsonProtocol,
    json_response,
    unknown_operation,
)
from jobtable.embedded.server.sigv4 import SignatureCheck
from jobtable.store.backend import Backend, Request

_STREAM_OPERATIONS = frozenset({"ListStreams", "DescribeStream", "GetShardIterator", "GetRecords"})
_SILENT_OPERATIONS = frozenset({"TagResource", "UntagResource"})
"""Operations without a response; others without content answer with an empty object."""
_HEALTH_PATHS = ("/", "/ping")
_TABLE_PREFIX, _STREAM_PREFIX = "DynamoDB_20120810.", "DynamoDBStreams_20120810."
_NAMESPACE = "com.amazonaws.dynamodb.v20120810#"
# Their message member has a capital letter; clients in strictly typed languages look for it there.
_CAPITAL_MESSAGE = frozenset(
    {
        "IdempotentParameterMismatchException",
        "SerializationException",
        "TransactionCanceledException",
        "TransactionInProgressException",
    }
)


class DynamoDbProtocol(JsonProtocol):
    """Answers the requests of DynamoDB and its streams, load balancers, and whatever no API handles."""

    def __init__(self, backend: Backend, signatures: SignatureCheck | None = None) -> None:
        super().__init__(signatures)
        self._backend = backend

    def handles(self, request: HttpRequest) -> bool:
        return True

    def answer(self, request: HttpRequest) -> HttpResponse:
        if request.method in ("GET", "HEAD") and request.target.partition("?")[0] in _HEALTH_PATHS:
            return _health_response(request)
        return super().answer(request)

    def operation_of(self, target: str) -> str:
        for prefix, is_stream in ((_TABLE_PREFIX, False), (_STREAM_PREFIX, True)):
            if target.startswith(prefix):
                operation = target[len(prefix) :]
                if (operation in _STREAM_OPERATIONS) == is_stream:
                    return operation
        raise unknown_operation(target)

    def execute(self, operation: str, body: Request, request: HttpRequest) -> bytes:
        content = self._backend.execute(operation, body)
        if operation == "DescribeEndpoints" and "host" in request.headers:
            # Clients continue at the endpoint that they asked for: it is the one they use already.
            content["Endpoints"][0]["Address"] = request.headers["host"]
        return b"" if operation in _SILENT_OPERATIONS else to_json(content)

    def envelope(self, status: int | None, code: str, message: str, details: Mapping[str, Any]) -> HttpResponse:
        return _envelope(status or COMMON_STATUSES.get(code, 400), code, message, details)


def http_error_response(error: HttpError) -> HttpResponse:
    """Return the response to bytes that are not a request."""
    return _envelope(error.status, error.code, error.message, {})


def _health_response(request: HttpRequest) -> HttpResponse:
    """Return the line for load balancers and people: `healthy: HOST`."""
    line = f"healthy: {request.headers.get('host', 'jobtable')} ".encode("latin-1")
    return plain_response(200, line, "text/plain")


def _envelope(status: int, code: str, message: str, details: Mapping[str, Any]) -> HttpResponse:
    # A failed condition has a capital letter if it shows the item.
    member = "Message" if code in _CAPITAL_MESSAGE or "Item" in details else "message"
    return json_response(status, {"__type": CORAL_NAMESPACES.get(code, _NAMESPACE) + code, member: message, **details})
