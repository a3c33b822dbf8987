"""The one source of "now"."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Clock(Protocol):
    """What the package may ask of time. `testing.FakeClock` is the one to use in tests."""

    def now(self) -> datetime:
        """The time in UTC. No two calls on one clock give the same value, and none gives an earlier one."""
        ...

    def seconds(self) -> float:
        """Seconds since 1970 on the wall clock; may jump when the clock is set."""
        ...

    def monotonic(self) -> float:
        """Seconds on a clock that never jumps; only differences mean something."""
        ...

    def sleep(self, seconds: float) -> None:
        """Return after that many seconds."""
        ...


class SystemClock:
    """The machine's clock."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last_microsecond = 0

    def now(self) -> datetime:
        microsecond = time.time_ns() // 1000
        with self._lock:
            self._last_microsecond = max(microsecond, self._last_microsecond + 1)
            return _EPOCH + timedelta(microseconds=self._last_microsecond)

    def seconds(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


SYSTEM_CLOCK = SystemClock()


def wall_time(clock: Clock) -> datetime:
    """The time in UTC on the wall clock: for when something is due. After the clock was ahead, `now` still is."""
    return _EPOCH + timedelta(seconds=clock.seconds())
