"""What a style of workflow counts, by which its cost is computed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

MEMORY_MB = 1769
"""Of the functions that read pictures: one virtual processor on Lambda."""


@dataclass(frozen=True)
class Usage:
    """What a style of workflow counts and AWS charges for, of all runs of an execution."""

    transitions: int = 0
    """State transitions, each retry included."""
    operations: int = 0
    """Durable operations: the start of each run, and each step attempt, wait, callback and context."""
    invocations: int | None = None
    """Calls of the one function that runs the workflow; None if each step calls a function of its own."""
    invoked_ms: int = 0
    memory_mb: int = 0
    state_bytes: int = 0
    """What the workflow stored: the payloads in its history, or the results of its operations."""
    retention_days: int = 0


def bytes_of(values: Iterable[Any]) -> int:
    """Return the size of some JSON values as UTF-8."""
    return sum(len(json.dumps(value, ensure_ascii=False).encode()) for value in values if value is not None)
