"""Records on their way to the store: timed, flushed, bounded, in order, none lost."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.jobs.runs import AwayBackend, make_job

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import BackendUnavailable, ConflictError, TableNotFound
from jobtable.jobs.report.buffer import Flusher, RecordBuffer, Timeline, times_from
from jobtable.jobs.report.log_lines import log_line
from jobtable.jobs.stored.entities import JobLog, JobTimeline
from jobtable.store import Backoff, Store
from jobtable.store.backend import Backend, Request, Response
from jobtable.testing import FakeClock

NOON = datetime(2025, 6, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
moments = st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC))


def line(moment: datetime, message: str) -> JobLog:
    return JobLog(job_id="j", timestamp=moment, message=message)


def messages(store: Store) -> list[str]:
    return [each.message for each in store.query(JobLog.key(job_id="j"))]


@given(st.none() | moments, st.lists(moments, min_size=1))
def test_times_are_free_in_order_and_as_near_as_can_be(
    free_from: datetime | None, given_moments: list[datetime]
) -> None:
    times = times_from(free_from, given_moments)
    assert all(earlier < later for earlier, later in pairwise(times))
    assert free_from is None or times[0] >= free_from
    bound = free_from
    for moment, time in zip(given_moments, times, strict=True):
        assert time == (moment if bound is None else max(moment, bound))
        bound = time + timedelta(microseconds=1)


@settings(max_examples=25)
@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from([-DAY, timedelta(), DAY]), st.integers(1, 3))))
def test_whatever_clocks_do_nothing_is_lost_and_order_is_the_order_of_writing(
    writes: list[tuple[int, timedelta, int]],
) -> None:
    with Store(EmbeddedBackend(None)) as store:
        make_job(store, "j")
        writers = [Timeline(store, "j") for _ in range(3)]
        written: list[str] = []
        for writer, jump, count in writes:
            texts = [f"{len(written) + number}" for number in range(count)]
            writers[writer].write([line(NOON + jump, text) for text in texts])
            written += texts
            assert messages(store) == written


def test_two_writers_with_one_frozen_clock(each_store: Store) -> None:
    make_job(each_store, "j")
    one, other = Timeline(each_store, "j"), Timeline(each_store, "j")
    for number in range(5):
        one.write([line(NOON, f"one {number}"), line(NOON, f"one {number} again")])
        other.write([line(NOON, f"other {number}")])
    assert messages(each_store) == [
        text for number in range(5) for text in (f"one {number}", f"one {number} again", f"other {number}")
    ]
    assert each_store.get(JobTimeline.key(job_id="j")).reserved_until == NOON + timedelta(microseconds=15)


def test_a_lone_writer_keeps_its_own_times_and_reads_the_timeline_once() -> None:
    with Store(EmbeddedBackend(None)) as store:
        make_job(store, "j")
        timeline = Timeline(store, "j")
        clock = FakeClock(NOON)
        with store.capacity.measure() as spent:
            for _ in range(10):
                timeline.write([line(clock.now(), "x")])
                clock.advance(1)
        assert spent["JobTimeline.key"].calls == 1
        assert [each.timestamp.microsecond for each in store.query(JobLog.key(job_id="j"))] == [0] * 10


class Silent(EmbeddedBackend):
    """Does what it is told, and does not say so."""

    is_silent = False

    def execute(self, operation: str, request: Request) -> Response:
        response = super().execute(operation, request)
        if self.is_silent and operation == "TransactWriteItems":
            raise BackendUnavailable("the answer was lost")
        return response


@pytest.mark.parametrize("minutes", [0, 11], ids=["at once", "when its token is forgotten"])
def test_what_was_stored_without_an_answer_is_not_stored_again(minutes: int) -> None:
    clock = FakeClock()
    backend = Silent(None, clock=clock)
    with Store(backend, backoff=Backoff(attempts=2, clock=clock)) as store:
        make_job(store, "j")
        timeline = Timeline(store, "j")
        records = [line(NOON, "once")]
        backend.is_silent = True
        with pytest.raises(BackendUnavailable):
            timeline.write(records)
        backend.is_silent = False
        clock.advance(60 * minutes)
        timeline.write(records)
        timeline.write([line(NOON, "then")])
        assert messages(store) == ["once", "then"]


class Moving:
    """Another writer moves the timeline before each transaction."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.other: Timeline | None = None

    def execute(self, operation: str, request: Request) -> Response:
        if operation == "TransactWriteItems" and self.other is not None:
            other, self.other = self.other, None
            other.write([line(NOON, "other")])
            self.other = other
        return self._backend.execute(operation, request)

    def close(self) -> None:
        self._backend.close()


def test_a_writer_that_is_always_too_late_says_so_in_the_end() -> None:
    clock = FakeClock()
    backend = Moving(EmbeddedBackend(None))
    with Store(backend, clock=clock) as store:
        make_job(store, "j")
        backend.other = Timeline(store, "j")
        with pytest.raises(ConflictError, match="could not write the records of job j: it kept changing; try again"):
            Timeline(store, "j").write([line(NOON, "mine")])
        backend.other = None
        assert "mine" not in messages(store)


def test_a_failing_flush_is_tried_again_and_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    outcomes = iter([OSError("away"), OSError("away"), None, OSError("away again")])
    turn = threading.Semaphore(0)

    def flush() -> None:
        outcome = next(outcomes)
        turn.release()
        if outcome is not None:
            raise outcome

    flusher = Flusher(flush, 3600, "log of job 1")
    for _ in range(4):
        flusher.wake()
        turn.acquire()
    flusher.close()
    assert [record.getMessage() for record in caplog.records] == [
        "could not store the log of job 1; will retry: away",
        "could not store the log of job 1; will retry: away again",
    ]


def test_closing_while_it_is_woken_ends_it_at_once() -> None:
    for _ in range(50):
        flusher = Flusher(lambda: None, 3600, "log")
        flusher.wake()
        flusher.close()
        assert not flusher.is_current


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
