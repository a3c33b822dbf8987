"""What the store does when a backend throttles, loses answers, leaves items undone or lags behind."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from jobtable.embedded import EmbeddedBackend
from jobtable.embedded.storage import database_files
from jobtable.errors import (
    AlreadyExistsError,
    BackendUnavailable,
    IncompleteBatchError,
    Throttled,
    TransactionCanceled,
    TransactionConflict,
)
from jobtable.store import Backend, Backoff, Request, Response, Store
from jobtable.testing import FakeClock, Faults, FaultyBackend
from jobtable.testing.contract_entities import Task, make_task, table


@pytest.fixture
def engine() -> Iterator[Backend]:
    backend = EmbeddedBackend(None)
    Store(backend).tables.create(table)
    yield backend
    backend.close()


def faulty_store(
    engine: Backend, faults: Faults, seed: int = 1, attempts: int = 8
) -> tuple[Store, FaultyBackend, FakeClock]:
    clock = FakeClock()
    backend = FaultyBackend(engine, faults, seed=seed, clock=clock)
    backoff = Backoff(attempts=attempts, clock=clock, random=Random(seed))
    return Store(backend, clock=clock, backoff=backoff), backend, clock


@pytest.mark.parametrize("seed", range(5))
def test_throttled_requests_go_through_in_the_end(engine: Backend, seed: int) -> None:
    store, backend, clock = faulty_store(engine, Faults(throttled=0.3), seed)
    store.add(make_task())
    for _ in range(20):
        store.update(Task.key(task_id="1"), Task.count.increment())
    with store.transaction() as tx:
        tx.update(Task.key(task_id="1"), Task.count.increment())
    assert store.get(Task.key(task_id="1")).count == 21
    assert backend.injected["throttled"] > 0
    assert clock.monotonic() > 0


def test_a_file_that_another_program_keeps_locked_is_waited_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_files, "_BUSY_SECONDS", 0.3)
    clock = FakeClock()
    with Store(EmbeddedBackend(tmp_path / "test.db"), backoff=Backoff(clock=clock)) as store:
        store.tables.create(table)
        with closing(sqlite3.connect(tmp_path / "test.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(BackendUnavailable, match="another program has locked it"):
                store.put(make_task())
            assert clock.monotonic() == 0  # there was no pause, and so no second attempt
        store.put(make_task())


def test_endless_throttling_is_an_error_in_the_end(engine: Backend) -> None:
    store, backend, clock = faulty_store(engine, Faults(throttled=1), attempts=4)
    with pytest.raises(Throttled):
        store.get(Task.key(task_id="1"))
    assert backend.injected["throttled"] == 4
    assert 0.05 <= clock.monotonic() <= 0.05 + 0.1 + 0.2


@pytest.mark.parametrize("seed", range(5))
def test_batches_finish_what_was_left_undone(engine: Backend, seed: int) -> None:
    store, backend, _ = faulty_store(engine, Faults(unprocessed=0.4, throttled=0.1, lost_response=0.2), seed)
    tasks = [make_task(str(number), count=number) for number in range(60)]
    assert store.batch_put(tasks) == 60
    assert store.batch_get([Task.key(task_id=task.task_id) for task in tasks]) == tasks
    assert store.batch_delete(tasks[:30]) == 30
    assert store.batch_get([Task.key(task_id=task.task_id) for task in tasks]) == [None] * 30 + tasks[30:]
    assert backend.injected["unprocessed"] > 20


def test_a_batch_that_never_goes_through_says_what_is_left(engine: Backend) -> None:
    store, _, _ = faulty_store(engine, Faults(unprocessed=1), attempts=3)
    with pytest.raises(IncompleteBatchError) as raised:
        store.batch_put([make_task("1"), make_task("2")])
    ((name, left),) = raised.value.left
    assert name == "contract"
    assert {entry["PutRequest"]["Item"]["PK"]["S"] for entry in left} == {"TASK#1", "TASK#2"}


def test_an_add_whose_answer_is_lost_happens_once(engine: Backend) -> None:
    store, backend, _ = faulty_store(engine, Faults(lost_response=0.5), seed=3)
    for number in range(40):
        store.add(make_task(str(number), count=number))
    assert backend.injected["lost_response"] > 5
    with pytest.raises(AlreadyExistsError):
        store.add(make_task("1", count=77))


def test_an_add_is_not_mistaken_for_another_ones_equal_item(engine: Backend) -> None:
    store, _, _ = faulty_store(engine, Faults())
    store.add(make_task("1"))
    with pytest.raises(AlreadyExistsError):
        store.add(make_task("1"))


def test_a_transaction_whose_answer_is_lost_happens_once(engine: Backend) -> None:
    store, backend, _ = faulty_store(engine, Faults(lost_response=0.4), seed=5)
    Store(engine).add(make_task())
    for _ in range(30):
        with store.transaction() as tx:
            tx.update(Task.key(task_id="1"), Task.count.increment())
    assert backend.injected["lost_response"] > 5
    assert store.get(Task.key(task_id="1")).count == 30


def test_an_increment_whose_answer_is_lost_is_not_repeated(engine: Backend) -> None:
    store, _, _ = faulty_store(engine, Faults(lost_response=1))
    Store(engine).add(make_task())
    with pytest.raises(BackendUnavailable):
        store.update(Task.key(task_id="1"), Task.count.increment())
    assert Store(engine).get(Task.key(task_id="1")).count == 1


def test_a_put_whose_answer_is_lost_is_repeated(engine: Backend) -> None:
    store, backend, _ = faulty_store(engine, Faults(lost_response=0.5), seed=2)
    for number in range(20):
        store.put(make_task(count=number))
    assert store.get(Task.key(task_id="1")).count == 19
    assert backend.injected["lost_response"] > 5


def test_an_index_that_lags_misses_recent_writes(engine: Backend) -> None:
    store, _, _ = faulty_store(engine, Faults(index_lag=1))
    for number in range(8):
        store.add(make_task(str(number)))
    # The five latest writes are not in the index yet; the table itself has them all.
    assert sorted(task.task_id for task in store.query(Task.by_status(status="new"))) == ["0", "1", "2"]
    assert len(list(store.scan(Task))) == 8


def test_an_index_that_lags_knows_what_is_old_enough(engine: Backend) -> None:
    clock = FakeClock()
    lagging = FaultyBackend(engine, Faults(index_lag=1), seed=1, lagging_seconds=1, clock=clock)
    store = Store(lagging, clock=clock)
    for number in range(3):
        store.add(make_task(str(number)))
        clock.advance(0.5)
    assert sorted(task.task_id for task in store.query(Task.by_status(status="new"))) == ["0", "1"]


def test_an_index_that_lags_finds_what_is_gone_where_it_was(engine: Backend) -> None:
    Store(engine).batch_put([make_task("1"), make_task("2"), make_task("3")])
    store, backend, _ = faulty_store(engine, Faults(index_lag=1))
    with store.transaction() as tx:
        tx.update(Task.key(task_id="1"), Task.status.set("done"))
        tx.delete(Task.key(task_id="2"))
    store.batch_put([make_task("4")])
    assert sorted(task.task_id for task in store.query(Task.by_status(status="new"))) == ["1", "2", "3"]
    assert list(store.query(Task.by_status(status="done"))) == []
    backend.stop()
    assert sorted(task.task_id for task in store.query(Task.by_status(status="new"))) == ["3", "4"]
    assert [task.task_id for task in store.query(Task.by_status(status="done"))] == ["1"]


@pytest.mark.parametrize("seed", range(5))
def test_what_meets_another_transaction_goes_through_in_the_end(engine: Backend, seed: int) -> None:
    store, backend, _ = faulty_store(engine, Faults(conflict=0.3, unavailable=0.2), seed)
    store.add(make_task())
    for _ in range(20):
        with store.transaction() as tx:
            tx.update(Task.key(task_id="1"), Task.count.increment())
    (task,) = store.get_together(Task.key(task_id="1"))
    assert task.count == 20
    assert backend.injected["conflict"] > 0
    assert backend.injected["unavailable"] > 0


def test_a_transaction_that_meets_others_all_the_time_may_be_committed_again(engine: Backend) -> None:
    store, backend, _ = faulty_store(engine, Faults(conflict=1), attempts=3)
    tx = store.transaction()
    tx.add(make_task())
    with pytest.raises(TransactionConflict, match=r"could not add Task .*: TransactionConflict") as raised:
        tx.commit()
    assert raised.value.retryable
    assert backend.injected["conflict"] == 3
    backend.stop()
    tx.commit()
    assert store.get(Task.key(task_id="1")) == make_task()


def test_pauses_grow_up_to_the_cap() -> None:
    clock = FakeClock()
    backoff = Backoff(attempts=10, first_seconds=1, most_seconds=8, clock=clock, random=Random(1))
    waited = [0.0]
    for _ in backoff.pauses():
        waited.append(clock.monotonic())
    pauses = [later - earlier for earlier, later in pairwise(waited)]
    for pause, longest in zip(pauses, [1, 2, 4, 8, 8, 8, 8, 8, 8], strict=True):
        assert longest / 2 <= pause <= longest


class Broken:
    """A backend that fails in a way that repeating does not mend."""

    calls = 0

    def execute(self, operation: str, request: Request) -> Response:
        self.calls += 1
        raise BackendUnavailable("down")

    def close(self) -> None:
        pass


def test_a_read_is_tried_again_and_a_condition_is_not() -> None:
    clock = FakeClock()
    broken = Broken()
    store = Store(broken, clock=clock, backoff=Backoff(attempts=3, clock=clock))
    with pytest.raises(BackendUnavailable):
        store.get(Task.key(task_id="1"))
    assert broken.calls == 3
    with pytest.raises(BackendUnavailable):
        store.put(make_task(), when=Task.count == 1)
    assert broken.calls == 4


class Contended:
    """Writers are in the way of the first reads in a transaction."""

    def __init__(self, engine: Backend, conflicts: int) -> None:
        self._engine = engine
        self._conflicts = conflicts

    def execute(self, operation: str, request: Request) -> Response:
        if operation == "TransactGetItems" and self._conflicts:
            self._conflicts -= 1
            reasons = [{"Code": "TransactionConflict"}, {"Code": "None"}]
            raise TransactionCanceled("in the way", details={"CancellationReasons": reasons})
        return self._engine.execute(operation, request)

    def close(self) -> None:
        """Nothing is held."""


def test_reads_together_wait_for_writers_to_get_out_of_the_way(engine: Backend) -> None:
    keys = Task.key(task_id="1"), Task.key(task_id="2")
    clock = FakeClock()
    store = Store(Contended(engine, 3), clock=clock, backoff=Backoff(attempts=4, clock=clock))
    store.add(make_task())
    assert store.get_together(*keys) == (make_task(), None)
    assert clock.monotonic() > 0
    with pytest.raises(TransactionConflict):
        Store(Contended(engine, 4), clock=clock, backoff=Backoff(attempts=4, clock=clock)).get_together(*keys)
