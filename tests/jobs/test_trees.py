"""What is done to a job and all under it: nothing under it is missed, and nothing comes under it meanwhile."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

import pytest
from tests.jobs.engines import LEASE_SECONDS, DisturbedBackend, check_records, engine

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import JobStateError, NotFoundError
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.deletion import Deletion
from jobtable.jobs.lifecycle.leases import Lease, Outcome
from jobtable.jobs.stored.entities import Job, JobChild
from jobtable.jobs.stored.field_types import Status
from jobtable.jobs.submit.definition import DependsOn, EdgeCondition, NewJob, ParentWaits
from jobtable.store import Request, Response, Store

FINISHED = ParentWaits(condition=EdgeCondition.FINISHED)


def under(parent: Job | str | None, name: str, waits: ParentWaits | None = None, *on: DependsOn) -> NewJob:
    """A job with its name as its id."""
    parent_id = parent.job_id if isinstance(parent, Job) else parent
    return NewJob(name=name, task="x:y", job_id=name, parent_job_id=parent_id, parent_waits=waits, depends_on=on)


def claim(jobs: Jobs, limit: int = 10) -> list[Lease]:
    return jobs.claim("default", limit=limit, instance_id="worker-1", lease_seconds=LEASE_SECONDS)


def status(jobs: Jobs, job_id: str) -> Status:
    return jobs.queries.get_job(job_id).status


# --- a tree that was ended stays ended ----------------------------------------------------------------------------


@pytest.mark.parametrize("waits", [None, FINISHED])
def test_no_job_comes_under_one_that_was_ended_with_its_tree(jobs: Jobs, waits: ParentWaits | None) -> None:
    top = jobs.open_group(NewJob(name="top", job_id="top"))
    jobs.submit(under(top, "child", waits))
    jobs.cancel("top")
    for parent in ("top", "child"):
        with pytest.raises(
            JobStateError, match=rf"cannot become a child of job {parent}: \w+ was CANCELLED with its whole tree"
        ):
            jobs.submit(under(parent, "late"))
    jobs.cancel("top")
    assert [job.job_id for job in jobs.queries.list_children(top)] == ["child"]
    assert jobs.queries.list_children(top.job_id).first() == jobs.queries.list_children(top).first()
    check_records(jobs)


def test_a_job_that_is_asked_to_end_cannot_submit_more_before_it_notices(jobs: Jobs) -> None:
    jobs.submit(under(None, "top"))
    (lease,) = claim(jobs)
    jobs.stop("top")
    with pytest.raises(JobStateError, match="cannot become a child of job top: it was STOPPED with its whole tree"):
        jobs.submit(under("top", "late"))
    jobs.finish(lease, Outcome.completed())
    with pytest.raises(JobStateError, match="cannot become a child of job top"):
        jobs.submit(under("top", "late"))
    check_records(jobs)


def test_no_job_comes_under_one_that_had_ended_before_its_tree_was(jobs: Jobs) -> None:
    jobs.submit(under(None, "top"))
    jobs.finish(claim(jobs)[0], Outcome.completed())
    jobs.submit(under("top", "done"))
    jobs.finish(claim(jobs)[0], Outcome.completed())
    jobs.submit(under("done", "runs"))
    (lease,) = claim(jobs)
    assert jobs.cancel("top").status is Status.COMPLETED
    for parent in ("top", "done", "runs"):
        with pytest.raises(JobStateError, match=f"cannot become a child of job {parent}"):
            jobs.submit(under(parent, "late"))
    jobs.finish(jobs.refresh(lease), Outcome.completed())
    assert status(jobs, "runs") is Status.CANCELLED


def test_jobs_come_under_one_that_was_ended_alone(jobs: Jobs) -> None:
    jobs.submit(under(None, "top"))
    jobs.cancel("top", tree=False)
    assert jobs.submit(under("top", "child")).status is Status.PENDING


def test_a_tree_that_cannot_be_ended_any_more_stays_open(jobs: Jobs) -> None:
    jobs.submit(under(None, "top"))
    jobs.finish(claim(jobs)[0], Outcome.completed())
    with pytest.raises(JobStateError, match="job top is already COMPLETED"):
        jobs.cancel("top")
    assert jobs.submit(under("top", "child")).status is Status.PENDING


def test_a_tree_under_a_completed_job_may_be_ended_twice_as_any_other(jobs: Jobs) -> None:
    jobs.submit(under(None, "top"))
    jobs.finish(claim(jobs)[0], Outcome.completed())
    jobs.submit(under("top", "child"))
    assert [jobs.cancel("top").status for _ in range(2)] == [Status.COMPLETED] * 2
    assert status(jobs, "child") is Status.CANCELLED
    with pytest.raises(JobStateError, match="job top is already COMPLETED"):
        jobs.cancel("top", tree=False)
    with pytest.raises(JobStateError, match="job top is already COMPLETED"):
        jobs.stop("top")


def test_what_was_submitted_before_is_found_by_its_id_in_an_ended_tree(jobs: Jobs) -> None:
    jobs.submit(under(None, "top"))
    jobs.submit(under("top", "child"))
    jobs.cancel("top")
    assert jobs.submit(under("top", "child")).status is Status.CANCELLED


def test_jobs_that_had_ended_and_have_none_under_them_are_not_written_to(jobs: Jobs) -> None:
    jobs.submit(under(None, "top"))
    jobs.submit_many(under("top", f"child-{number:03d}") for number in range(250))
    while leases := claim(jobs, limit=100):
        jobs.finish_many([(lease, Outcome.completed()) for lease in leases])
    jobs.submit(under("child-000", "live"))
    with jobs.store.capacity.measure() as spent:
        jobs.cancel("top")
    assert sum(units.calls for units in spent.values() if units.write) == 3, "of the top, the live one and its parent"
    for parent in ("child-000", "child-249"):
        with pytest.raises(
            JobStateError, match=rf"cannot become a child of job {parent}: \w+ was CANCELLED with its whole tree"
        ):
            jobs.submit(under(parent, "late"))


def test_jobs_come_under_as_many_ended_parents_as_a_transaction_has_no_room_for(jobs: Jobs) -> None:
    jobs.submit_many(under(None, f"top-{number}") for number in range(50))
    jobs.submit_many(under(f"top-{number}", f"done-{number}") for number in range(50))
    while leases := claim(jobs, limit=100):
        jobs.finish_many([(lease, Outcome.completed()) for lease in leases])
    jobs.submit_many(
        under(f"done-{number}", f"child-{number}", None, DependsOn(f"top-{number}")) for number in range(50)
    )
    assert len(claim(jobs, limit=100)) == 50
    check_records(jobs)


# --- how they end -------------------------------------------------------------------------------------------------


def test_who_waits_for_its_parent_is_stopped_with_it_and_not_cancelled_by_it(jobs: Jobs) -> None:
    jobs.submit(under(None, "top"))
    jobs.submit(under("top", "child", None, DependsOn("top")))
    beside = jobs.submit(under(None, "beside", None, DependsOn("top")))
    jobs.stop("top", by="me")
    child = jobs.queries.get_job("child")
    assert (child.status, child.message) == (Status.STOPPED, "stopped by me")
    assert status(jobs, beside.job_id) is Status.CANCELLED, "which is not under it, and can never begin"
    check_records(jobs)


def test_jobs_that_wait_for_each_other_are_stopped_together_and_not_cancelled_one_by_the_other(jobs: Jobs) -> None:
    top = jobs.open_group(NewJob(name="top", job_id="top"))
    jobs.submit(under(top, "first", FINISHED))
    jobs.submit(under(top, "second", FINISHED, DependsOn("first")))
    jobs.submit(under(top, "third", FINISHED, DependsOn("second")))
    jobs.stop("top", by="me")
    ended = [jobs.queries.get_job(job_id) for job_id in ("top", "first", "second", "third")]
    assert {(job.status, job.message) for job in ended} == {(Status.STOPPED, "stopped by me")}
    check_records(jobs)


def test_a_job_that_waits_for_its_children_is_cancelled_as_they_are(jobs: Jobs) -> None:
    jobs.submit(under(None, "gate"))
    top = jobs.submit(under(None, "top"))
    jobs.add_dependency("top", DependsOn("gate", condition=EdgeCondition.FINISHED, gate="completion"))
    leases = {lease.job.job_id: lease for lease in claim(jobs)}
    jobs.submit(under(top, "child", ParentWaits()))
    for job_id in ("top", "gate"):
        jobs.finish(leases[job_id], Outcome.completed())
    assert jobs.queries.get_job("top").is_awaiting
    assert jobs.cancel("top").status is Status.CANCELLED
    assert status(jobs, "child") is Status.CANCELLED
    check_records(jobs)


# --- beginning anew -----------------------------------------------------------------------------------------------


def test_jobs_come_under_one_again_that_begins_anew(jobs: Jobs) -> None:
    jobs.submit(under(None, "top"))
    jobs.submit(under("top", "child"))
    jobs.cancel("top")
    jobs.retry("child")
    assert jobs.submit(under("child", "grandchild")).status is Status.PENDING
    with pytest.raises(JobStateError, match=r"cannot become a child of job top: .*; retry it, or its tree, first"):
        jobs.submit(under("top", "late"))
    jobs.retry("top")
    assert jobs.submit(under("top", "late")).status is Status.PENDING


def test_a_group_that_goes_on_because_of_a_child_takes_more(jobs: Jobs) -> None:
    jobs.open_group(NewJob(name="top", job_id="top"))
    jobs.submit(under("top", "child", FINISHED))
    jobs.stop("top")
    jobs.retry("child")
    assert status(jobs, "top") is Status.RUNNING
    assert jobs.submit(under("top", "more", FINISHED)).status is Status.PENDING
    check_records(jobs)


def test_a_completed_job_whose_tree_is_retried_takes_more(jobs: Jobs) -> None:
    jobs.submit(under(None, "top"))
    jobs.finish(claim(jobs)[0], Outcome.completed())
    jobs.submit(under("top", "child"))
    jobs.cancel("top")
    assert jobs.retry("top", tree=True).status is Status.COMPLETED
    assert status(jobs, "child") is Status.PENDING
    assert jobs.submit(under("top", "more")).status is Status.PENDING


def test_an_ended_job_takes_more_when_its_parent_does_again(jobs: Jobs) -> None:
    jobs.submit(under(None, "top"))
    jobs.submit(under("top", "middle"))
    jobs.submit(under("middle", "done"))
    for lease in claim(jobs):
        if lease.job.job_id == "done":
            jobs.finish(lease, Outcome.completed())
        else:
            jobs.release(lease, "not meant")
    jobs.cancel("top")
    with pytest.raises(
        JobStateError, match="cannot become a child of job done: middle was CANCELLED with its whole tree"
    ):
        jobs.submit(under("done", "more"))
    jobs.retry("middle")
    assert jobs.submit(under("done", "more")).status is Status.PENDING
    jobs.cancel("middle")
    assert status(jobs, "more") is Status.CANCELLED
    with pytest.raises(JobStateError, match="cannot become a child of job done: it was CANCELLED with its whole tree"):
        jobs.submit(under("done", "late"))


def test_few_jobs_of_a_tree_that_is_retried_are_in_memory(shared: Shared) -> None:
    def count_jobs() -> int:
        gc.collect()
        return sum(isinstance(each, Job) for each in gc.get_objects())

    jobs, in_memory = shared.jobs, list[int]()
    large = {"text": "x" * 5_000}  # smaller items are kept when they are read again
    jobs.submit_many(replace(under("top", f"child-{number}"), params=large) for number in range(500))
    jobs.stop("top")

    def count_and_end() -> None:
        in_memory.append(count_jobs())
        raise KeyboardInterrupt

    before = count_jobs()  # of other tests
    shared.backend.disturb(count_and_end)
    with pytest.raises(KeyboardInterrupt):
        jobs.retry("top", tree=True)
    assert in_memory[0] - before < 150


# --- deleting -----------------------------------------------------------------------------------------------------


def test_nothing_tells_of_a_child_that_was_deleted(jobs: Jobs) -> None:
    jobs.submit(under(None, "top"))
    jobs.submit(under("top", "child"))
    jobs.cancel("child")
    assert list(jobs.store.query(JobChild.key(job_id="top"))) == [JobChild(job_id="top", child_job_id="child")]
    jobs.delete("child")
    assert list(jobs.store.query(JobChild.by_type())) == []
    jobs.cancel("top")
    jobs.delete("top")
    with pytest.raises(NotFoundError):
        jobs.submit(under("top", "late"))


def test_what_tells_of_children_goes_with_their_parent_by_few_writes(jobs: Jobs) -> None:
    jobs.submit(under(None, "top"))
    jobs.submit_many(under("top", f"child-{number:03d}") for number in range(50))
    jobs.cancel("top")
    with jobs.store.capacity.measure() as spent:
        jobs.delete("top", tree=True)
    assert sum(units.calls for pattern, units in spent.items() if pattern.startswith("transaction.")) < 10
    assert list(jobs.store.query(JobChild.by_type())) == []
    assert list(jobs.queries.list_jobs()) == []


def test_a_tree_of_which_the_first_child_is_gone_is_deleted_to_its_end(jobs: Jobs) -> None:
    jobs.submit(under(None, "top"))
    jobs.submit(under("top", "child"))
    jobs.cancel("top")
    jobs.store.delete(Job.key(job_id="child"))  # as far as a process came that died
    jobs.delete("top", tree=True)
    assert list(jobs.store.query(JobChild.by_type())) == []


# --- while others do something ------------------------------------------------------------------------------------


class Shared:
    """An engine before each of whose writes something else can happen."""

    def __init__(self) -> None:
        self.backend = EveryWrite(EmbeddedBackend(None, durability="normal"))
        self.jobs = engine(Store(self.backend))
        self.jobs.submit(under(None, "top"))
        self.jobs.submit(under("top", "left"))
        self.jobs.submit(under("left", "leaf"))
        self.jobs.submit(under("top", "right"))
        for lease in claim(self.jobs, limit=2):  # the top runs, and the one that is to the left has ended
            if lease.job.job_id == "left":
                self.jobs.finish(lease, Outcome.completed())


class EveryWrite(DisturbedBackend):
    """Lets something happen before a write of any kind."""

    def execute(self, operation: str, request: Request) -> Response:
        if operation == "UpdateItem":
            self.happen()
        return super().execute(operation, request)


@pytest.fixture
def shared() -> Iterator[Shared]:
    made = Shared()
    with made.jobs.store:
        yield made


def everything_under(jobs: Jobs, job_id: str) -> Iterator[Job]:
    for child in jobs.queries.list_children(jobs.queries.get_job(job_id)):
        yield child
        yield from everything_under(jobs, child.job_id)


@pytest.mark.parametrize("writes", range(8))
@pytest.mark.parametrize("parent", ["top", "left", "leaf", "right"])
@pytest.mark.parametrize("verb", ["cancel", "stop"])
def test_no_job_that_comes_while_a_tree_ends_goes_on(shared: Shared, verb: str, parent: str, writes: int) -> None:
    jobs = shared.jobs

    def come() -> None:
        with suppress(JobStateError):
            jobs.submit(under(parent, "late"))

    shared.backend.disturb(come, writes=writes)
    end: Callable[[str], Job] = getattr(jobs, verb)
    end("top")
    shared.backend.disturb(None)
    come()
    for job in everything_under(jobs, "top"):
        assert job.is_final or job.requested == verb
        with pytest.raises(JobStateError, match=f"cannot become a child of job {job.job_id}"):
            jobs.submit(under(job, "later"))
    check_records(jobs)


@pytest.mark.parametrize("writes", range(8))
@pytest.mark.parametrize("parent", ["top", "left", "leaf", "right"])
def test_no_job_is_left_alone_that_comes_while_a_tree_is_deleted(shared: Shared, parent: str, writes: int) -> None:
    jobs = shared.jobs
    jobs.cancel("right")
    jobs.cancel("leaf")
    jobs.finish(Lease(jobs.queries.get_job("top"), "worker-1"), Outcome.completed())

    def come() -> None:
        with suppress(JobStateError, NotFoundError):
            jobs.submit(under(parent, "late"))

    shared.backend.disturb(come, writes=writes)
    with suppress(JobStateError):
        jobs.delete("top", tree=True)
    shared.backend.disturb(None)
    left = {job.job_id: job for job in jobs.queries.list_jobs()}
    if "late" in left:
        assert parent in left, "who has lost its parent is found by nobody"
        jobs.cancel("late")
        jobs.delete("top", tree=True)
    assert list(jobs.queries.list_jobs()) == []


def test_a_tree_ends_though_someone_deletes_a_part_of_it_meanwhile(shared: Shared) -> None:
    jobs = shared.jobs

    def delete() -> None:
        jobs.cancel("right")
        jobs.delete("right")

    shared.backend.disturb(delete)
    jobs.cancel("top")
    assert {job.job_id for job in everything_under(jobs, "top")} == {"left", "leaf"}
    assert status(jobs, "leaf") is Status.CANCELLED


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("waits", [None, FINISHED])
def test_no_job_comes_under_one_whose_tree_ends_just_before_it_is_written(
    shared: Shared, waits: ParentWaits | None, count: int
) -> None:
    jobs = shared.jobs
    jobs.open_group(NewJob(name="group", job_id="group"))
    shared.backend.disturb(lambda: jobs.stop("group"))
    with pytest.raises(JobStateError, match="cannot become a child of job group: it was STOPPED with its whole tree"):
        jobs.submit_many(under("group", f"late-{number}", waits) for number in range(count))
    assert list(everything_under(jobs, "group")) == []
    check_records(jobs)


@pytest.mark.parametrize("on", [(), (DependsOn("top"),)], ids=["waits for nothing", "waits for the top"])
def test_no_job_comes_under_an_ended_one_whose_parents_tree_ends_just_before_it_is_written(
    shared: Shared, on: tuple[DependsOn, ...]
) -> None:
    jobs = shared.jobs
    jobs.submit(under("top", "done"))
    jobs.finish(next(lease for lease in claim(jobs) if lease.job.job_id == "done"), Outcome.completed())
    shared.backend.disturb(lambda: jobs.stop("top"))
    with pytest.raises(JobStateError, match="cannot become a child of job done: top was STOPPED with its whole tree"):
        jobs.submit(under("done", "late", None, *on))
    assert jobs.queries.get_job("done").tree_status is None
    assert list(everything_under(jobs, "done")) == []
    check_records(jobs)


def test_no_job_comes_under_one_that_ends_before_its_parents_tree_does_as_it_is_written(shared: Shared) -> None:
    jobs = shared.jobs
    jobs.submit(under("top", "ends"))
    ends = next(lease for lease in claim(jobs) if lease.job.job_id == "ends")

    def end_both() -> None:
        jobs.finish(ends, Outcome.completed())
        jobs.cancel("top")

    shared.backend.disturb(end_both)
    with pytest.raises(JobStateError, match="cannot become a child of job ends: top was CANCELLED with its whole tree"):
        jobs.submit(under("ends", "late"))
    assert list(everything_under(jobs, "ends")) == []
    check_records(jobs)


def test_no_job_comes_under_one_that_is_deleted_just_before_it_is_written(shared: Shared) -> None:
    jobs = shared.jobs
    jobs.submit(under(None, "alone"))
    jobs.cancel("alone", tree=False)
    shared.backend.disturb(lambda: jobs.delete("alone"))
    with pytest.raises(NotFoundError, match="there is no job alone"):
        jobs.submit(under("alone", "late"))
    assert list(jobs.store.query(JobChild.key(job_id="alone"))) == []


def test_two_may_delete_a_tree_at_once(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs.submit(under(None, "top"))
    jobs.submit(under("top", "child"))
    jobs.cancel("top")
    mark = Deletion.mark_as_going

    def mark_and_be_overtaken(self: Deletion, marked: Sequence[Job]) -> None:
        mark(self, marked)
        monkeypatch.undo()
        jobs.delete("top", tree=True)

    monkeypatch.setattr(Deletion, "mark_as_going", mark_and_be_overtaken)
    assert jobs.delete("top", tree=True) == 0
    assert list(jobs.queries.list_jobs()) == []
