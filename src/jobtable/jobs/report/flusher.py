"""A thread that flushes what others collect."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

_LOG = logging.getLogger(__name__)


class Flusher:
    """Flushes at regular intervals, and at once when it is woken. A flush that fails is tried again."""

    def __init__(self, flush: Callable[[], None], seconds: float, name: str) -> None:
        self._flush = flush
        self._seconds = seconds
        self._name = name
        self._woken = threading.Event()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def is_current(self) -> bool:
        """Whether it is this thread."""
        return threading.current_thread() is self._thread

    def wake(self) -> None:
        """Flush soon."""
        if not self._woken.is_set():
            self._woken.set()

    def close(self) -> None:
        """End the thread; the flush that it is in comes to its end. The last flush is the caller's."""
        self._closed.set()
        self._woken.set()
        self._thread.join()

    def _run(self) -> None:
        is_failing = False
        while not self._closed.is_set():
            self._woken.wait(self._seconds)
            if self._closed.is_set():
                return
            self._woken.clear()
            try:
                self._flush()
            except Exception as error:  # whatever it is, nothing is lost by it: the last flush raises what stays
                if not is_failing:
                    _LOG.warning("the %s cannot be stored now, and is kept: %s", self._name, error)
                is_failing = True
            else:
                is_failing = False
