"""Time in tests: a clock that a test moves, and items that expire when it says so."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

from jobtable.embedded import EmbeddedBackend
from jobtable.store import Store

_START = datetime(2025, 1, 1, tzinfo=UTC)


class FakeClock:
    """Time for tests: `advance` and `sleep` move it, `set` makes the wall clock jump."""

    def __init__(self, start: datetime = _START) -> None:
        self._lock = threading.Lock()
        self._wall = start
        self._last = start - timedelta(microseconds=1)
        self._monotonic = 0.0

    def now(self) -> datetime:
        with self._lock:
            self._last = max(self._wall, self._last + timedelta(microseconds=1))
            return self._last

    def seconds(self) -> float:
        with self._lock:
            return self._wall.timestamp()

    def monotonic(self) -> float:
        with self._lock:
            return self._monotonic

    def sleep(self, seconds: float) -> None:
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Move both clocks forward."""
        with self._lock:
            self._wall += timedelta(seconds=seconds)
            self._monotonic += seconds

    def set(self, wall: datetime) -> None:
        """Set the wall clock without moving the monotonic one."""
        with self._lock:
            self._wall = wall


def let_expire(store: Store) -> int:
    """Delete the items of an embedded store that have expired by its clock, and return their number.

    Otherwise the engine looks for them about twice a minute of real time.
    """
    if not isinstance(store.backend, EmbeddedBackend):
        raise TypeError(f"only the embedded engine can expire items on demand, not {store.backend!r}")
    return store.backend.keep_up()
