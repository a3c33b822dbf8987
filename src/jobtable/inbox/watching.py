"""The loop in which a server or a worker looks after what is due."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from jobtable.errors import JobtableError, kind_and_text

_LOG = logging.getLogger(__name__)
TICK_SECONDS = 0.5
"""Twice a second, so that anything due is done within a second."""


def keep_looking(
    look: Callable[[], Mapping[str, str]],
    is_over_within: Callable[[float], bool],
    on_problem: Callable[[str], None],
    what: str,
) -> None:
    """Look at what is due until `is_over_within(seconds)` returns true; servers run this in a thread.

    `look` returns the problems, by the id of the `what` that has each. A lasting problem, such as a missing table, is
    reported once.
    """
    lasting: str | None = None
    while not is_over_within(TICK_SECONDS):
        before, lasting = lasting, None
        try:
            for thing_id, problem in look().items():
                on_problem(f"{what} {thing_id}: {problem}")
        except Exception as error:  # the next look may succeed; without it nothing would time out
            _LOG.debug("the watch over every %s", what, exc_info=True)
            lasting = described(error)
            if lasting != before:
                on_problem(lasting)


def described(error: Exception) -> str:
    """Describe an error; other libraries' errors with their kind, because their text alone may say little."""
    return str(error) if isinstance(error, JobtableError) else kind_and_text(error)
