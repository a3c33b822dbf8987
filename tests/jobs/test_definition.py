"""Definitions: what cannot be run is refused before it is written, and what others wrote spoils nobody's work."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.jobs.engines import LEASE_SECONDS, check_records, engine

from jobtable.app import open_jobs
from jobtable.embedded import EmbeddedBackend
from jobtable.errors import NotFoundError, ValueRefusedError
from jobtable.jobs.definition import NewJob
from jobtable.jobs.engine import Jobs
from jobtable.jobs.entities import Job
from jobtable.jobs.records import Status
from jobtable.jobs.worker import Worker
from jobtable.model import Json
from jobtable.store import Store
from jobtable.testing import FakeClock
from jobtable.web.group_progress import read_group_progress

ADD = "tests.jobs.worker_tasks:add"
FOREIGN: list[Json] = ["yaml: true", {"model": "layoutlm", "retry": 3}, {"task": ["train"]}, ["a", "b"]]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def jobs(clock: FakeClock) -> Jobs:
    return engine(Store(EmbeddedBackend(None)), clock)


def add(jobs: Jobs, config: Json) -> str:
    """Submit a job and let another program write over its definition."""
    job = jobs.submit(NewJob(name="foreign", task=ADD, params={"a": 1, "b": 2}))
    jobs.store.put(job.replace(job_config=config))
    return job.job_id


# --- what is submitted --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("config", [{"retry": 3}, {"timeout_seconds": "abc"}, {"most_interruptions": "x"}])
def test_a_config_with_a_member_of_the_job_itself_is_refused_and_nothing_is_written(
    jobs: Jobs, config: Mapping[str, Any]
) -> None:
    (member,) = config
    with pytest.raises(ValueRefusedError, match=f"cannot hold {member}: write it beside config"):
        jobs.submit(NewJob(name="bad", task=ADD, job_id="bad", config=config))
    with pytest.raises(NotFoundError):
        jobs.queries.get_job("bad")


# --- what others wrote --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("config", FOREIGN)
def test_a_job_that_others_defined_can_be_read_cancelled_retried_and_deleted(jobs: Jobs, config: Json) -> None:
    job_id = add(jobs, config)
    job = jobs.queries.get_job(job_id)
    assert "job_config cannot be" in (job.definition.problem or "")
    assert not job.definition.is_group
    assert read_group_progress(jobs.store, [job]) == {}
    assert jobs.cancel(job_id).status is Status.CANCELLED
    assert jobs.retry(job_id, tree=True).status is Status.PENDING
    jobs.stop(job_id)
    check_records(jobs)
    assert jobs.delete(job_id) > 0


@pytest.mark.parametrize("mode", ["inline", "process"])
def test_a_job_that_others_defined_fails_with_the_reason_and_its_neighbours_finish(mode: Any, tmp_path: Path) -> None:
    opener = partial(open_jobs, f"file:{tmp_path}/jobs.db")
    jobs = opener()
    foreign = [add(jobs, config) for config in FOREIGN]
    neighbour = jobs.submit(NewJob(name="add", task=ADD, params={"a": 1, "b": 2}))
    Worker(opener, ["default"], mode=mode, until_empty=True).run()
    for job_id in foreign:
        job = jobs.queries.get_job(job_id)
        assert job.status is Status.FAILED
        assert "job_config cannot be" in (job.message or "")
    assert jobs.queries.get_job(neighbour.job_id).result == 3
    jobs.store.close()
    jobs.objects.close()


def test_a_job_that_others_defined_fails_when_its_worker_is_lost_and_its_neighbours_are_taken(
    jobs: Jobs, clock: FakeClock
) -> None:
    foreign = [add(jobs, config) for config in FOREIGN]
    neighbour = jobs.submit(NewJob(name="add", task=ADD))
    jobs.claim("default", limit=10, instance_id="worker-1", lease_seconds=LEASE_SECONDS)
    observer = jobs.observer()
    observer.recover()
    clock.advance(LEASE_SECONDS + 1)
    observer.recover()
    failed = [jobs.queries.get_job(job_id) for job_id in foreign]
    assert {job.status for job in failed} == {Status.FAILED}
    assert all("its worker worker-1 was lost; it cannot run: " in (job.message or "") for job in failed)
    assert jobs.queries.get_job(neighbour.job_id).status is Status.INTERRUPTED
    check_records(jobs)


def test_an_item_without_a_definition_is_a_group(jobs: Jobs) -> None:
    assert Job(job_id="1", name="legacy", created_at=jobs.clock.now(), created_by="ada").definition.is_group
