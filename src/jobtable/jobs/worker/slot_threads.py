"""The threads of a worker's slots."""

from __future__ import annotations

import threading
from collections.abc import Callable


class SlotThreads:
    """Threads that run; `on_free` is called whenever one has ended, with what it failed of or None."""

    def __init__(self, on_free: Callable[[BaseException | None], None]) -> None:
        self._on_free = on_free
        self._lock = threading.Lock()
        self._running: set[threading.Thread] = set()

    def __len__(self) -> int:
        return len(self._running)

    def start(self, work: Callable[[], None], name: str) -> None:
        """Do some work in a thread of its own."""
        thread = threading.Thread(target=self._run, args=(work,), name=name)
        with self._lock:
            self._running.add(thread)
        thread.start()

    def _run(self, work: Callable[[], None]) -> None:
        failure: BaseException | None = None
        try:
            work()
        except BaseException as error:  # the worker raises it where its caller sees it
            failure = error
        with self._lock:
            self._running.discard(threading.current_thread())
        self._on_free(failure)
