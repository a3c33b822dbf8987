"""Files that are sent to the server: read as they come, and handed on to object storage without being kept here."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Callable
from typing import Any, TypeVar

import anyio.from_thread
import anyio.to_thread
from anyio import CapacityLimiter
from fastapi import Request
from starlette.requests import ClientDisconnect

from jobtable.web.problems import Refused

T = TypeVar("T")

MOST_AT_ONCE = 16
"""How many uploads are taken at once; others wait. Each holds a thread, but none that answers other requests."""


def binary_body(media_type: str = "application/octet-stream") -> dict[str, Any]:
    """What the API's description says of a route whose body is a file."""
    content = {media_type: {"schema": {"type": "string", "format": "binary"}}}
    return {"requestBody": {"required": True, "content": content}}


class Upload:
    """The body of a request as a stream that can be put. It is read in another thread than that of the event loop."""

    def __init__(self, request: Request, sha256: str | None = None) -> None:
        self._chunks: AsyncGenerator[bytes, None] = request.stream()
        self._expected = sha256
        self._digest = hashlib.sha256()
        self._held = b""

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes; none at the end, if the body is what it was said to be."""
        while not self._held:
            chunk = anyio.from_thread.run(self._next)
            if chunk is None:
                self._check()
                return b""
            self._held = chunk
        data, self._held = self._held[:size], self._held[size:]
        self._digest.update(data)
        return data

    async def _next(self) -> bytes | None:
        try:
            return await anext(self._chunks, None)
        except ClientDisconnect as error:
            raise Refused(400, "the body ended before it was whole; nothing was stored") from error

    def _check(self) -> None:
        found = self._digest.hexdigest()
        if self._expected is not None and found != self._expected:
            raise Refused(400, f"the body is not what was sent (SHA-256 {found}); nothing was stored: send it again")


async def take(request: Request, store: Callable[[Upload], T], *, sha256: str | None = None) -> T:
    """Let a function read the body of a request and store it, in a thread of its own; gives what it gives."""
    limiter: CapacityLimiter = request.app.state.uploads
    return await anyio.to_thread.run_sync(store, Upload(request, sha256), limiter=limiter)
