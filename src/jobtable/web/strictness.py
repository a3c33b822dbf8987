"""Requests are taken literally: encoded slashes, query parameters, and the types of a body."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails
from starlette.datastructures import QueryParams
from starlette.types import ASGIApp, Receive, Scope, Send

from jobtable.web.problems import Refusal

_STAND_IN = "\ufdd0"  # not a character: Unicode reserves it for programs
_ENCODED = re.compile(rb"%2F", re.IGNORECASE)
_MOST_LEVELS = 100
"""More than an item may have; a deeper value could not be written into a response."""
_LARGEST_EXACT = 2**53
_TYPES_AS_TEXT = {"bytes_type", "date_type", "datetime_type", "is_instance_of", "uuid_type"}


class EncodedSlashes:
    """Middleware that keeps an encoded slash (%2F) inside an id.

    Paths are decoded before they are matched, so an encoded slash becomes a stand-in until the route is found.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and _ENCODED.search(scope.get("raw_path") or b""):
            scope["path"] = unquote(_ENCODED.sub(quote(_STAND_IN).encode(), scope["raw_path"]).decode("ascii"))
        await self._app(scope, receive, send)


def with_slashes(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return path parameters with the slashes of their ids."""
    return {
        name: value.replace(_STAND_IN, "/") if isinstance(value, str) else value for name, value in parameters.items()
    }


def check_query(given: QueryParams, known: Mapping[str, bool]) -> None:
    """Refuse unknown query parameters, and repeated ones unless the parameter is a list."""
    unknown = sorted(set(given) - known.keys())
    if unknown:
        names = ", ".join(repr(name[:40]) for name in unknown[:5])
        accepted = ", ".join(sorted(known)) or "none"
        raise Refusal(422, f"unknown query parameter {names}; accepted: {accepted}")
    for name, is_list in known.items():
        if not is_list and (count := len(given.getlist(name))) > 1:
            raise Refusal(422, f"query parameter {name!r} was given {count} times; give it once")


async def check_body(request: Request, kind: TypeAdapter[Any]) -> None:
    """Refuse a body whose types are not exactly those of the API's description: "5" and true are not numbers."""
    try:
        body = json.loads(await request.body() or b"null", parse_float=_read_float, parse_constant=_read_float)
    except (ValueError, RecursionError):
        return  # the route itself reports malformed JSON
    if _is_deeper(body, _MOST_LEVELS):
        raise Refusal(422, f"the request is nested deeper than {_MOST_LEVELS} levels")
    if body is None:
        return
    try:
        kind.validate_json(json.dumps(body), strict=True)
    except ValidationError as error:
        found = [{**each, "loc": ("body", *each["loc"])} for each in error.errors() if not _is_json_form(each)]
        if found:
            raise RequestValidationError(found, body=body) from error


def _is_json_form(error: ErrorDetails) -> bool:
    """Return whether a value has the JSON form of its type: a time or an enum is a text, a decimal also a number.

    After a before-validator, pydantic treats values as Python's, and in strict mode refuses these forms.
    """
    forms = (str, int, float) if error.get("ctx", {}).get("class") == "Decimal" else (str,)
    return error["type"] in _TYPES_AS_TEXT and type(error["input"]) in forms


def _is_deeper(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_is_deeper(each, levels - 1) for each in inner)


def _read_float(text: str) -> float | int:
    """Read a number with a fraction or an exponent; 2.0 is an integer to JSON Schema, and therefore here.

    Python would also read NaN, Infinity and 1e400, which could only be stored as null.
    """
    value = float(text)
    if not math.isfinite(value):
        raise Refusal(422, f"{text[:40]} is not a finite number")
    return int(value) if value.is_integer() and abs(value) < _LARGEST_EXACT else value
