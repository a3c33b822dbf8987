"""Pauses between attempts, and what is attempted again: requests, and changes that others got in between of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any, TypeVar

from jobtable.clock import SYSTEM_CLOCK, Clock
from jobtable.errors import (
    ConditionFailedError,
    ConflictError,
    RequestError,
    Throttled,
    TransactionConflict,
    TransactionFailedError,
)

S = TypeVar("S")
T = TypeVar("T")

_NOT_DONE = (Throttled, TransactionConflict)
"""Errors after which the request has certainly not taken effect."""
_PERMANENT = frozenset({"ValidationError", "ItemCollectionSizeLimitExceeded"})
"""Codes of actions that fail whatever is stored: reading again does not help."""


class TryAgain(Exception):
    """Raised by an act of `Store.retrying` when the state it was given has changed; `reason` says what to report."""

    def __init__(self, reason: str = "it kept changing") -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Backoff:
    """Pauses that double up to a cap, each shortened at random so that callers do not move in step."""

    attempts: int = 8
    first_seconds: float = 0.05
    most_seconds: float = 5.0
    clock: Clock = SYSTEM_CLOCK
    random: Random = Random()  # noqa: RUF009, S311 - spreads load, guards nothing

    def pauses(self) -> Iterator[float]:
        """Pause before each further attempt, and yield the seconds after it."""
        for attempt in range(self.attempts - 1):
            pause = min(self.most_seconds, self.first_seconds * 2**attempt) * self.random.uniform(0.5, 1.0)
            self.clock.sleep(pause)
            yield pause

    def retry(self, call: Callable[[], T], is_temporary: Callable[[Exception], bool]) -> T:
        """Call until it succeeds, and again after a pause if its error is temporary; raise the last error."""
        pauses = self.pauses()
        while True:
            try:
                return call()
            except Exception as error:
                if not is_temporary(error) or next(pauses, None) is None:
                    raise

    def again(self, call: Callable[[], T], error: RequestError, *, repeatable: bool) -> T:
        """Call again after an error, until it succeeds or no attempts are left.

        A call that may have taken effect is repeated only if it is repeatable.
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


def retrying(
    read: Callable[[], S],
    act: Callable[[S], T],
    what: str,
    backoff: Backoff,
    *,
    first: Any = None,
    retry_if: Callable[[ConditionFailedError | TransactionFailedError], bool] | None = None,
) -> T:
    """Read and act until nothing changes in between: see `Store.retrying`."""
    state: S = read() if first is None else first
    pauses = backoff.pauses()
    while True:
        try:
            return act(state)
        except (ConditionFailedError, TransactionFailedError, TryAgain) as error:
            reason = _reason_to_retry(error)
            if reason is None or not (retry_if is None or isinstance(error, TryAgain) or retry_if(error)):
                raise
            if next(pauses, None) is None:
                raise ConflictError(f"could not {what}: {reason}", hint="try again") from error
        state = read()


def _reason_to_retry(error: ConditionFailedError | TransactionFailedError | TryAgain) -> str | None:
    """Why an act is to be tried again; None if it would fail whatever is stored."""
    if isinstance(error, TryAgain):
        return error.reason
    failures = error.failures if isinstance(error, TransactionFailedError) else ()
    return None if any(failure.code in _PERMANENT for failure in failures) else "it kept changing"
