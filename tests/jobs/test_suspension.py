"""Jobs whose tasks suspend themselves: they hold no worker, and start again when they are due or woken."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Literal

import pytest
from tests.jobs.engines import LEASE_SECONDS, DisturbedBackend, check_records, engine

from jobtable import open_jobs
from jobtable.embedded import EmbeddedBackend
from jobtable.jobs import JobContext, SuspendTask, Worker, task
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import Lease, Outcome
from jobtable.jobs.read.waiting import WaitKind
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.stored.field_types import Status
from jobtable.jobs.submit.definition import NewJob
from jobtable.store import Store
from jobtable.testing import FakeClock


@pytest.fixture
def backend() -> DisturbedBackend:
    return DisturbedBackend(EmbeddedBackend(None, durability="normal"))


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def jobs(backend: DisturbedBackend, clock: FakeClock) -> Jobs:
    return engine(Store(backend, clock=clock), clock)


def claim(jobs: Jobs) -> list[Lease]:
    return jobs.claim("default", limit=1, instance_id="worker-1", lease_seconds=LEASE_SECONDS)


def suspend(jobs: Jobs, lease: Lease, seconds: float | None = None) -> Job:
    until = None if seconds is None else jobs.clock.now() + timedelta(seconds=seconds)
    return jobs.finish(lease, Outcome.suspended(until, "waits for an answer"))


def test_a_suspended_job_holds_no_worker_and_starts_when_woken(jobs: Jobs) -> None:
    jobs.submit(NewJob(name="job", job_id="a", task="x:y"))
    (lease,) = claim(jobs)
    job = suspend(jobs, lease)
    assert (job.status, job.message, job.attempts, job.instance_id) == (Status.PENDING, "waits for an answer", 0, None)
    waiting = jobs.why_waiting(job)
    assert waiting is not None
    assert WaitKind.SUSPENDED in {reason.kind for reason in waiting.reasons}
    assert claim(jobs) == []
    jobs.wake("a")
    jobs.wake("a")
    (again,) = claim(jobs)
    assert again.job.attempts == 1
    jobs.finish(again, Outcome.completed(7))
    jobs.wake("a")
    assert jobs.queries.get_job("a").result == 7
    check_records(jobs)


def test_a_suspended_job_starts_when_it_is_due(jobs: Jobs, clock: FakeClock) -> None:
    jobs.submit(NewJob(name="job", job_id="a", task="x:y"))
    suspend(jobs, claim(jobs)[0], 60)
    jobs.promote_due("default")
    assert claim(jobs) == []
    clock.advance(61)
    jobs.promote_due("default")
    assert [lease.job.job_id for lease in claim(jobs)] == ["a"]
    check_records(jobs)


def test_a_job_woken_during_its_run_starts_again_at_once(jobs: Jobs) -> None:
    jobs.submit(NewJob(name="job", job_id="a", task="x:y"))
    (lease,) = claim(jobs)
    jobs.wake("a")
    suspend(jobs, lease, 3600)
    (again,) = claim(jobs)
    assert again.job.woken is None
    suspend(jobs, again)
    assert claim(jobs) == []
    check_records(jobs)


def test_a_job_woken_while_it_is_being_suspended_starts_again(jobs: Jobs, backend: DisturbedBackend) -> None:
    jobs.submit(NewJob(name="job", job_id="a", task="x:y"))
    (lease,) = claim(jobs)
    backend.disturb(lambda: jobs.wake("a"))
    suspend(jobs, lease)
    assert [each.job.job_id for each in claim(jobs)] == ["a"]
    check_records(jobs)


def test_a_suspended_job_can_be_cancelled(jobs: Jobs) -> None:
    jobs.submit(NewJob(name="job", job_id="a", task="x:y"))
    suspend(jobs, claim(jobs)[0])
    assert jobs.cancel("a").status is Status.CANCELLED
    jobs.wake("a")
    assert claim(jobs) == []
    check_records(jobs)


@task(inline=True)
def wait_once(job: JobContext) -> int:
    """Suspend itself in its first run."""
    if job.epoch == 1:
        raise SuspendTask(datetime.now(UTC), "not yet")
    return job.epoch


@pytest.mark.parametrize("mode", ["inline", "process"])
def test_a_task_suspends_its_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: Literal["inline", "process"]
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    opener = partial(open_jobs, f"file:{tmp_path}/jobs.db")
    with opener() as jobs:
        jobs.submit(NewJob(name="job", job_id="a", task=wait_once))
        Worker(opener, ["default"], until_empty=True, mode=mode).run()
        job = jobs.queries.get_job("a")
        assert (job.result, job.attempts) == (2, 1)
