"""Store.retrying: read, act, and do both again when something changed in between."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import ConditionFailedError, ConflictError, JobStateError, TransactionFailedError
from jobtable.store import Backoff, Failure, Store, TryAgain
from jobtable.testing import FakeClock
from jobtable.testing.contract_entities import Task, make_task, table


@pytest.fixture
def store() -> Iterator[Store]:
    clock = FakeClock()
    with Store(EmbeddedBackend(None), clock=clock, backoff=Backoff(clock=clock, random=Random(1))) as store:
        store.tables.create(table)
        yield store


CONFLICTS = [ConditionFailedError("changed"), TransactionFailedError("changed"), TryAgain()]


@given(st.integers(0, 25), st.integers(1, 25), st.sampled_from(CONFLICTS), st.integers(0, 9))
def test_as_many_conflicts_as_there_are_attempts_are_survived(
    conflicts: int, attempts: int, conflict: Exception, seed: int
) -> None:
    clock = FakeClock()
    store = Store(EmbeddedBackend(None), clock=clock)
    backoff = Backoff(attempts=attempts, first_seconds=0.002, most_seconds=0.2, clock=clock, random=Random(seed))
    reads = list[float]()

    def read() -> int:
        reads.append(clock.monotonic())
        return len(reads)

    def act(state: int) -> int:
        if state <= conflicts:
            raise conflict
        return state

    if conflicts < attempts:
        assert store.retrying(read, act, "count", backoff=backoff) == conflicts + 1
    else:
        with pytest.raises(ConflictError, match=r"^could not count: it kept changing; try again$") as raised:
            store.retrying(read, act, "count", backoff=backoff)
        assert raised.value.__cause__ is conflict
    assert len(reads) == min(conflicts + 1, attempts)
    for number, (earlier, later) in enumerate(pairwise(reads)):
        longest = min(0.2, 0.002 * 2**number)
        assert longest / 2 - 1e-9 <= later - earlier <= longest + 1e-9
    store.close()


def test_the_usual_attempts_last_for_seconds_and_begin_almost_at_once(store: Store) -> None:
    begun, times = store.clock.monotonic(), list[float]()

    def act(state: None) -> None:
        times.append(store.clock.monotonic() - begun)
        raise TryAgain("its trials are being planned")

    with pytest.raises(ConflictError, match="could not extend it: its trials are being planned; try again"):
        store.retrying(lambda: None, act, "extend it")
    assert len(times) == 20
    assert times[1] <= 0.002
    assert 1 < times[-1] < 4


def test_a_state_that_was_read_already_is_not_read_again_before_a_conflict(store: Store) -> None:
    seen = list[str]()

    def act(state: str) -> str:
        seen.append(state)
        if state == "known":
            raise ConditionFailedError("changed")
        return state

    assert store.retrying(lambda: "read", act, "see", first="known") == "read"
    assert seen == ["known", "read"]


@pytest.mark.parametrize(
    "error",
    [
        JobStateError("job 1 has ended"),
        ConflictError("no"),
        ValueError("no"),
        TransactionFailedError("large", (Failure("put", "Task", "put Task", 0, "ValidationError", "Item size", None),)),
    ],
)
def test_what_reading_again_does_not_help_is_raised_at_once(store: Store, error: Exception) -> None:
    calls = list[int]()

    def act(state: int) -> None:
        calls.append(state)
        raise error

    with pytest.raises(type(error)) as raised:
        store.retrying(lambda: 1, act, "write")
    assert raised.value is error
    assert calls == [1]


def test_only_those_conflicts_are_retried_that_the_caller_wants(store: Store) -> None:
    calls = list[int]()

    def act(state: int) -> None:
        calls.append(state)
        if len(calls) == 1:
            raise TryAgain
        raise ConditionFailedError("changed", current="another thing")

    with pytest.raises(ConditionFailedError):
        store.retrying(lambda: 1, act, "write", retry_if=lambda error: getattr(error, "current", None) == "a task")
    assert len(calls) == 2


def test_no_update_of_many_writers_is_lost() -> None:
    with Store(EmbeddedBackend(None)) as store:
        store.tables.create(table)
        store.add(make_task(count=0))

        def count_up() -> None:
            key = Task.key(task_id="1")
            for _ in range(10):
                store.retrying(
                    lambda: store.get(key),
                    lambda task: store.update(key, Task.count.set(task.count + 1), when=Task.count == task.count),
                    "count",
                )

        writers = [threading.Thread(target=count_up) for _ in range(6)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        assert store.get(Task.key(task_id="1")).count == 60
