"""Why jobs wait, on both backends: every reason, alone and together, and that no long queue is read for it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.jobs.engines import LEASE_SECONDS, engine

from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import Lease, Outcome
from jobtable.jobs.read import waiting
from jobtable.jobs.read.waiting import MOST_LISTED, Waiting, WaitKind
from jobtable.jobs.stored.entities import Instance, Job
from jobtable.jobs.stored.field_types import InstanceStatus, Status
from jobtable.jobs.submit.definition import DependsOn, EdgeCondition, NewJob, ParentWaits, RetryPolicy
from jobtable.store import Store
from jobtable.testing import FakeClock


@pytest.fixture
def jobs(each_store: Store, clock: FakeClock) -> Jobs:
    made = engine(each_store, clock)
    serve(made, "worker-1", "default")
    return made


def serve(jobs: Jobs, instance_id: str, *queues: str, status: InstanceStatus = InstanceStatus.RUNNING) -> None:
    at = jobs.clock.now()
    jobs.instances.register(
        Instance(instance_id=instance_id, instance_type="p3", status=status, launched_at=at, queues=list(queues))
    )


def new(name: str, **more: object) -> NewJob:
    return NewJob(name=name, task="m:f", **more)  # type: ignore[arg-type]  # checked by NewJob


def claim(jobs: Jobs, queue: str = "default") -> Lease:
    (lease,) = jobs.claim(queue, limit=1, instance_id="worker-1", lease_seconds=LEASE_SECONDS)
    return lease


def why(jobs: Jobs, job: Job) -> Waiting:
    told = jobs.why_waiting(jobs.queries.get_job(job.job_id))
    assert told is not None
    return told


def kinds(jobs: Jobs, job: Job) -> list[WaitKind]:
    return [reason.kind for reason in why(jobs, job).reasons]


def test_a_job_that_is_next_waits_for_nothing_and_others_are_behind_it(jobs: Jobs) -> None:
    low, first, second = (jobs.submit(new(name, priority=p)) for name, p in (("low", 1), ("a", 500), ("b", 500)))
    told = why(jobs, first)
    assert [(reason.kind, reason.text) for reason in told.reasons] == [
        (WaitKind.NEXT, "It is next in the queue default.")
    ]
    assert (told.ahead, why(jobs, second).ahead, why(jobs, low).ahead) == (0, 1, 2)
    assert [reason.text for reason in why(jobs, low).reasons] == ["It is behind 2 jobs of the queue default."]


def test_a_job_that_works_or_has_ended_does_not_wait(jobs: Jobs) -> None:
    job = jobs.submit(new("a"))
    lease = claim(jobs)
    assert jobs.why_waiting(jobs.queries.get_job(job.job_id)) is None
    jobs.finish(lease, Outcome.completed())
    assert jobs.why_waiting(jobs.queries.get_job(job.job_id)) is None


def test_dependencies_are_named_with_their_status_until_they_are_met(jobs: Jobs) -> None:
    running, waiting = jobs.submit(new("prepare", priority=900)), jobs.submit(new("review"))
    lease = claim(jobs)
    edges = (DependsOn(running.job_id), DependsOn(waiting.job_id, condition=EdgeCondition.FINISHED, type="follows"))
    job = jobs.submit(new("train", depends_on=edges))
    told = why(jobs, job)
    assert [reason.text for reason in told.reasons] == ["Its start waits for 2 jobs."]
    assert told.ahead is None
    assert {(each.name, each.status, each.condition, each.type, each.gate) for each in told.dependencies} == {
        ("prepare", Status.RUNNING, "completed", "requires", "start"),
        ("review", Status.PENDING, "finished", "follows", "start"),
    }
    jobs.finish(lease, Outcome.completed())
    told = why(jobs, job)
    assert ([each.name for each in told.dependencies], told.dependency_count) == (["review"], 1)


def test_a_time_is_told_also_when_it_is_over_and_nobody_has_looked(jobs: Jobs, clock: FakeClock) -> None:
    due = clock.now() + timedelta(minutes=5)
    job = jobs.submit(new("later", not_before=due))
    told = why(jobs, job)
    assert ([reason.kind for reason in told.reasons], told.until) == ([WaitKind.TIME], due)
    assert told.reasons[0].text == f"It starts at {due:%Y-%m-%d %H:%M:%SZ} or later."
    clock.sleep(301)
    assert why(jobs, job).reasons[0].text.startswith("It was due at ")
    jobs.promote_due("default")
    assert kinds(jobs, job) == [WaitKind.NEXT]


def test_the_pause_before_the_next_attempt_is_told(jobs: Jobs) -> None:
    job = jobs.submit(new("again", max_attempts=3, retry=RetryPolicy(first_delay_seconds=60)))
    jobs.finish(claim(jobs), Outcome.failed("no luck"))
    told = why(jobs, job)
    assert told.until is not None
    assert [reason.text.partition(", starts at ")[0] for reason in told.reasons] == ["Its next attempt, 2 of 3"]


def test_a_queue_that_is_paused_full_or_without_workers_is_the_reason(jobs: Jobs) -> None:
    jobs.create_queue("gpu", max_concurrent_jobs=1)
    serve(jobs, "worker-2", "gpu", status=InstanceStatus.STOPPED)
    jobs.submit(new("first", queue="gpu"))
    job = jobs.submit(new("second", queue="gpu"))
    assert kinds(jobs, job) == [WaitKind.NO_WORKER, WaitKind.BEHIND]
    serve(jobs, "worker-2", "cpu", "gpu")
    claim(jobs, "gpu")
    told = why(jobs, job)
    assert [reason.text for reason in told.reasons] == ["The queue gpu runs 1 job, its limit."]
    jobs.pause_queue("gpu")
    jobs.change_queue("gpu", max_concurrent_jobs=2)
    assert kinds(jobs, job) == [WaitKind.QUEUE_PAUSED]


def test_reasons_that_hold_together_are_all_told(jobs: Jobs, clock: FakeClock) -> None:
    other = jobs.submit(new("other"))
    later = clock.now() + timedelta(hours=1)
    job = jobs.submit(new("a", queue="gpu", depends_on=(DependsOn(other.job_id),), not_before=later))
    jobs.pause_queue("gpu")
    assert kinds(jobs, job) == [WaitKind.DEPENDENCIES, WaitKind.TIME, WaitKind.QUEUE_PAUSED, WaitKind.NO_WORKER]


def test_a_group_tells_what_its_completion_waits_for(jobs: Jobs) -> None:
    group = jobs.open_group(NewJob(name="group"))
    child = new("child", parent_job_id=group.job_id, parent_waits=ParentWaits())
    jobs.submit_many([child] * 3)
    assert kinds(jobs, group) == [WaitKind.DEPENDENCIES, WaitKind.OPEN_GROUP]
    jobs.seal(group.job_id)
    told = why(jobs, group)
    assert [reason.text for reason in told.reasons] == ["Its completion waits for 3 jobs."]
    assert [(each.name, each.gate) for each in told.dependencies] == [("child", "completion")] * 3


def test_a_job_in_no_queue_is_found_by_nobody(jobs: Jobs, clock: FakeClock) -> None:
    foreign = Job(job_id="1", name="foreign", created_at=clock.now(), created_by="dana")
    jobs.store.add(foreign)
    assert kinds(jobs, foreign) == [WaitKind.NO_QUEUE]
    jobs.store.put(foreign.replace(queue_name="gone"))
    assert kinds(jobs, foreign) == [WaitKind.NO_QUEUE]


def read_units(jobs: Jobs, job: Job) -> float:
    """What it costs to tell why a job waits."""
    with jobs.store.capacity.measure() as spent:
        why(jobs, job)
    return sum(units.read for units in spent.values())


def test_a_long_queue_is_not_read(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "MOST_AHEAD", 20)
    last = jobs.submit_many(new(str(number)) for number in range(30))[-1]
    spent = read_units(jobs, last)
    very_last = jobs.submit_many(new(str(number)) for number in range(30))[-1]
    assert read_units(jobs, very_last) == spent
    told = why(jobs, very_last)
    assert told.ahead == 20
    assert [reason.text for reason in told.reasons] == ["It is behind at least 20 jobs of the queue default."]


def test_a_large_group_is_not_read(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "_MOST_EDGES", 20)
    group = jobs.open_group(NewJob(name="group"))
    child = new("child", parent_job_id=group.job_id, parent_waits=ParentWaits())
    jobs.submit_many([child] * 30)
    spent = read_units(jobs, group)
    jobs.submit_many([child] * 30)
    assert read_units(jobs, group) == spent
    told = why(jobs, group)
    assert (told.dependency_count, len(told.dependencies)) == (60, MOST_LISTED)
