"""Jobs and what they wait for, when something else happens between a read and a write, or a job begins anew."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.jobs.engines import LEASE_SECONDS, DisturbedBackend, check_records, engine

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import DependencyCycleError, JobStateError
from jobtable.jobs.dependencies.edge_verbs import Dependencies
from jobtable.jobs.lifecycle.leases import Lease, Outcome
from jobtable.jobs.lifecycle.transitions import SETTLING_TIME
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.stored.field_types import Status
from jobtable.jobs.submit.definition import DependsOn, EdgeCondition, NewJob, ParentWaits
from jobtable.jobs.worker.holding import Conclusions, Heartbeats, Held, WorkerReport
from jobtable.store import Store

FAILED = Outcome.failed("boom")


class Disturbed:
    """An engine whose next transaction can be preceded by something else."""

    def __init__(self) -> None:
        self.backend = DisturbedBackend(EmbeddedBackend(None))
        self.jobs = engine(Store(self.backend))

    def submit(self, name: str, *on: DependsOn, parent: Job | None = None) -> Job:
        waits = None if parent is None else ParentWaits()
        parent_id = None if parent is None else parent.job_id
        return self.jobs.submit(
            NewJob(name=name, task="x:y", depends_on=on, parent_job_id=parent_id, parent_waits=waits)
        )

    def claim(self, job: Job) -> Lease:
        """The lease of a job that is ready, alone or with others, which are given back."""
        leases = self.jobs.claim("default", limit=10, instance_id="worker-1", lease_seconds=LEASE_SECONDS)
        for lease in leases:
            if lease.job.job_id != job.job_id:
                self.jobs.release(lease, "not meant")
        (found,) = [lease for lease in leases if lease.job.job_id == job.job_id]
        return found

    def ready(self) -> list[str]:
        """The jobs that can be claimed."""
        names = {job.job_id: job.name for job in self.jobs.queries.list_jobs()}
        return sorted(names[place.job_id] for place in self.jobs.queries.list_ready("default"))

    def run(self, job: Job, outcome: Outcome) -> Job:
        return self.jobs.finish(self.claim(job), outcome)

    def status(self, job: Job) -> Status:
        return self.jobs.queries.get_job(job.job_id).status


@pytest.fixture
def disturbed() -> Iterator[Disturbed]:
    made = Disturbed()
    with made.jobs.store:
        yield made


def finished(job: Job) -> DependsOn:
    return DependsOn(job.job_id, condition=EdgeCondition.FINISHED)


# --- a job that others waited for begins anew ---------------------------------------------------------------------


def test_who_was_ready_behind_a_job_waits_for_it_again(disturbed: Disturbed) -> None:
    first = disturbed.submit("first")
    second = disturbed.submit("second", finished(first))
    disturbed.run(first, FAILED)
    assert disturbed.ready() == ["second"]
    disturbed.jobs.retry(first.job_id)
    assert disturbed.ready() == ["first"]
    check_records(disturbed.jobs)
    disturbed.run(first, Outcome.completed())
    disturbed.run(second, Outcome.completed())
    check_records(disturbed.jobs)


def test_who_has_started_behind_a_job_goes_on(disturbed: Disturbed) -> None:
    first = disturbed.submit("first")
    second = disturbed.submit("second", finished(first))
    disturbed.run(first, FAILED)
    lease = disturbed.claim(second)
    disturbed.jobs.retry(first.job_id)
    disturbed.jobs.release(lease, "its worker ends")
    assert disturbed.ready() == ["first", "second"]
    check_records(disturbed.jobs)
    assert disturbed.run(second, Outcome.completed()).status is Status.COMPLETED


def test_a_group_fails_by_another_child_when_the_last_that_failed_begins_anew(disturbed: Disturbed) -> None:
    group = disturbed.jobs.open_group(NewJob(name="group"))
    one, two, three = (disturbed.submit(name, parent=group) for name in ("one", "two", "three"))
    disturbed.jobs.seal(group.job_id)
    disturbed.run(one, FAILED)
    disturbed.run(two, FAILED)
    disturbed.jobs.retry(two.job_id)
    check_records(disturbed.jobs)
    disturbed.run(two, Outcome.completed())
    disturbed.run(three, Outcome.completed())
    ended = disturbed.jobs.queries.get_job(group.job_id)
    assert (ended.status, ended.message) == (Status.FAILED, f"job {one.job_id} ended FAILED")


@pytest.mark.parametrize("writes", [1, 2, 3])
def test_a_retry_that_takes_long_is_done_though_a_worker_takes_it_for_dead(disturbed: Disturbed, writes: int) -> None:
    group = disturbed.jobs.open_group(NewJob(name="group"))
    first = disturbed.submit("first", parent=group)
    disturbed.jobs.seal(group.job_id)
    disturbed.submit("second", finished(first))
    disturbed.run(first, FAILED)

    def work() -> None:
        disturbed.jobs.clock.sleep(SETTLING_TIME.total_seconds() + 1)
        disturbed.jobs.promote_due("default")
        disturbed.jobs.observer().recover()

    disturbed.backend.disturb(work, writes=writes)
    disturbed.jobs.retry(first.job_id)
    assert disturbed.ready() == ["first"]
    assert disturbed.status(group) is Status.RUNNING
    check_records(disturbed.jobs)
    disturbed.run(first, Outcome.completed())
    assert disturbed.ready() == ["second"]
    assert disturbed.status(group) is Status.COMPLETED
    check_records(disturbed.jobs)


# --- at the same moment -------------------------------------------------------------------------------------------


def test_an_end_that_is_told_late_is_not_told_of_the_job_that_began_anew(disturbed: Disturbed) -> None:
    first = disturbed.submit("first")
    disturbed.submit("second", finished(first))
    lease = disturbed.claim(first)
    disturbed.backend.disturb(lambda: disturbed.jobs.retry(first.job_id), writes=1)
    disturbed.jobs.finish(lease, FAILED)
    assert disturbed.ready() == ["first"]
    check_records(disturbed.jobs)
    disturbed.run(first, Outcome.completed(None))
    assert disturbed.ready() == ["second"]


def test_nobody_is_told_of_the_end_of_a_job_that_begins_anew_as_soon_as_it_is_cancelled(disturbed: Disturbed) -> None:
    first = disturbed.submit("first")
    disturbed.submit("second", finished(first))
    disturbed.backend.disturb(lambda: disturbed.jobs.retry(first.job_id), is_behind=True)
    disturbed.jobs.cancel(first.job_id)
    assert disturbed.ready() == ["first"]
    check_records(disturbed.jobs)
    disturbed.run(first, Outcome.completed())
    assert disturbed.ready() == ["second"]


def test_who_is_made_to_wait_by_a_retry_that_dies_is_told_though_a_worker_had_looked(disturbed: Disturbed) -> None:
    jobs, first = disturbed.jobs, disturbed.submit("first")
    disturbed.run(first, Outcome.completed())
    second = disturbed.submit("second", DependsOn(first.job_id))

    def reopen() -> None:
        """What the retry does next; here, before the transaction in which the worker takes the place away."""
        Dependencies(jobs.store, jobs.clock, jobs.queries).reopen(jobs.queries.get_job(first.job_id))

    def work_and_die() -> None:
        """Behind the transaction that gives the job a place: a worker finds that due, and the retry goes no further."""
        jobs.clock.sleep(SETTLING_TIME.total_seconds() + 1)
        disturbed.backend.disturb(reopen)
        jobs.promote_due("default")
        raise KeyboardInterrupt

    disturbed.backend.disturb(work_and_die, is_behind=True)
    with pytest.raises(KeyboardInterrupt):
        jobs.begin_for_system(first.job_id)
    assert disturbed.ready() == []
    jobs.clock.sleep(SETTLING_TIME.total_seconds() + 1)
    jobs.promote_due("default")
    assert disturbed.ready() == ["second"]
    assert disturbed.run(second, Outcome.completed()).status is Status.COMPLETED
    check_records(jobs)


def test_a_child_does_not_close_a_cycle_with_an_edge_that_is_added_as_it_comes(disturbed: Disturbed) -> None:
    jobs, other = disturbed.jobs, disturbed.submit("other")
    parent = disturbed.submit("parent", finished(disturbed.submit("gate")))
    on_start = DependsOn(parent.job_id, condition=EdgeCondition.STARTED)
    child = NewJob(name="child", task="x:y", parent_job_id=parent.job_id, parent_waits=ParentWaits())
    disturbed.backend.disturb(lambda: jobs.add_dependency(other.job_id, finished(parent)))
    with pytest.raises(DependencyCycleError, match="jobs would wait for each other"):
        jobs.submit(replace(child, depends_on=(on_start, finished(other))))
    check_records(jobs)


def test_a_gate_that_closes_while_its_job_is_retried_is_not_lost(disturbed: Disturbed) -> None:
    first = disturbed.submit("first")
    second = disturbed.submit("second", finished(first))
    lease = disturbed.claim(first)
    disturbed.jobs.cancel(second.job_id)
    disturbed.backend.disturb(lambda: disturbed.jobs.finish(lease, Outcome.completed()))
    disturbed.jobs.retry(second.job_id)
    assert disturbed.ready() == ["second"]
    check_records(disturbed.jobs)


def test_a_group_waits_for_a_child_that_comes_as_it_ends(disturbed: Disturbed) -> None:
    group = disturbed.jobs.open_group(NewJob(name="group"))
    disturbed.submit("one", parent=group)
    disturbed.jobs.seal(group.job_id)
    late: list[Job] = []
    (lease,) = disturbed.jobs.claim("default", limit=1, instance_id="worker-1", lease_seconds=LEASE_SECONDS)
    # Behind the transaction in which the only child ends, and before the one in which the group ends.
    disturbed.backend.disturb(lambda: late.append(disturbed.submit("late", parent=group)), writes=1)
    disturbed.jobs.finish(lease, Outcome.completed())
    assert disturbed.status(group) is Status.RUNNING
    check_records(disturbed.jobs)
    disturbed.run(late[0], Outcome.completed())
    assert disturbed.status(group) is Status.COMPLETED


def test_a_job_is_not_ready_if_it_is_made_to_wait_as_its_last_gate_closes(disturbed: Disturbed) -> None:
    first, other = disturbed.submit("first"), disturbed.submit("other")
    second = disturbed.submit("second", finished(first))
    lease = disturbed.claim(first)
    disturbed.backend.disturb(lambda: disturbed.jobs.add_dependency(second.job_id, finished(other)), writes=2)
    disturbed.jobs.finish(lease, Outcome.completed())
    assert disturbed.ready() == ["other"]
    check_records(disturbed.jobs)


@pytest.mark.parametrize("outcome", [Outcome.completed(), FAILED], ids=["completed", "failed"])
def test_a_job_that_is_retried_as_its_parent_ends_is_waited_for(disturbed: Disturbed, outcome: Outcome) -> None:
    group = disturbed.jobs.open_group(NewJob(name="group"))
    one, two = (disturbed.submit(name, parent=group) for name in ("one", "two"))
    disturbed.jobs.seal(group.job_id)
    disturbed.run(one, FAILED)
    lease = disturbed.claim(two)
    disturbed.backend.disturb(lambda: disturbed.jobs.retry(one.job_id), writes=1)
    disturbed.jobs.finish(lease, Outcome.completed())
    assert disturbed.status(group) is Status.RUNNING
    check_records(disturbed.jobs)
    disturbed.run(one, outcome)
    assert disturbed.status(group) is outcome_status(outcome)


def outcome_status(outcome: Outcome) -> Status:
    return Status.COMPLETED if outcome.kind == "completed" else Status.FAILED


# --- deletion -----------------------------------------------------------------------------------------------------


def test_a_job_that_is_deleted_twice_at_once_is_uncounted_once(disturbed: Disturbed) -> None:
    first = disturbed.submit("first")
    second = disturbed.submit("second", finished(first))
    disturbed.jobs.cancel(second.job_id)
    # Behind the mark, and before the transaction in which its edge goes.
    disturbed.backend.disturb(lambda: disturbed.jobs.delete(second.job_id), writes=1)
    disturbed.jobs.delete(second.job_id)
    assert disturbed.jobs.queries.get_job(first.job_id).dependents == 0
    check_records(disturbed.jobs)


def test_a_job_that_is_deleted_as_it_ends_has_ended(disturbed: Disturbed) -> None:
    group = disturbed.jobs.open_group(NewJob(name="group"))
    child = disturbed.submit("child", parent=group)
    disturbed.jobs.seal(group.job_id)
    lease = disturbed.claim(child)
    heartbeats = Heartbeats(disturbed.jobs, 30, beat_instance=lambda: None, on_failure=lambda error: None)
    conclusions = Conclusions(disturbed.jobs, heartbeats)
    # Behind the transaction in which the child ends, and before the one in which the group ends.
    disturbed.backend.disturb(lambda: disturbed.jobs.delete(child.job_id), writes=1)
    conclusions.finish(Held(lease, 30, None), Outcome.completed())
    assert conclusions.report() == WorkerReport(completed=1)
    assert disturbed.status(group) is Status.COMPLETED


def test_a_job_is_not_deleted_that_has_the_id_of_one_which_somebody_else_has_deleted_meanwhile(
    disturbed: Disturbed,
) -> None:
    jobs, top = disturbed.jobs, NewJob(name="top", task="x:y", job_id="top")
    jobs.submit(top)
    jobs.submit_many(NewJob(name="child", task="x:y", job_id=f"{n:03d}", parent_job_id="top") for n in range(150))
    jobs.add_dependency("149", finished(disturbed.submit("other")))
    jobs.cancel("top")

    def delete_and_submit_anew() -> None:
        jobs.delete("top", tree=True)
        jobs.submit(top)

    # Behind the marks, and before the transaction in which the edge of the first one that is deleted goes.
    disturbed.backend.disturb(delete_and_submit_anew, writes=2)
    jobs.delete("top", tree=True)
    assert sorted(disturbed.ready()) == ["other", "top"]
    check_records(jobs)


def test_a_job_is_not_deleted_that_is_retried_at_once(disturbed: Disturbed) -> None:
    job = disturbed.submit("job")
    disturbed.jobs.cancel(job.job_id)
    disturbed.backend.disturb(lambda: disturbed.jobs.retry(job.job_id))
    with pytest.raises(JobStateError, match=f"changed meanwhile: {job.job_id}; read it again"):
        disturbed.jobs.delete(job.job_id)
    assert disturbed.ready() == ["job"]
    check_records(disturbed.jobs)


def test_a_job_is_not_retried_that_is_being_deleted(disturbed: Disturbed) -> None:
    first = disturbed.submit("first")
    second = disturbed.submit("second", finished(first))
    disturbed.jobs.cancel(second.job_id)

    def retry() -> None:
        with pytest.raises(JobStateError, match="is being deleted"):
            disturbed.jobs.retry(second.job_id)

    disturbed.backend.disturb(retry, writes=1)
    disturbed.jobs.delete(second.job_id)
    assert [job.job_id for job in disturbed.jobs.queries.list_jobs()] == [first.job_id]
    check_records(disturbed.jobs)


def test_who_begins_to_wait_for_a_start_as_it_happens_is_told_with_a_heartbeat(disturbed: Disturbed) -> None:
    first = disturbed.submit("first")
    on_start = DependsOn(first.job_id, condition=EdgeCondition.STARTED)
    disturbed.backend.disturb(lambda: disturbed.submit("second", on_start))
    lease = disturbed.claim(first)
    assert disturbed.ready() == []
    disturbed.jobs.heartbeat(lease)
    disturbed.jobs.promote_due("default")
    assert disturbed.ready() == ["second"]
    check_records(disturbed.jobs)


@pytest.mark.parametrize("together", [False, True])
def test_who_begins_to_wait_for_a_start_as_it_happens_is_told_before_it_is_waited_for(
    disturbed: Disturbed, together: bool
) -> None:
    parent = disturbed.submit("parent")
    on_start = DependsOn(parent.job_id, condition=EdgeCondition.STARTED)
    children: list[Job] = []
    # Behind the read of the job that is claimed, and before it is claimed.
    disturbed.backend.disturb(lambda: children.append(disturbed.submit("child", on_start)))
    lease = disturbed.claim(parent)
    disturbed.jobs.add_dependency(parent.job_id, DependsOn(children[0].job_id, gate="completion"))
    if together:
        disturbed.jobs.finish_many([(lease, Outcome.completed())])
    else:
        disturbed.jobs.finish(lease, Outcome.completed())
    assert disturbed.jobs.queries.get_job(parent.job_id).is_awaiting
    assert disturbed.ready() == ["child"]
    disturbed.run(children[0], Outcome.completed())
    assert disturbed.status(parent) is Status.COMPLETED
    check_records(disturbed.jobs)


# --- people come in between ---------------------------------------------------------------------------------------


def test_a_job_that_becomes_ready_as_it_is_prioritised_has_its_new_rank(disturbed: Disturbed) -> None:
    jobs = disturbed.jobs
    soon = NewJob(name="soon", task="x:y", not_before=jobs.clock.now() + timedelta(seconds=1))
    late, first = jobs.submit(soon), disturbed.submit("first")
    jobs.clock.sleep(2)
    disturbed.backend.disturb(lambda: jobs.prioritise(late.job_id, 900))
    jobs.promote_due("default")
    check_records(jobs)
    jobs.promote_due("default")
    assert [place.job_id for place in jobs.queries.list_ready("default")] == [late.job_id, first.job_id]
    check_records(jobs)


def test_a_job_that_is_given_back_as_it_is_prioritised_has_its_new_rank(disturbed: Disturbed) -> None:
    job = disturbed.submit("job")
    lease = disturbed.claim(job)
    disturbed.backend.disturb(lambda: disturbed.jobs.prioritise(job.job_id, 900))
    disturbed.jobs.release(lease, "its worker ends")
    check_records(disturbed.jobs)


def test_a_job_that_is_retried_as_it_is_prioritised_has_its_new_rank(disturbed: Disturbed) -> None:
    job = disturbed.submit("job")
    disturbed.run(job, FAILED)
    disturbed.backend.disturb(lambda: disturbed.jobs.prioritise(job.job_id, 900), writes=1)
    disturbed.jobs.retry(job.job_id)
    assert disturbed.ready() == ["job"]
    check_records(disturbed.jobs)


def test_a_job_that_is_prioritised_as_it_is_retried_has_its_new_rank(disturbed: Disturbed) -> None:
    job = disturbed.submit("job")
    disturbed.run(job, FAILED)
    disturbed.backend.disturb(lambda: disturbed.jobs.retry(job.job_id))
    assert disturbed.jobs.prioritise(job.job_id, 900).priority == 900
    assert disturbed.ready() == ["job"]
    check_records(disturbed.jobs)


@pytest.mark.parametrize("act", ["cancel", "stop"])
def test_a_job_that_is_given_back_as_it_is_asked_to_end_has_ended(disturbed: Disturbed, act: str) -> None:
    job = disturbed.submit("job")
    lease = disturbed.claim(job)
    disturbed.backend.disturb(lambda: getattr(disturbed.jobs, act)(job.job_id))
    assert disturbed.jobs.release(lease, "its worker ends").is_final
    check_records(disturbed.jobs)
