"""Connections for readers, as they come and go."""

from __future__ import annotations

import sqlite3
from collections import deque
from pathlib import Path

import pytest

from jobtable.embedded.storage.connections import Connections


def test_a_connection_that_is_given_back_while_the_pool_closes_is_closed(tmp_path: Path) -> None:
    path = str(tmp_path / "some.db")
    pool = Connections(path, lambda: sqlite3.connect(path))

    class Slow(deque[sqlite3.Connection]):
        def append(self, connection: sqlite3.Connection) -> None:
            pool.close("closed")
            super().append(connection)

    connection = pool.take()
    pool._idle = Slow()
    pool.give(connection)
    with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
        connection.execute("SELECT 1")
