"""Keeping the write-ahead log short.

SQLite copies the log into the database by itself every few megabytes, and starts the log again from its beginning
when nobody reads from it at that moment. Where readers overlap all the time that moment never comes. So from a certain
size on the writer makes it come: while it holds new commits back, new readers find everything in the database and need
no log, and those that do need it end soon.
"""

from __future__ import annotations

import os
import sqlite3

_LARGEST = 32 * 1024 * 1024
_STEP = 16 * 1024 * 1024
_SECONDS_BETWEEN_LOOKS = 0.05
_LONGEST_WAIT_MS = 100


class WalBound:
    """Looks at the log after commits, and restarts it when it has become too long."""

    def __init__(
        self, path: str, largest: int = _LARGEST, step: int = _STEP, look_seconds: float = _SECONDS_BETWEEN_LOOKS
    ) -> None:
        self._path = path + "-wal"
        self._largest = self._next_attempt = largest
        self._step = step
        self._look_seconds = look_seconds
        self.next_look = 0.0
        """When it is time for a look, by the clock that `restart_if_long` is told."""

    def restart_if_long(self, connection: sqlite3.Connection, now: float) -> None:
        """Restart the log if it is too long; waits a tenth of a second at most, and tries again when it has grown."""
        self.next_look = now + self._look_seconds
        size = os.stat(self._path).st_size
        if size >= self._next_attempt:
            self._restart(connection, size)

    def _restart(self, connection: sqlite3.Connection, size: int) -> None:
        (before,) = connection.execute("PRAGMA busy_timeout").fetchone()
        connection.execute(f"PRAGMA busy_timeout = {_LONGEST_WAIT_MS}")
        try:
            (is_busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        finally:
            connection.execute(f"PRAGMA busy_timeout = {before}")
        self._next_attempt = size + self._step if is_busy else self._largest
