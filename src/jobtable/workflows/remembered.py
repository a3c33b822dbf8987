"""What a process has read or written last, so that it need not be read again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Generic, TypeVar

T = TypeVar("T")
_MOST_REMEMBERED = 256


class Remembered(Generic[T]):
    """Executions by their ids, the latest ones only. Any thread may use it.

    What is taken belongs to its taker alone. It may be out of date: every write requires the revision that was read.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[str, T] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, execution_id: str) -> T | None:
        """Return an execution and forget it."""
        with self._lock:
            return self._kept.pop(execution_id, None)

    def keep(self, execution_id: str, execution: T) -> None:
        """Remember an execution."""
        with self._lock:
            self._kept[execution_id] = execution
            self._kept.move_to_end(execution_id)
            while len(self._kept) > _MOST_REMEMBERED:
                self._kept.popitem(last=False)
