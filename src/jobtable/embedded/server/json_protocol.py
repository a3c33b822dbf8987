"""AWS's JSON 1.0 protocol: an HTTP request becomes one operation with a body, its outcome an HTTP response.

Bodies may be compressed. Pages of other sites (CORS) may do anything, as in DynamoDB, but only if requests must be
signed: a page has no key unless somebody gave it one.
"""

from __future__ import annotations

import base64
import json
import logging
import os
import zlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from pydantic_core import from_json, to_json

from jobtable.embedded.server.body_encodings import LEAST_PACKED_BYTES, PACKERS, packing_for, unpacked_body
from jobtable.embedded.server.cross_origin import is_question, with_allowance
from jobtable.embedded.server.http1 import HttpError, HttpRequest, HttpResponse
from jobtable.embedded.server.sigv4 import SignatureCheck
from jobtable.embedded.wordings import is_deeper
from jobtable.errors import JobtableError, OperationRefused, RequestError, request_error
from jobtable.store.backend import Request

_log = logging.getLogger(__name__)

AWS_JSON, _PLAIN_JSON = "application/x-amz-json-1.0", "application/json"
_MAX_LEVELS = 500

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


class JsonProtocol(ABC):
    """Answers the requests of one API. Never raises: every fault becomes an error response."""

    def __init__(self, signatures: SignatureCheck | None = None) -> None:
        self._signatures = signatures

    @abstractmethod
    def handles(self, request: HttpRequest) -> bool:
        """Return whether the request is one for this API."""

    @abstractmethod
    def operation_of(self, target: str) -> str:
        """Return the operation that the header X-Amz-Target names, or raise RequestError."""

    @abstractmethod
    def execute(self, operation: str, body: Request, request: HttpRequest) -> bytes:
        """Run an operation and return the JSON of its answer."""

    @abstractmethod
    def envelope(self, status: int | None, code: str, message: str, details: Mapping[str, Any]) -> HttpResponse:
        """Return the response for an error; without a status, the one of the code."""

    def respond(self, request: HttpRequest) -> HttpResponse:
        """Return the response to one request, in the request's media type."""
        response = self.answer(request)
        if self._signatures is not None and "origin" in request.headers:
            response = with_allowance(response, request)
        if request.headers.get("content-type") == AWS_JSON or _media_type(request.headers) == AWS_JSON:
            return response
        headers = tuple((name, _PLAIN_JSON if value == AWS_JSON else value) for name, value in response.headers)
        return HttpResponse(response.status, headers, response.body)

    def answer(self, request: HttpRequest) -> HttpResponse:
        """Return the response to one request in the protocol's own media type."""
        try:
            if self._signatures is not None and is_question(request):
                return plain_response(200, b"", "text/plain")
            operation, body = self._understand(request)
            answer = self.execute(operation, body, request)
            if len(answer) >= LEAST_PACKED_BYTES and "accept-encoding" in request.headers:
                encoding = packing_for(request.headers["accept-encoding"])
                if encoding is not None:
                    return plain_response(200, PACKERS[encoding](answer), AWS_JSON, ("Content-Encoding", encoding))
            return plain_response(200, answer, AWS_JSON)
        except (RequestError, OperationRefused) as error:
            return self.envelope(None, error.code, error.message, error.details)
        except HttpError as error:
            return self.envelope(error.status, error.code, error.message, {})
        except JobtableError as error:
            _log.error("%s", error)
            return self.envelope(None, "InternalServerError", str(error), {})
        except Exception:
            _log.exception("A request failed unexpectedly")
            return self.envelope(None, "InternalServerError", "The request failed inside the server.", {})

    def _understand(self, request: HttpRequest) -> tuple[str, Request]:
        headers = request.headers
        if self._signatures is None and headers.get("origin", "").startswith("http"):
            # A page of any web site could otherwise read and write the tables through the visitor's browser.
            raise request_error("AccessDeniedException", "Requests from web pages are refused")
        body = unpacked_body(request)
        if request.method != "POST" or (body and _media_type(headers) not in (AWS_JSON, _PLAIN_JSON)):
            raise HttpError(404, "UnknownOperationException", "Operations are POST requests with a JSON body")
        parsed = _parsed(body) if body else None
        operation = self.operation_of(headers.get("x-amz-target", ""))
        if self._signatures is not None:
            self._signatures.verify(request.method, request.target, headers, request.body)
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


def plain_response(status: int, body: bytes, media_type: str, *more_headers: tuple[str, str]) -> HttpResponse:
    """Return a response with the headers that every answer has."""
    headers = (
        ("x-amzn-RequestId", base64.b32encode(os.urandom(32))[:52].decode()),
        ("x-amz-crc32", str(zlib.crc32(body))),
        ("Content-Type", media_type),
        *more_headers,
    )
    return HttpResponse(status, headers, body)


def _media_type(headers: dict[str, str]) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _parsed(body: bytes) -> Any:
    try:
        return from_json(body, allow_inf_nan=False)
    except ValueError as error:
        if "recursion limit" not in str(error):
            raise request_error("SerializationException", f"The request body is not JSON: {error}") from None
    return _parsed_deep(body)


def _parsed_deep(body: bytes) -> Any:
    """Parse JSON with more levels than the fast parser reads; the backend reports its faults."""
    try:
        parsed = json.loads(body, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise request_error("SerializationException", f"The request body is not JSON: {error}") from None
    if is_deeper(parsed, _MAX_LEVELS):
        raise request_error("SerializationException", f"The request body has more than {_MAX_LEVELS} levels of JSON")
    return parsed


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is not a number")
