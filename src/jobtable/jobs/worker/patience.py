"""Waiting for a store, or for object storage, that cannot be used for a while."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from jobtable.clock import Clock
from jobtable.errors import ConflictError, JobtableError, StorageError

T = TypeVar("T")

_LOG = logging.getLogger("jobtable.worker")
FIRST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 5.0
_PATIENCE_SECONDS = 60.0


def is_passing(error: JobtableError) -> bool:
    """Whether the store may do it later: it is throttled or unavailable, its disk is full, or others are too busy."""
    return error.retryable or isinstance(error, StorageError) or type(error) is ConflictError


def patiently(call: Callable[[], T], what: str, *, clock: Clock, goes_on: Callable[[], bool]) -> T:
    """Call until it goes through. A passing error is told and waited out for as long as `goes_on` says."""
    pause = FIRST_PAUSE_SECONDS
    while True:
        try:
            return call()
        except JobtableError as error:
            if not (is_passing(error) and goes_on()):
                raise
            _LOG.warning("%s: this is not possible now, trying again in %.1f s: %s", what, pause, error)
        clock.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE_SECONDS)


def insist(call: Callable[[], T], what: str, clock: Clock, *, goes_on: Callable[[], bool] = lambda: True) -> T:
    """Call something that may be away for a while, such as object storage or a server that restarts, until it answers.

    It is waited for a minute at most, and no longer than `goes_on` says. A checkpoint whose answer was lost is saved
    twice; everything else replaces what the first call had written.
    """
    until = clock.monotonic() + _PATIENCE_SECONDS
    return patiently(call, what, clock=clock, goes_on=lambda: goes_on() and clock.monotonic() < until)
