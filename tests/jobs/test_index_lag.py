"""Jobs whose indexes are behind the table, as those of DynamoDB are for a moment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from tests.jobs.engines import LEASE_SECONDS, check_records, engine

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import ConflictError, NotFoundError
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import Lease, Outcome
from jobtable.jobs.stored.entities import Instance, Job
from jobtable.jobs.stored.field_types import Status
from jobtable.jobs.submit.definition import DependsOn, EdgeCondition, NewJob, ParentWaits
from jobtable.jobs.worker.worker import Upkeep
from jobtable.store import Store
from jobtable.testing import FakeClock, Faults, FaultyBackend


class Cloud:
    """An engine whose indexes can be held, and another one that sees everything as it is."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self._backend = EmbeddedBackend(None, durability="normal")
        self.jobs = engine(Store(self._backend, clock=self.clock), self.clock)
        self._lagging: list[FaultyBackend] = []

    def held(self) -> Jobs:
        """An engine for which the indexes stay as they are now, from its first write on."""
        lagging = FaultyBackend(self._backend, Faults(index_lag=1), seed=1, lagging=10_000, clock=self.clock)
        self._lagging.append(lagging)
        return Jobs(Store(lagging, clock=self.clock), self.jobs.objects, clock=self.clock)

    def catch_up(self) -> None:
        """Let the indexes know everything."""
        for lagging in self._lagging:
            lagging.stop()

    def close(self) -> None:
        for lagging in self._lagging:
            lagging.close()
        self.jobs.store.close()

    def status(self, job: Job) -> Status:
        return self.jobs.queries.get_job(job.job_id).status


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    with closing(Cloud()) as cloud:
        yield cloud


def new(name: str, *on: DependsOn, parent: Job | None = None) -> NewJob:
    if parent is None:
        return NewJob(name=name, task="x:y", depends_on=on)
    return NewJob(name=name, task="x:y", depends_on=on, parent_job_id=parent.job_id, parent_waits=ParentWaits())


def claim(jobs: Jobs, limit: int = 10) -> list[Lease]:
    return jobs.claim("default", limit=limit, instance_id="worker-1", lease_seconds=LEASE_SECONDS)


# --- trees --------------------------------------------------------------------------------------------------------


def test_a_group_is_cancelled_with_children_that_the_index_does_not_show(cloud: Cloud) -> None:
    jobs = cloud.held()
    group = jobs.open_group(NewJob(name="group"))
    child = jobs.submit(new("child", parent=group))
    jobs.seal(group.job_id)
    jobs.cancel(group.job_id)
    assert cloud.status(child) is Status.CANCELLED
    check_records(cloud.jobs)


def test_a_tree_is_deleted_whose_end_the_index_does_not_show(cloud: Cloud) -> None:
    group = cloud.jobs.open_group(NewJob(name="group"))
    first, second = cloud.jobs.submit_many([new("first", parent=group), new("second", parent=group)])
    cloud.jobs.seal(group.job_id)
    jobs = cloud.held()
    jobs.cancel(group.job_id)
    jobs.delete(first.job_id)
    jobs.delete(group.job_id, tree=True)
    assert list(cloud.jobs.queries.list_jobs()) == []
    with pytest.raises(NotFoundError):
        cloud.status(second)


@pytest.mark.parametrize("verb", ["cancel", "stop"])
def test_a_tree_ends_with_jobs_that_nobody_waits_for_and_the_index_does_not_show(cloud: Cloud, verb: str) -> None:
    jobs = cloud.held()
    jobs.submit(NewJob(name="top", task="x:y", job_id="top"))
    child = jobs.submit(NewJob(name="child", task="x:y", parent_job_id="top"))
    grandchild = jobs.submit(NewJob(name="grandchild", task="x:y", parent_job_id=child.job_id))
    assert list(jobs.queries.list_descendants("top")) == []
    getattr(jobs, verb)("top")
    assert {cloud.status(job) for job in (child, grandchild)} <= {Status.CANCELLED, Status.STOPPED}
    jobs.retry("top", tree=True)
    assert {cloud.status(job) for job in (child, grandchild)} == {Status.PENDING}
    getattr(jobs, verb)("top")
    with pytest.raises(ConflictError, match="has children"):
        jobs.delete("top")
    jobs.delete("top", tree=True)
    assert list(cloud.jobs.queries.list_jobs()) == []


# --- telling who waits --------------------------------------------------------------------------------------------


def finished(job: Job) -> DependsOn:
    return DependsOn(job.job_id, condition=EdgeCondition.FINISHED)


def settle_later(cloud: Cloud, jobs: Jobs) -> None:
    """Let the indexes know everything, and what was left for later be done."""
    cloud.catch_up()
    cloud.clock.advance(10)
    jobs.promote_due("default")


def test_who_waits_again_is_told_though_the_index_shows_it_told(cloud: Cloud) -> None:
    first = cloud.jobs.submit(new("first"))
    second, other = cloud.jobs.submit_many([new("second", finished(first)), new("other")])
    cloud.jobs.add_dependency(second.job_id, finished(other))
    for lease in claim(cloud.jobs):
        cloud.jobs.finish(lease, Outcome.failed("boom"))
    cloud.jobs.retry(other.job_id)
    jobs = cloud.held()
    jobs.retry(first.job_id)
    (lease,) = [lease for lease in claim(cloud.jobs) if lease.job.job_id == first.job_id]
    jobs.finish(lease, Outcome.completed())
    settle_later(cloud, jobs)
    (edge,) = [e for e in cloud.jobs.queries.list_dependents(first.job_id) if e.job_id == second.job_id]
    assert edge.outcome is Status.COMPLETED
    check_records(cloud.jobs)


def test_who_waits_is_told_though_the_index_shows_another_one_that_is_gone(cloud: Cloud) -> None:
    first = cloud.jobs.submit(new("first"))
    gone = cloud.jobs.submit(new("gone", finished(first)))
    cloud.jobs.cancel(gone.job_id)
    jobs = cloud.held()
    jobs.delete(gone.job_id)
    second = jobs.submit(new("second", finished(first)))
    (lease,) = claim(cloud.jobs)
    jobs.finish(lease, Outcome.completed())
    settle_later(cloud, jobs)
    assert [lease.job.job_id for lease in claim(cloud.jobs)] == [second.job_id]
    check_records(cloud.jobs)


def test_who_waits_for_a_start_is_told_when_the_index_shows_it(cloud: Cloud) -> None:
    first = cloud.jobs.submit(new("first"))
    jobs = cloud.held()
    second = jobs.submit(new("second", DependsOn(first.job_id, condition=EdgeCondition.STARTED)))
    (lease,) = claim(jobs)
    assert claim(cloud.jobs) == []
    settle_later(cloud, jobs)
    assert [lease.job.job_id for lease in claim(cloud.jobs)] == [second.job_id]
    assert jobs.finish(lease, Outcome.completed()).status is Status.COMPLETED
    check_records(cloud.jobs)


def test_who_waits_for_a_start_is_told_though_the_index_shows_another_one_that_is_gone(cloud: Cloud) -> None:
    first = cloud.jobs.submit(new("first"))
    gone = cloud.jobs.submit(new("gone", DependsOn(first.job_id, condition=EdgeCondition.STARTED)))
    cloud.jobs.cancel(gone.job_id)
    jobs = cloud.held()
    jobs.delete(gone.job_id)
    second = jobs.submit(new("second", DependsOn(first.job_id, condition=EdgeCondition.STARTED)))
    assert [lease.job.job_id for lease in claim(jobs)] == [first.job_id]
    settle_later(cloud, jobs)
    assert [lease.job.job_id for lease in claim(cloud.jobs)] == [second.job_id]


# --- beginning anew -----------------------------------------------------------------------------------------------


def test_a_job_does_not_begin_anew_before_all_who_waited_for_it_can_wait_again(cloud: Cloud) -> None:
    first = cloud.jobs.submit(new("first"))
    jobs = cloud.held()
    second = jobs.submit(new("second", DependsOn(first.job_id)))
    (lease,) = claim(cloud.jobs)
    cloud.jobs.finish(lease, Outcome.failed("boom"))
    assert cloud.status(second) is Status.CANCELLED
    with pytest.raises(ConflictError, match=f"job {first.job_id} cannot restart yet: .* retry it again in a moment"):
        jobs.retry(first.job_id)
    assert cloud.status(first) is Status.FAILED
    cloud.catch_up()
    jobs.retry(first.job_id)
    jobs.retry(second.job_id)
    assert [lease.job.job_id for lease in claim(cloud.jobs)] == [first.job_id]
    check_records(cloud.jobs)


def test_a_job_begins_anew_though_one_that_it_waited_for_was_deleted_unseen_by_the_index(cloud: Cloud) -> None:
    first = cloud.jobs.submit(new("first"))
    jobs = cloud.held()
    second = jobs.submit(new("second", DependsOn(first.job_id)))
    (lease,) = claim(cloud.jobs)
    cloud.jobs.finish(lease, Outcome.failed("boom"))
    jobs.delete(first.job_id)
    cloud.catch_up()
    jobs.retry(second.job_id)
    assert [lease.job.job_id for lease in claim(cloud.jobs)] == [second.job_id]


# --- claiming -----------------------------------------------------------------------------------------------------


def test_jobs_are_claimed_behind_those_that_the_index_shows_and_others_have(cloud: Cloud) -> None:
    submitted = cloud.jobs.submit_many([new(name) for name in ("running", "waiting", "gone", "free")])
    running, waiting, gone, free = submitted
    jobs = cloud.held()
    jobs.pause_queue("default")
    jobs.resume_queue("default")
    first, second = claim(cloud.jobs, limit=2)
    assert (first.job.job_id, second.job.job_id) == (running.job_id, waiting.job_id)
    cloud.jobs.release(second, "drained")
    cloud.jobs.submit(new("last"))
    cloud.jobs.add_dependency(waiting.job_id, finished(running))
    cloud.jobs.cancel(gone.job_id)
    cloud.jobs.delete(gone.job_id)
    (lease,) = claim(jobs, limit=1)
    assert lease.job.job_id == free.job_id


def test_queues_are_not_taken_for_empty_because_the_index_shows_nothing(cloud: Cloud) -> None:
    jobs = cloud.held()
    gate = jobs.open_group(NewJob(name="gate"))
    waiting, ready = jobs.submit_many([new("waiting", finished(gate)), new("ready")])
    upkeep = Upkeep(jobs, ["default"], LEASE_SECONDS)
    for _ in range(20):
        upkeep.run()
        assert claim(jobs) == []
        assert not upkeep.is_all_done()
        cloud.clock.advance(1)
    cloud.catch_up()
    (lease,) = claim(jobs)
    assert lease.job.job_id == ready.job_id
    jobs.finish(lease, Outcome.completed())
    for _ in range(5):
        upkeep.run()
        upkeep.is_all_done()
        cloud.clock.advance(1)
    assert upkeep.is_all_done(), "what waits for something else is no work"
    assert cloud.status(waiting) is Status.PENDING


# --- deleting -----------------------------------------------------------------------------------------------------


def test_a_job_is_not_deleted_before_all_who_wait_for_it_are_told(cloud: Cloud) -> None:
    first = cloud.jobs.submit(new("first"))
    jobs = cloud.held()
    second = jobs.submit(new("second", finished(first)))
    (lease,) = claim(cloud.jobs)
    jobs.finish(lease, Outcome.completed())
    with pytest.raises(ConflictError, match=f"job {first.job_id} cannot be deleted yet: .* delete it again"):
        jobs.delete(first.job_id)
    cloud.catch_up()
    jobs.delete(first.job_id)
    assert [lease.job.job_id for lease in claim(cloud.jobs)] == [second.job_id]
    assert cloud.jobs.queries.get_queue("default").job_count == 1


def test_a_job_is_deleted_with_the_record_of_an_instance_that_the_index_does_not_show(cloud: Cloud) -> None:
    jobs = cloud.held()
    job = jobs.submit(new("job"))
    machine = Instance(instance_id="i-1", instance_type="p3", launched_at=cloud.clock.now())
    (lease,) = cloud.jobs.claim("default", limit=1, instance_id="i-1", lease_seconds=LEASE_SECONDS, instance=machine)
    cloud.jobs.finish(lease, Outcome.completed())
    jobs.delete(job.job_id)
    assert list(cloud.jobs.queries.list_jobs_of_instance("i-1")) == []
