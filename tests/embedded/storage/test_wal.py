"""The log stays short, also where somebody always reads."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.embedded.storage.samples import item, put

from jobtable.embedded.storage import Storage
from jobtable.embedded.storage.writer import WalBound


def test_the_log_is_restarted_under_readers_that_overlap_all_the_time(storage: Storage, path: Path) -> None:
    limit = 400_000
    storage._writer._wal = WalBound(str(path), largest=limit, step=limit // 4, look_seconds=0)
    stop, sizes = threading.Event(), []

    def read(delay: float) -> None:
        stop.wait(delay)
        while not stop.is_set():
            with storage.read() as view:
                view.table_names("", 1)
                stop.wait(0.01)

    readers = [threading.Thread(target=read, args=(number * 0.003,)) for number in range(4)]
    for reader in readers:
        reader.start()
    for number in range(300):
        put(storage, item("p", str(number), x="x" * 10_000))
        sizes.append(Path(f"{path}-wal").stat().st_size)
    stop.set()
    for reader in readers:
        reader.join()
    written = 300 * 10_000
    assert max(sizes) < written / 2


def test_a_reader_that_stays_does_not_stop_the_writer(storage: Storage, path: Path) -> None:
    storage._writer._wal = WalBound(str(path), largest=100_000, step=10_000_000, look_seconds=0)
    with storage.read() as view:
        view.table_names("", 1)
        for number in range(50):
            put(storage, item("p", str(number), x="x" * 10_000))
    for number in range(20):
        put(storage, item("q", str(number)))
    with storage.read() as view:
        table = view.table("tab")
        assert table is not None
        assert len(list(view.range(table, None, b"", None))) == 70


def test_after_a_restart_that_failed_the_writer_waits_for_others_as_long_as_before(tmp_path: Path) -> None:
    class Failing(sqlite3.Connection):
        def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
            if "wal_checkpoint" in sql:
                raise sqlite3.OperationalError("database or disk is full")
            return super().execute(sql, *values)

    path = tmp_path / "some.db"
    Path(f"{path}-wal").touch()
    with closing(sqlite3.connect(path, timeout=7, factory=Failing)) as connection:
        with pytest.raises(sqlite3.OperationalError, match="disk is full"):
            WalBound(str(path), largest=0).restart_if_long(connection, 0.0)
        assert connection.execute("PRAGMA busy_timeout").fetchone() == (7000,)
