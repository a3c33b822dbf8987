"""A wall clock that jumps whenever someone tells it to."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from jobtable.app import open_jobs
from jobtable.clock import SystemClock
from jobtable.jobs.engine import Jobs


class JumpingClock(SystemClock):
    """The machine's clock, off by what a file says."""

    def __init__(self, jumps: Path) -> None:
        super().__init__()
        self._jumps = jumps
        self._lock = threading.Lock()
        self._last = datetime.min.replace(tzinfo=UTC)

    def now(self) -> datetime:
        """The time, which never goes back even when the clock does."""
        with self._lock:
            shifted = datetime.now(UTC) + timedelta(seconds=self._offset())
            self._last = max(shifted, self._last + timedelta(microseconds=1))
            return self._last

    def seconds(self) -> float:
        """Seconds since 1970, which may go back."""
        return time.time() + self._offset()

    def _offset(self) -> float:
        return float(self._jumps.read_text() or 0)


def open_jumping(url: str, jumps: str) -> Jobs:
    """Jobs under a clock that jumps."""
    return open_jobs(url, clock=JumpingClock(Path(jumps)))
