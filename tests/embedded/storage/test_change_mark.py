"""The mark by which whoever waits knows that nothing was written."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import StorageError
from jobtable.model import Entity, Key, Table
from jobtable.store import Store

notes = Table("notes", pk="PK", sk="SK", type_attribute="TYPE")


class Note(Entity, table=notes, type="NOTE"):
    """Something written."""

    key = Key("NOTE#{number:d}", "NOTE")

    number: int


@pytest.fixture(params=["file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with Store(EmbeddedBackend(tmp_path / "notes.db" if request.param == "file" else None)) as opened:
        opened.tables.create(notes)
        yield opened


def test_reading_leaves_the_mark(store: Store) -> None:
    store.put(Note(number=1))
    mark = store.change_mark()
    assert mark is not None
    assert store.get(Note.key(number=1)).number == 1
    assert [note.number for note in store.scan(Note)] == [1]
    assert store.find(Note.key(number=2)) is None
    assert store.change_mark() == mark


def test_every_write_changes_it(store: Store) -> None:
    for number in range(50):
        mark = store.change_mark()
        store.put(Note(number=number))
        assert store.change_mark() != mark


def test_writes_of_others_change_it(tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    with Store(EmbeddedBackend(path)) as store, Store(EmbeddedBackend(path)) as beside:
        store.tables.create(notes)
        mark = store.change_mark()
        beside.put(Note(number=1))
        assert store.change_mark() != mark
        mark = store.change_mark()
        write = (
            "import sys, pathlib; from jobtable.embedded import EmbeddedBackend;"
            "EmbeddedBackend(pathlib.Path(sys.argv[1])).execute("
            "'PutItem', {'TableName': 'notes', 'Item': {'PK': {'S': 'x'}, 'SK': {'S': 'x'}}})"
        )
        subprocess.run([sys.executable, "-c", write, path], check=True)
        assert store.change_mark() != mark


def test_a_closed_store_has_none(tmp_path: Path) -> None:
    store = Store(EmbeddedBackend(tmp_path / "notes.db"))
    store.change_mark()
    store.close()
    with pytest.raises(StorageError, match="has been closed"):
        store.change_mark()
