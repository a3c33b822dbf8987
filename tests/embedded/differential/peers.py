"""The two that are asked: the embedded engine in process, and DynamoDB Local over a raw connection."""

from __future__ import annotations

import copy
import http.client
import json
import time
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from typing import Any, Protocol
from urllib.parse import urlsplit

from jobtable.errors import RequestError
from jobtable.store.backend import Backend

_STREAM_OPERATIONS = ("DescribeStream", "GetShardIterator", "GetRecords")
_HEADERS = {
    "Content-Type": "application/x-amz-json-1.0",
    "Authorization": "AWS4-HMAC-SHA256 Credential=differential/20260101/us-east-1/dynamodb/aws4_request, "
    "SignedHeaders=host, Signature=none",
}


@dataclass(frozen=True)
class Answer:
    """What came back: a body, or an error code with its message and details."""

    body: dict[str, Any] = field(default_factory=dict)
    code: str | None = None
    message: str = ""


class Peer(Protocol):
    """Something that answers DynamoDB's requests."""

    def ask(self, operation: str, request: dict[str, Any]) -> Answer: ...


class EmbeddedPeer:
    """The engine. An exception that is no RequestError is an answer too, and a difference."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def ask(self, operation: str, request: dict[str, Any]) -> Answer:
        sent = copy.deepcopy(request)
        try:
            answer = Answer(self._backend.execute(operation, sent))
        except RequestError as error:
            answer = Answer(dict(error.details), error.code, error.message)
        except Exception as error:
            return Answer({}, f"crash: {type(error).__name__}", repr(error))
        if sent != request:
            return Answer({}, "crash: the request was changed", repr(sent))
        return answer


_IDLE_SECONDS = 5.0
"""DynamoDB Local ends connections that were not used for a while."""


class LocalPeer:
    """DynamoDB Local. Requests are sent as they are, so that malformed ones get through."""

    def __init__(self, url: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=240)
        self._used_at = time.monotonic()

    def ask(self, operation: str, request: dict[str, Any]) -> Answer:
        service = "DynamoDBStreams" if operation in _STREAM_OPERATIONS else "DynamoDB"
        target = {"X-Amz-Target": f"{service}_20120810.{operation}"}
        if time.monotonic() - self._used_at > _IDLE_SECONDS:
            self._connection.close()  # it connects anew by itself
        self._connection.request("POST", "/", json.dumps(request), _HEADERS | target)
        response = self._connection.getresponse()
        body: dict[str, Any] = json.loads(response.read())
        self._used_at = time.monotonic()
        if response.status == 200:
            return Answer(_with_plain_numbers(body))
        code = str(body.pop("__type")).rpartition("#")[2]
        message = body.pop("Message", None) or body.pop("message", None) or ""
        return Answer(_with_plain_numbers(body), code, message)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _with_plain_numbers(node: Any) -> Any:
    """The service returns numbers without exponent and trailing zeros; DynamoDB Local, inside documents, as sent."""
    if isinstance(node, list):
        return [_with_plain_numbers(element) for element in node]
    if not isinstance(node, dict):
        return node
    if len(node) == 1:
        kind, content = next(iter(node.items()))
        if kind == "N" and isinstance(content, str):
            return {kind: plain_number(content)}
        if kind == "NS" and isinstance(content, list):
            return {kind: [plain_number(element) for element in content]}
    return {name: _with_plain_numbers(content) for name, content in node.items()}


def plain_number(text: str) -> str:
    """A number as the service writes it."""
    with localcontext() as context:
        context.prec = 60
        number = Decimal(text).normalize()
    return f"{number:f}" if number else "0"
