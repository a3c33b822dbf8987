"""The times of a job's records: unique and in the order of writing, whatever the clocks do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.jobs.runs import make_job

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import BackendUnavailable, ConflictError
from jobtable.jobs.report.buffer import Timeline, times_from
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
