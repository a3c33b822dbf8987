"""AWS's JSON 1.0 protocol: an HTTP request becomes one operation with a body, its outcome an HTTP response."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from pydantic_core import to_json

from jobtable.embedded.server.aws_protocol import AwsProtocol, packed_response, parsed_json, plain_response
from jobtable.embedded.server.body_encodings import unpacked_body
from jobtable.embedded.server.http1 import HttpError, HttpRequest, HttpResponse
from jobtable.errors import RequestError, request_error
from jobtable.store.backend import Request

AWS_JSON, _PLAIN_JSON = "application/x-amz-json-1.0", "application/json"

CORAL_NAMESPACES = {
    "ValidationException": "com.amazon.coral.validate#",
    "ThrottlingException": "com.amazon.coral.availability#",
} | dict.fromkeys(
    (
        "SerializationException",
        "UnknownOperationException",
        "MissingAuthenticationTokenException",
        "IncompleteSignatureException",
        "InvalidSignatureException",
        "UnrecognizedClientException",
        "AccessDeniedException",
        "RequestEntityTooLargeException",
    ),
    "com.amazon.coral.service#",
)
"""The namespaces of the errors that all services have."""
COMMON_STATUSES = {
    "InternalServerError": 500,
    "InternalFailure": 500,
    "ServiceUnavailable": 503,
    "ServiceUnavailableException": 503,
}


class JsonProtocol(AwsProtocol):
    """Answers the requests of one API whose operations are named in a header."""

    @abstractmethod
    def operation_of(self, target: str) -> str:
        """Return the operation that the header X-Amz-Target names, or raise RequestError."""

    @abstractmethod
    def execute(self, operation: str, body: Request, request: HttpRequest) -> bytes:
        """Run an operation and return the JSON of its answer."""

    def respond(self, request: HttpRequest) -> HttpResponse:
        """Return the response to one request, in the request's media type."""
        response = super().respond(request)
        if request.headers.get("content-type") == AWS_JSON or _media_type(request.headers) == AWS_JSON:
            return response
        headers = tuple((name, _PLAIN_JSON if value == AWS_JSON else value) for name, value in response.headers)
        return HttpResponse(response.status, headers, response.body)

    def run(self, request: HttpRequest) -> HttpResponse:
        operation, body = self._understand(request)
        return packed_response(request, self.execute(operation, body, request), AWS_JSON)

    def _understand(self, request: HttpRequest) -> tuple[str, Request]:
        headers = request.headers
        self.refuse_pages(request)
        body = unpacked_body(request)
        if request.method != "POST" or (body and _media_type(headers) not in (AWS_JSON, _PLAIN_JSON)):
            raise HttpError(404, "UnknownOperationException", "Operations are POST requests with a JSON body")
        parsed = parsed_json(body) if body else None
        operation = self.operation_of(headers.get("x-amz-target", ""))
        self.verify(request)
        if not isinstance(parsed, dict):
            raise request_error("SerializationException", "The request body is not a JSON object")
        return operation, parsed


def unknown_operation(target: str) -> RequestError:
    """Return the error for a target that names no operation."""
    what = f"Unknown operation {target!r}" if target else "The header X-Amz-Target names no operation"
    return request_error("UnknownOperationException", what)


def json_response(status: int, content: Mapping[str, Any]) -> HttpResponse:
    """Return a response with this content."""
    return plain_response(status, to_json(content), AWS_JSON)


def _media_type(headers: dict[str, str]) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()
