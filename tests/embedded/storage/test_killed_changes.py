"""A process that dies while it changes the tables leaves nobody with what they were."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from tests.embedded.storage.consistency import inconsistencies
from tests.embedded.storage.samples import everything, item, key_schema, put, table_of

from jobtable.embedded.dispatch import handler_of
from jobtable.embedded.storage import Storage, database, turn, writer
from jobtable.embedded.storage.table_catalogue import TableRecord
from jobtable.embedded.storage.turn import Turn

_WATCHED = {module.__file__ for module in (database, turn, writer)}
_ADD_INDEX: dict[str, Any] = {
    "TableName": "tab",
    "AttributeDefinitions": [{"AttributeName": "x", "AttributeType": "S"}],
    "GlobalSecondaryIndexUpdates": [
        {"Create": {"IndexName": "by_x", "KeySchema": key_schema("x"), "Projection": {"ProjectionType": "ALL"}}}
    ],
}
_DELETE_INDEX = {"TableName": "tab", "GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "by_x"}}]}


class _Kill:
    """A profile function: the end of the process when the n-th function that the writer calls begins or returns."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        if frame.f_code.co_filename in _WATCHED:
            self.left -= 1
            if self.left < 0:
                os.kill(os.getpid(), signal.SIGKILL)


def _is_killed(at: int, storage: Storage, request: dict[str, Any]) -> bool:
    """Let a child of this process change the table, and die in it; False: it was done before that."""
    pid = os.fork()
    if pid == 0:
        ended = 1
        try:
            sys.setprofile(_Kill(at))
            handler_of("UpdateTable")(storage, request)
            sys.setprofile(None)
            ended = 0
        finally:
            os._exit(ended)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert status in (0, -signal.SIGKILL)
    return status != 0


def _indexes_in_file(storage: Storage) -> list[str]:
    ((record,),) = storage.query("SELECT record FROM tables")
    return [index.name for index in TableRecord.from_stored(record).indexes]


@pytest.fixture
def reader(path: Path, storage: Storage) -> Iterator[Storage]:
    """Another storage on the file, which never writes, and knows the table."""
    opened = Storage(path)
    table_of(opened)
    yield opened
    opened.close()


def test_readers_see_a_change_whose_process_was_killed_wherever_it_was(storage: Storage, reader: Storage) -> None:
    number = 0
    doubts = set()
    before, is_killed = _indexes_in_file(reader), True
    while is_killed:
        is_killed = _is_killed(number, storage, _DELETE_INDEX if "by_x" in before else _ADD_INDEX)
        there = _indexes_in_file(reader)
        if reader._turn.catalogue_version() == Turn.BEING_CHANGED:
            doubts.add("before the commit" if there == before else "after it")
        assert list(table_of(reader).indexes) == there
        with reader.read() as view:
            assert list(table_of(view).indexes) == there
        put(storage, item("1", str(number), x="x"))
        assert list(table_of(reader).indexes) == there, "and so they do when the next writer has told the number"
        assert reader._turn.catalogue_version() != Turn.BEING_CHANGED
        before = there
        number += 1
    assert number > 50
    assert doubts == {"before the commit", "after it"}
    assert inconsistencies(reader) == []


def test_whoever_opens_the_file_ends_the_doubt(storage: Storage, reader: Storage, path: Path) -> None:
    storage._turn.announce_change()
    assert reader.table("none") is None
    Storage(path).close()
    assert reader._turn.catalogue_version() == Turn.label(1)
    assert list(table_of(reader).indexes) == ["by_group", "by_rank"]


def test_readers_in_doubt_look_into_the_file_each_time(storage: Storage, reader: Storage) -> None:
    storage._turn.announce_change()
    assert "by_x" not in table_of(reader).indexes
    connection = storage.connections.take()
    ((record,),) = connection.execute("SELECT record FROM tables")
    connection.execute("UPDATE tables SET record = replace(record, 'by_group', 'renamed')")
    storage.connections.give(connection)
    assert b"by_group" in record
    assert "renamed" in table_of(reader).indexes


def test_a_change_that_cannot_be_announced_is_not_made(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(Turn, "announce_change", fail)
        with pytest.raises(Exception, match="No space left"):
            handler_of("UpdateTable")(storage, _ADD_INDEX)
    assert _indexes_in_file(storage) == list(table_of(storage).indexes) == ["by_group", "by_rank"]


def test_a_change_is_made_when_it_is_committed_though_its_number_cannot_be_told(
    storage: Storage, reader: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(storage, item("1", "1", x="x"))

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patched:
        patched.setattr(Turn, "announce", fail)
        handler_of("UpdateTable")(storage, _ADD_INDEX)
        assert everything(reader, "by_x") == [item("1", "1", x="x")]
    put(storage, item("2", "2", x="x"))
    assert len(everything(reader, "by_x")) == 2
