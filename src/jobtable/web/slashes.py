"""Ids with a slash in them: one that comes as %2F belongs to an id, and does not end it.

An address is decoded before its parts are told apart. So an encoded slash becomes a sign that stands for nothing
else, and a slash again when the route is found.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote

from starlette.types import ASGIApp, Receive, Scope, Send

_STAND_IN = "\ufdd0"  # no character: Unicode leaves it to programs for their own use
_ENCODED = re.compile(rb"%2F", re.IGNORECASE)


class EncodedSlashes:
    """Keeps slashes that came encoded apart from those between the parts of an address."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and _ENCODED.search(scope.get("raw_path") or b""):
            scope["path"] = unquote(_ENCODED.sub(quote(_STAND_IN).encode(), scope["raw_path"]).decode("ascii"))
        await self._app(scope, receive, send)


def with_slashes(found: Mapping[str, Any]) -> dict[str, Any]:
    """What a route has found in an address, as it was meant."""
    return {name: value.replace(_STAND_IN, "/") if isinstance(value, str) else value for name, value in found.items()}
