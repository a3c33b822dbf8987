"""The pool of connections for readers."""

from __future__ import annotations

import contextlib
import sqlite3
from collections import deque
from pathlib import Path

from jobtable.embedded.storage import database_files
from jobtable.embedded.storage.connections import Connections


def is_open(connection: sqlite3.Connection) -> bool:
    with contextlib.suppress(sqlite3.ProgrammingError):
        connection.execute("SELECT 1")
        return True
    return False


def test_after_a_rush_few_connections_stay_open(path: Path) -> None:
    database_files.create_private(str(path))
    pool = Connections(str(path), lambda: database_files.connect(str(path), "normal"))
    rush = [pool.take() for _ in range(100)]
    assert all(map(is_open, rush))
    for connection in rush:
        pool.give(connection)
    assert sum(map(is_open, rush)) == 16
    again = [pool.take() for _ in range(16)]
    assert set(again) <= set(rush)
    for connection in again:
        pool.give(connection)
    pool.close("it is closed")
    assert not any(map(is_open, rush))


def test_a_connection_that_is_given_back_while_the_pool_closes_is_closed(path: Path) -> None:
    database_files.create_private(str(path))
    pool = Connections(str(path), lambda: database_files.connect(str(path), "normal"))

    class Slow(deque[sqlite3.Connection]):
        def append(self, connection: sqlite3.Connection) -> None:
            pool.close("closed")
            super().append(connection)

    connection = pool.take()
    pool._idle = Slow()
    pool.give(connection)
    assert not is_open(connection)
