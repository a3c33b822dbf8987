"""The limit that the embedded engine is measured by: SQLite itself, with one table and the same durability."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path


class RawSqlite:
    """Rows of a key and a value; every put is a commit of its own, durable when it returns."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._local = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self.connection.execute("CREATE TABLE item (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID")

    @property
    def connection(self) -> sqlite3.Connection:
        """This thread's connection."""
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = sqlite3.connect(self._path, isolation_level=None, timeout=60, check_same_thread=False)
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            self._local.connection = connection
            self._connections.append(connection)
        return connection

    def put(self, key: bytes, value: bytes) -> None:
        self.connection.execute("INSERT OR REPLACE INTO item VALUES (?, ?)", (key, value))

    def get(self, key: bytes) -> bytes:
        value: bytes = self.connection.execute("SELECT value FROM item WHERE key = ?", (key,)).fetchone()[0]
        return value

    def range(self, low: bytes, high: bytes) -> list[tuple[bytes]]:
        statement = "SELECT value FROM item WHERE key >= ? AND key < ? ORDER BY key"
        return self.connection.execute(statement, (low, high)).fetchall()

    def close(self) -> None:
        for connection in self._connections:
            connection.close()
