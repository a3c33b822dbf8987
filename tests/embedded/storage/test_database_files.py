"""What a file must be like to be opened, and what it is like afterwards."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.embedded.storage.samples import create_table, everything, get, item, make_first_format, put

from jobtable.embedded.storage import Storage, database_files
from jobtable.errors import BackendUnavailable, StorageError, StorageLocked


def test_every_file_is_private_to_its_user(storage: Storage, path: Path) -> None:
    put(storage, item("1", "1"))
    modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
    assert modes == dict.fromkeys(["test.db", "test.db-wal", "test.db-shm", "test.db-lock"], 0o600)


@pytest.mark.parametrize("name", ["test.db", "ü #1 ?x=y %41 'quoted'.db", "no ending"])
def test_what_was_written_is_there_after_opening_again(tmp_path: Path, name: str) -> None:
    path = tmp_path / "folder" / "inside" / name
    first = Storage(path, durability="normal")
    create_table(first)
    put(first, item("1", "1", x="ü€😀\x00#%"))
    first.close()
    second = Storage(path)
    assert get(second, item("1", "1")) == item("1", "1", x="ü€😀\x00#%")
    second.close()
    assert path.exists()


def test_a_copy_that_sqlite_makes_while_the_file_is_used_has_everything(storage: Storage, path: Path) -> None:
    put(storage, item("1", "1"))
    with closing(sqlite3.connect(path)) as reader:
        reader.execute("VACUUM INTO ?", [str(path.with_name("copy.db"))])
    put(storage, item("1", "2"))
    copy = Storage(path.with_name("copy.db"))
    assert get(copy, item("1", "1")) == item("1", "1")
    assert get(copy, item("1", "2")) is None
    put(copy, item("1", "3"))
    assert get(copy, item("1", "3")) == item("1", "3")
    copy.close()


def test_the_folders_of_a_new_file_are_synced_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "folder" / "inside" / "test.db"
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(os.fstat(file).st_ino))
    Storage(path).close()
    assert {folder.stat().st_ino for folder in list(path.parents)[:3]} <= set(synced)
    synced.clear()
    Storage(path).close()
    Storage(None).close()
    assert synced == []


@pytest.mark.parametrize("content", [b"not a database, but long enough to be read as one" * 30, b"\x00" * 5000])
def test_a_file_that_is_no_database_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.db"
    path.write_bytes(content)
    with pytest.raises(StorageError, match=r"not a Jobtable file|damaged|cannot be used"):
        Storage(path)
    assert path.read_bytes() == content


def test_a_database_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE notes (text)")
    content = path.read_bytes()
    with pytest.raises(StorageError, match="of another program"):
        Storage(path)
    assert path.read_bytes() == content


def test_a_file_of_a_newer_version_is_refused(path: Path) -> None:
    Storage(path).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE meta SET value = ? WHERE name = 'format'", (database_files.FORMAT + 1,))
    with pytest.raises(StorageError, match=rf"has format {database_files.FORMAT + 1}.*upgrade Jobtable"):
        Storage(path)


def test_a_file_that_a_newer_version_upgrades_is_refused_by_who_has_it_open(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = Storage(path)
    create_table(older)
    put(older, item("1", "1"))
    _upgrade_to_a_newer_format(path, monkeypatch)
    refusal = rf"has format {database_files.FORMAT + 1}.*upgrade Jobtable and start this program again"
    for attempt in (lambda: get(older, item("1", "1")), lambda: put(older, item("2", "2")), lambda: everything(older)):
        for _ in range(2):
            with pytest.raises(StorageError, match=refusal):
                attempt()
    older.close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT items FROM counters WHERE items > 0").fetchall() == [(1,)]


def _upgrade_to_a_newer_format(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Open and close the file as a version does that has one format more."""
    with monkeypatch.context() as newer:
        newer.setattr(database_files, "MIGRATIONS", (*database_files.MIGRATIONS, lambda _: None))
        newer.setattr(database_files, "FORMAT", database_files.FORMAT + 1)
        Storage(path).close()


def test_a_table_that_a_newer_version_has_described_is_refused(path: Path) -> None:
    storage = Storage(path)
    create_table(storage)
    storage.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE tables SET record = json_set(CAST(record AS TEXT), '$.novelty', 1)")
    again = Storage(path)
    with pytest.raises(StorageError, match=r"unknown to this version of Jobtable \(novelty\); upgrade Jobtable"):
        again.table("tab")
    again.close()


@pytest.mark.parametrize("is_replaced", [False, True])
def test_nothing_is_written_to_a_file_that_was_moved_away(
    path: Path, monkeypatch: pytest.MonkeyPatch, is_replaced: bool
) -> None:
    monkeypatch.setattr(database_files, "_SECONDS_BETWEEN_LOOKS", 0)
    storage = Storage(path)
    create_table(storage)
    put(storage, item("1", "1"))
    away = path.rename(path.with_suffix(".away"))
    if is_replaced:
        path.touch()
    with pytest.raises(BackendUnavailable, match="was deleted, moved or replaced while in use"):
        put(storage, item("2", "2"))
    away.rename(path)
    put(storage, item("3", "3"))
    assert sorted(found["p"]["S"] for found in everything(storage)) == ["1", "3"]
    storage.close()


def test_a_file_of_an_older_version_is_upgraded(path: Path) -> None:
    old = Storage(path)
    create_table(old)
    put(old, item("1", "1"))
    old.close()
    make_first_format(path)
    new = Storage(path)
    new.write(lambda transaction: transaction.remember("token", b"", b""))
    assert everything(new) == [item("1", "1")]
    new.close()


def test_an_empty_file_becomes_a_database(path: Path) -> None:
    path.parent.mkdir()
    path.touch()
    storage = Storage(path)
    create_table(storage)
    storage.close()
    again = Storage(path)
    assert again.table("tab") is not None
    again.close()


def test_a_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be used"):
        Storage(tmp_path)


OPEN_AS_NOBODY = """
import os, sys
from jobtable.embedded.storage import Storage
from jobtable.errors import StorageError
os.setuid(65534)
try:
    Storage(sys.argv[1])
except StorageError as error:
    print(error)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize(("folder_mode", "file_mode"), [(0o755, None), (0o755, 0o644), (0o755, 0o600), (0o700, 0o644)])
def test_a_file_or_folder_that_is_not_writable_is_refused(
    tmp_path: Path, folder_mode: int, file_mode: int | None
) -> None:
    for parent in [tmp_path, *tmp_path.parents][:3]:
        parent.chmod(0o755)
    path = tmp_path / "folder" / "test.db"
    if file_mode is not None:
        Storage(path).close()
        path.chmod(file_mode)
    path.parent.mkdir(exist_ok=True)
    path.parent.chmod(folder_mode)
    command = [sys.executable, "-c", OPEN_AS_NOBODY, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.startswith(f"{path} cannot be used"), done.stderr
    assert "writable" in done.stdout


def test_what_is_no_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name, said in (("folder", "it is a folder; name a file in it"), ("pipe", "it is a device or a pipe")):
        with pytest.raises(StorageError, match=said):
            Storage(tmp_path / name)
    assert {each.name for each in tmp_path.iterdir()} == {"folder", "pipe"}


def test_a_file_that_another_program_keeps_locked_may_be_opened_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_files, "_BUSY_SECONDS", 0.05)
    Storage(tmp_path / "store.db").close()
    with closing(sqlite3.connect(tmp_path / "store.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageLocked, match="another program has locked it") as refused:
            Storage(tmp_path / "store.db")
        other.execute("ROLLBACK")
    assert refused.value.retryable
    Storage(tmp_path / "store.db").close()


def test_a_locked_file_is_waited_for_also_where_sqlite_does_not_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Storage(tmp_path / "store.db").close()
    with closing(sqlite3.connect(tmp_path / "store.db", isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode = DELETE")
        other.execute("BEGIN IMMEDIATE")
        pauses: list[float] = []

        def end_the_other(seconds: float) -> None:
            pauses.append(seconds)
            other.close()

        monkeypatch.setattr(database_files, "_BUSY_SECONDS", 0.5)
        monkeypatch.setattr(database_files, "time", SimpleNamespace(monotonic=time.monotonic, sleep=end_the_other))
        Storage(tmp_path / "store.db").close()
    assert len(pauses) == 1
    assert pauses[0] > 0, "else it would have tried again and again, as fast as it can"


def test_a_file_that_another_program_keeps_locked_is_an_error_of_the_request(
    storage: Storage, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_files, "_BUSY_SECONDS", 0.05)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        storage._writer._drop_connection()
        with pytest.raises(BackendUnavailable, match="another program has locked it"):
            put(storage, item("1", "1"))
        assert everything(storage) == []
    put(storage, item("1", "1"))
    assert everything(storage) == [item("1", "1")]


def test_who_waits_for_a_locked_file_behind_others_does_not_wait_for_each_of_them(
    storage: Storage, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_files, "_BUSY_SECONDS", 2.0)
    writers = 10
    with closing(sqlite3.connect(path, isolation_level=None)) as other, ThreadPoolExecutor(writers) as pool:
        other.execute("BEGIN IMMEDIATE")
        begun = time.monotonic()
        outcomes = [pool.submit(put, storage, item("1", str(number))) for number in range(writers)]
        assert all(isinstance(outcome.exception(), BackendUnavailable) for outcome in outcomes)
        assert time.monotonic() - begun < writers * 2.0 / 2
    put(storage, item("2", "2"))
    assert everything(storage) == [item("2", "2")]
