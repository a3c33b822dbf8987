"""Definitions: what cannot be run is refused before it is written, and what others wrote spoils nobody's work."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from tests.jobs.engines import LEASE_SECONDS, check_records, engine

from jobtable.app import open_jobs
from jobtable.embedded import EmbeddedBackend
from jobtable.errors import AlreadyExistsError, NotFoundError, ValueRefusedError
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import Outcome
from jobtable.jobs.read.progress import read_group_progress
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.stored.field_types import Status
from jobtable.jobs.submit.definition import NewJob, RetryPolicy
from jobtable.jobs.worker.worker import Worker
from jobtable.model import Json
from jobtable.store import Store
from jobtable.testing import FakeClock

ADD = "tests.jobs.worker_tasks:add"
FOREIGN: list[Json] = ["yaml: true", {"model": "layoutlm", "retry": 3}, {"task": ["train"]}, ["a", "b"]]


@pytest.fixture
def jobs(clock: FakeClock) -> Jobs:
    return engine(Store(EmbeddedBackend(None)), clock)


def add(jobs: Jobs, config: Json, max_attempts: int = 1) -> str:
    """Submit a job and let another program write over its definition."""
    job = jobs.submit(NewJob(name="foreign", task=ADD, params={"a": 1, "b": 2}, max_attempts=max_attempts))
    jobs.store.put(job.replace(job_config=config))
    return job.job_id


# --- what is submitted --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", ["train", ":train", "training:", ""])
def test_a_task_that_can_be_none_is_refused_and_nothing_is_written(jobs: Jobs, task: str) -> None:
    with pytest.raises(ValueRefusedError, match=f"the task of job 'bad' is '{task}'; write module:function"):
        jobs.submit(NewJob(name="bad", task=task, job_id="bad"))
    with pytest.raises(NotFoundError):
        jobs.queries.get_job("bad")


@pytest.mark.parametrize("config", [{"retry": 3}, {"timeout_seconds": "abc"}, {"most_interruptions": "x"}])
def test_a_config_with_a_member_of_the_job_itself_is_refused_and_nothing_is_written(
    jobs: Jobs, config: Mapping[str, Any]
) -> None:
    (member,) = config
    with pytest.raises(ValueRefusedError, match=f"cannot contain {member}; pass it to NewJob directly"):
        jobs.submit(NewJob(name="bad", task=ADD, job_id="bad", config=config))
    with pytest.raises(NotFoundError):
        jobs.queries.get_job("bad")


def test_a_job_without_a_task_is_refused_and_a_group_with_one(jobs: Jobs) -> None:
    with pytest.raises(ValueRefusedError, match="job 'idle' has no task; name one"):
        jobs.submit_many([NewJob(name="busy", task=ADD), NewJob(name="idle")])
    assert list(jobs.queries.list_jobs()) == []
    with pytest.raises(ValueRefusedError, match="group 'group' cannot have a task"):
        jobs.open_group(NewJob(name="group", task=ADD))


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("priority", 5000),
        ("max_attempts", 0),
        ("timeout_seconds", -1),
        ("timeout_seconds", float("nan")),
        ("memory_mb", float("inf")),
        ("estimated_duration", -3),
        ("params", [1]),
        ("params", "abc"),
        ("not_before", 5),
        ("queue", ""),
    ],
)
def test_a_member_that_no_job_can_have_is_refused_in_one_line(jobs: Jobs, member: str, value: Any) -> None:
    with pytest.raises(ValueRefusedError, match=f"^the {member} of job 'bad' cannot be .+: .+$") as refused:
        jobs.submit(NewJob(name="bad", task=ADD, **{member: value}))
    assert "\n" not in str(refused.value)
    assert list(jobs.queries.list_jobs()) == []


@pytest.mark.parametrize(
    ("members", "place"),
    [
        ({"params": {"x": float("nan")}}, "params.x"),
        ({"params": {"x": [1, {"y": float("-inf")}]}}, "params.x.1.y"),
        ({"config": {"seed": float("inf")}}, "seed"),
    ],
)
def test_what_is_no_finite_number_is_refused_and_does_not_become_nothing(
    jobs: Jobs, members: dict[str, Any], place: str
) -> None:
    with pytest.raises(ValueRefusedError, match=f"the {place} of job 'bad' must be a finite number"):
        jobs.submit(NewJob(name="bad", task=ADD, **members))
    assert list(jobs.queries.list_jobs()) == []


def test_what_a_job_waits_for_is_written_as_an_edge(jobs: Jobs) -> None:
    first = jobs.submit(NewJob(name="first", task=ADD))
    edges: Any = (first.job_id,)
    with pytest.raises(ValueRefusedError, match=rf"'bad' cannot wait for '{first.job_id}'; .*DependsOn\(job_id\)"):
        NewJob(name="bad", task=ADD, depends_on=edges)


@pytest.mark.parametrize(
    ("given", "several"),
    [({"name": "a"}, ""), ("m:f", ""), ([NewJob(name="a", task=ADD)], "; submit_many takes several")],
    ids=["dict", "text", "list"],
)
def test_what_is_no_job_to_submit_is_refused_in_words(jobs: Jobs, given: Any, several: str) -> None:
    for submit in (jobs.submit, jobs.open_group, lambda each: jobs.submit_many([each])):
        with pytest.raises(TypeError) as refused:
            submit(given)
        assert str(refused.value).endswith(f" cannot be submitted; write NewJob(name=..., task=...){several}")


def test_a_retry_policy_is_asked_for_by_its_name(jobs: Jobs) -> None:
    retry: Any = 3
    with pytest.raises(ValueRefusedError, match=r"the retry of job 'a' cannot be 3: input should be .* RetryPolicy"):
        jobs.submit(NewJob(name="a", task=ADD, retry=retry))


def test_a_whole_job_in_the_place_of_its_id_is_refused_in_words(jobs: Jobs) -> None:
    job: Any = jobs.submit(NewJob(name="a", task=ADD))
    with pytest.raises(ValueRefusedError, match=r"^Job.job_id: got a whole Job; write .job_id$"):
        jobs.cancel(job)


def test_a_queue_that_is_there_is_not_made_again(jobs: Jobs) -> None:
    jobs.create_queue("gpu", max_concurrent_jobs=2)
    with pytest.raises(AlreadyExistsError, match=r"^queue gpu already exists; change_queue\(\.\.\.\), or"):
        jobs.create_queue("gpu", max_concurrent_jobs=3)


def test_an_empty_key_is_refused(jobs: Jobs) -> None:
    with pytest.raises(ValueRefusedError, match="the key of job 'bad' is empty"):
        jobs.submit(NewJob(name="bad", task=ADD, key=""))


HOLDS_ITSELF: list[Any] = []
HOLDS_ITSELF.append(HOLDS_ITSELF)


@pytest.mark.parametrize(
    "value", [object(), HOLDS_ITSELF, json.loads("[" * 300 + "]" * 300)], ids=["object", "circle", "deep"]
)
def test_params_that_json_cannot_say_are_refused(jobs: Jobs, value: Any) -> None:
    with pytest.raises(ValueRefusedError, match=r"job 'bad' cannot be stored: .* params must be JSON"):
        jobs.submit(NewJob(name="bad", task=ADD, params={"x": value}))


@pytest.mark.parametrize("params", [{"x": "\ud800"}, {"x\ud800": 1}, {"x": {"\ud800": 1}}])
def test_params_that_are_not_valid_unicode_are_refused(jobs: Jobs, params: dict[str, Any]) -> None:
    with pytest.raises(ValueRefusedError, match=r"job 'bad' (cannot be stored|contains text that is not)"):
        jobs.submit(NewJob(name="bad", task=ADD, params=params))


@pytest.mark.parametrize(("member", "value"), [("max_concurrent_jobs", 0), ("priority", 5000)])
def test_a_setting_that_no_queue_can_have_is_refused(jobs: Jobs, member: str, value: Any) -> None:
    with pytest.raises(ValueRefusedError, match=f"the {member} of queue 'gpu' cannot be {value}"):
        jobs.create_queue("gpu", **{member: value})


@pytest.mark.parametrize("member", ["first_delay_seconds", "factor", "longest_delay_seconds"])
@pytest.mark.parametrize("value", [1e10, float("inf"), float("nan"), 10**400])
def test_a_retry_beyond_the_calendar_is_refused(member: str, value: float) -> None:
    with pytest.raises(ValidationError, match=member):
        RetryPolicy(**{member: value})


def test_a_delay_grows_up_to_its_limit_however_large_its_factor_is() -> None:
    steep = RetryPolicy(first_delay_seconds=2, factor=10**9, longest_delay_seconds=10**9)
    assert [steep.delay_seconds(attempts) for attempts in (1, 2, 3, 10**6)] == [2, 10**9, 10**9, 10**9]
    usual = RetryPolicy()
    assert [usual.delay_seconds(attempts) for attempts in (1, 2, 3, 9, 10)] == [1, 2, 4, 256, 300]


def test_a_stored_retry_beyond_the_calendar_does_not_hold_up_its_worker(jobs: Jobs) -> None:
    retry = {"first_delay_seconds": 1e15, "longest_delay_seconds": 1e15}
    job_id = add(jobs, {"task": ADD, "retry": retry}, max_attempts=3)
    (lease,) = jobs.claim("default", limit=1, instance_id="worker-1", lease_seconds=LEASE_SECONDS)
    jobs.finish(lease, Outcome.failed("boom"))
    assert jobs.queries.get_job(job_id).status is Status.PENDING
    check_records(jobs)


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
def test_a_job_that_others_defined_fails_with_the_reason_and_its_neighbours_finish(
    mode: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
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


def test_a_job_with_an_id_is_the_same_otherwise() -> None:
    new = NewJob(name="a", task="m:f", params={"x": 1}, tags=frozenset({"t"}), priority=7)
    assert new.with_id("1") == replace(new, job_id="1")
    assert new.job_id is None
