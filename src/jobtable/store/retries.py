"""Waiting and asking again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from jobtable.clock import SYSTEM_CLOCK, Clock
from jobtable.errors import RequestError, Throttled, TransactionConflict

T = TypeVar("T")

_NOT_DONE = (Throttled, TransactionConflict)
"""Errors after which the request has certainly not taken effect."""


@dataclass(frozen=True)
class Backoff:
    """Pauses that grow by two up to a cap, each shortened by chance so that callers do not move in step."""

    attempts: int = 8
    first_seconds: float = 0.05
    most_seconds: float = 5.0
    clock: Clock = SYSTEM_CLOCK
    random: Random = Random()  # noqa: RUF009, S311 - spreads load, guards nothing

    def pauses(self) -> Iterator[None]:
        """Yields once for each further attempt, after its pause."""
        for attempt in range(self.attempts - 1):
            longest = min(self.most_seconds, self.first_seconds * 2**attempt)
            self.clock.sleep(longest * self.random.uniform(0.5, 1.0))
            yield

    def again(self, call: Callable[[], T], error: RequestError, *, repeatable: bool) -> T:
        """Call again after an error, until it answers or the attempts are used up.

        What may already have taken effect is called again only if it is repeatable.
        """
        if not _may_repeat(error, repeatable):
            raise error
        for _ in self.pauses():
            try:
                return call()
            except RequestError as next_error:
                if not _may_repeat(next_error, repeatable):
                    raise
                error = next_error
        raise error


def _may_repeat(error: RequestError, repeatable: bool) -> bool:
    return error.retryable and not error.has_waited and (repeatable or isinstance(error, _NOT_DONE))
