"""Changes that start from what is stored, made again where another one got in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from jobtable.clock import Clock
from jobtable.errors import TransactionFailedError
from jobtable.store.retries import Backoff

T = TypeVar("T")


def until_undisturbed(change: Callable[[], T], clock: Clock) -> T:
    """Make a change that reads what is there first, and again after a pause; TransactionFailedError after twenty times.

    The pauses differ by chance: without them, of many writers some come late each time.
    """
    try:
        return change()
    except TransactionFailedError as error:
        disturbed = error
    for _ in Backoff(attempts=20, first_seconds=0.002, most_seconds=0.2, clock=clock).pauses():
        try:
            return change()
        except TransactionFailedError as error:
            disturbed = error
    raise disturbed
