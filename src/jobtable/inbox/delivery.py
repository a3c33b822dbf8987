"""Delivery: a task and its token go to the person who answers, by a function of the user."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable
from typing import Any

from jobtable.errors import DefinitionError, kind_and_text

_LOG = logging.getLogger(__name__)
_LONGEST_PROBLEM = 1000


def load_sender(path: str) -> Callable[[Any, str], object]:
    """Return the function `module:NAME` that sends a task and its token, or raise DefinitionError."""
    module, _, name = path.partition(":")
    try:
        found: Callable[[Any, str], object] = getattr(importlib.import_module(module), name)
    except (Exception, SystemExit) as error:  # anything that importing a module may raise
        raise DefinitionError(
            f"cannot load the function that sends tokens, {path!r}, as module:NAME: {kind_and_text(error)}"
        ) from error
    return found


def deliver(sender: str, task: Any, token: str) -> str | None:
    """Send a task and its token; return why that failed, or None. A failure never loses the task, which waits."""
    try:
        load_sender(sender)(task, token)
    except Exception as error:  # anything that a user's function may raise
        problem = f"{sender} failed: {kind_and_text(error)}"[:_LONGEST_PROBLEM]
        _LOG.warning("task %s was not delivered: %s", task.task_id, problem, exc_info=True)
        return problem
    return None
