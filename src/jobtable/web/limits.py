"""Limits: requests per minute of each caller, bytes per request, and how slowly they may arrive."""

from __future__ import annotations

import asyncio
import math
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from fastapi import FastAPI, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from jobtable.clock import Clock
from jobtable.web.fastapi_internals import routes_of
from jobtable.web.problems import PassesThrough, Problem, Refusal, Sending, problem_response

F = TypeVar("F", bound=Callable[..., Any])

MOST_WHOLE_BYTES = 100_000_000
"""Maximum size of a file inside JSON, all of which is in memory."""
LONGEST_SILENCE_SECONDS = 60.0
"""How long a body may pause, and how far it may fall behind LEAST_BYTES_PER_SECOND."""
LEAST_BYTES_PER_SECOND = 1000
_MOST_CALLERS = 10_000
_TAKES_FILE = "__jobtable_takes_file__"


class RateLimit:
    """A budget of requests for each caller, refilled evenly over a minute. Any thread may use it."""

    def __init__(self, requests_per_minute: int, clock: Clock) -> None:
        self._most = float(requests_per_minute)
        self._clock = clock
        self._lock = threading.Lock()
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str) -> None:
        """Count one request, or raise Refusal with 429."""
        now = self._clock.monotonic()
        with self._lock:
            left, since = self._left.pop(caller, (self._most, now))
            left = min(self._most, left + (now - since) * self._most / 60)
            self._left[caller] = (max(left - 1, 0.0) if left >= 1 else left, now)
            # The callers that were idle longest have a full budget again, or nearly.
            while len(self._left) > _MOST_CALLERS:
                self._left.popitem(last=False)
        if left < 1:
            wait = math.ceil((1 - left) * 60 / self._most)
            raise Refusal(429, f"more than {self._most:.0f} requests per minute; wait", {"Retry-After": str(wait)})


def takes_file(*, whole: bool) -> Callable[[F], F]:
    """Mark a route whose requests contain a file, and so may be larger than others.

    A streamed file may be as large as the settings allow; a file that is held whole, MOST_WHOLE_BYTES.
    """

    def mark(function: F) -> F:
        setattr(function, _TAKES_FILE, whole)
        return function

    return mark


def largest_files(app: FastAPI, most_bytes: int) -> list[tuple[re.Pattern[str], int]]:
    """Return the paths of the routes that take files, with the maximum size of each."""
    found = []
    for route in routes_of(app):
        is_whole: bool | None = getattr(route.endpoint, _TAKES_FILE, None)
        if is_whole is not None:
            found.append((route.path_regex, min(most_bytes, MOST_WHOLE_BYTES) if is_whole else most_bytes))
    return found


class BodyLimit:
    """Middleware that refuses bodies that are too large or arrive too slowly.

    `files` are the paths of requests with other limits. A body is refused at once if its declared length is too large.
    """

    def __init__(self, app: ASGIApp, most_bytes: int, files: Sequence[tuple[re.Pattern[str], int]]) -> None:
        self._app = app
        self._most = most_bytes
        self._files = files

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        most = max((most for place, most in self._files if place.match(scope["path"])), default=self._most)
        declared = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        if not declared.isdigit() or int(declared) > most:
            await _too_large(most)(scope, receive, send)
            return
        sending = Sending(send)
        try:
            await self._app(scope, _Body(receive, most).receive, sending)
        except _BodyRefused as refused:
            if sending.has_begun:
                raise
            await refused.answer(scope, receive, send)


class _Body:
    """The body of a request as it arrives."""

    def __init__(self, receive: Receive, most_bytes: int) -> None:
        self._receive = receive
        self._most = most_bytes
        self._received = 0
        self._waited_seconds = 0.0
        self._is_whole = False

    async def receive(self) -> Message:
        """Return the next part, and after the last one wait for the client to disconnect."""
        if self._is_whole:
            return await self._receive()
        message = await self._receive_in_time()
        self._received += len(message.get("body", b""))
        self._is_whole = not message.get("more_body", False)
        if self._received > self._most:
            raise _BodyRefused(_too_large(self._most))
        return message

    async def _receive_in_time(self) -> Message:
        """Return the next part. Only time spent waiting for the client counts: storing the body may be slow."""
        left = LONGEST_SILENCE_SECONDS + self._received / LEAST_BYTES_PER_SECOND - self._waited_seconds
        begun = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(min(left, LONGEST_SILENCE_SECONDS)):
                return await self._receive()
        except TimeoutError:
            raise _BodyRefused(_too_slow()) from None
        finally:
            self._waited_seconds += asyncio.get_running_loop().time() - begun


class _BodyRefused(PassesThrough):
    """The body is too large, or too slow."""

    def __init__(self, answer: Response) -> None:
        super().__init__()
        self.answer = answer


def _too_large(most: int) -> Response:
    detail = f"the request is larger than {most:,} bytes"
    return problem_response(Problem(title="Content Too Large", status=413, detail=detail))


def _too_slow() -> Response:
    detail = (
        f"the body paused for {LONGEST_SILENCE_SECONDS:.0f} s, "
        f"or arrived at less than {LEAST_BYTES_PER_SECOND:,} bytes per second; nothing was stored, send it again"
    )
    return problem_response(Problem(title="Request Timeout", status=408, detail=detail), {"Connection": "close"})
