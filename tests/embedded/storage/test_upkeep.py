"""What happens by itself: who does it, and what it must not get in the way of."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path

import pytest
from tests.embedded.storage.samples import create_table, item, open_files, put, table_of

from jobtable.embedded.storage import Storage, journal, upkeep
from jobtable.errors import BackendUnavailable

_STREAM = {"StreamSpecification": {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}}
_ASKED = "import sys; from jobtable.embedded.storage.turn import Turn; print(Turn(sys.argv[1]).is_mine_to_keep_up())"


def fail(*_: object) -> None:
    raise BackendUnavailable("no")


def fail_to_start(_: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def has_thread(storage: Storage) -> bool:
    return storage._upkeep._thread is not None


def test_a_change_that_is_stored_is_acknowledged_although_nobody_can_look_for_upkeep(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(Storage, "query", fail)
        create_table(storage, "streamed", **_STREAM)
        put(storage, item("1", "1"), "streamed")
    assert has_thread(storage)


def test_a_change_that_is_stored_is_acknowledged_although_no_thread_can_be_started(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", fail_to_start)
        create_table(storage, "streamed", **_STREAM)
    assert not has_thread(storage)
    create_table(storage, "next")
    assert has_thread(storage)
    assert table_of(storage, "streamed").is_journaled


def test_a_process_whose_upkeep_fails_leaves_it_to_others(
    storage: Storage, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_failed = threading.Event()

    def fill_up(*_: object) -> None:
        has_failed.set()
        raise BackendUnavailable("no")

    monkeypatch.setattr(upkeep, "fill_up", fill_up)
    create_table(storage, "streamed", **_STREAM)
    storage._upkeep._is_called.set()
    has_failed.wait()
    deadline = time.monotonic() + 240
    while not _is_free(path):
        assert time.monotonic() < deadline


def test_a_journal_of_large_changes_is_trimmed_in_small_steps(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "_BYTES_TRIMMED_AT_ONCE", 150)
    create_table(storage, "streamed", **_STREAM)
    for number in range(6):
        put(storage, item("1", str(number), x="x" * 60), "streamed")
    table_id = table_of(storage, "streamed").id
    later = storage.now() + 10

    def numbers() -> list[int]:
        return [number for (number,) in storage.query(f"SELECT sequence FROM journal_{table_id}")]

    has_more, kept = True, [numbers()]
    while has_more:
        has_more = storage.write(lambda transaction: journal.trim_some(transaction, table_id, later))
        kept.append(numbers())
    assert kept == [[1, 2, 3, 4, 5, 6], [3, 4, 5, 6], [5, 6], [6]]


@pytest.mark.parametrize("is_private", [True, False])
def test_a_storage_that_nobody_has_any_more_is_let_go_although_nobody_has_closed_it(
    path: Path, is_private: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests open stores and forget them: a hundred of them took all files that a process may open."""
    monkeypatch.setattr(upkeep, "_SECONDS_BETWEEN_ROUNDS", 0.01)
    storage = Storage(None if is_private else path)
    create_table(storage, "streamed", **_STREAM)
    folder, forgotten, thread = Path(storage.path).parent, weakref.ref(storage), storage._upkeep._thread
    assert thread is not None
    assert open_files(folder)
    del storage
    deadline = time.monotonic() + 240
    while forgotten() is not None and time.monotonic() < deadline:
        gc.collect()  # more than once: a round of upkeep may have it at this moment
    thread.join()
    assert open_files(folder) == []
    assert folder.exists() != is_private


def _is_free(path: Path) -> bool:
    """Whether another process may do the upkeep."""
    command = [sys.executable, "-c", _ASKED, f"{path}-lock"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout == "True\n"
