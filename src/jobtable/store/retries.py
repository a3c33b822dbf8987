"""Pauses between attempts, and what is attempted again: requests, and changes that others got in between of."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from jobtable.clock import SYSTEM_CLOCK, Clock
from jobtable.errors import (
    ConditionFailedError,
    ConflictError,
    JobtableError,
    RequestError,
    StorageError,
    Throttled,
    TransactionConflict,
    TransactionFailedError,
)

_LOG = logging.getLogger("jobtable.worker")
FIRST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 5.0
_PATIENCE_SECONDS = 60.0

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

    def lengths(self) -> Iterator[float]:
        """Yield the seconds to pause before each further attempt."""
        for attempt in range(self.attempts - 1):
            yield min(self.most_seconds, self.first_seconds * 2**attempt) * self.random.uniform(0.5, 1.0)

    def pauses(self) -> Iterator[float]:
        """Pause before each further attempt, and yield the seconds after it."""
        for pause in self.lengths():
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


def reason_to_retry(error: ConditionFailedError | TransactionFailedError | TryAgain) -> str | None:
    """Return why to try an act again, or None if it would always fail."""
    if isinstance(error, TryAgain):
        return error.reason
    failures = error.failures if isinstance(error, TransactionFailedError) else ()
    return None if any(failure.code in _PERMANENT for failure in failures) else "it kept changing"


def is_passing(error: JobtableError) -> bool:
    """Return whether the same call may succeed later: throttled, unavailable, locked, disk full, or contended."""
    return error.retryable or isinstance(error, StorageError) or type(error) is ConflictError


def patiently(call: Callable[[], T], what: str, *, clock: Clock, goes_on: Callable[[], bool]) -> T:
    """Call until it succeeds; log passing errors, and retry for as long as `goes_on` returns true."""
    pause = FIRST_PAUSE_SECONDS
    while True:
        try:
            return call()
        except JobtableError as error:
            if not (is_passing(error) and goes_on()):
                raise
            _LOG.warning("could not %s; will retry in %.1f s: %s", what, pause, error)
        clock.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE_SECONDS)


def insist(call: Callable[[], T], what: str, clock: Clock, *, goes_on: Callable[[], bool] = lambda: True) -> T:
    """Retry a call to a store, object storage or a server for up to a minute, while `goes_on` returns true.

    `what` is what the call does, as in "could not ...". A checkpoint whose answer was lost is saved twice; everything
    else replaces what the first call wrote.
    """
    until = clock.monotonic() + _PATIENCE_SECONDS
    return patiently(call, what, clock=clock, goes_on=lambda: goes_on() and clock.monotonic() < until)
