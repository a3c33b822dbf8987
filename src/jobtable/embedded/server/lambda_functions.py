"""Lambda's API over HTTP (REST), from any function that executes its operations."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, unquote

from pydantic_core import to_json

from jobtable.embedded.server.aws_protocol import (
    AwsProtocol,
    packed_response,
    parsed_json,
    plain_response,
    region_of,
)
from jobtable.embedded.server.body_encodings import unpacked_body
from jobtable.embedded.server.http1 import HttpError, HttpRequest, HttpResponse
from jobtable.embedded.server.sigv4 import SignatureCheck
from jobtable.embedded.server.step_functions import Operations
from jobtable.errors import request_error

_JSON = "application/json"
_OURS = re.compile(
    r"/(2015-03-31/functions|2025-12-01/(functions|durable-executions|durable-execution-callbacks))(/|$)"
)
_STATUSES = {
    "AccessDeniedException": 403,
    "MissingAuthenticationTokenException": 403,
    "IncompleteSignatureException": 403,
    "InvalidSignatureException": 403,
    "UnrecognizedClientException": 403,
    "ServiceException": 500,
}
_CAPITAL_MESSAGE = frozenset(
    {
        "CallbackTimeoutException",
        "DurableExecutionAlreadyStartedException",
        "ResourceNotFoundException",
        "ServiceException",
    }
)
"""The errors whose message member has a capital letter."""
Read = Callable[[list[str]], Any]


def _text(values: list[str]) -> str:
    return values[-1]


def _number(values: list[str]) -> int | str:
    try:
        return int(values[-1])
    except ValueError:
        return values[-1]  # which the operation refuses


def _flag(values: list[str]) -> bool | str:
    return {"true": True, "false": False}.get(values[-1].lower(), values[-1])


def _instant(values: list[str]) -> float | str:
    try:
        at = datetime.fromisoformat(values[-1])
    except ValueError:
        return values[-1]
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


@dataclass(frozen=True)
class Route:
    """Where the members of an operation's request and answer are in HTTP."""

    method: str
    path: str
    """As in AWS's description of the service: `{Name}` is a member."""
    query: Mapping[str, Read] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    """The header of each member of the request."""
    payload: str | None = None
    """The member that is the whole body; without one, the body is an object of all others."""
    is_binary: bool = False
    """Whether that member is bytes and not JSON."""
    status: int = 200
    answer_headers: Mapping[str, str] = field(default_factory=dict)
    answer_payload: str | None = None

    def match(self, method: str, path: str) -> dict[str, str] | None:
        """Return the members in a path, or None if it is that of another operation."""
        parts, wanted = path.split("/"), self.path.split("/")
        if method != self.method or len(parts) != len(wanted):
            return None
        members: dict[str, str] = {}
        for part, want in zip(parts, wanted, strict=True):
            if want.startswith("{"):
                members[want[1:-1]] = unquote(part)
            elif part != want:
                return None
        return members


_FUNCTION = "/2015-03-31/functions/{FunctionName}"
_EXECUTION = "/2025-12-01/durable-executions/{DurableExecutionArn}"
_CALLBACK = "/2025-12-01/durable-execution-callbacks/{CallbackId}"
_PAGE: dict[str, Read] = {"Marker": _text, "MaxItems": _number}
_QUALIFIER: dict[str, Read] = {"Qualifier": _text}
ROUTES = {
    "CheckpointDurableExecution": Route("POST", f"{_EXECUTION}/checkpoint"),
    "GetDurableExecutionState": Route("GET", f"{_EXECUTION}/state", {"CheckpointToken": _text, **_PAGE}),
    "GetDurableExecution": Route("GET", _EXECUTION, {"IncludeExecutionData": _flag}),
    "GetDurableExecutionHistory": Route(
        "GET", f"{_EXECUTION}/history", {"IncludeExecutionData": _flag, "ReverseOrder": _flag, **_PAGE}
    ),
    "ListDurableExecutionsByFunction": Route(
        "GET",
        "/2025-12-01/functions/{FunctionName}/durable-executions",
        {
            **_QUALIFIER,
            "DurableExecutionName": _text,
            "Statuses": list,
            "StartedAfter": _instant,
            "StartedBefore": _instant,
            "ReverseOrder": _flag,
            **_PAGE,
        },
    ),
    "StopDurableExecution": Route("POST", f"{_EXECUTION}/stop", payload="Error"),
    "SendDurableExecutionCallbackSuccess": Route("POST", f"{_CALLBACK}/succeed", payload="Result", is_binary=True),
    "SendDurableExecutionCallbackFailure": Route("POST", f"{_CALLBACK}/fail", payload="Error"),
    "SendDurableExecutionCallbackHeartbeat": Route("POST", f"{_CALLBACK}/heartbeat"),
    "Invoke": Route(
        "POST",
        f"{_FUNCTION}/invocations",
        _QUALIFIER,
        headers={
            "InvocationType": "X-Amz-Invocation-Type",
            "LogType": "X-Amz-Log-Type",
            "ClientContext": "X-Amz-Client-Context",
            "DurableExecutionName": "X-Amz-Durable-Execution-Name",
            "TenantId": "X-Amz-Tenant-Id",
        },
        payload="Payload",
        is_binary=True,
        answer_headers={
            "FunctionError": "X-Amz-Function-Error",
            "LogResult": "X-Amz-Log-Result",
            "ExecutedVersion": "X-Amz-Executed-Version",
            "DurableExecutionArn": "X-Amz-Durable-Execution-Arn",
        },
        answer_payload="Payload",
    ),
    "GetFunction": Route("GET", _FUNCTION, _QUALIFIER),
    "GetFunctionConfiguration": Route("GET", f"{_FUNCTION}/configuration", _QUALIFIER),
    "PublishVersion": Route("POST", f"{_FUNCTION}/versions", status=201),
    "ListVersionsByFunction": Route("GET", f"{_FUNCTION}/versions", _PAGE),
    "CreateAlias": Route("POST", f"{_FUNCTION}/aliases", status=201),
    "UpdateAlias": Route("PUT", f"{_FUNCTION}/aliases/{{Name}}"),
    "GetAlias": Route("GET", f"{_FUNCTION}/aliases/{{Name}}"),
    "ListAliases": Route("GET", f"{_FUNCTION}/aliases", {"FunctionVersion": _text, **_PAGE}),
    "DeleteAlias": Route("DELETE", f"{_FUNCTION}/aliases/{{Name}}", status=204),
    "ListFunctions": Route("GET", "/2015-03-31/functions", {"MasterRegion": _text, "FunctionVersion": _text, **_PAGE}),
}
"""Every operation. A test compares them with the description of the service that boto3 has."""


class LambdaProtocol(AwsProtocol):
    """Answers the requests of Lambda."""

    def __init__(self, operations: Operations, signatures: SignatureCheck | None = None) -> None:
        super().__init__(signatures)
        self._operations = operations

    def handles(self, request: HttpRequest) -> bool:
        return "x-amz-target" not in request.headers and _OURS.match(request.target.partition("?")[0]) is not None

    def run(self, request: HttpRequest) -> HttpResponse:
        self.refuse_pages(request)
        operation, members = _operation_of(request)
        self.verify(request)
        route = ROUTES[operation]
        answer = dict(self._operations.execute(operation, _request(route, members, request), region=region_of(request)))
        if route.status == 204:
            return plain_response(204, b"", _JSON)
        if route.status != 200:
            return plain_response(route.status, to_json(answer), _JSON)
        if route.answer_payload is None:
            return packed_response(request, to_json(answer), _JSON)
        headers = [(name, str(answer[member])) for member, name in route.answer_headers.items() if member in answer]
        body = str(answer.get(route.answer_payload, "")).encode()
        return plain_response(answer.get("StatusCode", 200), body, _JSON, *headers)

    def envelope(self, status: int | None, code: str, message: str, details: Mapping[str, Any]) -> HttpResponse:
        code = "ServiceException" if code == "InternalServerError" else code
        status = status or _STATUSES.get(code, 400)
        member = "Message" if code in _CAPITAL_MESSAGE else "message"
        content = {"Type": "Service" if status >= 500 else "User", member: message, **details}
        return plain_response(status, to_json(content), _JSON, ("x-amzn-ErrorType", code))


def _operation_of(request: HttpRequest) -> tuple[str, dict[str, str]]:
    """Return the operation that a path names, with the members in it."""
    path = request.target.partition("?")[0].rstrip("/")
    for operation, route in ROUTES.items():
        if (members := route.match(request.method, path)) is not None:
            return operation, members
    raise HttpError(404, "UnknownOperationException", f"Lambda's {request.method} {path} is not available here")


def _request(route: Route, members: dict[str, str], request: HttpRequest) -> dict[str, Any]:
    found: dict[str, Any] = dict(members)
    query = parse_qs(request.target.partition("?")[2], keep_blank_values=True)
    found |= {name: read(query[name]) for name, read in route.query.items() if name in query}
    sent = request.headers
    found |= {name: sent[header.lower()] for name, header in route.headers.items() if header.lower() in sent}
    body = unpacked_body(request)
    if route.payload is not None:
        return {**found, route.payload: body if route.is_binary else parsed_json(body)} if body else found
    parsed = parsed_json(body) if body else {}
    if not isinstance(parsed, dict):
        raise request_error("SerializationException", "The request body is not a JSON object")
    return {**parsed, **found}
