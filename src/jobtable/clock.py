"""The one source of "now"."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Clock(Protocol):
    """Time as the package uses it. Tests use `testing.FakeClock`."""

    def now(self) -> datetime:
        """Return the time in UTC, later than every value that this clock returned before."""
        ...

    def seconds(self) -> float:
        """Return seconds since 1970 on the wall clock, which may jump when it is set."""
        ...

    def monotonic(self) -> float:
        """Return seconds on a clock that never jumps; only differences have a meaning."""
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
    """Return the time in UTC on the wall clock, for what is due: `now` stays ahead after the clock was ahead."""
    return _EPOCH + timedelta(seconds=clock.seconds())
