"""DynamoDB's JSON 1.0 protocol: an HTTP request becomes one call of a backend, its outcome an HTTP response.

Bodies may be compressed. Pages of other sites (CORS) may do anything, as in DynamoDB, but only if requests must be
signed: a page has no key unless somebody gave it one.
"""

from __future__ import annotations

import base64
import gzip
import json
import logging
import os
import re
import zlib
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from pydantic_core import from_json, to_json

from jobtable.embedded.server.http1 import MAX_BODY_BYTES, HttpError, HttpRequest, HttpResponse
from jobtable.embedded.server.sigv4 import SignatureCheck
from jobtable.embedded.wordings import is_deeper
from jobtable.errors import JobtableError, RequestError, request_error
from jobtable.store.backend import Backend, Request

LEAST_PACKED_BYTES = 4096  # shorter answers are not compressed
_LEVEL = 1
"""Most clients are on this machine, where time costs more than bytes."""
_GZIP_FORMAT = zlib.MAX_WBITS | 16
_GZIP_BEGINNING = b"\x1f\x8b"
_PIECE_BYTES = 4096  # as much is copied again between one compressed text and the next
_WEIGHT = re.compile(r";\s*q\s*=\s*(-?\d+(?:\.\d*)?)\s*(?:;|$)")


def _unpacked_body(request: HttpRequest) -> bytes:
    """Return the decompressed body of a request, or raise.

    The service answers an invalid one with status 500, after which clients send the same again.
    """
    encoding = request.headers.get("content-encoding", "identity").lower()
    if encoding == "identity":
        return request.body
    if encoding not in _UNPACKERS:
        raise request_error("SerializationException", f"Content-Encoding {encoding!r} is not supported")
    try:
        body = _UNPACKERS[encoding](request.body)
    except EOFError:
        message = f"The request body ends before its {encoding} data does"
        raise request_error("SerializationException", message) from None
    except zlib.error:
        raise request_error("SerializationException", f"The request body is not valid {encoding} data") from None
    if len(body) > MAX_BODY_BYTES:
        message = f"The unpacked request body exceeds {MAX_BODY_BYTES} bytes"
        raise HttpError(413, "RequestEntityTooLargeException", message)
    return body


def _unzipped(packed: bytes) -> bytes:
    """Decompress one or more gzip texts; like the service, ignore what follows them."""
    body, at = bytearray(), 0
    while at == 0 or packed.startswith(_GZIP_BEGINNING, at):
        unpacking = zlib.decompressobj(_GZIP_FORMAT)
        while not unpacking.eof:
            piece = packed[at : at + _PIECE_BYTES]
            if not piece:
                raise EOFError
            body += unpacking.decompress(piece, MAX_BODY_BYTES + 1 - len(body))
            if len(body) > MAX_BODY_BYTES:
                return bytes(body)
            at += len(piece) - len(unpacking.unused_data)
    return bytes(body)


def _inflated(packed: bytes) -> bytes:
    unpacking = zlib.decompressobj()
    body = unpacking.decompress(packed, MAX_BODY_BYTES + 1)
    if unpacking.unused_data:
        raise zlib.error("something follows the end")
    if not unpacking.eof and len(body) <= MAX_BODY_BYTES:
        raise EOFError
    return body


_UNPACKERS: dict[str, Callable[[bytes], bytes]] = {"gzip": _unzipped, "deflate": _inflated}


@lru_cache(maxsize=16)
def _packing_for(accepted: str) -> str | None:
    """Return the encoding that the client prefers among the supported ones; the first of equals."""
    weights: dict[str, float] = {}
    for entry in accepted.lower().split(","):
        name = entry.partition(";")[0].strip()
        found = _WEIGHT.search(entry)
        weights[name] = max(weights.get(name, 0.0), min(float(found[1]), 1.0) if found else 1.0)
    liked = {name: weight for name, weight in weights.items() if name in _PACKERS}
    liked |= {name: weights.get("*", 0.0) for name in _PACKERS if name not in weights}
    best = max(liked, key=liked.__getitem__)
    return best if liked[best] > 0 else None


_PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda body: gzip.compress(body, _LEVEL, mtime=0),
    "deflate": lambda body: zlib.compress(body, _LEVEL),
}


_TWO_DAYS_SECONDS = 172_800
_EXPOSED = "x-amzn-RequestId,x-amzn-ErrorType,x-amz-request-id,x-amz-id-2,x-amzn-ErrorMessage,Date"


def _is_question(request: HttpRequest) -> bool:
    """Whether a browser asks if it may send a page's request."""
    return request.method == "OPTIONS" and "origin" in request.headers


def _with_allowance(response: HttpResponse, request: HttpRequest) -> HttpResponse:
    """Return the response with the headers that let the page read it."""
    allowed = [("Access-Control-Allow-Origin", "*"), ("Access-Control-Expose-Headers", _EXPOSED)]
    if _is_question(request):
        allowed.append(("Access-Control-Max-Age", str(_TWO_DAYS_SECONDS)))
        for what in ("Method", "Headers"):
            asked = request.headers.get(f"access-control-request-{what.lower()}")
            if asked is not None:
                allowed.append((f"Access-Control-Allow-{what.rstrip('s')}s", asked))
    return HttpResponse(response.status, (*response.headers, *allowed), response.body)


_log = logging.getLogger(__name__)

_AWS_JSON, _PLAIN_JSON = "application/x-amz-json-1.0", "application/json"
_STREAM_OPERATIONS = frozenset({"ListStreams", "DescribeStream", "GetShardIterator", "GetRecords"})
_SILENT_OPERATIONS = frozenset({"TagResource", "UntagResource"})
"""Operations without a response; others without content answer with an empty object."""
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
# Their message member has a capital letter; clients in strictly typed languages look for it there.
_CAPITAL_MESSAGE = frozenset(
    {
        "IdempotentParameterMismatchException",
        "SerializationException",
        "TransactionCanceledException",
        "TransactionInProgressException",
    }
)


class DynamoDbProtocol:
    """Answers DynamoDB's requests from a backend. Never raises: every fault becomes an error response."""

    def __init__(self, backend: Backend, signatures: SignatureCheck | None = None) -> None:
        self._backend = backend
        self._signatures = signatures

    def respond(self, request: HttpRequest) -> HttpResponse:
        """Return the response to one request, in the request's media type."""
        response = self._answer(request)
        if self._signatures is not None and "origin" in request.headers:
            response = _with_allowance(response, request)
        if request.headers.get("content-type") == _AWS_JSON or _media_type(request.headers) == _AWS_JSON:
            return response
        headers = tuple((name, _PLAIN_JSON if value == _AWS_JSON else value) for name, value in response.headers)
        return HttpResponse(response.status, headers, response.body)

    def _answer(self, request: HttpRequest) -> HttpResponse:
        try:
            if request.method in ("GET", "HEAD") and request.target.partition("?")[0] in _HEALTH_PATHS:
                return _health_response(request)
            if self._signatures is not None and _is_question(request):
                return _response(200, b"", "text/plain")
            operation, body = self._understand(request)
            content = self._backend.execute(operation, body)
            if operation == "DescribeEndpoints" and "host" in request.headers:
                # Clients continue at the endpoint that they asked for: it is the one they use already.
                content["Endpoints"][0]["Address"] = request.headers["host"]
            answer = b"" if operation in _SILENT_OPERATIONS else to_json(content)
            if len(answer) >= LEAST_PACKED_BYTES and "accept-encoding" in request.headers:
                encoding = _packing_for(request.headers["accept-encoding"])
                if encoding is not None:
                    return _response(200, _PACKERS[encoding](answer), _AWS_JSON, ("Content-Encoding", encoding))
            return _json_response(200, answer)
        except RequestError as error:
            return _error_response(error)
        except HttpError as error:
            return http_error_response(error)
        except JobtableError as error:
            _log.error("%s", error)
            return _error_response(request_error("InternalServerError", str(error)))
        except Exception:
            _log.exception("A request failed unexpectedly")
            return _error_response(request_error("InternalServerError", "The request failed inside the server."))

    def _understand(self, request: HttpRequest) -> tuple[str, Request]:
        headers = request.headers
        if self._signatures is None and headers.get("origin", "").startswith("http"):
            # A page of any web site could otherwise read and write the tables through the visitor's browser.
            raise request_error("AccessDeniedException", "Requests from web pages are refused")
        body = _unpacked_body(request)
        if request.method != "POST" or (body and _media_type(headers) not in (_AWS_JSON, _PLAIN_JSON)):
            raise HttpError(404, "UnknownOperationException", "Operations are POST requests with a JSON body")
        parsed = _parsed(body) if body else None
        operation = _operation(headers.get("x-amz-target", ""))
        if self._signatures is not None:
            self._signatures.verify(request.method, request.target, headers, request.body)
        if not isinstance(parsed, dict):
            raise request_error("SerializationException", "The request body is not a JSON object")
        return operation, parsed


def _health_response(request: HttpRequest) -> HttpResponse:
    """Return the line for load balancers and people: `healthy: HOST`."""
    line = f"healthy: {request.headers.get('host', 'jobtable')} ".encode("latin-1")
    return _response(200, line, "text/plain")


def http_error_response(error: HttpError) -> HttpResponse:
    """Return the response to bytes that are not a request."""
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


def _operation(target: str) -> str:
    for prefix, is_stream in ((_TABLE_PREFIX, False), (_STREAM_PREFIX, True)):
        if target.startswith(prefix):
            operation = target[len(prefix) :]
            if (operation in _STREAM_OPERATIONS) == is_stream:
                return operation
    what = f"Unknown operation {target!r}" if target else "The header X-Amz-Target names no operation"
    raise request_error("UnknownOperationException", what)


def _error_response(error: RequestError) -> HttpResponse:
    return _envelope(_STATUS_OF_CODE.get(error.code, 400), error.code, error.message, dict(error.details))


def _envelope(status: int, code: str, message: str, details: dict[str, Any]) -> HttpResponse:
    # A failed condition has a capital letter if it shows the item.
    member = "Message" if code in _CAPITAL_MESSAGE or "Item" in details else "message"
    content = {"__type": _NAMESPACES.get(code, _SERVICE_NAMESPACE) + code, member: message, **details}
    return _json_response(status, to_json(content))


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
