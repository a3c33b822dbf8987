"""DynamoDB's JSON 1.0 protocol: an HTTP request becomes one call of a backend, its outcome an HTTP response."""

from __future__ import annotations

import base64
import json
import logging
import os
import zlib
from typing import Any

from pydantic_core import from_json, to_json

from jobtable.embedded.json_types import is_deeper
from jobtable.embedded.server.http1 import HttpError, HttpRequest, HttpResponse
from jobtable.embedded.server.origins import is_from_page, is_question, with_allowance
from jobtable.embedded.server.packing import LEAST_PACKED_BYTES, packed, packing_for, unpacked_body
from jobtable.embedded.server.sigv4 import SignatureCheck
from jobtable.errors import JobtableError, RequestError, request_error
from jobtable.store.backend import Backend, Request

_log = logging.getLogger(__name__)

_AWS_JSON, _PLAIN_JSON = "application/x-amz-json-1.0", "application/json"
_STREAM_OPERATIONS = frozenset({"ListStreams", "DescribeStream", "GetShardIterator", "GetRecords"})
_SILENT_OPERATIONS = frozenset({"TagResource", "UntagResource"})
"""Operations without a response: others that have nothing to say answer with an empty object."""
_HEALTH_PATHS = ("/", "/ping")
_MAX_LEVELS = 500
_TABLE_PREFIX, _STREAM_PREFIX = "DynamoDB_20120810.", "DynamoDBStreams_20120810."

_SERVICE_NAMESPACE = "com.amazonaws.dynamodb.v20120810#"
_NAMESPACES = {
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
_STATUS_OF_CODE = {
    "InternalServerError": 500,
    "InternalFailure": 500,
    "ServiceUnavailable": 503,
    "ServiceUnavailableException": 503,
}
# These write the member with a capital letter; clients in strictly typed languages look for it there.
_CAPITAL_MESSAGE = frozenset(
    {
        "IdempotentParameterMismatchException",
        "SerializationException",
        "TransactionCanceledException",
        "TransactionInProgressException",
    }
)


class DynamoDbProtocol:
    """Answers DynamoDB's requests from a backend. Never raises: whatever goes wrong becomes an error response."""

    def __init__(self, backend: Backend, signatures: SignatureCheck | None = None) -> None:
        self._backend = backend
        self._signatures = signatures

    def respond(self, request: HttpRequest) -> HttpResponse:
        """The response to one request, of the media type that the request has."""
        response = self._answer(request)
        if self._signatures is not None and "origin" in request.headers:
            response = with_allowance(response, request)
        if request.headers.get("content-type") == _AWS_JSON or _media_type(request.headers) == _AWS_JSON:
            return response
        headers = tuple((name, _PLAIN_JSON if value == _AWS_JSON else value) for name, value in response.headers)
        return HttpResponse(response.status, headers, response.body)

    def _answer(self, request: HttpRequest) -> HttpResponse:
        try:
            if request.method in ("GET", "HEAD") and request.target.partition("?")[0] in _HEALTH_PATHS:
                return health_response(request)
            if self._signatures is not None and is_question(request):
                return _response(200, b"", "text/plain")
            operation, body = self._understand(request)
            content = self._backend.execute(operation, body)
            if operation == "DescribeEndpoints" and "host" in request.headers:
                # Clients that ask for the endpoint go on there: it is where they are.
                content["Endpoints"][0]["Address"] = request.headers["host"]
            answer = b"" if operation in _SILENT_OPERATIONS else to_json(content)
            if len(answer) >= LEAST_PACKED_BYTES and "accept-encoding" in request.headers:
                return _packed_response(answer, request.headers["accept-encoding"])
            return _json_response(200, answer)
        except RequestError as error:
            return _error_response(error)
        except HttpError as error:
            return http_error_response(error)
        except JobtableError as error:
            _log.error("%s", error)
            return _error_response(request_error("InternalServerError", str(error)))
        except Exception:
            _log.exception("A request failed in a way that was not foreseen")
            return _error_response(request_error("InternalServerError", "The request failed inside the server."))

    def _understand(self, request: HttpRequest) -> tuple[str, Request]:
        headers = request.headers
        if self._signatures is None and is_from_page(request):
            # A page of any web site could otherwise read and write the tables through the visitor's browser.
            raise request_error("AccessDeniedException", "Requests from web pages are refused")
        body = unpacked_body(request)
        if request.method != "POST" or (body and _media_type(headers) not in (_AWS_JSON, _PLAIN_JSON)):
            raise HttpError(404, "UnknownOperationException", "Operations are POST requests with a JSON body")
        parsed = _parsed(body) if body else None
        operation = _operation(headers.get("x-amz-target", ""))
        if self._signatures is not None:
            self._signatures.verify(request.method, request.target, headers, request.body)
        if not isinstance(parsed, dict):
            raise request_error("SerializationException", "The request body is not a JSON object")
        return operation, parsed


def health_response(request: HttpRequest) -> HttpResponse:
    """The line that load balancers and people get: `healthy: HOST`."""
    line = f"healthy: {request.headers.get('host', 'jobtable')} ".encode("latin-1")
    return _response(200, line, "text/plain")


def http_error_response(error: HttpError) -> HttpResponse:
    """The response to bytes that are no request."""
    return _envelope(error.status, error.code, error.message, {})


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
    """JSON with more levels than the fast parser goes down to: what is wrong with it, the backend has to say."""
    try:
        parsed = json.loads(body, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise request_error("SerializationException", f"The request body is not JSON: {error}") from None
    if is_deeper(parsed, _MAX_LEVELS):
        raise request_error("SerializationException", f"The request body has more than {_MAX_LEVELS} levels of JSON")
    return parsed


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number")


def _operation(target: str) -> str:
    for prefix, is_stream in ((_TABLE_PREFIX, False), (_STREAM_PREFIX, True)):
        if target.startswith(prefix):
            operation = target[len(prefix) :]
            if (operation in _STREAM_OPERATIONS) == is_stream:
                return operation
    what = f"The operation {target!r} is not known" if target else "The header X-Amz-Target names no operation"
    raise request_error("UnknownOperationException", what)


def _error_response(error: RequestError) -> HttpResponse:
    return _envelope(_STATUS_OF_CODE.get(error.code, 400), error.code, error.message, dict(error.details))


def _envelope(status: int, code: str, message: str, details: dict[str, Any]) -> HttpResponse:
    # A failed condition has the capital if it shows the item.
    member = "Message" if code in _CAPITAL_MESSAGE or "Item" in details else "message"
    content = {"__type": _NAMESPACES.get(code, _SERVICE_NAMESPACE) + code, member: message, **details}
    return _json_response(status, to_json(content))


def _packed_response(body: bytes, accepted: str) -> HttpResponse:
    encoding = packing_for(accepted)
    if encoding is None:
        return _json_response(200, body)
    return _response(200, packed(body, encoding), _AWS_JSON, ("Content-Encoding", encoding))


def _json_response(status: int, body: bytes) -> HttpResponse:
    return _response(status, body, _AWS_JSON)


def _response(status: int, body: bytes, media_type: str, *more_headers: tuple[str, str]) -> HttpResponse:
    headers = (
        ("x-amzn-RequestId", base64.b32encode(os.urandom(32))[:52].decode()),
        ("x-amz-crc32", str(zlib.crc32(body))),
        ("Content-Type", media_type),
        *more_headers,
    )
    return HttpResponse(status, headers, body)
