"""Records on their way to the store: bounded, in order, none lost."""

from __future__ import annotations

import threading

import pytest
from tests.jobs.runs import AwayBackend, make_job

from jobtable.errors import TableNotFound
from jobtable.jobs.report.buffer import RecordBuffer
from jobtable.jobs.report.log_lines import log_line
from jobtable.jobs.stored.entities import JobLog
from jobtable.store import Backoff, Store
from jobtable.testing import FakeClock


@pytest.fixture
def backend() -> AwayBackend:
    return AwayBackend()


@pytest.fixture
def store(backend: AwayBackend) -> Store:
    clock = FakeClock()
    store = Store(backend, clock=clock, backoff=Backoff(attempts=2, clock=clock))
    make_job(store, "j")
    return store


def add(buffer: RecordBuffer, store: Store, message: str) -> None:
    buffer.add(log_line("j", store.clock.now(), "INFO", message))


def messages(store: Store) -> list[str]:
    return [line.message for line in store.query(JobLog.key(job_id="j"))]


def test_a_writer_that_is_faster_than_the_store_waits(backend: AwayBackend, store: Store) -> None:
    buffer = RecordBuffer(store, "j", most_bytes=10_000)
    backend.is_away = True
    is_done = threading.Event()

    def write() -> None:
        for number in range(200):
            add(buffer, store, f"{number}")
        is_done.set()

    writer = threading.Thread(target=write)
    writer.start()
    while backend.transactions < 20 and not is_done.wait(0.001):
        pass
    assert not is_done.is_set()
    assert len(buffer) <= 10
    backend.is_away = False
    writer.join()
    buffer.close()
    assert messages(store) == [f"{number}" for number in range(200)]


def test_a_writer_waits_when_the_store_is_behind_but_not_while_it_is_away(backend: AwayBackend) -> None:
    clock = FakeClock()
    with Store(backend, clock=clock, backoff=Backoff(attempts=1, clock=clock)) as store:
        make_job(store, "j")
        buffer = RecordBuffer(store, "j", most_seconds=2)
        add(buffer, store, "early")
        clock.advance(2.5)
        add(buffer, store, "late")
        assert messages(store) == ["early"]
        backend.is_away = True
        clock.advance(2.5)
        add(buffer, store, "kept")
        clock.advance(2.5)
        before = backend.transactions
        add(buffer, store, "kept as well")
        assert backend.transactions == before
        backend.is_away = False
        buffer.close()
        assert messages(store) == ["early", "late", "kept", "kept as well"]


def test_a_store_that_will_never_take_the_lines_is_no_reason_to_wait(backend: AwayBackend, store: Store) -> None:
    buffer = RecordBuffer(store, "j", most_bytes=3_000)
    backend.is_away, backend.error = True, TableNotFound("there is no table")
    for number in range(3):
        add(buffer, store, f"{number}")
    with pytest.raises(TableNotFound):
        add(buffer, store, "one too many")
    backend.is_away = False
    buffer.close()
    assert messages(store) == ["0", "1", "2"]


def test_threads_of_one_process_lose_nothing_and_keep_their_order(store: Store) -> None:
    buffer = RecordBuffer(store, "j", most_bytes=20_000)

    def write(writer: int) -> None:
        for number in range(100):
            add(buffer, store, f"{writer} {number}")
            if number % 30 == 0:
                buffer.flush()

    writers = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    buffer.close()
    seen = [message.split() for message in messages(store)]
    for number in range(6):
        assert [int(count) for writer, count in seen if writer == str(number)] == list(range(100))
