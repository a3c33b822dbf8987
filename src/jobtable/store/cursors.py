"""Cursors: where a page ended, as opaque URL-safe text that fits only the query that made it."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from typing import Any

from pydantic_core import from_json

from jobtable.errors import CursorError

_CHECK_BYTES = 12


def fingerprint(request: dict[str, Any]) -> bytes:
    """What tells one query from another: its request without the position and the page size."""
    bound = {name: value for name, value in request.items() if name not in ("ExclusiveStartKey", "Limit")}
    return hashlib.sha256(json.dumps(bound, sort_keys=True).encode()).digest()


def write_cursor(place: dict[str, Any], bound_to: bytes) -> str:
    """The cursor for a place: the key that a page ended with, or what a feed has read."""
    payload = json.dumps(place, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(_check(payload, bound_to) + payload).decode().rstrip("=")


def read_cursor(cursor: str, bound_to: bytes) -> dict[str, Any]:
    """What was written into the cursor, or CursorError."""
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error) as error:
        raise CursorError("invalid cursor; start again without one") from error
    check, payload = raw[:_CHECK_BYTES], raw[_CHECK_BYTES:]
    if check != _check(payload, bound_to):
        raise CursorError("the cursor was altered or belongs to another query; start again without one")
    try:
        place = from_json(payload)
    except ValueError as error:
        raise made_up() from error
    if not isinstance(place, dict):
        raise made_up()
    return place


def made_up() -> CursorError:
    """The error for a cursor that fits its query, but that no query has written."""
    return CursorError("the cursor was not returned by a query; start again without one")


def _check(payload: bytes, bound_to: bytes) -> bytes:
    return hashlib.sha256(bound_to + payload).digest()[:_CHECK_BYTES]
