"""What all protocols of AWS share: guards, errors as responses, compressed answers.

Bodies may be compressed. Pages of other sites (CORS) may do anything, as in DynamoDB, but only if requests must be
signed: a page has no key unless somebody gave it one.
"""

from __future__ import annotations

import base64
import json
import logging
import os
import re
import zlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from pydantic_core import from_json

from jobtable.embedded.server.body_encodings import LEAST_PACKED_BYTES, PACKERS, packing_for
from jobtable.embedded.server.cross_origin import is_question, with_allowance
from jobtable.embedded.server.http1 import HttpError, HttpRequest, HttpResponse
from jobtable.embedded.server.sigv4 import SignatureCheck
from jobtable.embedded.wordings import is_deeper
from jobtable.errors import JobtableError, OperationRefused, RequestError, request_error

_log = logging.getLogger(__name__)

_MAX_LEVELS = 500
_CREDENTIAL_REGION = re.compile(r"Credential=[^/\s]*/\d{8}/([a-z0-9-]{1,32})/")


class AwsProtocol(ABC):
    """Answers the requests of one API. Never raises: every fault becomes an error response."""

    def __init__(self, signatures: SignatureCheck | None = None) -> None:
        self._signatures = signatures

    @abstractmethod
    def handles(self, request: HttpRequest) -> bool:
        """Return whether the request is one for this API."""

    @abstractmethod
    def run(self, request: HttpRequest) -> HttpResponse:
        """Run the operation of a request, or raise."""

    @abstractmethod
    def envelope(self, status: int | None, code: str, message: str, details: Mapping[str, Any]) -> HttpResponse:
        """Return the response for an error; without a status, the one of the code."""

    def respond(self, request: HttpRequest) -> HttpResponse:
        """Return the response to one request."""
        response = self.answer(request)
        if self._signatures is not None and "origin" in request.headers:
            response = with_allowance(response, request)
        return response

    def answer(self, request: HttpRequest) -> HttpResponse:
        """Return the response without the headers for pages of other sites."""
        try:
            if self._signatures is not None and is_question(request):
                return plain_response(200, b"", "text/plain")
            return self.run(request)
        except OperationRefused as error:
            return self.envelope(error.status, error.code, error.message, error.details)
        except RequestError as error:
            return self.envelope(None, error.code, error.message, error.details)
        except HttpError as error:
            return self.envelope(error.status, error.code, error.message, {})
        except JobtableError as error:
            _log.error("%s", error)
            return self.envelope(None, "InternalServerError", str(error), {})
        except Exception:
            _log.exception("A request failed unexpectedly")
            return self.envelope(None, "InternalServerError", "The request failed inside the server.", {})

    def refuse_pages(self, request: HttpRequest) -> None:
        """Refuse requests from web pages if nobody has to sign."""
        if self._signatures is None and request.headers.get("origin", "").startswith("http"):
            # A page of any web site could otherwise read and write the tables through the visitor's browser.
            raise request_error("AccessDeniedException", "Requests from web pages are refused")

    def verify(self, request: HttpRequest) -> None:
        """Refuse a request without the signature that is required, if one is."""
        if self._signatures is not None:
            self._signatures.verify(request.method, request.target, request.headers, request.body)


def region_of(request: HttpRequest) -> str | None:
    """Return the region for which a request is signed, whether or not its signature is checked."""
    found = _CREDENTIAL_REGION.search(request.headers.get("authorization", ""))
    return None if found is None else found[1]


def packed_response(request: HttpRequest, answer: bytes, media_type: str) -> HttpResponse:
    """Return a response that is compressed if it is long and the client reads that."""
    if len(answer) >= LEAST_PACKED_BYTES and "accept-encoding" in request.headers:
        encoding = packing_for(request.headers["accept-encoding"])
        if encoding is not None:
            return plain_response(200, PACKERS[encoding](answer), media_type, ("Content-Encoding", encoding))
    return plain_response(200, answer, media_type)


def plain_response(status: int, body: bytes, media_type: str, *more_headers: tuple[str, str]) -> HttpResponse:
    """Return a response with the headers that every answer has."""
    headers = (
        ("x-amzn-RequestId", base64.b32encode(os.urandom(32))[:52].decode()),
        ("x-amz-crc32", str(zlib.crc32(body))),
        ("Content-Type", media_type),
        *more_headers,
    )
    return HttpResponse(status, headers, body)


def parsed_json(body: bytes) -> Any:
    """Return what a body means, or refuse it."""
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
