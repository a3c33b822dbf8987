"""Uploads, streamed to object storage."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Callable
from typing import Any, TypeVar

import anyio.from_thread
import anyio.to_thread
from anyio import CapacityLimiter
from fastapi import Request
from starlette.requests import ClientDisconnect

from jobtable.web.problems import Refusal

T = TypeVar("T")

MOST_AT_ONCE = 16
"""Maximum number of concurrent uploads; others wait. They use threads of their own, not those of other requests."""


def binary_body(media_type: str = "application/octet-stream") -> dict[str, Any]:
    """Return the OpenAPI description of a body that is a file."""
    content = {media_type: {"schema": {"type": "string", "format": "binary"}}}
    return {"requestBody": {"required": True, "content": content}}


class Upload:
    """The body of a request as a readable stream, for another thread than the event loop's."""

    def __init__(self, request: Request, sha256: str | None = None) -> None:
        self._chunks: AsyncGenerator[bytes, None] = request.stream()
        self._expected = sha256
        self._digest = hashlib.sha256()
        self._held = b""

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes, none at the end; raise Refusal if the body is incomplete or has another digest."""
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
            raise Refusal(400, "the body was incomplete; nothing was stored") from error

    def _check(self) -> None:
        found = self._digest.hexdigest()
        if self._expected is not None and found != self._expected:
            raise Refusal(400, f"the body has SHA-256 {found}, not the declared one; nothing was stored, send it again")


async def take(request: Request, store: Callable[[Upload], T], *, sha256: str | None = None) -> T:
    """Let a function store the body of a request, in a thread of its own, and return its result."""
    limiter: CapacityLimiter = request.app.state.uploads
    return await anyio.to_thread.run_sync(store, Upload(request, sha256), limiter=limiter)
