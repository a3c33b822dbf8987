"""What was answered to each Idempotency-Key."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable
from threading import RLock

from jobtable.testing.assist.openai_refusals import Refusal
from jobtable.testing.assist.scripted_service import Response


class AnsweredKeys:
    """Answers each key once, and later with the same answer. Concurrent requests of a key wait for the first one."""

    def __init__(self) -> None:
        self._answered: dict[str, tuple[str, Response]] = {}
        self._locks: dict[str, RLock] = defaultdict(RLock)

    def once(self, key: str | None, content: bytes, act: Callable[[], Response]) -> Response:
        """Do what a request asks, or return what was answered to its key; Refusal if its content was another one."""
        if key is None:
            return act()
        fingerprint = hashlib.sha256(content).hexdigest()
        with self._locks[key]:
            if key not in self._answered:
                response = act()
                if response.was_done:
                    self._answered[key] = fingerprint, Response(response.status, response.body, response.headers)
                return response
            before, response = self._answered[key]
            if before != fingerprint:
                raise Refusal(
                    "Keys for idempotent requests can only be used with the same parameters they were first used with.",
                    code="idempotency_error",
                    status=409,
                )
            return response
