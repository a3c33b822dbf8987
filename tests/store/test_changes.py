"""The feed of changes, on every backend; and on a stream whose shards end and split."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtable import connect
from jobtable.embedded import EmbeddedBackend
from jobtable.errors import CursorError, RequestRefused, StreamExpired, TableNotFound, request_error
from jobtable.model import Attr, Entity, Key, Table, default
from jobtable.store import Change, Feed, Store
from jobtable.store.backend import Backend, Request, Response
from jobtable.store.cursors import write_cursor
from jobtable.testing import FakeClock

notes = Table("changes-notes", pk="PK", sk="SK", type_attribute="TYPE", ttl="expires_at", stream=True)
silent = Table("changes-silent", pk="PK", sk="SK", type_attribute="TYPE")


class Note(Entity, table=notes, type="NOTE"):
    """Something to change."""

    key = Key("NOTE#{name}", "NOTE")

    name: str
    text: Attr[str] = default("")
    expires_at: int | None = None


class Mark(Entity, table=notes, type="MARK"):
    """Something else in the same table."""

    key = Key("NOTE#{name}", "MARK")

    name: str


class Quiet(Entity, table=silent, type="QUIET"):
    """Something of which no one hears."""

    key = Key("QUIET#{name}", "QUIET")

    name: str


def drain(feed: Feed) -> list[Change]:
    """Everything that there is to read by now."""
    found: list[Change] = []
    empty_reads = 0
    while empty_reads < 3:
        changes = feed.read()
        found += changes
        empty_reads = 0 if changes else empty_reads + 1
    return found


def story(changes: list[Change]) -> list[tuple[str, Entity | None, Entity | None]]:
    return [(change.kind, change.before, change.after) for change in changes]


@pytest.fixture
def store(each_store: Store) -> Store:
    each_store.tables.create(notes)
    return each_store


def test_a_feed_tells_what_happens_from_now_on(store: Store) -> None:
    store.add(Note(name="old"))
    feed = store.changes(notes)
    first, second = Note(name="a"), Note(name="a", text="new")
    store.add(first)
    store.update(Note.key(name="a"), Note.text.set("new"))
    store.delete(Note.key(name="a"))
    assert story(drain(feed)) == [("added", None, first), ("changed", first, second), ("removed", second, None)]
    assert drain(feed) == []


def test_a_feed_tells_the_kinds_apart_without_decoding(store: Store) -> None:
    feed = store.changes(notes)
    with store.transaction() as tx:
        tx.add(Note(name="a"))
        tx.add(Mark(name="a"))
    changes = drain(feed)
    assert sorted(type(change.after).__name__ for change in changes) == ["Mark", "Note"]
    assert all(change.is_of(type(change.after)) for change in changes if change.after)
    assert [change.is_of(Note) for change in changes].count(True) == 1
    assert all(change.is_of(Note, Mark) for change in changes)
    assert not any(change.is_of(Quiet) for change in changes)


@pytest.mark.parametrize("read_before", [True, False])
def test_a_cursor_goes_on_where_another_feed_was(store: Store, read_before: bool) -> None:
    feed = store.changes(notes)
    if read_before:
        store.add(Note(name="before"))
        drain(feed)
    cursor = feed.cursor
    assert cursor.replace("-", "").replace("_", "").isalnum()
    after = [Note(name=f"after {number}") for number in range(3)]
    for note in after:
        store.add(note)
    assert sorted(str(change.after) for change in drain(store.changes(notes, after=cursor))) == sorted(map(str, after))
    assert len(drain(feed)) == 3


def test_a_table_without_a_stream_has_no_changes(each_store: Store) -> None:
    each_store.tables.create(silent)
    with pytest.raises(TableNotFound, match="stream=True"):
        each_store.changes(silent)


def test_a_cursor_fits_only_its_table(store: Store) -> None:
    cursor = store.changes(notes).cursor
    altered = ("B" if cursor.startswith("A") else "A") + cursor[1:]
    with pytest.raises(CursorError):
        store.changes(notes, after=altered)
    with pytest.raises(CursorError):
        store.changes(notes, after="no cursor")


@pytest.mark.parametrize("place", [{}, [], 3, {"stream": "x"}, {"stream": "x", "shards": []}])
def test_a_cursor_that_someone_has_made_up_is_refused(store: Store, place: Any) -> None:
    made_up = write_cursor(place, f"changes of {store.table_name(notes)}".encode())
    with pytest.raises(CursorError, match="not returned by a query"):
        store.changes(notes, after=made_up)


def test_a_place_in_a_stream_that_has_ended_is_expired(store: Store) -> None:
    feed = store.changes(notes)
    cursor = feed.cursor
    store.tables.delete(notes)
    with pytest.raises(TableNotFound):
        store.changes(notes)
    store.tables.create(notes)
    with pytest.raises(StreamExpired, match="create a new feed"):
        store.changes(notes, after=cursor)


def test_what_other_processes_change_is_told(tmp_path: Path) -> None:
    url = f"file:{tmp_path}/notes.db"
    with connect(url) as store:
        store.tables.create(notes)
        feed = store.changes(notes)
        program = (
            "import sys; from jobtable import connect; from tests.store.test_changes import Note\n"
            "with connect(sys.argv[1]) as store: store.batch_put(Note(name=str(n)) for n in range(2500))"
        )
        root = Path(__file__).parents[2]
        subprocess.run([sys.executable, "-c", program, url], cwd=root, check=True, timeout=240)
        told = [change.after for change in drain(feed)]
    assert told == [Note(name=str(number)) for number in range(2500)]


def test_no_item_is_read_or_written_for_a_feed(store: Store) -> None:
    with store.capacity.measure() as spent:
        feed = store.changes(notes)
        store.add(Note(name="a"))
        drain(feed)
    assert [(pattern, units.read) for pattern, units in spent.items() if units.read or units.write] == [("Note.add", 0)]


def test_the_embedded_stream_keeps_a_day_and_says_so() -> None:
    clock = FakeClock()
    with Store(EmbeddedBackend(None, clock=clock), clock=clock) as store:
        store.tables.create(notes)
        feed = store.changes(notes)
        store.add(Note(name="a"))
        assert len(feed.read()) == 1
        early = feed.cursor
        clock.advance(23 * 3600)
        store.add(Note(name="b"))
        assert [change.after for change in feed.read()] == [Note(name="b")]
        assert len(store.changes(notes, after=early).read()) == 1
        clock.advance(25 * 3600)
        with pytest.raises(StreamExpired, match="create a new feed"):
            store.changes(notes, after=early).read()


def test_a_cursor_from_before_the_first_change_lasts_a_quarter_of_an_hour() -> None:
    clock = FakeClock()
    with Store(EmbeddedBackend(None, clock=clock), clock=clock) as store:
        store.tables.create(notes)
        cursor = store.changes(notes).cursor
        clock.advance(14 * 60)
        assert store.changes(notes, after=cursor).read() == []
        clock.advance(2 * 60)
        with pytest.raises(StreamExpired):
            store.changes(notes, after=cursor).read()


def test_an_expiry_is_told_from_a_deletion() -> None:
    clock = FakeClock()
    backend = EmbeddedBackend(None, clock=clock)
    with Store(backend, clock=clock) as store:
        store.tables.create(notes)
        store.add(Note(name="expired", expires_at=int(clock.seconds()) + 1))
        store.add(Note(name="deleted"))
        feed = store.changes(notes)
        clock.advance(10)
        backend._storage.keep_up()
        store.delete(Note.key(name="deleted"))
        told = [(change.kind, change.is_expiry) for change in drain(feed)]
    assert told == [("removed", True), ("removed", False)]


class SplittingStream:
    """Answers as DynamoDB does for a stream whose shards end and split, and are listed late. Only for feeds."""

    def __init__(self) -> None:
        self.shards: dict[str, dict[str, Any]] = {"s0": {"parent": None, "records": [], "closed": False}}
        self.unlisted: set[str] = set()
        self.failures = 0
        self.written = 0

    def write(self, shard_id: str) -> None:
        self.written += 1
        note = Note(name=shard_id, text=str(self.written))
        record = {"SequenceNumber": f"{self.written:021d}", "ApproximateCreationDateTime": 1.0}
        image = Note.__schema__.codec.encode(note)
        self.shards[shard_id]["records"].append({"eventName": "INSERT", "dynamodb": {**record, "NewImage": image}})

    def split(self, shard_id: str, children: int) -> None:
        self.shards[shard_id]["closed"] = True
        for number in range(children):
            child = f"{shard_id}.{number}"
            self.shards[child] = {"parent": shard_id, "records": [], "closed": False}
            self.unlisted.add(child)

    def open_shards(self) -> list[str]:
        return [shard_id for shard_id, shard in self.shards.items() if not shard["closed"]]

    def execute(self, operation: str, request: Request) -> Response:
        if self.failures and operation == "GetRecords":
            self.failures -= 1
            raise request_error("ValidationException", "this one fails")
        answer: Response = getattr(self, f"_{operation.lower()}")(request)
        return answer

    def close(self) -> None: ...

    def _describetable(self, _request: Request) -> Response:
        stream = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
        return {"Table": {"StreamSpecification": stream, "LatestStreamArn": "arn"}}

    def _describestream(self, request: Request) -> Response:
        """One shard a page, so that paging is needed."""
        listed = [shard_id for shard_id in sorted(self.shards) if shard_id not in self.unlisted]
        page = [shard_id for shard_id in listed if shard_id > request.get("ExclusiveStartShardId", "")][:1]
        self.unlisted.clear()
        shards = []
        for shard_id in page:
            shard = self.shards[shard_id]
            ending = {"EndingSequenceNumber": "9" * 21} if shard["closed"] else {}
            parent = {"ParentShardId": shard["parent"]} if shard["parent"] else {}
            shards.append({"ShardId": shard_id, "SequenceNumberRange": ending, **parent})
        more = {"LastEvaluatedShardId": page[-1]} if page and page[-1] != listed[-1] else {}
        return {"StreamDescription": {"StreamStatus": "ENABLED", "Shards": shards, **more}}

    def _getsharditerator(self, request: Request) -> Response:
        records = self.shards[request["ShardId"]]["records"]
        start = {"TRIM_HORIZON": 0, "LATEST": len(records)}.get(request["ShardIteratorType"])
        if start is None:
            numbers = [record["dynamodb"]["SequenceNumber"] for record in records]
            start = numbers.index(request["SequenceNumber"]) + 1
        return {"ShardIterator": f"{request['ShardId']}|{start}"}

    def _getrecords(self, request: Request) -> Response:
        """Two records a page."""
        shard_id, start = request["ShardIterator"].split("|")
        shard = self.shards[shard_id]
        page = shard["records"][int(start) : int(start) + 2]
        following = int(start) + len(page)
        if shard["closed"] and following == len(shard["records"]):
            return {"Records": page}
        return {"Records": page, "NextShardIterator": f"{shard_id}|{following}"}


def test_a_feed_that_begins_before_the_children_of_a_shard_are_listed_tells_their_changes() -> None:
    stream = SplittingStream()
    stream.write("s0")
    stream.split("s0", 2)
    with Store(stream) as store:
        feed = store.changes(notes)
        stream.write("s0.1")
        assert [change.after for change in feed.read()] == [Note(name="s0.1", text="2")]
        assert feed.read() == []


def test_a_feed_of_a_stream_that_has_no_shards_yet_tells_what_comes() -> None:
    stream = SplittingStream()
    first = stream.shards.pop("s0")
    with Store(stream) as store:
        feed = store.changes(notes)
        assert feed.read() == []
        stream.shards["s0"] = first
        stream.write("s0")
        assert [change.after for change in feed.read()] == [Note(name="s0", text="1")]
        assert feed.read() == []


@given(st.lists(st.sampled_from(["write", "split", "join", "read", "fail", "resume"]), max_size=60), st.data())
def test_no_split_loses_repeats_or_disorders_a_change(steps: list[str], data: st.DataObject) -> None:
    stream = SplittingStream()
    clock = FakeClock()
    with Store(stream, clock=clock) as store:
        feed = store.changes(notes)
        changes: list[Change] = []
        for step in steps:
            shard_id = data.draw(st.sampled_from(stream.open_shards()))
            if step == "write":
                stream.write(shard_id)
            elif step == "split":
                stream.split(shard_id, 2)
            elif step == "join":
                stream.split(shard_id, 1)
            elif step == "read":
                changes += feed.read()
            elif step == "resume":
                feed = store.changes(notes, after=feed.cursor)
            else:
                stream.failures = 1
                with suppress(RequestRefused):
                    changes += feed.read()
                stream.failures = 0
        for _ in range(len(stream.shards) * 3 + stream.written):
            clock.advance(61)
            changes += feed.read()
    told = [change.after for change in changes]
    texts = [int(note.text) for note in told if isinstance(note, Note)]
    assert Counter(texts) == Counter(range(1, stream.written + 1))
    for shard_id in stream.shards:
        lineage = [int(note.text) for note in told if isinstance(note, Note) and shard_id.startswith(note.name)]
        assert lineage == sorted(lineage)


class CrowdedStream:
    """Every second request to the stream is refused: DynamoDB lets two processes read a shard, and others wait."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._asked = 0

    def execute(self, operation: str, request: Request) -> Response:
        if operation in ("DescribeStream", "GetShardIterator", "GetRecords"):
            self._asked += 1
            if self._asked % 2:
                raise request_error("LimitExceededException", "More than 2 processes are reading from the same shard")
        return self._backend.execute(operation, request)

    def close(self) -> None:
        self._backend.close()


def test_a_feed_waits_where_a_stream_has_too_many_readers() -> None:
    clock = FakeClock()
    with Store(CrowdedStream(EmbeddedBackend(None, clock=clock)), clock=clock) as store:
        store.tables.create(notes)
        feed = store.changes(notes)
        store.add(Note(name="a"))
        assert [change.kind for change in feed.read()] == ["added"]
