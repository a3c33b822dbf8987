"""Repeatable creation: a request with an Idempotency-Key runs once, and its repetitions get the same response."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool

from jobtable.access.entities import AnsweredRequest
from jobtable.clock import wall_time
from jobtable.errors import AlreadyExistsError, ConditionFailedError
from jobtable.store import Store
from jobtable.web.guard import GuardedRoute, Handler
from jobtable.web.problems import Refusal

HEADER = "Idempotency-Key"
_KEPT = timedelta(days=1)
_LONGEST_KEY = 200
_MOST_BYTES = 200_000
"""Longer responses are not stored, and a repetition of the request is refused."""

_OPENAPI_PARAMETER: dict[str, Any] = {
    "parameters": [
        {
            "name": HEADER,
            "in": "header",
            "required": False,
            "description": "Only the first request with a key is run; repetitions get its response.",
            "schema": {"type": "string", "minLength": 1, "maxLength": _LONGEST_KEY, "pattern": "^[!-~]+$"},
        }
    ]
}


class CreationRoute(GuardedRoute):
    """A guarded route whose requests may have an Idempotency-Key."""

    given_up_after = timedelta(minutes=5)
    """After this time, the server of a request without a response counts as dead."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, endpoint, **{**options, "openapi_extra": _OPENAPI_PARAMETER})

    def behind_guard(self, handle: Handler) -> Handler:
        """Return a handler that runs once for each key of a caller."""

        async def once(request: Request) -> Response:
            key = request.headers.get(HEADER)
            if key is None:
                return await handle(request)
            if not 1 <= len(key) <= _LONGEST_KEY or not key.isascii() or not key.isprintable() or " " in key:
                raise Refusal(422, f"{HEADER} must have 1 to {_LONGEST_KEY} visible ASCII characters")
            answers: KeptAnswers = request.app.state.answers
            return await answers.once(request, key, handle, self.given_up_after)

        return once


class ReportRoute(CreationRoute):
    """A route for the short, frequent reports of workers, whose repetitions must not wait long."""

    given_up_after = timedelta(seconds=5)


class KeptAnswers:
    """The stored responses to requests with keys, by caller and key."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def once(self, request: Request, key: str, handle: Handler, given_up_after: timedelta) -> Response:
        """Run the request, or return the response to an earlier one with its key."""
        begun = await self._begin(request, key, given_up_after)
        if begun.status_code is not None:
            return _answer_again(begun)
        try:
            response = await handle(request)
        except BaseException:
            await run_in_threadpool(self._store.delete, begun)
            raise
        body = bytes(response.body)
        kept = body.decode() if len(body) <= _MOST_BYTES else None
        done = begun.replace(status_code=response.status_code, body=kept)
        await run_in_threadpool(self._store.put, done)
        return response

    async def _begin(self, request: Request, key: str, given_up_after: timedelta) -> AnsweredRequest:
        """Record that the request runs, or find the record of an earlier one."""
        now, caller = wall_time(self._store.clock), request.state.caller
        asked = AnsweredRequest(
            caller=caller.token_id or caller.name,
            request_key=key,
            fingerprint=_fingerprint(request, await request.body()),
            begun_at=now,
            time_to_live=int((now + _KEPT).timestamp()),
        )
        return await run_in_threadpool(self._note, asked, given_up_after)

    def _note(self, asked: AnsweredRequest, given_up_after: timedelta) -> AnsweredRequest:
        try:
            self._store.add(asked)
        except AlreadyExistsError:
            return self._find(asked, given_up_after)
        return asked

    def _find(self, asked: AnsweredRequest, given_up_after: timedelta) -> AnsweredRequest:
        there = self._store.find(AnsweredRequest.key(caller=asked.caller, request_key=asked.request_key))
        if there is None or (there.status_code is None and there.begun_at < asked.begun_at - given_up_after):
            return self._take_over(asked, there)
        if there.fingerprint != asked.fingerprint:
            raise Refusal(409, f"the {HEADER} {asked.request_key!r} was used for a different request; use a new key")
        if there.status_code is None:
            raise Refusal(409, "the first request with this key is still running", {"Retry-After": "1"})
        return there

    def _take_over(self, asked: AnsweredRequest, there: AnsweredRequest | None) -> AnsweredRequest:
        """Run the request again after its server died."""
        is_gone = AnsweredRequest.fingerprint.missing()
        unchanged = is_gone if there is None else AnsweredRequest.begun_at == there.begun_at
        try:
            self._store.put(asked, when=unchanged)
        except ConditionFailedError as error:
            raise Refusal(409, "another request with this key is running", {"Retry-After": "1"}) from error
        return asked


def _fingerprint(request: Request, body: bytes) -> str:
    asked = f"{request.method} {request.url.path}?{request.url.query}\n".encode()
    return hashlib.sha256(asked + body).hexdigest()


def _answer_again(begun: AnsweredRequest) -> Response:
    if begun.body is None or begun.status_code is None:
        raise Refusal(409, "the request succeeded, but its response was too long to be stored")
    headers = {"Idempotency-Replayed": "true"}
    return Response(begun.body, begun.status_code, headers, "application/json")
