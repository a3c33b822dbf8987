"""Reading logs: the tail, lines by level and time, and following a job while it runs."""

from __future__ import annotations

import threading
from datetime import timedelta
from itertools import islice

import pytest
from tests.jobs.runs import Run, run_in_memory, run_on

from jobtable.clock import SYSTEM_CLOCK
from jobtable.embedded import EmbeddedBackend
from jobtable.errors import NotFoundError, ValueRefusedError
from jobtable.jobs.engine import Jobs
from jobtable.jobs.read.logs import JobLogs
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.stored.entities import JobLog
from jobtable.store import Store
from jobtable.testing import FakeClock

NEVER = 3600.0
MANY = 20_000


@pytest.fixture
def run(each_store: Store) -> Run:
    return run_on(each_store)


def log(run: Run, *messages: str, level: str = "INFO") -> None:
    with JobContext(run.jobs, run.lease, flush_seconds=NEVER) as context:
        for message in messages:
            context.log(message, level)


def texts(lines: list[JobLog]) -> list[str]:
    return [line.message for line in lines]


def test_the_tail_and_lines_by_level_and_time(run: Run) -> None:
    log(run, "a", "b")
    log(run, "bad", level="ERROR")
    log(run, "c", level="DEBUG")
    assert texts(run.logs.tail(run.job_id, 2)) == ["bad", "c"]
    assert texts(run.logs.tail(run.job_id, 2, level="info")) == ["b", "bad"]
    assert texts(list(run.logs.lines(run.job_id, level="WARNING"))) == ["bad"]
    (second,) = run.logs.tail(run.job_id, 3)[:1]
    assert texts(list(run.logs.lines(run.job_id, since=second.timestamp))) == ["bad", "c"]
    with pytest.raises(ValueRefusedError, match="unknown log level"):
        run.logs.tail(run.job_id, level="LOUD")


class Scripted(FakeClock):
    """Something happens in each pause."""

    def __init__(self, *steps: object) -> None:
        super().__init__()
        self.steps = list(steps)

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        step = self.steps.pop(0)
        if callable(step):
            step()


def test_following_gives_every_line_once_and_ends_with_the_job(run: Run) -> None:
    log(run, "first", "second")

    def end() -> None:
        log(run, "last")
        run.finish()

    clock = Scripted(lambda: log(run, "third"), None, lambda: log(run, "fourth"), end)
    logs = JobLogs(run.jobs.store, run.jobs.objects, clock=clock)
    assert texts(list(logs.follow(run.job_id))) == ["first", "second", "third", "fourth", "last"]
    assert clock.steps == []
    assert texts(list(logs.follow(run.job_id, tail=2))) == ["fourth", "last"]
    assert list(logs.follow(run.job_id, tail=0)) == []
    assert list(logs.follow(run.job_id, level="ERROR")) == []


def test_following_goes_on_through_another_attempt() -> None:
    run = run_in_memory()
    log(run, "first attempt")
    second = Run(run.jobs, run.lose(), run.clock)
    clock = Scripted(lambda: log(second, "second attempt"), second.finish)
    logs = JobLogs(run.jobs.store, run.jobs.objects, clock=clock)
    assert texts(list(logs.follow(run.job_id))) == ["first attempt", "second attempt"]


def test_a_job_that_is_not_there_cannot_be_followed() -> None:
    run = run_in_memory()
    with pytest.raises(NotFoundError):
        next(run.logs.follow("nobody"))


def test_a_follower_misses_no_line_of_several_writers() -> None:
    """Writers that store at the same time, and a reader that is always behind the last line that it has seen."""
    with Store(EmbeddedBackend(None)) as store:
        run = run_on(store)
        jobs = Jobs(store, run.jobs.objects, clock=SYSTEM_CLOCK)

        def write(writer: int) -> None:
            with JobContext(run.jobs, run.lease, flush_seconds=NEVER) as context:
                for number in range(60):
                    context.log(f"{writer} {number}")
                    if number % 3 == 0:
                        context.flush()

        writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]

        def end() -> None:
            for writer in writers:
                writer.join()
            run.finish()

        followed = JobLogs(store, jobs.objects, clock=SYSTEM_CLOCK).follow(run.job_id, poll_seconds=0.001)
        for thread in (*writers, ending := threading.Thread(target=end)):
            thread.start()
        seen = texts(list(followed))
        ending.join()
        assert sorted(seen) == sorted(f"{writer} {number}" for writer in range(4) for number in range(60))
        assert seen == run.messages()


@pytest.fixture(scope="module")
def long_run() -> Run:
    run = run_in_memory()
    with JobContext(run.jobs, run.lease, flush_seconds=0.1) as context:
        for number in range(MANY):
            context.log(f"line {number}")
    return run


def test_a_long_log_is_complete(long_run: Run) -> None:
    seen = (line.message for line in long_run.logs.lines(long_run.job_id))
    assert all(message == f"line {number}" for number, message in enumerate(seen))
    assert long_run.jobs.store.count(JobLog.key(job_id=long_run.job_id)) == MANY


def test_the_tail_of_a_long_log_costs_what_it_shows(long_run: Run) -> None:
    with long_run.jobs.store.capacity.measure() as spent:
        tail = long_run.logs.tail(long_run.job_id, 100)
    assert texts(tail) == [f"line {number}" for number in range(MANY - 100, MANY)]
    assert sum(units.read for units in spent.values()) <= 8


def test_lines_behind_a_time_in_a_long_log_are_found_directly(long_run: Run) -> None:
    last = long_run.logs.tail(long_run.job_id, 5)[0].timestamp
    with long_run.jobs.store.capacity.measure() as spent:
        found = list(long_run.logs.lines(long_run.job_id, since=last - timedelta(microseconds=1)))
    assert len(found) == 5
    assert sum(units.read for units in spent.values()) <= 1


def test_a_step_of_following_a_long_log_reads_no_line_again(long_run: Run) -> None:
    followed = long_run.logs.follow(long_run.job_id, tail=10)
    assert texts(list(islice(followed, 10)))[-1] == f"line {MANY - 1}"
    with long_run.jobs.store.capacity.measure() as spent:
        log(long_run, "one more")
        assert next(followed).message == "one more"
    assert spent["JobLog.key"].calls == 1
    assert spent["JobLog.key"].read <= 1
