"""A clock that stands still until it is told to move."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

_START = datetime(2025, 1, 1, tzinfo=UTC)


class FakeClock:
    """Time for tests: `advance` moves it, `sleep` only advances, `set` makes the wall clock jump."""

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
        """Let that much time pass, on both clocks."""
        with self._lock:
            self._wall += timedelta(seconds=seconds)
            self._monotonic += seconds

    def set(self, wall: datetime) -> None:
        """Make the wall clock jump; the monotonic one does not notice."""
        with self._lock:
            self._wall = wall
