"""Waiting for a store, or for object storage, that cannot be used for a while."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from jobtable.clock import Clock
from jobtable.errors import ConflictError, JobtableError, StorageError
from jobtable.objects import ObjectInfo, ObjectStore, Source

T = TypeVar("T")

_LOG = logging.getLogger("jobtable.worker")
FIRST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 5.0
_OBJECT_PATIENCE_SECONDS = 60.0


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
            _LOG.warning("%s could not be stored, trying again in %.1f s: %s", what, pause, error)
        clock.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE_SECONDS)


def put_patiently(objects: ObjectStore, key: str, source: Source, clock: Clock) -> ObjectInfo:
    """Put an object, although object storage may be away for a while: a task is not to fail of that.

    A stream is put once: it cannot be read again.
    """
    until = clock.monotonic() + (_OBJECT_PATIENCE_SECONDS if isinstance(source, bytes | Path) else 0)
    return patiently(
        lambda: objects.put(key, source), f"object {key}", clock=clock, goes_on=lambda: clock.monotonic() < until
    )
