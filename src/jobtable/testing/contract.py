"""The contract of a backend as a test class. Subclass it and override the fixture that makes a backend:

class TestMyBackend(BackendContract):
    @pytest.fixture
    def backend(self) -> Iterator[Backend]:
        backend = MyBackend()
        yield backend
        backend.close()
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from jobtable.errors import (
    AlreadyExistsError,
    ConditionalCheckFailed,
    ConditionFailedError,
    CursorError,
    IdempotencyMismatch,
    NotFoundError,
    RequestRefused,
    TableNotFound,
    TransactionCanceled,
    TransactionFailedError,
    ValueRefusedError,
)
from jobtable.model import Index, Table
from jobtable.store import Backend, Store
from jobtable.testing.contract_entities import START, Corner, Note, Piece, Task, flat_table, make_task, table
from jobtable.testing.strategies import HOSTILE_TEXTS

ONE = Task.key(task_id="1")
KEY = {"PK": {"S": "p"}, "SK": {"S": "x"}}


def in_threads(count: int, work: Callable[[int], object]) -> list[Any]:
    """Run the work in that many threads at once and return each result or exception."""
    barrier = threading.Barrier(count)

    def run(number: int) -> object:
        barrier.wait()
        try:
            return work(number)
        except Exception as error:
            return error

    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(run, range(count)))


class BackendContract:
    """The tests that every backend passes, with the same results and the same errors."""

    @pytest.fixture
    def backend(self) -> Iterator[Backend]:
        """The backend under test; a subclass makes it."""
        raise NotImplementedError

    @pytest.fixture
    def store(self, backend: Backend) -> Iterator[Store]:
        """A store on the backend with tables of its own."""
        store = Store(backend, prefix=f"t{uuid.uuid4().hex[:12]}-")
        store.tables.create(table, flat_table)
        yield store
        store.tables.delete(table, flat_table)

    # --- one item ---------------------------------------------------------------------------------------------------

    def test_what_is_added_can_be_read(self, store: Store) -> None:
        task = make_task(corner=Corner(x=1.5, y=-2), tags={"a", "b"}, blob=b"\x00\xff", vector=[0.25, 1e-7])
        store.add(task)
        assert store.get(ONE) == task
        assert store.get(ONE, consistent=False) == task

    def test_what_is_not_there_is_none_or_an_error(self, store: Store) -> None:
        assert store.find(Task.key(task_id="no")) is None
        with pytest.raises(NotFoundError, match=r"there is no task no$"):
            store.get(Task.key(task_id="no"))

    def test_add_refuses_what_is_there(self, store: Store) -> None:
        store.add(make_task(status="first"))
        with pytest.raises(AlreadyExistsError, match="TASK#1"):
            store.add(make_task(status="second"))
        assert store.get(ONE).status == "first"

    def test_put_replaces(self, store: Store) -> None:
        store.put(make_task(status="first", queue="q"))
        store.put(make_task(status="second"))
        assert store.get(ONE) == make_task(status="second")
        assert list(store.query(Task.by_queue(queue="q"))) == []

    def test_put_on_a_condition(self, store: Store) -> None:
        store.put(make_task(status="a"))
        store.put(make_task(status="b"), when=Task.status == "a")
        with pytest.raises(ConditionFailedError) as failed:
            store.put(make_task(status="c"), when=Task.status == "a")
        assert failed.value.current == make_task(status="b")

    def test_delete_says_whether_it_was_there(self, store: Store) -> None:
        store.add(make_task())
        assert store.delete(ONE)
        assert not store.delete(ONE)

    def test_delete_on_a_condition(self, store: Store) -> None:
        store.add(make_task(status="kept"))
        with pytest.raises(ConditionFailedError):
            store.delete(ONE, when=Task.status == "other")
        assert store.delete(ONE, when=Task.status == "kept")

    def test_any_text_can_be_a_key_and_a_value(self, store: Store) -> None:
        texts = [text[:900] for text in HOSTILE_TEXTS]  # a sort key has 1024 bytes at most
        notes = [Note(task_id=text, topic=text, at=START, text=text) for text in texts]
        for note in notes:
            store.add(note)
            store.add(Note(task_id=note.task_id, topic=note.topic + "x", at=START))
        assert [store.get(Note.key(task_id=text, topic=text, at=START)) for text in texts] == notes
        found = [list(store.query(Note.key(task_id=text, topic=text))) for text in texts]
        assert found == [[note] for note in notes]

    def test_numbers_keep_38_digits(self, store: Store) -> None:
        longest = "9.9999999999999999999999999999999999999e125"
        texts = ["0", "-1", "1e-130", longest, "1" * 38, "0." + "1" * 38, "-1E-10"]
        tasks = [make_task(text, exact=Decimal(text)) for text in texts]
        for task in tasks:
            store.add(task)
        assert [store.get(Task.key(task_id=text)) for text in texts] == tasks

    def test_any_json_can_be_stored(self, store: Store) -> None:
        value = {"a": [1, 2.5, "x", None, True, {"e": ""}], "b": b"x", "big": 10**30, "empty": [], "none": {}}
        store.add(make_task(anything=value))
        assert store.get(ONE).anything == value

    # --- updates ----------------------------------------------------------------------------------------------------

    def test_an_update_gives_the_new_state(self, store: Store) -> None:
        store.add(make_task())
        assert store.update(ONE, Task.status.set("run")) == make_task(status="run")

    def test_an_update_of_nothing_is_refused(self, store: Store) -> None:
        with pytest.raises(NotFoundError, match=r"there is no task 1$"):
            store.update(ONE, Task.status.set("run"))
        assert store.find(ONE) is None

    def test_an_update_on_a_condition_carries_what_is_there(self, store: Store) -> None:
        store.add(make_task(status="done"))
        with pytest.raises(ConditionFailedError) as failed:
            store.update(ONE, Task.count.add(1), when=Task.status == "new")
        assert failed.value.current == make_task(status="done")

    def test_every_kind_of_update(self, store: Store) -> None:
        store.add(make_task(count=1, tags={"a", "b"}, notes=["x"], corner=Corner(x=1, y=2), options={"k": 1}))
        changed = store.update(
            ONE,
            Task.count.increment(4),
            Task.tags.discard(frozenset({"a"})),
            Task.notes.append("y", "z"),
            Task.corner["x"].set(9.5),
            Task.options["k"].add(2),
            Task.anything.set_if_missing([1, 2]),
        )
        notes, corner = ["x", "y", "z"], Corner(x=9.5, y=2)
        assert changed == make_task(count=5, tags={"b"}, notes=notes, corner=corner, options={"k": 3}, anything=[1, 2])
        further = store.update(
            ONE,
            Task.count.add(-5),
            Task.tags.add(frozenset({"c", "d"})),
            Task.notes[1].remove(),
            Task.corner.remove(),
            Task.anything[0].set("first"),
        )
        assert further == make_task(tags={"b", "c", "d"}, notes=["x", "z"], options={"k": 3}, anything=["first", 2])

    def test_a_changed_field_moves_the_item_in_its_indexes(self, store: Store) -> None:
        store.add(make_task(status="new", queue="q", priority=7))
        store.update(ONE, Task.status.set("run"))
        assert list(store.query(Task.by_status(status="new"))) == []
        assert [t.task_id for t in store.query(Task.by_status(status="run"))] == ["1"]

    def test_a_sparse_index_is_left_and_entered(self, store: Store) -> None:
        store.add(make_task(queue="q"))
        left = store.update(ONE, Task.queue.set(None))
        assert list(store.query(Task.by_queue(queue="q"))) == []
        store.update(left, Task.queue.set("r"))
        assert [t.queue for t in store.query(Task.by_queue(queue="r"))] == ["r"]

    def test_an_update_that_lacks_an_input_of_a_key_is_refused(self, store: Store) -> None:
        store.add(make_task(queue="q"))
        with pytest.raises(ValueRefusedError, match="priority"):
            store.update(ONE, Task.queue.set("r"))
        assert store.get(ONE).queue == "q"

    def test_an_update_from_a_stale_entity_is_refused(self, store: Store) -> None:
        store.add(make_task(queue="q", priority=1))
        read = store.get(ONE)
        store.update(read, Task.priority.set(2))
        with pytest.raises(ConditionFailedError):
            store.update(read, Task.queue.set("r"))
        assert [t.priority for t in store.query(Task.by_queue(queue="q"))] == [2]

    # --- queries ----------------------------------------------------------------------------------------------------

    @pytest.fixture
    def notes(self, store: Store) -> list[Note]:
        """Ten notes under each of two topics of one task, with the task among them and a neighbour beside it."""
        seconds = [START + timedelta(seconds=second) for second in range(10)]
        notes = [Note(task_id="1", topic=topic, at=at) for topic in "ab" for at in seconds]
        neighbours = [Note(task_id="1x", topic="a", at=START), Note(task_id="1", topic="aa", at=START)]
        store.batch_put([*notes, make_task(), *neighbours])
        return notes

    def test_a_prefix_selects_its_own_items_in_order(self, store: Store, notes: list[Note]) -> None:
        assert list(store.query(Note.key(task_id="1", topic="a"))) == notes[:10]
        assert [n.topic for n in store.query(Note.key(task_id="1"))] == ["a"] * 10 + ["aa"] + ["b"] * 10
        assert list(store.query(Note.key(task_id="1", topic="b"), newest_first=True)) == notes[:9:-1]

    def test_bounds_on_the_next_field(self, store: Store, notes: list[Note]) -> None:
        topic_a = Note.key(task_id="1", topic="a")
        times = [note.at for note in notes[:10]]
        assert list(store.query(topic_a, after=times[6])) == notes[7:10]
        assert list(store.query(topic_a, before=times[3])) == notes[:3]
        assert list(store.query(topic_a, after=times[2], before=times[5])) == notes[3:5]
        assert list(store.query(topic_a, between=(times[2], times[5]))) == notes[2:6]
        assert [n.topic for n in store.query(Note.key(task_id="1"), after="a")] == ["aa"] + ["b"] * 10
        assert [n.topic for n in store.query(Note.key(task_id="1"), before="aa")] == ["a"] * 10
        assert list(store.query(topic_a, after=times[9])) == []
        assert list(store.query(topic_a, after=times[5], before=times[5])) == []
        assert list(store.query(topic_a, after=times[5], before=times[2])) == []

    def test_limits_and_filters(self, store: Store, notes: list[Note]) -> None:
        task = Note.key(task_id="1")
        assert list(store.query(task, limit=3)) == notes[:3]
        store.put(notes[5].replace(text="found"))
        assert [n.text for n in store.query(task, where=Note.text == "found")] == ["found"]
        assert store.query(task, where=Note.text == "found").first() == notes[5].replace(text="found")
        assert store.query(task, where=Note.text == "never").first() is None
        assert store.count(task) == 21
        assert store.count(task, where=Note.text == "") == 20

    @pytest.mark.parametrize("size", [1, 4, 21, 50])
    def test_pages_are_full_and_cover_everything_once(self, store: Store, notes: list[Note], size: int) -> None:
        query = store.query(Note.key(task_id="1"), where=Note.text == "")
        found: list[Note] = []
        page = query.page(size=size)
        while page.cursor is not None:
            assert len(page.items) == size
            found += page.items
            page = query.page(page.cursor, size=size)
        found += page.items
        assert found == list(store.query(Note.key(task_id="1")))

    def test_a_cursor_fits_only_its_query(self, store: Store, notes: list[Note]) -> None:
        cursor = store.query(Note.key(task_id="1")).page(size=5).cursor
        assert cursor is not None
        altered = cursor[:-4] + ("AAAA" if cursor[-4:] != "AAAA" else "BBBB")
        for foreign in (altered, "no cursor", cursor[:10]):
            with pytest.raises(CursorError):
                store.query(Note.key(task_id="1")).page(foreign)
        with pytest.raises(CursorError):
            store.query(Note.key(task_id="1", topic="a")).page(cursor)

    def test_a_collection_is_everything_under_a_key(self, store: Store, notes: list[Note]) -> None:
        found = list(store.collection(ONE))
        assert {type(each) for each in found} == {Task, Note}
        assert len(found) == 22

    def test_an_index_with_equal_sort_keys_pages_through_all(self, store: Store) -> None:
        store.batch_put(make_task(str(number)) for number in range(12))
        query = store.query(Task.by_status(status="new"))
        pages = [query.page(size=5)]
        while pages[-1].cursor:
            pages.append(query.page(pages[-1].cursor, size=5))
        assert len(pages) == 3
        found = [t.task_id for page in pages for t in page.items]
        assert sorted(found, key=int) == [str(number) for number in range(12)]

    def test_values_reads_some_attributes(self, store: Store) -> None:
        store.batch_put(make_task(str(number), count=number) for number in range(3))
        found = store.values(Task.by_status(status="new"), Task.count, Task.queue)
        assert sorted(found) == [(0, None), (1, None), (2, None)]
        assert sorted(store.values(Task.by_status(status="new"), Task.count)) == [0, 1, 2]

    def test_all_items_of_a_type(self, store: Store, notes: list[Note]) -> None:
        assert [t.task_id for t in store.query(Task.by_type())] == ["1"]
        assert len(list(store.query(Note.by_type()))) == 22

    @pytest.mark.parametrize("segments", [1, 4])
    def test_a_scan_finds_each_item_once(self, store: Store, notes: list[Note], segments: int) -> None:
        found = [(n.task_id, n.topic, n.at) for n in store.scan(Note, segments=segments)]
        assert len(found) == len(set(found)) == 22

    def test_natural_keys_sort_as_numbers(self, store: Store) -> None:
        numbers = [2, 10, -1, 0, 100]
        store.batch_put(Piece(job_id="j", number=n, color="red", shape="round", size=n % 3) for n in numbers)
        assert [p.number for p in store.query(Piece.key(job_id="j"))] == [-1, 0, 2, 10, 100]
        assert [p.number for p in store.query(Piece.key(job_id="j"), after=0, limit=2)] == [2, 10]
        assert [p.number for p in store.query(Piece.key(job_id="j"), between=(0, 10))] == [0, 2, 10]
        assert store.get(Piece.key(job_id="j", number=10)).number == 10

    def test_an_index_over_several_attributes(self, store: Store) -> None:
        store.batch_put(
            Piece(job_id="j", number=n, color="red", shape="round" if n % 2 else "square", size=n // 4)
            for n in range(12)
        )
        assert [p.number for p in store.query(Piece.by_look(color="red", shape="round"))] == [1, 3, 5, 7, 9, 11]
        assert [p.number for p in store.query(Piece.by_look(color="red", shape="round", size=1))] == [5, 7]
        assert [p.number for p in store.query(Piece.by_look(color="red", shape="round"), after=1)] == [9, 11]
        store.update(Piece.key(job_id="j", number=1), Piece.size.set(9))
        assert [p.number for p in store.query(Piece.by_look(color="red", shape="round"))] == [3, 5, 7, 9, 11, 1]

    # --- batches and transactions -----------------------------------------------------------------------------------

    def test_batches_of_any_size(self, store: Store) -> None:
        tasks = [make_task(str(number), count=number) for number in range(130)]
        assert store.batch_put(tasks) == 130
        keys = [Task.key(task_id=str(number)) for number in (5, 129, 500, 5)]
        assert store.batch_get(keys) == [tasks[5], tasks[129], None, tasks[5]]
        assert store.batch_get([Task.key(task_id=task.task_id) for task in tasks]) == tasks
        assert store.batch_delete(tasks[:100]) == 100
        assert store.count(Task.by_status(status="new")) == 30

    def test_the_last_of_several_writes_to_one_key_wins(self, store: Store) -> None:
        store.batch_put([make_task(count=1), make_task(count=2)])
        assert store.get(ONE).count == 2

    def test_a_transaction_happens_as_a_whole(self, store: Store) -> None:
        store.add(make_task("old", status="new"))
        store.add(make_task("gone"))
        with store.transaction() as tx:
            tx.add(make_task("added"))
            tx.update(Task.key(task_id="old"), Task.status.set("run"), when=Task.status == "new")
            tx.delete(Task.key(task_id="gone"))
            tx.put(Note(task_id="old", topic="t", at=START))
        assert [t.task_id for t in store.query(Task.by_status(status="run"))] == ["old"]
        assert store.find(Task.key(task_id="gone")) is None
        assert store.get(Task.key(task_id="added")) == make_task("added")

    def test_a_transaction_that_fails_does_nothing_and_says_why(self, store: Store) -> None:
        store.add(make_task("old", status="done"))
        said = "update Task PK='TASK#old'"
        with pytest.raises(TransactionFailedError, match=said) as failed, store.transaction() as tx:
            tx.add(make_task("added"))
            tx.update(Task.key(task_id="old"), Task.status.set("run"), when=Task.status == "new")
        (failure,) = failed.value.failures
        assert (failure.index, failure.code) == (1, "ConditionalCheckFailed")
        assert failure.current == make_task("old", status="done")
        assert store.find(Task.key(task_id="added")) is None

    def test_a_check_guards_a_transaction(self, store: Store) -> None:
        store.add(make_task("guard", status="open"))
        with store.transaction() as tx:
            tx.check(Task.key(task_id="guard"), Task.status == "open")
            tx.add(make_task("in"))
        with pytest.raises(TransactionFailedError), store.transaction() as tx:
            tx.check(Task.key(task_id="guard"), Task.status == "shut")
            tx.add(make_task("out"))
        assert store.find(Task.key(task_id="out")) is None

    def test_a_token_makes_a_transaction_happen_once(self, store: Store) -> None:
        store.add(make_task())
        token = str(uuid.uuid4())
        for _ in range(3):
            with store.transaction(token=token) as tx:
                tx.update(ONE, Task.count.increment())
        assert store.get(ONE).count == 1
        with pytest.raises(IdempotencyMismatch), store.transaction(token=token) as tx:
            tx.update(ONE, Task.count.increment(5))

    def test_a_transaction_of_a_hundred_actions(self, store: Store) -> None:
        with store.transaction() as tx:
            for number in range(100):
                tx.add(make_task(str(number)))
            with pytest.raises(ValueRefusedError, match="100"):
                tx.add(make_task("one more"))
        assert store.count(Task.by_status(status="new")) == 100

    def test_several_items_at_one_instant(self, store: Store) -> None:
        store.add(make_task("a"))
        assert store.get_together(Task.key(task_id="a"), Task.key(task_id="b")) == (make_task("a"), None)

    # --- together ---------------------------------------------------------------------------------------------------

    def test_no_increment_is_lost(self, store: Store) -> None:
        store.add(make_task())

        def work(_: int) -> None:
            for _ in range(20):
                store.update(ONE, Task.count.increment())

        assert in_threads(8, work) == [None] * 8
        assert store.get(ONE).count == 160

    def test_one_of_many_adds_wins(self, store: Store) -> None:
        results = in_threads(8, lambda number: store.add(make_task(count=number)))
        assert results.count(None) == 1
        assert sum(isinstance(each, AlreadyExistsError) for each in results) == 7
        assert store.get(ONE).count == results.index(None)

    def test_transfers_keep_the_sum(self, store: Store) -> None:
        store.batch_put([make_task("a", count=100), make_task("b", count=100)])

        def work(number: int) -> int:
            source, target = ("a", "b") if number % 2 else ("b", "a")
            with store.transaction() as tx:
                tx.update(Task.key(task_id=source), Task.count.increment(-number), when=Task.count >= number)
                tx.update(Task.key(task_id=target), Task.count.increment(number))
            return number

        assert in_threads(6, work) == list(range(6))
        counts = [task and task.count for task in store.get_together(Task.key(task_id="a"), Task.key(task_id="b"))]
        assert counts == [100 - 1 - 3 - 5 + 2 + 4, 100 + 1 + 3 + 5 - 2 - 4]

    # --- tables, limits and errors ----------------------------------------------------------------------------------

    def test_a_table_is_as_it_is_declared(self, store: Store) -> None:
        assert store.tables.differences(table) == []
        assert store.tables.differences(flat_table) == []
        assert set(store.tables.names()) == {table.name, flat_table.name}
        other = Table(table.name, pk="PK", sk="SK2", indexes=[Index("GSI9", "GSI9PK")])
        told = " | ".join(store.tables.differences(other))
        for word in ("SK2", "GSI9 is declared, but not deployed", "GSI1 is deployed, but not declared", "expires"):
            assert word in told
        missing = Table("never-made", pk="PK")
        assert store.tables.differences(missing) == [f"table {store.prefix}never-made is declared, but not deployed"]

    def test_creating_and_deleting_twice_is_no_error(self, store: Store) -> None:
        store.tables.create(table)
        store.tables.delete(flat_table)
        store.tables.delete(flat_table)
        with pytest.raises(TableNotFound, match="create it"):
            store.get(Piece.key(job_id="j", number=1))

    def test_units_are_counted_by_access_pattern(self, store: Store) -> None:
        store.add(make_task())
        with store.capacity.measure() as spent:
            store.get(ONE)
            store.get(ONE, consistent=False)
            list(store.query(Task.by_status(status="new")))
            store.update(ONE, Task.count.increment())
        assert (spent["Task.key"].calls, spent["Task.key"].read) == (2, 1.5)
        assert spent["Task.by_status"].read == 0.5
        # The table and both indexes that the task is in.
        assert spent["Task.update"].write == 3

    def test_limits_hold_before_anything_is_sent(self, store: Store) -> None:
        for refused, said in (
            (make_task(anything="x" * 410_000), "409,600"),
            (make_task(""), "empty"),
            (Note(task_id="1", topic="x" * 1100, at=START), "1024"),
            (make_task(options={"": 1}), "map"),
            (make_task(anything={"a": [{"": 1}]}), "map"),
            (make_task(exact=Decimal("1" * 39)), "38"),
        ):
            with pytest.raises(ValueRefusedError, match=said):
                store.add(refused)
        assert list(store.scan(Task)) == []

    @pytest.mark.parametrize(
        ("operation", "members", "error"),
        [
            ("PutItem", {"Item": {"SK": {"S": "x"}}}, RequestRefused),
            ("PutItem", {"Item": {"PK": {"N": "1"}, "SK": {"S": "x"}}}, RequestRefused),
            ("PutItem", {"Item": {"PK": {"S": ""}, "SK": {"S": "x"}}}, RequestRefused),
            ("PutItem", {"Item": {**KEY, "big": {"S": "x" * 410_000}}}, RequestRefused),
            ("PutItem", {"Item": {**KEY, "n": {"N": "1" * 39}}}, RequestRefused),
            ("GetItem", {"Key": {"PK": {"S": "p"}}}, RequestRefused),
            ("Query", {"KeyConditionExpression": "PK = :p"}, RequestRefused),
            ("Query", {"KeyConditionExpression": "status = :p"}, RequestRefused),
            ("Scan", {"FilterExpression": "a = = b"}, RequestRefused),
            ("PutItem", {"Item": KEY, "ConditionExpression": "attribute_exists(PK)"}, ConditionalCheckFailed),
        ],
    )
    def test_what_dynamodb_refuses_is_refused(
        self, store: Store, operation: str, members: dict[str, Any], error: type[Exception]
    ) -> None:
        with pytest.raises(error):
            store.backend.execute(operation, {"TableName": store.table_name(table), **members})

    def test_a_transaction_cannot_touch_an_item_twice(self, store: Store) -> None:
        put = {"Put": {"TableName": store.table_name(table), "Item": {"PK": {"S": "p"}, "SK": {"S": "s"}}}}
        with pytest.raises(RequestRefused, match="multiple operations on one item"):
            store.backend.execute("TransactWriteItems", {"TransactItems": [put, put]})

    def test_reasons_of_a_cancelled_transaction_are_in_order(self, store: Store) -> None:
        name = store.table_name(table)
        good = {"TableName": name, "Item": {"PK": {"S": "a"}, "SK": {"S": "s"}}}
        bad = {"TableName": name, "Item": {"PK": {"S": "b"}, "SK": {"S": "s"}}}
        bad["ConditionExpression"] = "attribute_exists(PK)"
        with pytest.raises(TransactionCanceled) as cancelled:
            store.backend.execute("TransactWriteItems", {"TransactItems": [{"Put": good}, {"Put": bad}]})
        codes = [reason["Code"] for reason in cancelled.value.details["CancellationReasons"]]
        assert codes == ["None", "ConditionalCheckFailed"]
