"""Reading and writing: items, indexes, snapshots, several threads, several storages on one file."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_core import from_json
from tests.embedded.storage.consistency import inconsistencies
from tests.embedded.storage.samples import (
    create_table,
    delete,
    everything,
    get,
    item,
    key_schema,
    open_files,
    put,
    put_action,
    table_of,
)

from jobtable.embedded.dispatch import handler_of
from jobtable.embedded.storage import NO_ITEM, Sized, Storage, Transaction, table_changes, upkeep, writer
from jobtable.embedded.storage.table_catalogue import Cache
from jobtable.embedded.table_schema import TableSchema
from jobtable.errors import ConditionalCheckFailed, StorageError, TableNotFound
from jobtable.store.backend import Item
from jobtable.testing.clock import FakeClock

LETTERS = st.sampled_from(["", "a", "b", "c"])
ITEMS = st.builds(
    lambda p, s, g, r, x: item(p, s, **{name: value for name, value in {"g": g, "r": r, "x": x}.items() if value}),
    st.sampled_from(["1", "2"]),
    st.sampled_from(["1", "2", "3"]),
    LETTERS,
    LETTERS,
    LETTERS,
)


@pytest.mark.parametrize("count", [0, 1, 31, 32, 33, 70])
def test_items_are_read_together_as_they_are_one_by_one(count: int) -> None:
    storage = Storage(None)
    create_table(storage)
    for number in range(0, count, 2):
        put(storage, item("1", f"{number:03d}", x="y" * number))
    with storage.read() as view:
        table = table_of(view)
        positions = [table.position(item("1", f"{number:03d}")) for number in range(count)]
        found = view.read_all(table, positions)
        assert [found.get(position, NO_ITEM) for position in positions] == [view.read(table, p) for p in positions]
    assert len(found) == (count + 1) // 2
    storage.close()


@given(st.lists(st.tuples(st.booleans(), ITEMS), max_size=25))
@settings(max_examples=40)
def test_indexes_and_counters_follow_every_write(writes: list[tuple[bool, Item]]) -> None:
    storage = Storage(None)
    create_table(storage)
    expected: dict[tuple[str, str], Item] = {}
    for is_put, new in writes:
        key = (new["p"]["S"], new["s"]["S"])
        if is_put:
            put(storage, new)
            expected[key] = new
        else:
            delete(storage, new)
            expected.pop(key, None)
    try:
        assert inconsistencies(storage) == []
        assert sorted(map(str, everything(storage))) == sorted(map(str, expected.values()))
        in_index = [one for one in expected.values() if "g" in one and "r" in one]
        assert sorted(map(str, everything(storage, "by_group"))) == sorted(map(str, in_index))
    finally:
        storage.close()


def test_an_acknowledged_write_is_seen_by_every_storage_on_the_file(storage: Storage, path: Path) -> None:
    other = Storage(path)
    put(storage, item("1", "1", x="one"))
    assert get(other, item("1", "1")) == item("1", "1", x="one")
    put(other, item("1", "1", x="two"))
    assert get(storage, item("1", "1")) == item("1", "1", x="two")
    other.close()


def test_a_snapshot_does_not_see_later_writes(storage: Storage) -> None:
    put(storage, item("1", "1", x="old"))
    table = table_of(storage)
    with storage.read() as view:
        before = view.sized(table, table.position(item("1", "1")))
        put(storage, item("1", "1", x="new"))
        put(storage, item("1", "2"))
        assert view.sized(table, table.position(item("1", "1"))) == before
        assert len(list(view.range(table, None, b"", None))) == 1
    assert get(storage, item("1", "1")) == item("1", "1", x="new")


def _sort_keys(rows: Iterable[tuple[int, bytes]]) -> str:
    return "".join(from_json(body)["s"]["S"] for _, body in rows)


def test_ranges_go_both_ways_and_stop_where_they_are_told(storage: Storage) -> None:
    for number in range(5):
        put(storage, item("p", str(number), g="g", r=str(9 - number)))
    table = table_of(storage)
    low, high = table.key_range(None, [{"S": "p"}], (), "BETWEEN", [{"S": "1"}, {"S": "3"}])
    with storage.read() as view:
        forward = _sort_keys(view.range(table, None, low, high))
        backward = _sort_keys(view.range(table, None, low, high, reverse=True))
        index = table.indexes["by_group"]
        ranked = _sort_keys(view.range(table, index, *table.key_range(index, [{"S": "g"}])))
        positions = [position for position, _, _ in view.entries(table, None)]
    assert (forward, backward, ranked) == ("123", "321", "43210")
    assert positions == [table.position(item("p", number)) for number in "01234"]


def test_an_unfinished_range_holds_nothing_after_the_snapshot(storage: Storage) -> None:
    for number in range(10):
        put(storage, item("p", str(number)))
    with storage.read() as view:
        unfinished = view.range(table_of(view), None, b"", None)
        next(unfinished)
    connection = storage.connections.take()
    assert not connection.in_transaction
    # A reader that still held its snapshot would keep the log from being restarted.
    assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    storage.connections.give(connection)


def test_an_action_that_fails_leaves_nothing_behind(storage: Storage) -> None:
    def write_and_fail(transaction: Transaction) -> None:
        put_action(item("1", "1", g="g", r="r"), transaction)
        raise ConditionalCheckFailed("no")

    with pytest.raises(ConditionalCheckFailed):
        storage.write(write_and_fail)
    assert everything(storage) == []
    assert inconsistencies(storage) == []


def test_writers_that_share_a_commit_fail_and_succeed_each_for_itself(storage: Storage) -> None:
    """The first write is held up until the others wait, so they share the second commit."""
    is_held, go_on = threading.Event(), threading.Event()
    outcomes: dict[int, str] = {}

    def hold(transaction: Transaction) -> None:
        is_held.set()
        go_on.wait()

    def write(number: int) -> None:
        def action(transaction: Transaction) -> str:
            with transaction.together() if number % 2 else contextlib.nullcontext():
                put_action(item("p", str(number), g="g", r="r"), transaction)
                if number % 3 == 0:
                    raise ConditionalCheckFailed(str(number))
            return str(number)

        try:
            outcomes[number] = storage.write(action)
        except ConditionalCheckFailed as error:
            outcomes[number] = f"failed {error.message}"

    first = threading.Thread(target=storage.write, args=(hold,))
    first.start()
    is_held.wait()
    others = [threading.Thread(target=write, args=(number,)) for number in range(12)]
    for thread in others:
        thread.start()
    while len(storage._writer._waiting) < len(others):
        threading.Event().wait(0.001)
    go_on.set()
    for thread in [first, *others]:
        thread.join()
    assert outcomes == {number: f"failed {number}" if number % 3 == 0 else str(number) for number in range(12)}
    assert {one["s"]["S"] for one in everything(storage)} == {str(number) for number in range(12) if number % 3}
    assert inconsistencies(storage) == []


def test_an_interrupted_writer_does_not_stop_the_others(storage: Storage) -> None:
    def interrupt(transaction: Transaction) -> None:
        put_action(item("1", "1"), transaction)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        storage.write(interrupt)
    put(storage, item("1", "2"))
    assert everything(storage) == [item("1", "2")]


@pytest.mark.parametrize("failure", [KeyboardInterrupt, ConditionalCheckFailed])
def test_an_action_that_fails_while_it_reads_holds_nothing(
    storage: Storage, path: Path, failure: type[BaseException]
) -> None:
    """What it reads from lives on in the traceback of the error, for as long as somebody keeps that."""

    def read_write_and_fail(transaction: Transaction) -> None:
        for new in (item("1", "1"), item("1", "2")):
            put_action(new, transaction)
        for _ in transaction.entries(table_of(transaction), None):
            raise failure("no")

    with pytest.raises(failure) as kept:
        storage.write(read_write_and_fail)
    other = Storage(path)
    put(other, item("1", "3"))
    put(storage, item("1", "4"))
    assert everything(storage) == [item("1", "3"), item("1", "4")]
    other.close()
    assert kept.value is not None


def test_many_threads_lose_nothing(storage: Storage) -> None:
    def work(writer: int) -> None:
        for number in range(30):
            put(storage, item(str(writer), str(number), g="g", r=str(number)))
            assert get(storage, item(str(writer), str(number))) is not None

    threads = [threading.Thread(target=work, args=(writer,)) for writer in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(everything(storage)) == 240
    assert inconsistencies(storage) == []


def test_threads_that_end_leave_no_open_files_behind(storage: Storage, path: Path) -> None:
    def read_together(barrier: threading.Barrier) -> None:
        with storage.read() as view:
            barrier.wait()
            view.table_names("", 1)

    def run_threads() -> None:
        barrier = threading.Barrier(5)
        threads = [threading.Thread(target=read_together, args=(barrier,)) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    run_threads()
    opened = sorted(open_files(path.parent))
    for _ in range(5):
        run_threads()
    assert sorted(open_files(path.parent)) == opened


ADD_INDEX = {
    "TableName": "tab",
    "AttributeDefinitions": [{"AttributeName": "x", "AttributeType": "S"}],
    "GlobalSecondaryIndexUpdates": [
        {"Create": {"IndexName": "by_x", "KeySchema": key_schema("x"), "Projection": {"ProjectionType": "ALL"}}}
    ],
}


def test_a_change_of_the_catalogue_by_another_process_is_seen_at_once(storage: Storage, path: Path) -> None:
    table_of(storage)
    other = Storage(path)
    handler_of("UpdateTable")(other, ADD_INDEX)
    assert "by_x" in table_of(storage).indexes
    put(storage, item("1", "1", x="x"))
    assert everything(other, "by_x") == [item("1", "1", x="x")]
    handler_of("DeleteTable")(other, {"TableName": "tab"})
    assert storage.table("tab") is None
    create_table(other)
    assert everything(storage) == []
    other.close()


def test_an_index_is_kept_in_step_in_a_file_that_came_back_from_a_copy(path: Path) -> None:
    """The file beside it tells the number of a change that the copy has not seen, and the same change comes again."""
    storage = Storage(path)
    create_table(storage)
    storage.close()
    copy = path.read_bytes()
    storage = Storage(path)
    handler_of("UpdateTable")(storage, ADD_INDEX)
    storage.close()
    path.write_bytes(copy)
    first, second = Storage(path), Storage(path)
    assert "by_x" not in table_of(first).indexes
    handler_of("UpdateTable")(second, ADD_INDEX)
    put(first, item("1", "1", x="x"))
    assert inconsistencies(second) == []
    assert everything(first, "by_x") == [item("1", "1", x="x")]
    first.close()
    second.close()


def test_a_table_looked_up_before_an_index_was_added_still_fills_the_index(storage: Storage) -> None:
    old = table_of(storage)
    handler_of("UpdateTable")(storage, ADD_INDEX)
    new = item("1", "1", x="x")
    storage.write(lambda transaction: transaction.put(old, old.position(new), Sized(new, 6), NO_ITEM))
    assert everything(storage, "by_x") == [new]


@pytest.mark.parametrize(
    "use",
    [
        lambda storage, table: storage.sized(table, b"x"),
        lambda storage, table: storage.write(lambda transaction: transaction.sized(table, b"x")),
        lambda storage, table: storage.write(partial(_put_into, table)),
    ],
)
def test_a_table_that_is_gone_is_not_found(storage: Storage, use: Callable[..., object]) -> None:
    table = table_of(storage)
    handler_of("DeleteTable")(storage, {"TableName": "tab"})
    create_table(storage)
    with pytest.raises(TableNotFound):
        use(storage, table)
    with pytest.raises(TableNotFound), storage.read() as view:
        list(view.range(table, None, b"", None))
    assert everything(storage) == []


def test_a_transaction_finds_nothing_in_a_large_table_that_is_gone(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its items are still there, and a condition on them must not hold."""
    monkeypatch.setattr(table_changes, "_DROPPED_AT_ONCE", 0)
    put(storage, item("1", "1"))
    table = table_of(storage)
    handler_of("DeleteTable")(storage, {"TableName": "tab"})
    with pytest.raises(TableNotFound):
        storage.write(lambda transaction: transaction.read(table, table.position(item("1", "1"))))


def _put_into(table: TableSchema, transaction: Transaction) -> None:
    transaction.put(table, b"x", Sized(item("1", "1"), 1), NO_ITEM)


def test_idempotency_tokens_are_kept_with_the_write(storage: Storage) -> None:
    def failing(transaction: Transaction) -> None:
        transaction.remember("token", b"request", b"response")
        raise ConditionalCheckFailed("no")

    with contextlib.suppress(ConditionalCheckFailed):
        storage.write(failing)
    assert storage.write(lambda transaction: transaction.token("token")) is None
    storage.write(lambda transaction: transaction.remember("token", b"request", b"response"))
    assert storage.write(lambda transaction: transaction.token("token")) == (b"request", b"response")


def _remember(token: str, transaction: Transaction) -> None:
    transaction.remember(token, b"", b"")


def test_idempotency_tokens_do_not_pile_up(path: Path) -> None:
    clock = FakeClock()
    for token in ("first", "second", "third"):
        storage = Storage(path, clock=clock)
        storage.write(partial(_remember, token))
        assert storage.query("SELECT token FROM tokens") == [(token,)]
        storage.close()
        clock.advance(601)


def test_no_write_waits_until_all_old_idempotency_tokens_are_forgotten(path: Path) -> None:
    clock = FakeClock()
    storage = Storage(path, clock=clock)

    def remember_many(transaction: Transaction) -> None:
        for number in range(2500):
            _remember(f"old-{number}", transaction)

    storage.write(remember_many)
    storage.close()
    clock.advance(601)
    storage = Storage(path, clock=clock)
    left = []
    for number in range(3):
        storage.write(partial(_remember, f"new-{number}"))
        left += storage.query("SELECT count(*) FROM tokens WHERE token GLOB 'old-*'")
    assert left == [(1500,), (500,), (0,)]
    storage.close()


def test_names_that_no_table_has_are_not_kept(storage: Storage) -> None:
    cache = Cache(b"")
    with storage.read() as view:
        for name in ("nobody", "tab", "nothing"):
            cache.table(name, view.connection)
    assert list(cache.tables) == ["tab"]


def test_a_closed_storage_says_so(path: Path) -> None:
    storage = Storage(path)
    create_table(storage)
    table = table_of(storage)
    storage.close()
    storage.close()
    for use in (lambda: storage.sized(table, b"x"), storage.read, lambda: storage.write(lambda _: None)):
        with pytest.raises(StorageError, match="has been closed"):
            use()


def test_a_storage_without_a_path_is_private_and_leaves_nothing_behind() -> None:
    first, second = Storage(None), Storage(None)
    create_table(first)
    assert second.table("tab") is None
    folders = [Path(one.path).parent for one in (first, second)]
    assert all(folder.stat().st_mode & 0o777 == 0o700 for folder in folders)
    first.close()
    second.close()
    assert not any(folder.exists() for folder in folders)


def test_a_writer_that_is_interrupted_while_it_waits_does_not_stop_the_others(storage: Storage) -> None:
    is_held, go_on = threading.Event(), threading.Event()

    def hold(transaction: Transaction) -> None:
        is_held.set()
        go_on.wait()

    def interrupt_when_it_waits() -> None:
        while not storage._writer._waiting:
            threading.Event().wait(0.001)
        os.kill(os.getpid(), signal.SIGUSR1)

    def raise_interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, raise_interrupt)
    holder = threading.Thread(target=storage.write, args=(hold,))
    holder.start()
    is_held.wait()
    interrupter = threading.Thread(target=interrupt_when_it_waits)
    interrupter.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            put(storage, item("1", "interrupted"))
    finally:
        go_on.set()
        signal.signal(signal.SIGUSR1, before)
    holder.join()
    interrupter.join()
    put(storage, item("1", "next"))
    assert everything(storage) == [item("1", "next")]


@pytest.mark.parametrize(
    "limits", [("_DROPPED_AT_ONCE", "_REMOVED_AT_ONCE"), ("_BYTES_DROPPED_AT_ONCE", "_BYTES_REMOVED_AT_ONCE")]
)
def test_what_is_left_of_a_large_deleted_table_is_cleared_away_bit_by_bit(
    storage: Storage, monkeypatch: pytest.MonkeyPatch, limits: tuple[str, str]
) -> None:
    monkeypatch.setattr(table_changes, limits[0], 3)
    monkeypatch.setattr(upkeep, limits[1], 4)
    create_table(storage, "other")
    put(storage, item("1", "1", g="g", r="r"), "other")
    for number in range(10):
        put(storage, item("1", str(number), g="g", r=str(number)))
    removal = {"TableName": "tab", "GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "by_rank"}}]}
    handler_of("UpdateTable")(storage, removal)
    handler_of("DeleteTable")(storage, {"TableName": "tab"})
    create_table(storage)
    assert everything(storage) == []
    put(storage, item("1", "1", g="g", r="r"))
    left = "SELECT count(*) FROM sqlite_schema WHERE name GLOB 'items_*' OR name GLOB 'index_*'"
    assert storage.query(left) == [(9,)]
    storage.keep_up()
    assert storage.query(left) == [(6,)]
    assert everything(storage) == everything(storage, name="other") == [item("1", "1", g="g", r="r")]
    assert inconsistencies(storage) == []


def close_behind_writes(storage: Storage, numbers: range, *, changes_catalogue: bool) -> None:
    """Let a write be held, others wait behind it, and the storage be closed behind those; then let the first go on."""
    is_held, go_on = threading.Event(), threading.Event()

    def hold(transaction: Transaction) -> None:
        transaction.has_written = transaction.catalogue_changed = changes_catalogue
        is_held.set()
        go_on.wait()

    holder = threading.Thread(target=storage.write, args=(hold,))
    holder.start()
    is_held.wait()
    writers = [threading.Thread(target=put, args=(storage, item("1", str(number)))) for number in numbers]
    for count, thread in enumerate(writers, start=1):
        thread.start()
        while len(storage._writer._waiting) < count:
            threading.Event().wait(0.001)
    closer = threading.Thread(target=storage.close)
    closer.start()
    while not storage._is_closed:
        threading.Event().wait(0.001)
    go_on.set()
    for thread in (holder, *writers, closer):
        thread.join()


def test_closing_waits_for_the_writes_that_were_asked_for_before(path: Path) -> None:
    storage = Storage(path)
    create_table(storage)
    close_behind_writes(storage, range(3), changes_catalogue=False)
    again = Storage(path)
    assert len(everything(again)) == 3
    again.close()


def test_closing_waits_also_for_writes_behind_a_change_of_the_catalogue(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_MOST_ACTIONS", 1)  # so that each is a commit of its own
    storage = Storage(path)
    create_table(storage)
    close_behind_writes(storage, range(1, 2), changes_catalogue=True)
    again = Storage(path)
    assert everything(again) == [item("1", "1")]
    again.close()
