"""Ctrl-C in one thread, wherever it comes, leaves the others and the other processes able to go on."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from tests.embedded.storage.consistency import inconsistencies
from tests.embedded.storage.samples import create_table, everything, item, put

from jobtable.embedded import storage as package
from jobtable.embedded.dispatch import handler_of
from jobtable.embedded.storage import Storage

_EVENTS = ("call", "return", "c_return")
_FOLDER = str(Path(package.__file__).parent)
_LONGEST_SECONDS = 240.0
"""After so long a write counts as one that never ends; most need a thousandth of a second."""


class _Interrupt:
    """A profiler: KeyboardInterrupt when the n-th function of the storage begins or returns, or one of C in it returns.

    That is where Python looks for signals.
    """

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        # Of an interrupt in `__del__` nobody is told but who reads standard error: Python swallows it.
        if event in _EVENTS and code.co_filename.startswith(_FOLDER) and code.co_name != "__del__":
            self.left -= 1
            if self.left < 0:
                raise KeyboardInterrupt


def _is_interrupted(at: int, action: Callable[[], object]) -> bool:
    """Run an action with an interrupt in it; False: it was done before there was one."""
    before = sys.getprofile()
    sys.setprofile(_Interrupt(at))
    try:
        action()
    except KeyboardInterrupt:
        return True
    finally:
        sys.setprofile(before)
    return False


def _write_in_thread(storage: Storage, number: int) -> None:
    writer = threading.Thread(target=put, args=(storage, item("next", str(number))), daemon=True)
    writer.start()
    writer.join(_LONGEST_SECONDS)
    assert not writer.is_alive()


def test_an_interrupted_write_keeps_nobody_from_writing(path: Path) -> None:
    storage, elsewhere = Storage(path), Storage(path)
    create_table(storage)
    number = 0
    while _is_interrupted(number, partial(put, storage, item("interrupted", str(number)))):
        _write_in_thread(elsewhere, number)
        _write_in_thread(storage, number)
        number += 1
    assert number > 50
    assert [one for one in everything(storage) if one["p"]["S"] == "next"] == [
        item("next", text) for text in sorted(map(str, range(number)))
    ]
    assert inconsistencies(storage) == []
    storage.close()
    elsewhere.close()


def test_an_interrupted_change_of_the_tables_leaves_nobody_with_what_they_were(path: Path) -> None:
    storage, elsewhere = Storage(path), Storage(path)
    create_table(storage)
    number = 0
    is_interrupted = True
    while is_interrupted:
        is_there = _is_in_file(storage, "other")
        change = _delete if is_there else create_table
        is_interrupted = _is_interrupted(number, partial(change, storage, "other"))
        for reader in (storage, elsewhere):
            assert (reader.table("other") is not None) == _is_in_file(storage, "other")
        _write_in_thread(elsewhere, 0)
        for reader in (storage, elsewhere):
            assert (reader.table("other") is not None) == _is_in_file(storage, "other")
        number += 1
    assert number > 50
    assert inconsistencies(storage) == []
    storage.close()
    elsewhere.close()


def _delete(storage: Storage, name: str) -> None:
    handler_of("DeleteTable")(storage, {"TableName": name})


def _is_in_file(storage: Storage, name: str) -> bool:
    return bool(storage.query("SELECT 1 FROM tables WHERE name = ?", (name,)))


def test_an_interrupted_read_leaves_no_connection_behind(storage: Storage) -> None:
    number = 0
    while _is_interrupted(number, lambda: everything(storage)):
        number += 1
    assert number > 10
    gc.collect()
    in_use = storage.connections.pause()
    storage.connections.resume()
    assert in_use == 0
