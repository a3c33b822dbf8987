"""OpenAI's errors, in their shape and with their codes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from jobtable.testing.assist.replies import Reply, Trouble
from jobtable.testing.assist.scripted_service import Response


class Refusal(Exception):
    """The request is refused, with OpenAI's words."""

    def __init__(
        self,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        status: int = 400,
        type_: str = "invalid_request_error",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers or {}
        self.error = {"message": message, "type": type_, "param": param, "code": code}

    garbled: bytes | None = None
    """Sent in place of the body."""

    def response(self) -> Response:
        body = json.dumps({"error": self.error}).encode()
        return Response(self.status, body, self.headers, garbled=self.garbled)


class _Words(NamedTuple):
    status: int
    type_: str
    code: str | None
    message: str


_WORDS = {
    Trouble.RATE_LIMITED: _Words(429, "requests", "rate_limit_exceeded", "Rate limit reached for requests"),
    Trouble.OVERLOADED: _Words(503, "server_error", None, "The engine is currently overloaded, please try again later"),
    Trouble.BROKEN: _Words(500, "server_error", None, "The server had an error while processing your request."),
    Trouble.TIMED_OUT: _Words(408, "server_error", None, "Request timed out."),
    Trouble.UNAUTHORIZED: _Words(401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    Trouble.FORBIDDEN: _Words(
        403, "request_forbidden", "unsupported_country_region_territory", "Country, region, or territory not supported"
    ),
    Trouble.UNKNOWN_MODEL: _Words(404, "invalid_request_error", "model_not_found", "The model does not exist."),
    Trouble.REFUSED: _Words(400, "invalid_request_error", None, "Invalid request."),
    Trouble.TOO_LONG: _Words(
        400, "invalid_request_error", "context_length_exceeded", "This model's maximum context length is exceeded."
    ),
    Trouble.OUT_OF_CREDIT: _Words(
        429,
        "insufficient_quota",
        "insufficient_quota",
        "You exceeded your current quota, please check your plan and billing details.",
    ),
}


def scripted_refusal(reply: Reply) -> Refusal:
    """Return the error that a reply asks for."""
    assert reply.trouble is not None
    words = _WORDS[Trouble(reply.trouble)]
    pause = {} if reply.retry_after is None else {"retry-after": f"{reply.retry_after:g}"}
    refusal = Refusal(
        reply.message or words.message,
        code=words.code,
        status=words.status,
        type_=words.type_,
        headers={**pause, **reply.headers},
    )
    refusal.garbled = None if reply.body is None else reply.body.encode()
    return refusal


def unknown_model(model: str) -> Refusal:
    return Refusal(
        f"The model `{model}` does not exist or you do not have access to it.", code="model_not_found", status=404
    )


def missing(name: str) -> Refusal:
    return Refusal(f"Missing required parameter: '{name}'.", param=name, code="missing_required_parameter")


def wrong_type(name: str, wanted: str, got: Any) -> Refusal:
    kind = {dict: "an object", list: "an array", str: "a string", int: "an integer", type(None): "null"}
    found = kind.get(type(got), f"a {type(got).__name__}")
    return Refusal(
        f"Invalid type for '{name}': expected {wanted}, but got {found} instead.", param=name, code="invalid_type"
    )
