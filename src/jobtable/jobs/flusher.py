"""A thread that flushes what others collect."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Flusher:
    """A thread that flushes every so many seconds, and at once when it is woken. `error` is why it could not."""

    def __init__(self, flush: Callable[[], None], seconds: float, name: str) -> None:
        self.error: Exception | None = None
        self._flush = flush
        self._seconds = seconds
        self._woken = threading.Event()
        self._is_closed = False
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
        self._is_closed = True
        self._woken.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_closed:
            self._woken.wait(self._seconds)
            if self._is_closed:
                return
            self._woken.clear()  # also what close() has set meanwhile; the loop looks whether it is closed
            try:
                self._flush()
                self.error = None
            except Exception as error:  # whatever it is: nothing is lost by it, and close() tells
                self.error = error
