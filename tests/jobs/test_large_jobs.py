"""Jobs and results that are too large for one transaction together, or for one item."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from tests.jobs.engines import LEASE_SECONDS, check_records, engine
from tests.running import NEVER

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import ValueRefusedError
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import Lease, Outcome
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.stored.entities import JobGates
from jobtable.jobs.stored.field_types import Status
from jobtable.jobs.submit.definition import DependsOn, NewJob, ParentWaits
from jobtable.jobs.submit.preparation import MOST_JOB_BYTES
from jobtable.jobs.tasks import FailTask, StopTask, task
from jobtable.jobs.worker.holding import Conclusions, Heartbeats, Held, WorkerReport
from jobtable.jobs.worker.inline import StopFlag, run_task
from jobtable.store import Store
from jobtable.store.backend import Request, Response
from jobtable.store.sizes import item_size

LARGE = "x" * 300_000


@pytest.fixture
def jobs(each_store: Store) -> Jobs:
    return engine(each_store)


def new(name: str, text: str = "") -> NewJob:
    return NewJob(name=name, task="x:y", params={"text": text})


def claim(jobs: Jobs) -> list[Lease]:
    return jobs.claim("default", limit=30, instance_id="worker-1", lease_seconds=LEASE_SECONDS)


def statuses(jobs: Jobs) -> list[Status]:
    return [job.status for job in jobs.queries.list_jobs()]


class MeasuringBackend:
    """Counts what transactions touch as DynamoDB's documentation has it: by the sizes of the items, new or there."""

    def __init__(self) -> None:
        self._backend = EmbeddedBackend(None)
        self.largest = 0

    def execute(self, operation: str, request: Request) -> Response:
        if operation == "TransactWriteItems":
            actions = (body for action in request["TransactItems"] for body in action.values())
            self.largest = max(self.largest, sum(map(self._size, actions)))
        return self._backend.execute(operation, request)

    def _size(self, action: Request) -> int:
        if "Item" in action:
            return item_size(action["Item"])
        there = self._backend.execute("GetItem", {"TableName": action["TableName"], "Key": action["Key"]})
        values = action.get("ExpressionAttributeValues", {})
        return item_size(there.get("Item", {})) + item_size(values)

    def close(self) -> None:
        self._backend.close()


def test_no_transaction_touches_more_than_the_service_allows() -> None:
    backend = MeasuringBackend()
    with Store(backend) as store:
        jobs = engine(store)
        group = jobs.open_group(NewJob(name="group"))
        text = "x" * 200_000
        jobs.submit_many(
            NewJob(name=str(number), task="x:y", params={"text": text}, parent_job_id=group.job_id)
            for number in range(40)
        )
        leases: list[Lease] = []
        while some := claim(jobs):
            leases += some
        assert len(leases) == 40
        assert jobs.finish_many([(lease, Outcome.completed(text[:150_000])) for lease in leases]) == []
        jobs.seal(group.job_id)
        check_records(jobs)
        jobs.delete(group.job_id, tree=True)
        assert statuses(jobs) == []
    assert backend.largest < 4_000_000


def test_jobs_are_submitted_that_are_too_large_for_one_transaction(jobs: Jobs) -> None:
    jobs.submit_many(new(str(number), LARGE) for number in range(15))
    assert statuses(jobs) == [Status.PENDING] * 15
    check_records(jobs)


def test_jobs_are_submitted_that_wait_for_large_ones_and_no_transaction_touches_too_much() -> None:
    backend = MeasuringBackend()
    with Store(backend) as store:
        jobs = engine(store)
        large = jobs.submit_many(new(str(number), LARGE) for number in range(40))
        on = [DependsOn(job.job_id) for job in large]
        some = [NewJob(name="some", task="x:y", depends_on=tuple(on[n : n + 4])) for n in range(0, 40, 4)]
        child = NewJob(name="child", task="x:y", parent_job_id=large[0].job_id, depends_on=tuple(on[:12]))
        jobs.submit_many([*some, child])
        check_records(jobs)
    assert backend.largest < 4 * 1024 * 1024


def test_a_job_is_refused_that_waits_for_more_than_one_transaction_takes(jobs: Jobs) -> None:
    large = jobs.submit_many(new(str(number), LARGE) for number in range(20))
    before = list(jobs.queries.list_jobs())
    waiting = NewJob(name="waiting", task="x:y", job_id="w", depends_on=tuple(DependsOn(job.job_id) for job in large))
    with pytest.raises(
        ValueRefusedError,
        match=r"6,00\d,\d+ bytes with its parent .*20 jobs.* add some with add",
    ):
        jobs.submit(waiting)
    assert sorted(jobs.queries.list_jobs(), key=str) == sorted(before, key=str)
    jobs.submit(dataclasses.replace(waiting, depends_on=waiting.depends_on[:10]))
    for on in waiting.depends_on[10:]:
        jobs.add_dependency("w", on)
    gates = jobs.store.get(JobGates.key(job_id="w"))
    assert gates.open_starts == 20
    check_records(jobs)


def test_runs_end_whose_results_are_too_large_for_one_transaction(jobs: Jobs) -> None:
    jobs.submit_many(new(str(number)) for number in range(15))
    assert jobs.finish_many([(lease, Outcome.completed(LARGE)) for lease in claim(jobs)]) == []
    assert statuses(jobs) == [Status.COMPLETED] * 15
    check_records(jobs)


def test_a_result_that_does_not_fit_beside_the_params_is_refused_and_fails_its_job(jobs: Jobs) -> None:
    job = jobs.submit(new("job", LARGE))
    (lease,) = claim(jobs)
    with pytest.raises(ValueRefusedError, match=f"the end of job {job.job_id} cannot be stored: Item size"):
        jobs.finish(lease, Outcome.completed(LARGE))
    report = concluded(jobs, lease, Outcome.completed(LARGE))
    ended = jobs.queries.get_job(job.job_id)
    assert (ended.status, report) == (Status.FAILED, WorkerReport(failed=1))
    assert ended.message is not None
    assert ended.message.startswith("could not store its result: ")


def concluded(jobs: Jobs, lease: Lease, outcome: Outcome) -> WorkerReport:
    """What a worker has done that runs a job to this end."""
    heartbeats = Heartbeats(jobs, LEASE_SECONDS, beat_instance=lambda: None, on_failure=lambda error: None)
    conclusions = Conclusions(jobs, heartbeats)
    conclusions.finish_many([(Held(lease, jobs.clock.monotonic() + LEASE_SECONDS, None), outcome)])
    return conclusions.report()


def test_a_job_that_leaves_no_room_for_what_becomes_of_it_is_refused(jobs: Jobs) -> None:
    with pytest.raises(ValueRefusedError, match=r"job 'job' has 378,\d+ bytes, and at most 377,600 .* object storage"):
        jobs.submit(new("job", "x" * MOST_JOB_BYTES))
    jobs.submit(new("job", "x" * (MOST_JOB_BYTES - 1_000)))
    (lease,) = claim(jobs)
    jobs.report(lease, progress=50, message="half of it")
    assert jobs.finish(lease, Outcome.failed("é" * 7_000)).status is Status.FAILED


def test_a_run_of_a_job_without_any_room_is_given_up() -> None:
    with Store(EmbeddedBackend(None)) as store:
        jobs = engine(store)
        submitted = jobs.submit(new("job", "x" * (MOST_JOB_BYTES - 1_000)))
        (lease,) = claim(jobs)
        store.put(jobs.queries.get_job(submitted.job_id).replace(description="x" * 32_000))
        lease = jobs.refresh(lease)
        assert concluded(jobs, lease, Outcome.failed("boom" * 500)) == WorkerReport(lost=1)


@task
def fail_at_length() -> None:
    raise FailTask("é" * 500_000)


@task
def stop_at_length() -> None:
    raise StopTask("é" * 500_000)


@pytest.mark.parametrize(("ends", "status"), [(fail_at_length, Status.FAILED), (stop_at_length, Status.STOPPED)])
def test_a_long_reason_to_end_is_shortened(jobs: Jobs, ends: Callable[[], None], status: Status) -> None:
    jobs.submit(NewJob(name="job", task=ends))
    (lease,) = claim(jobs)
    report = run_task(lease.job.definition, StopFlag(), lambda: JobContext(jobs, lease, flush_seconds=NEVER))
    ended = jobs.finish(lease, report.outcome())
    assert ended.status is status
    assert ended.message is not None
    assert "[... 494,000 characters ...]" in ended.message


def test_a_parent_and_its_child_end_together(jobs: Jobs) -> None:
    group = jobs.open_group(NewJob(name="group"))
    first = jobs.submit(new("first"))

    def child_of(parent_job_id: str, name: str) -> str:
        waits, behind = ParentWaits(), (DependsOn(first.job_id),)
        submitted = NewJob(name=name, task="x:y", parent_job_id=parent_job_id, parent_waits=waits, depends_on=behind)
        return jobs.submit(submitted).job_id

    child_of(child_of(group.job_id, "parent"), "child")
    jobs.seal(group.job_id)
    (lease,) = claim(jobs)
    jobs.finish(lease, Outcome.completed())
    leases = claim(jobs)
    assert len(leases) == 2
    assert jobs.finish_many([(lease, Outcome.completed()) for lease in leases]) == []
    assert statuses(jobs) == [Status.COMPLETED] * 4
    check_records(jobs)


@pytest.mark.parametrize("result", [{"x" * 70_000: 1}, {"\ud800": 1}, {"x": "\ud800"}], ids=["long", "name", "value"])
def test_a_result_with_texts_that_no_item_can_hold_fails_its_job(jobs: Jobs, result: dict[str, Any]) -> None:
    job = jobs.submit(new("job"))
    (lease,) = claim(jobs)
    assert concluded(jobs, lease, Outcome.completed(result)) == WorkerReport(failed=1)
    ended = jobs.queries.get_job(job.job_id)
    assert ended.message is not None
    assert ended.message.startswith("could not store its result: ")
