"""A forked process works on the same file with connections and locks of its own."""

from __future__ import annotations

import os
import sqlite3
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.embedded.storage.consistency import inconsistencies
from tests.embedded.storage.samples import create_table, everything, get, item, put, table_of

from jobtable.embedded.storage import Storage, connections, database_files
from jobtable.errors import StorageError


def in_child(work: Callable[[], None]) -> None:
    """Run in a forked process; fails if it fails."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            work()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_parent_and_child_both_go_on(storage: Storage) -> None:
    put(storage, item("parent", "before"))

    def work() -> None:
        assert get(storage, item("parent", "before")) is not None
        for number in range(20):
            put(storage, item("child", str(number), g="g", r="r"))

    in_child(work)
    put(storage, item("parent", "after"))
    assert len(everything(storage)) == 22
    assert inconsistencies(storage) == []


def test_no_connection_is_open_during_a_fork(storage: Storage, path: Path) -> None:
    put(storage, item("1", "1"))
    everything(storage)

    in_child(lambda: has_no_connection(path))


def has_no_connection(path: Path) -> None:
    names = [
        os.readlink(f"/proc/self/fd/{number}")
        for number in os.listdir("/proc/self/fd")
        if number.isdigit() and os.path.exists(f"/proc/self/fd/{number}")
    ]
    assert not [name for name in names if name in (str(path), f"{path}-wal", f"{path}-shm")]


def test_no_connection_is_open_during_a_fork_while_the_storage_is_closed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = Storage(path)
    create_table(storage)
    is_closing, go_on = threading.Event(), threading.Event()

    def stop() -> None:
        is_closing.set()
        go_on.wait()

    monkeypatch.setattr(storage._upkeep, "stop", stop)
    closer = threading.Thread(target=storage.close)
    closer.start()
    is_closing.wait()

    def work() -> None:
        has_no_connection(path)
        with pytest.raises(StorageError, match="has been closed"):
            storage.write(lambda _: None)
        again = Storage(path)
        put(again, item("child", "1"))
        again.close()

    try:
        in_child(work)
    finally:
        go_on.set()
        closer.join()
    again = Storage(path)
    assert everything(again) == [item("child", "1")]
    again.close()


def test_the_child_holds_locks_that_the_parent_respects(storage: Storage, path: Path) -> None:
    """If the child shared its parent's locks, the parent's close would delete the log under the child."""
    to_child, to_parent = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        put(storage, item("child", "first"))
        os.write(to_parent[1], b"1")
        os.read(to_child[0], 1)
        put(storage, item("child", "second"))
        os._exit(0)
    os.read(to_parent[0], 1)
    storage.close()
    os.write(to_child[1], b"1")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    for number in (*to_child, *to_parent):
        os.close(number)
    again = Storage(path)
    assert {one["s"]["S"] for one in everything(again)} == {"first", "second"}
    again.close()


def test_a_fork_waits_for_a_write_that_is_under_way(storage: Storage) -> None:
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            put(storage, item("thread", str(number % 50), x=str(number)))

    threads = [threading.Thread(target=write) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for number in range(10):
            in_child(lambda number=number: put(storage, item("child", str(number))))  # type: ignore[misc]  # a default
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert sum(one["p"]["S"] == "child" for one in everything(storage)) == 10
    assert inconsistencies(storage) == []


def test_a_child_forked_in_the_middle_of_a_read_says_that_it_cannot_go_on(storage: Storage) -> None:
    def work() -> None:
        with pytest.raises(StorageError, match="was being read when this process was forked"):
            get(storage, item("1", "1"))

    put(storage, item("1", "1"))
    with storage.read() as view:
        rows = view.range(table_of(view), None, b"", None)
        in_child(work)
        assert len(list(rows)) == 1
    put(storage, item("1", "2"))


def test_a_private_database_survives_the_exit_of_a_child() -> None:
    storage = Storage(None)
    create_table(storage)
    put(storage, item("1", "1"))
    in_child(storage.close)
    assert get(storage, item("1", "1")) is not None
    storage.close()


def may_fork() -> bool:
    """Whether another thread than this one may fork now."""

    def look() -> None:
        if connections._lock.acquire(blocking=False):
            connections._lock.release()
            found.append(True)

    found: list[bool] = []
    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    return bool(found)


def test_one_thread_forks_at_a_time(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two would each resume what the other one has paused."""
    found = []
    monkeypatch.setattr(Storage, "before_fork", lambda _: found.append(may_fork()))
    monkeypatch.setattr(Storage, "after_fork_in_parent", lambda _: found.append(may_fork()))
    monkeypatch.setattr(Storage, "after_fork_in_child", lambda _: None)
    in_child(lambda: None)
    assert set(found) == {False}
    assert may_fork()
    assert storage.table("tab") is not None


def test_no_thread_forks_while_a_storage_is_opened(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not registered yet, so nobody would close its connections."""
    found = []
    upgrade = database_files.upgrade

    def watched(*of_file: Any) -> int:
        found.append(may_fork())
        return upgrade(*of_file)

    monkeypatch.setattr(database_files, "upgrade", watched)
    Storage(path).close()
    assert found == [False]
    assert may_fork()


def test_sqlite_is_compiled_to_be_used_from_several_threads() -> None:
    assert sqlite3.threadsafety == 3
