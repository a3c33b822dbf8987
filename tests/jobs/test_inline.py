"""Small jobs in the worker's own process: in batches, with the same results as in processes."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from queue import SimpleQueue

import pytest
from tests.jobs.engines import LEASE_SECONDS, check_records, engine

from jobtable.app import open_jobs
from jobtable.embedded import EmbeddedBackend
from jobtable.errors import Throttled
from jobtable.jobs.engine import Jobs
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.stored.field_types import FINAL, InstanceStatus, Status
from jobtable.jobs.submit.definition import DependsOn, NewJob, ParentWaits
from jobtable.jobs.tasks import task
from jobtable.jobs.worker.holding import Conclusions, Heartbeats, SlotSetup
from jobtable.jobs.worker.inline import InlineSlots
from jobtable.jobs.worker.process_slots import ProcessSlots
from jobtable.jobs.worker.worker import Worker
from jobtable.objects.memory import MemoryObjectStore
from jobtable.store import Store, retries
from jobtable.store.backend import Request, Response
from jobtable.store.retries import Backoff
from jobtable.testing import Faults, FaultyBackend

TASKS = "tests.jobs.worker_tasks"
REPOSITORY = str(Path(__file__).parents[2])
started = threading.Semaphore(0)
may_end = threading.Event()


@task(inline=True)
def wait() -> int:
    """Waits until the test lets it end."""
    started.release()
    may_end.wait()
    return os.getpid()


@task(inline=True)
def tell_when_garbage_is_looked_for() -> int:
    return gc.get_threshold()[0]


@task(inline=True)
def let_end(job: JobContext, verb: str, job_id: str) -> None:
    """Asks another job to end, of which the worker hears at once."""
    getattr(job.jobs, verb)(job_id)
    heartbeats_of[job.jobs].look()


heartbeats_of: dict[Jobs, Heartbeats] = {}


@pytest.fixture
def opener(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Jobs]:
    monkeypatch.syspath_prepend(REPOSITORY)
    return partial(open_jobs, f"file:{tmp_path}/jobs.db")


@pytest.fixture
def jobs(opener: Callable[[], Jobs]) -> Iterator[Jobs]:
    opened = opener()
    yield opened
    opened.store.close()
    opened.objects.close()


def new(name: str, **params: object) -> NewJob:
    return NewJob(name=name, task=f"{TASKS}:{name}", params=params)


@pytest.mark.parametrize("slots", [1, 3])
def test_many_small_jobs(slots: int, opener: Callable[[], Jobs], jobs: Jobs) -> None:
    submitted = jobs.submit_many([new("add", a=number, b=1) for number in range(250)])
    report = Worker(opener, ["default"], slots=slots, mode="inline", until_empty=True).run()
    assert (report.completed, report.runs) == (250, 250)
    assert [jobs.queries.get_job(job.job_id).result for job in submitted] == list(range(1, 251))
    queue = jobs.queries.get_queue("default")
    assert (queue.job_count, queue.running_count) == (0, 0)
    assert len(list(jobs.queries.list_instances_by_status(InstanceStatus.STOPPED))) == 1


def test_failures_contexts_and_jobs_that_need_a_process(opener: Callable[[], Jobs], jobs: Jobs) -> None:
    fails, notes, alone, limited, nowhere = jobs.submit_many(
        [
            new("fail_inline", message="no"),
            new("note", text="told"),
            new("say", text="aloud"),
            NewJob(name="add", task=f"{TASKS}:add", params={"a": 1, "b": 2}, timeout_seconds=600),
            new("missing"),
        ]
    )
    report = Worker(opener, ["default"], mode="inline", until_empty=True).run()
    assert (report.completed, report.failed) == (3, 2)
    failed = jobs.queries.get_job(fails.job_id)
    assert failed.status is Status.FAILED
    assert (failed.message or "").startswith("ValueError: no\n\nTraceback")
    (told,) = jobs.queries.list_logs(fails.job_id)
    assert (told.log_level, told.message) == ("ERROR", "ValueError: no")
    assert "in fail_inline" in (told.exception or "")
    assert [line.message for line in jobs.queries.list_logs(notes.job_id)] == ["told"]
    assert jobs.queries.get_job(alone.job_id).result["pid"] != os.getpid()
    assert jobs.queries.get_job(limited.job_id).result == 3
    assert "has no missing" in (jobs.queries.get_job(nowhere.job_id).message or "")


def test_a_drained_worker_gives_back_what_has_not_begun(opener: Callable[[], Jobs], jobs: Jobs) -> None:
    may_end.clear()
    submitted = jobs.submit_many([NewJob(name="wait", task=f"{__name__}:wait", priority=900 - n) for n in range(3)])
    worker = Worker(opener, ["default"], mode="inline")
    reports = []
    thread = threading.Thread(target=lambda: reports.append(worker.run()))
    thread.start()
    started.acquire()
    worker.drain()
    may_end.set()
    thread.join()
    assert (reports[0].completed, reports[0].released) == (1, 2)
    statuses = [jobs.queries.get_job(job.job_id).status for job in submitted]
    assert statuses == [Status.COMPLETED, Status.INTERRUPTED, Status.INTERRUPTED]


@pytest.mark.parametrize("seed", range(2))
def test_a_worker_outlives_a_store_that_fails(seed: int, jobs: Jobs, tmp_path: Path) -> None:
    group = jobs.open_group(NewJob(name="group"))
    add = partial(NewJob, name="add", task=f"{TASKS}:add", most_interruptions=50)
    children = partial(add, parent_job_id=group.job_id, parent_waits=ParentWaits())
    submitted = jobs.submit_many([children(params={"a": number, "b": 0}) for number in range(60)])
    jobs.seal(group.job_id)
    last = jobs.submit(add(params={"a": 60, "b": 0}, depends_on=(DependsOn(group.job_id),)))
    faults = Faults(throttled=0.1, unavailable=0.05, conflict=0.1, unprocessed=0.1, lost_response=0.1, index_lag=0.5)
    # An index that never caught up would hide the last job from a worker that ends when its queue looks empty.
    real = EmbeddedBackend(tmp_path / "jobs.db")
    backend = FaultyBackend(real, faults, seed=seed, lagging=30, lagging_seconds=0.5)

    def open_badly() -> Jobs:
        return Jobs(Store(backend, backoff=Backoff(attempts=2, first_seconds=0.001)), MemoryObjectStore())

    with closing(backend):
        report = Worker(open_badly, ["default"], mode="inline", lease_seconds=1.5, until_empty=True).run()
    assert [jobs.queries.get_job(job.job_id).result for job in (*submitted, last)] == list(range(61))
    assert report.failed == 0
    assert sum(backend.injected.values()) > 10
    for job in (*submitted, last):
        finals = [line.status for line in jobs.queries.list_statuses(job.job_id) if line.status in FINAL]
        assert finals == [Status.COMPLETED]


class WithoutLogs(EmbeddedBackend):
    """Takes no log lines."""

    def execute(self, operation: str, request: Request) -> Response:
        if operation == "TransactWriteItems" and "LOG#" in str(request):
            raise Throttled("too many requests")
        return super().execute(operation, request)


def test_a_job_has_ended_whose_last_lines_cannot_be_stored(
    jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retries, "_PATIENCE_SECONDS", 0.5)
    notes, small = jobs.submit_many([new("note", text="told"), new("add", a=1, b=2)])

    def open_without_logs() -> Jobs:
        store = Store(WithoutLogs(tmp_path / "jobs.db"), backoff=Backoff(attempts=1))
        return Jobs(store, MemoryObjectStore())

    report = Worker(open_without_logs, ["default"], mode="inline", until_empty=True).run()
    assert report.completed == 2
    ended = jobs.queries.get_job(notes.job_id)
    assert (ended.status, ended.result) == (Status.COMPLETED, "told")
    assert "could not store 1 log lines and metrics" in (ended.message or "")
    assert jobs.queries.get_job(small.job_id).result == 3


@pytest.mark.parametrize(("before", "meanwhile"), [(700, 5000), (9000, 9000), (0, 0)])
def test_garbage_is_looked_for_less_often_while_a_worker_runs(
    before: int, meanwhile: int, opener: Callable[[], Jobs], jobs: Jobs
) -> None:
    job = jobs.submit(NewJob(name="tell", task=f"{__name__}:tell_when_garbage_is_looked_for"))
    usual = gc.get_threshold()
    gc.set_threshold(before, *usual[1:])
    try:
        Worker(opener, ["default"], mode="inline", until_empty=True).run()
        assert gc.get_threshold()[0] == before
    finally:
        gc.set_threshold(*usual)
    assert jobs.queries.get_job(job.job_id).result == meanwhile


@pytest.mark.parametrize(("verb", "status"), [("cancel", Status.CANCELLED), ("stop", Status.STOPPED)])
def test_a_job_of_a_batch_does_not_begin_that_was_asked_to_end_meanwhile(verb: str, status: Status) -> None:
    with Store(EmbeddedBackend(None)) as store:
        jobs = engine(store)
        second = NewJob(name="second", task=f"{TASKS}:no_such_task", job_id="second")
        first = NewJob(
            name="first", task=f"{__name__}:let_end", params={"verb": verb, "job_id": "second"}, priority=900
        )
        jobs.submit_many([first, second])
        heartbeats = Heartbeats(jobs, LEASE_SECONDS, beat_instance=lambda: None, on_failure=lambda error: None)
        heartbeats_of[jobs] = heartbeats
        freed: SimpleQueue[BaseException | None] = SimpleQueue()
        conclusions = Conclusions(jobs, heartbeats)
        setup = SlotSetup(1, jobs, heartbeats, conclusions, freed.put)
        slots = InlineSlots(setup, open_processes=_no_processes, is_draining=lambda: False)
        leases = jobs.claim("default", limit=2, instance_id="worker-1", lease_seconds=LEASE_SECONDS)
        slots.start(leases, jobs.clock.monotonic())
        assert freed.get() is None
        del heartbeats_of[jobs]
        ended = jobs.queries.get_job("second")
        assert (ended.status, ended.message) == (status, "it was asked to end before it started")
        check_records(jobs)


def _no_processes() -> ProcessSlots:
    raise AssertionError("no job of the batch needs a process")
