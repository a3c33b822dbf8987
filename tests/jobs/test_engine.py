"""Jobs from submission to their end, on both backends."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from tests.jobs.engines import LEASE_SECONDS, check_records

from jobtable.errors import (
    BackendUnavailable,
    ConflictError,
    DependencyCycleError,
    JobStateError,
    LeaseLostError,
    NotFoundError,
    ValueRefusedError,
)
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import Lease, Outcome, check_lease
from jobtable.jobs.lifecycle.runs import MOST_UNOPENED
from jobtable.jobs.stored.entities import Instance, Job, JobCheckpoint, JobGates, JobResource, main
from jobtable.jobs.stored.field_types import InstanceStatus, Status
from jobtable.jobs.submit.definition import DependsOn, EdgeCondition, NewJob, ParentWaits, RetryPolicy
from jobtable.jobs.submit.preparation import MOST_OPEN_DEPENDENCIES
from jobtable.objects import object_key
from jobtable.store import Request, Response
from jobtable.testing import FakeClock


def new(name: str, **more: object) -> NewJob:
    return NewJob(name=name, task="tests.jobs.sample_tasks:add", **more)  # type: ignore[arg-type]  # checked by NewJob


def claim(jobs: Jobs, limit: int = 10, queue: str = "default") -> list[Lease]:
    return jobs.claim(queue, limit=limit, instance_id="worker-1", lease_seconds=LEASE_SECONDS)


def run_all(jobs: Jobs, outcome: Outcome | None = None) -> list[str]:
    """Claim and finish until nothing is ready; the names in the order in which they ran."""
    names = []
    while leases := claim(jobs, limit=1):
        names.append(leases[0].job.name)
        jobs.finish(leases[0], outcome or Outcome.completed())
    return names


# --- submission ---------------------------------------------------------------------------------------------------


def test_a_job_runs_from_submission_to_completion(jobs: Jobs) -> None:
    submitted = jobs.submit(new("one", params={"a": 1}, tags=frozenset({"night"}), estimated_duration=3.0))
    assert submitted == jobs.queries.get_job(submitted.job_id)
    (lease,) = claim(jobs)
    assert lease.job == jobs.queries.get_job(submitted.job_id)
    jobs.report(lease, progress=40, message="almost half")
    assert (jobs.queries.get_job(submitted.job_id).progress, lease.epoch) == (40, 1)
    ended = jobs.finish(lease, Outcome.completed({"sum": 3}))
    assert (ended.status, ended.result, ended.progress, ended.lease_seconds) == (
        Status.COMPLETED,
        {"sum": 3},
        100,
        None,
    )
    history = [(line.status, line.message) for line in jobs.queries.list_statuses(submitted.job_id)]
    assert history == [
        (Status.PENDING, None),
        (Status.RUNNING, None),
        (Status.RUNNING, "almost half"),
        (Status.COMPLETED, None),
    ]
    assert claim(jobs) == []
    check_records(jobs)


def test_a_second_submission_with_the_same_key_finds_the_first_job(jobs: Jobs) -> None:
    first = jobs.submit(new("one", key="order-7", user="ada"))
    assert jobs.submit(new("one", key="order-7", user="ada")).job_id == first.job_id
    assert jobs.submit(new("one", key="order-7", user="bob")).job_id != first.job_id
    with pytest.raises(ConflictError, match="use another key"):
        jobs.submit(NewJob(name="other", task="tests.jobs.sample_tasks:fail", key="order-7", user="ada"))
    assert jobs.queries.get_queue("default").job_count == 2


def test_many_jobs_are_submitted_again_without_doubles(jobs: Jobs) -> None:
    batch = [new(f"job {number}", key=str(number)) for number in range(120)]
    jobs.submit_many(batch[:50])
    ids = [job.job_id for job in jobs.submit_many(batch)]
    assert len(set(ids)) == 120
    assert jobs.queries.get_queue("default").job_count == 120
    check_records(jobs)


def test_the_most_urgent_job_starts_first_and_of_equals_the_oldest(jobs: Jobs) -> None:
    for name, priority in (("b", 500), ("c", 500), ("a", 900), ("z", 1)):
        jobs.submit(new(name, priority=priority))
    late = jobs.submit(new("late", priority=2))
    assert jobs.queue_position(late) == 4
    jobs.prioritise(late.job_id, 999)
    assert jobs.queue_position(late) == 1
    assert run_all(jobs) == ["late", "a", "b", "c", "z"]


def test_a_queue_starts_no_more_than_it_may_and_none_while_it_is_paused(jobs: Jobs) -> None:
    jobs.create_queue("gpu", max_concurrent_jobs=2)
    jobs.submit_many(new(f"{number}", queue="gpu") for number in range(5))
    first = claim(jobs, queue="gpu")
    assert len(first) == 2
    assert claim(jobs, queue="gpu") == []
    jobs.finish(first[0], Outcome.completed())
    jobs.pause_queue("gpu")
    assert claim(jobs, queue="gpu") == []
    jobs.resume_queue("gpu")
    assert len(claim(jobs, queue="gpu")) == 1
    jobs.change_queue("gpu", max_concurrent_jobs=10)
    assert len(claim(jobs, queue="gpu")) == 2
    check_records(jobs)


def test_an_empty_queue_is_deleted_and_one_with_jobs_is_not(jobs: Jobs) -> None:
    jobs.submit_many(new(str(number), queue="gpu") for number in range(2))
    with pytest.raises(ConflictError, match="queue gpu cannot be deleted: 2 jobs wait or run in it"):
        jobs.delete_queue("gpu")
    (first, second) = claim(jobs, queue="gpu")
    jobs.finish(first, Outcome.completed())
    with pytest.raises(ConflictError, match="1 job waits or runs in it"):
        jobs.delete_queue("gpu")
    jobs.finish(second, Outcome.completed())
    jobs.delete_queue("gpu")
    with pytest.raises(NotFoundError, match="there is no queue gpu"):
        jobs.delete_queue("gpu")
    assert claim(jobs, queue="gpu") == []


def test_a_queue_that_was_deleted_comes_back_with_the_next_job(jobs: Jobs) -> None:
    old = jobs.submit(new("old", queue="gpu"))
    group = jobs.open_group(NewJob(name="group", queue="cpu"))
    child = jobs.submit(new("child", queue="gpu", parent_job_id=group.job_id, parent_waits=ParentWaits()))
    jobs.cancel(old.job_id)
    jobs.cancel(group.job_id)
    jobs.delete_queue("gpu")
    jobs.delete_queue("cpu")
    assert jobs.retry(old.job_id).status is Status.PENDING
    jobs.retry(child.job_id)
    assert (jobs.queries.get_queue("gpu").job_count, jobs.queries.get_queue("cpu").job_count) == (2, 1)
    check_records(jobs)
    assert len(claim(jobs, queue="gpu")) == 2


def test_a_job_that_comes_while_its_queue_is_deleted_is_not_lost(jobs: Jobs) -> None:
    def submit(number: int) -> None:
        jobs.submit(new(str(number), queue="gpu"))

    def delete(_: int) -> None:
        with contextlib.suppress(ConflictError, NotFoundError):
            jobs.delete_queue("gpu")

    for attempt in range(5):
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda act: act[0](act[1]), [(delete, 0), (submit, attempt), (delete, 0), (delete, 0)]))
        assert jobs.queries.get_queue("gpu").job_count == 1
        check_records(jobs)
        for lease in claim(jobs, queue="gpu"):
            jobs.finish(lease, Outcome.completed())


def test_a_delayed_job_becomes_ready_when_its_time_has_come(jobs: Jobs, clock: FakeClock) -> None:
    jobs.submit(new("later", not_before=clock.now() + timedelta(seconds=60)))
    assert (jobs.promote_due("default"), claim(jobs)) == (0, [])
    clock.advance(61)
    assert jobs.promote_due("default") == 1
    assert run_all(jobs) == ["later"]


def test_a_delayed_job_that_waits_for_another_one_starts_when_both_are_over(jobs: Jobs, clock: FakeClock) -> None:
    first = jobs.submit(new("first"))
    due = clock.now() + timedelta(seconds=60)
    jobs.submit(new("at its time", depends_on=(DependsOn(first.job_id),), not_before=due))
    late = jobs.submit(new("added", not_before=due))
    jobs.add_dependency(late.job_id, DependsOn(first.job_id))
    assert run_all(jobs) == ["first"]
    check_records(jobs)
    clock.advance(61)
    assert jobs.promote_due("default") == 2
    assert sorted(run_all(jobs)) == ["added", "at its time"]
    check_records(jobs)


def test_a_job_whose_time_has_come_waits_on_for_its_dependency(jobs: Jobs, clock: FakeClock) -> None:
    first = jobs.submit(new("first"))
    due = clock.now() + timedelta(seconds=60)
    jobs.submit(new("second", depends_on=(DependsOn(first.job_id),), not_before=due))
    clock.advance(61)
    assert (jobs.promote_due("default"), jobs.promote_due("default")) == (1, 0)
    (lease,) = claim(jobs)
    jobs.finish(lease, Outcome.completed())
    assert run_all(jobs) == ["second"]
    check_records(jobs)


def test_what_is_due_goes_by_the_wall_clock_also_when_that_was_ahead_for_a_while(jobs: Jobs, clock: FakeClock) -> None:
    right = clock.now()
    jobs.submit(new("in the night", not_before=right + timedelta(hours=20)))
    jobs.submit(new("weak", max_attempts=2, retry=RetryPolicy(first_delay_seconds=10)))
    clock.set(right + timedelta(days=1))
    clock.now()
    clock.set(right)
    (lease,) = claim(jobs)
    jobs.finish(lease, Outcome.failed("boom"))
    assert (jobs.promote_due("default"), claim(jobs)) == (0, [])
    clock.advance(13)
    assert jobs.promote_due("default") == 1
    assert run_all(jobs) == ["weak"]


# --- failure ------------------------------------------------------------------------------------------------------


def test_a_failed_attempt_is_repeated_after_a_growing_delay_and_then_fails_with_the_reason(
    jobs: Jobs, clock: FakeClock
) -> None:
    policy = RetryPolicy(first_delay_seconds=10, factor=3)
    job = jobs.submit(new("weak", max_attempts=3, retry=policy))
    for delay in (10, 30):
        (lease,) = claim(jobs)
        assert jobs.finish(lease, Outcome.failed("boom")).status is Status.PENDING
        clock.advance(delay * 0.7)
        jobs.promote_due("default")
        assert claim(jobs) == []
        clock.advance(delay * 0.6)
        jobs.promote_due("default")
        check_records(jobs)
    (lease,) = claim(jobs)
    ended = jobs.finish(lease, Outcome.failed("boom"))
    assert (ended.status, ended.message, ended.attempts) == (Status.FAILED, "boom", 3)
    assert jobs.queries.get_job(job.job_id).lease_epoch == 3
    check_records(jobs)


def test_what_cannot_succeed_is_not_repeated(jobs: Jobs) -> None:
    jobs.submit(new("wrong", max_attempts=3))
    (lease,) = claim(jobs)
    assert jobs.finish(lease, Outcome.failed("no such task", retryable=False)).status is Status.FAILED


def test_an_ended_job_can_be_retried_unless_it_is_completed(jobs: Jobs) -> None:
    job = jobs.submit(new("one"))
    with pytest.raises(JobStateError, match="PENDING"):
        jobs.retry(job.job_id)
    jobs.finish(claim(jobs)[0], Outcome.failed("boom"))
    again = jobs.retry(job.job_id, by="ada")
    assert (again.status, again.attempts, again.ended_at) == (Status.PENDING, 0, None)
    check_records(jobs)
    assert run_all(jobs) == ["one"]
    with pytest.raises(JobStateError, match="COMPLETED"):
        jobs.retry(job.job_id)


# --- leases -------------------------------------------------------------------------------------------------------


def test_a_worker_that_lost_its_lease_can_write_nothing(jobs: Jobs, clock: FakeClock) -> None:
    job = jobs.submit(new("one"))
    (old,) = claim(jobs)
    observer = jobs.observer()
    assert observer.recover() == []
    clock.advance(LEASE_SECONDS + 1)
    (interrupted,) = observer.recover()
    assert (interrupted.status, interrupted.attempts, interrupted.interruptions) == (Status.INTERRUPTED, 0, 1)

    def refused() -> None:
        for act in (
            lambda: jobs.heartbeat(old),
            lambda: jobs.report(old, progress=50),
            lambda: jobs.finish(old, Outcome.completed()),
            lambda: jobs.release(old, "drained"),
        ):
            with pytest.raises(LeaseLostError, match="worker-1"):
                act()
        tx = jobs.store.transaction()
        check_lease(tx, old)
        tx.add(_checkpoint(job.job_id, clock))
        with pytest.raises(ConflictError, match="check Job"):
            tx.commit()
        assert jobs.finish_many([(old, Outcome.completed())]) == [old]

    refused()
    (fresh,) = claim(jobs)
    assert fresh.epoch == old.epoch + 1
    refused()
    jobs.finish(fresh, Outcome.completed())
    refused()
    assert list(jobs.queries.list_checkpoints(job.job_id)) == []
    check_records(jobs)


def _checkpoint(job_id: str, clock: FakeClock) -> JobCheckpoint:
    return JobCheckpoint(job_id=job_id, timestamp=clock.now(), s3_bucket="b", s3_key="k", size_bytes=1, step=1, epoch=1)


def test_a_lease_is_not_dead_before_its_time_because_a_look_at_all_took_long(jobs: Jobs, clock: FakeClock) -> None:
    jobs.submit(new("job"))
    (lease,) = claim(jobs)
    observer = jobs.observer()
    execute = jobs.store.backend.execute

    def slowly(operation: str, request: Request) -> Response:
        if operation == "Query" and jobs.queries.get_job(lease.job.job_id).heartbeat == 0:
            clock.advance(LEASE_SECONDS - 1)
            jobs.heartbeat(lease)
        return execute(operation, request)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs.store.backend, "execute", slowly)
        observer.recover()
    clock.advance(2)
    assert observer.recover() == []
    clock.advance(LEASE_SECONDS)
    assert len(observer.recover()) == 1


def test_a_heartbeat_keeps_a_lease_whatever_the_wall_clock_does(jobs: Jobs, clock: FakeClock) -> None:
    jobs.submit(new("one"))
    (lease,) = claim(jobs)
    observer = jobs.observer()
    for days in (1, -2, 1):
        observer.recover()
        clock.set(clock.now() + timedelta(days=days))
        clock.advance(LEASE_SECONDS * 0.9)
        lease = jobs.heartbeat(lease)
        assert observer.recover() == []
    clock.set(clock.now() - timedelta(days=1))
    clock.advance(LEASE_SECONDS * 1.1)
    assert len(observer.recover()) == 1
    check_records(jobs)


def test_one_job_that_cannot_be_taken_does_not_hold_up_the_others(
    jobs: Jobs, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs.submit_many(new(f"{number}") for number in range(3))
    claim(jobs)
    observer = jobs.observer()
    observer.recover()
    clock.advance(LEASE_SECONDS + 1)
    interrupt = jobs.interrupt_lost

    def fail_first(job: Job) -> Job | None:
        if job.name == "0":
            raise BackendUnavailable("no answer")
        return interrupt(job)

    with monkeypatch.context() as patch:
        patch.setattr(observer, "_interrupt", fail_first)
        with pytest.raises(BackendUnavailable):
            observer.recover()
    statuses = {job.name: job.status for job in jobs.queries.list_jobs()}
    assert statuses == {"0": Status.RUNNING, "1": Status.INTERRUPTED, "2": Status.INTERRUPTED}
    assert [job.name for job in observer.recover()] == ["0"]
    check_records(jobs)


def test_a_job_that_loses_too_many_workers_fails(jobs: Jobs, clock: FakeClock) -> None:
    job = jobs.submit(new("killer", most_interruptions=2))
    observer = jobs.observer()
    for _ in range(3):
        claim(jobs)
        observer.recover()
        clock.advance(LEASE_SECONDS + 1)
        observer.recover()
    ended = jobs.queries.get_job(job.job_id)
    assert ended.status is Status.FAILED
    assert "worker-1 was lost; it has lost 3 workers" in str(ended.message)
    check_records(jobs)


def test_a_job_whose_processes_never_open_their_store_fails_and_says_what_to_do(jobs: Jobs) -> None:
    job = jobs.submit(new("misled", max_attempts=3, most_interruptions=0))
    for number in range(1, MOST_UNOPENED):
        (lease,) = claim(jobs)
        given_back = jobs.release(lease, "its store is locked", is_unopened=True)
        assert (given_back.status, given_back.attempts, given_back.interruptions) == (Status.INTERRUPTED, 0, 0)
        assert given_back.unopened == number
    (lease,) = claim(jobs)
    ended = jobs.release(lease, "its store is locked", is_unopened=True)
    assert ended.status is Status.FAILED
    told = f"its store is locked; this happened {MOST_UNOPENED} times in a row; make sure that the processes of jobs"
    assert str(ended.message).startswith(told)
    check_records(jobs)
    jobs.retry(job.job_id, by="ada")
    assert jobs.queries.get_job(job.job_id).unopened is None


def _drain(jobs: Jobs, lease: Lease) -> None:
    jobs.release(lease, "the worker drains")


def _fail(jobs: Jobs, lease: Lease) -> None:
    jobs.finish(lease, Outcome.failed("it raised"))


@pytest.mark.parametrize("end", [_drain, _fail])
def test_only_runs_in_a_row_that_could_not_open_their_store_count(
    jobs: Jobs, end: Callable[[Jobs, Lease], None]
) -> None:
    job = jobs.submit(new("unlucky", max_attempts=2))
    (lease,) = claim(jobs)
    assert jobs.release(lease, "its store is locked", is_unopened=True).unopened == 1
    (lease,) = claim(jobs)
    end(jobs, lease)
    assert jobs.queries.get_job(job.job_id).unopened is None
    check_records(jobs)


def test_a_released_job_is_ready_at_once_at_its_old_place(jobs: Jobs) -> None:
    jobs.submit_many([new("first"), new("second")])
    (lease,) = claim(jobs, limit=1)
    assert jobs.release(lease, "the worker drains").status is Status.INTERRUPTED
    assert run_all(jobs) == ["first", "second"]
    check_records(jobs)


def test_instances_say_what_they_run_and_what_they_ran(jobs: Jobs, clock: FakeClock) -> None:
    job = jobs.submit(new("one"))
    machine = Instance(
        instance_id="i-1",
        instance_type="p3",
        launched_at=clock.now(),
        status=InstanceStatus.RUNNING,
        lease_seconds=LEASE_SECONDS,
    )
    jobs.store.add(machine)
    (lease,) = jobs.claim("default", limit=5, instance_id="i-1", lease_seconds=LEASE_SECONDS, instance=machine)
    assert [held.status for held in jobs.queries.list_jobs_of_instance("i-1")] == [Status.RUNNING]
    observer = jobs.observer()
    observer.recover()
    clock.advance(LEASE_SECONDS + 1)
    observer.recover()
    assert [held.status for held in jobs.queries.list_jobs_of_instance("i-1")] == [Status.INTERRUPTED]
    (resource,) = jobs.queries.list_resources(job.job_id)
    assert (resource.status, resource.released_at is None) == ("RELEASED", False)
    assert jobs.store.get(Instance.key(instance_id="i-1")).status is InstanceStatus.TERMINATED
    (lease,) = jobs.claim("default", limit=5, instance_id="i-1", lease_seconds=LEASE_SECONDS, instance=machine)
    assert jobs.store.get(JobResource.key(job_id=job.job_id, resource_id="i-1")).status == "ALLOCATED"
    jobs.finish_many([(lease, Outcome.completed())])
    assert [held.status for held in jobs.queries.list_jobs_of_instance("i-1")] == [Status.COMPLETED]


# --- cancel and stop ----------------------------------------------------------------------------------------------


def test_a_waiting_job_is_cancelled_at_once_and_a_running_one_by_its_worker(jobs: Jobs) -> None:
    first, second = jobs.submit_many([new("first"), new("second")])
    (lease,) = claim(jobs, limit=1)
    assert jobs.cancel(second.job_id, by="ada").status is Status.CANCELLED
    assert jobs.cancel(first.job_id).status is Status.RUNNING
    assert jobs.heartbeat(lease).job.requested == "cancel"
    assert jobs.finish(jobs.heartbeat(lease), Outcome.completed()).status is Status.CANCELLED
    assert jobs.cancel(first.job_id).status is Status.CANCELLED
    with pytest.raises(JobStateError, match="already CANCELLED"):
        jobs.stop(first.job_id)
    with pytest.raises(NotFoundError):
        jobs.cancel("nobody")
    check_records(jobs)


def test_a_stopped_job_keeps_its_result(jobs: Jobs) -> None:
    job = jobs.submit(new("trial"))
    (lease,) = claim(jobs)
    jobs.stop(job.job_id, message="worse than the median")
    ended = jobs.finish(jobs.heartbeat(lease), Outcome.completed({"loss": 3.0}))
    assert (ended.status, ended.result) == (Status.STOPPED, {"loss": 3.0})


def test_a_job_that_should_end_anyway_ends_when_its_worker_is_lost(jobs: Jobs, clock: FakeClock) -> None:
    job = jobs.submit(new("one"))
    claim(jobs)
    jobs.cancel(job.job_id)
    observer = jobs.observer()
    observer.recover()
    clock.advance(LEASE_SECONDS + 1)
    (ended,) = observer.recover()
    assert ended.status is Status.CANCELLED
    check_records(jobs)


# --- dependencies -------------------------------------------------------------------------------------------------


def test_jobs_start_when_what_they_wait_for_is_completed(jobs: Jobs) -> None:
    a = jobs.submit(new("a", priority=1))
    b = jobs.submit(new("b", depends_on=(DependsOn(a.job_id),)))
    jobs.submit(new("c", priority=999, depends_on=(DependsOn(a.job_id), DependsOn(b.job_id))))
    assert [edge.dependency_job_id for edge in jobs.queries.list_dependencies(b.job_id)] == [a.job_id]
    assert len(list(jobs.queries.list_dependents(a.job_id))) == 2
    assert run_all(jobs) == ["a", "b", "c"]
    check_records(jobs)
    done = jobs.submit(new("d", depends_on=(DependsOn(a.job_id),)))
    assert jobs.queue_position(done) == 1


def test_a_job_waits_for_as_many_as_its_submission_can_write_and_more_are_refused(jobs: Jobs) -> None:
    group = jobs.open_group(NewJob(name="group"))
    awaited = jobs.submit_many(new(f"{number}") for number in range(MOST_OPEN_DEPENDENCIES + 1))
    edges = tuple(DependsOn(job.job_id) for job in awaited)
    with pytest.raises(ValueRefusedError, match="at most 45 of them may not have ended; put them into"):
        jobs.submit(new("last", depends_on=edges))
    last = new("last", queue="other", depends_on=edges[1:], parent_job_id=group.job_id, parent_waits=ParentWaits())
    jobs.submit(last)
    check_records(jobs)
    run_all(jobs)
    assert [lease.job.name for lease in claim(jobs, queue="other")] == ["last"]


def test_a_dependency_that_is_named_twice_is_one_unless_it_is_named_differently(jobs: Jobs) -> None:
    first = jobs.submit(new("first"))
    twice = (DependsOn(first.job_id), DependsOn(first.job_id))
    jobs.submit(new("second", depends_on=twice))
    check_records(jobs)
    otherwise = (DependsOn(first.job_id), DependsOn(first.job_id, condition=EdgeCondition.STARTED))
    with pytest.raises(ValueRefusedError, match="in two ways; remove one of them"):
        jobs.submit(new("third", depends_on=otherwise))
    assert run_all(jobs) == ["first", "second"]


def test_a_chain_within_one_submission_runs_in_order(jobs: Jobs) -> None:
    chain = [
        new(f"{number}", job_id=f"job-{number}", depends_on=(DependsOn(f"job-{number - 1}"),) if number else ())
        for number in range(60)
    ]
    jobs.submit_many(chain)
    assert run_all(jobs) == [str(number) for number in range(60)]
    check_records(jobs)


@pytest.mark.parametrize(
    ("condition", "outcome", "expected"),
    [
        (EdgeCondition.COMPLETED, Outcome.completed(), Status.PENDING),
        (EdgeCondition.COMPLETED, Outcome.failed("boom"), Status.CANCELLED),
        (EdgeCondition.FINISHED, Outcome.failed("boom"), Status.PENDING),
        (EdgeCondition.FAILED, Outcome.failed("boom"), Status.PENDING),
        (EdgeCondition.FAILED, Outcome.completed(), Status.CANCELLED),
    ],
)
def test_the_condition_of_an_edge_says_what_becomes_of_the_dependent(
    jobs: Jobs, condition: EdgeCondition, outcome: Outcome, expected: Status
) -> None:
    first = jobs.submit(new("first"))
    second = jobs.submit(new("second", depends_on=(DependsOn(first.job_id, condition=condition),)))
    third = jobs.submit(new("third", depends_on=(DependsOn(second.job_id),)))
    (lease,) = claim(jobs)
    jobs.finish(lease, outcome)
    assert jobs.queries.get_job(second.job_id).status is expected
    assert jobs.queries.get_job(third.job_id).status is expected
    if expected is Status.CANCELLED:
        assert first.job_id in str(jobs.queries.get_job(second.job_id).message)
        with pytest.raises(JobStateError, match="must be retried first"):
            jobs.retry(third.job_id)
    check_records(jobs)


def test_a_dependent_of_a_start_goes_on_when_the_other_is_claimed(jobs: Jobs) -> None:
    first = jobs.submit(new("first", priority=900))
    jobs.submit(new("second", depends_on=(DependsOn(first.job_id, condition=EdgeCondition.STARTED),)))
    (lease,) = claim(jobs, limit=1)
    assert [each.job.name for each in claim(jobs)] == ["second"]
    jobs.finish(lease, Outcome.completed())
    check_records(jobs)


def test_an_edge_to_a_job_that_ended_otherwise_is_refused(jobs: Jobs) -> None:
    first = jobs.submit(new("first"))
    jobs.cancel(first.job_id)
    with pytest.raises(JobStateError, match="CANCELLED"):
        jobs.submit(new("second", depends_on=(DependsOn(first.job_id),)))
    with pytest.raises(NotFoundError, match="nobody"):
        jobs.submit(new("second", depends_on=(DependsOn("nobody"),)))


def test_cycles_are_refused_whatever_gates_they_go_through(jobs: Jobs) -> None:
    a, b, c = jobs.submit_many([new("a"), new("b"), new("c")])
    jobs.add_dependency(a.job_id, DependsOn(b.job_id))
    jobs.add_dependency(b.job_id, DependsOn(c.job_id))
    with pytest.raises(DependencyCycleError, match=f"{c.job_id} waits for the end of {a.job_id}"):
        jobs.add_dependency(c.job_id, DependsOn(a.job_id))
    with pytest.raises(DependencyCycleError):
        jobs.add_dependency(c.job_id, DependsOn(c.job_id))
    with pytest.raises(DependencyCycleError, match=f"the end of {c.job_id} waits for the end of {a.job_id}"):
        jobs.add_dependency(c.job_id, DependsOn(a.job_id, gate="completion"))
    jobs.add_dependency(c.job_id, DependsOn(jobs.submit(new("d", priority=0)).job_id, gate="completion"))
    with pytest.raises(ConflictError, match="already"):
        jobs.add_dependency(a.job_id, DependsOn(b.job_id, condition=EdgeCondition.FINISHED))
    assert [lease.job.name for lease in claim(jobs)] == ["c", "d"]
    check_records(jobs)


def test_a_child_cannot_wait_for_the_end_of_the_parent_that_waits_for_it(jobs: Jobs) -> None:
    group = jobs.open_group(NewJob(name="group"))
    own_end = DependsOn(group.job_id)
    with pytest.raises(DependencyCycleError):
        jobs.submit(new("child", parent_job_id=group.job_id, parent_waits=ParentWaits(), depends_on=(own_end,)))
    after = jobs.submit(new("after", depends_on=(DependsOn(group.job_id),)))
    for on in (own_end, DependsOn(after.job_id)):
        with pytest.raises(DependencyCycleError):
            jobs.submit(new("child", parent_job_id=group.job_id, parent_waits=ParentWaits(), depends_on=(on,)))
    jobs.submit(child("child", group))
    jobs.seal(group.job_id)
    assert run_all(jobs) == ["child", "after"]
    check_records(jobs)


def test_the_edges_of_a_parent_are_read_once_for_all_children_that_are_submitted(jobs: Jobs) -> None:
    group = jobs.open_group(NewJob(name="group"))
    jobs.submit(new("after", depends_on=(DependsOn(group.job_id),)))
    with jobs.store.capacity.measure() as spent:
        jobs.submit_many(child(f"{number}", group) for number in range(20))
    assert spent["JobDependency.key"].calls == 1


def test_edges_that_are_added_at_once_close_no_cycle(jobs: Jobs) -> None:
    ring = jobs.submit_many(new(f"{number}") for number in range(6))

    def add(number: int) -> bool:
        try:
            jobs.add_dependency(ring[number].job_id, DependsOn(ring[(number + 1) % len(ring)].job_id))
        except DependencyCycleError:
            return False
        return True

    with ThreadPoolExecutor(len(ring)) as pool:
        added = list(pool.map(add, range(len(ring))))
    assert sorted(added) == [False] + [True] * (len(ring) - 1)
    assert len(run_all(jobs)) == len(ring)
    check_records(jobs)


# --- groups -------------------------------------------------------------------------------------------------------


def child(name: str, group: Job, **more: object) -> NewJob:
    condition = more.pop("condition", EdgeCondition.FINISHED)
    waits = ParentWaits(condition=EdgeCondition(str(condition)))
    start = DependsOn(group.job_id, type="parent", condition=EdgeCondition.STARTED)
    return new(name, parent_job_id=group.job_id, parent_waits=waits, depends_on=(start,), **more)


def test_a_group_ends_when_it_is_sealed_and_its_children_ended(jobs: Jobs) -> None:
    group = jobs.open_group(NewJob(name="sweep", job_type="sweep"))
    jobs.submit_many(child(f"{number}", group) for number in range(40))
    assert jobs.queries.get_job(group.job_id).status is Status.RUNNING
    leases = claim(jobs, limit=40)
    jobs.finish(leases[0], Outcome.failed("boom"))
    jobs.seal(group.job_id)
    assert jobs.finish_many([(lease, Outcome.completed()) for lease in leases[1:]]) == []
    ended = jobs.queries.get_job(group.job_id)
    assert ended.status is Status.COMPLETED
    gates = jobs.store.get(JobGates.key(job_id=group.job_id))
    assert (gates.completed, gates.failed, gates.open_completions) == (39, 1, 0)
    assert len(list(jobs.queries.list_children(group))) == 40
    with pytest.raises(JobStateError, match="has ended"):
        jobs.submit(child("late", group))
    check_records(jobs)


def test_a_job_is_submitted_together_with_the_child_that_it_waits_for(jobs: Jobs) -> None:
    first = new("first", job_id="first")
    parent = new("parent", job_id="parent", depends_on=(DependsOn("first"),))
    jobs.submit_many([first, parent, new("child", parent_job_id="parent", parent_waits=ParentWaits())])
    check_records(jobs)
    assert [lease.job.name for lease in claim(jobs, limit=9)] == ["first", "child"]
    assert jobs.store.get(JobGates.key(job_id="parent")).open_completions == 1


def test_an_empty_group_ends_when_it_is_sealed(jobs: Jobs) -> None:
    group = jobs.open_group(NewJob(name="empty"))
    assert jobs.seal(group.job_id).status is Status.COMPLETED
    check_records(jobs)
    with pytest.raises(ValueRefusedError, match="cannot have a task of its own"):
        jobs.open_group(new("task"))


def test_a_group_that_failed_goes_on_when_its_child_is_retried(jobs: Jobs) -> None:
    group = jobs.open_group(NewJob(name="pipeline"))
    one = jobs.submit(child("one", group, condition="completed"))
    two = jobs.submit(
        new(
            "two",
            parent_job_id=group.job_id,
            parent_waits=ParentWaits(condition=EdgeCondition.COMPLETED),
            depends_on=(DependsOn(one.job_id),),
        )
    )
    jobs.seal(group.job_id)
    jobs.finish(claim(jobs)[0], Outcome.failed("boom"))
    statuses = [jobs.queries.get_job(each.job_id).status for each in (one, two, group)]
    assert statuses == [Status.FAILED, Status.CANCELLED, Status.FAILED]
    check_records(jobs)
    jobs.retry(group.job_id, tree=True)
    assert jobs.queries.get_job(group.job_id).status is Status.RUNNING
    check_records(jobs)
    assert run_all(jobs) == ["one", "two"]
    assert jobs.queries.get_job(group.job_id).status is Status.COMPLETED
    check_records(jobs)


def test_a_group_that_was_completed_goes_on_when_its_child_is_retried(jobs: Jobs) -> None:
    outer = jobs.open_group(NewJob(name="outer"))
    group = jobs.open_group(NewJob(name="group", parent_job_id=outer.job_id, parent_waits=ParentWaits()))
    one, two = jobs.submit_many([child("one", group), child("two", group)])
    jobs.seal(group.job_id)
    jobs.seal(outer.job_id)
    run_all(jobs, Outcome.failed("boom"))
    assert [jobs.queries.get_job(each.job_id).status for each in (outer, group)] == [Status.COMPLETED] * 2
    jobs.retry(one.job_id)
    assert [jobs.queries.get_job(each.job_id).status for each in (outer, group)] == [Status.RUNNING] * 2
    check_records(jobs)
    jobs.retry(two.job_id)
    assert run_all(jobs) == ["one", "two"]
    assert [jobs.queries.get_job(each.job_id).status for each in (outer, group)] == [Status.COMPLETED] * 2
    check_records(jobs)


def test_a_tree_is_retried_in_the_order_of_its_dependencies(jobs: Jobs) -> None:
    root = jobs.submit(new("root"))
    group = jobs.open_group(NewJob(name="group", parent_job_id=root.job_id))
    second = jobs.submit(child("second", group, condition="completed"))
    first = jobs.submit(new("first", parent_job_id=group.job_id, depends_on=(DependsOn(root.job_id),)))
    jobs.add_dependency(second.job_id, DependsOn(first.job_id))
    jobs.seal(group.job_id)
    run_all(jobs, Outcome.failed("boom"))
    assert {jobs.queries.get_job(each.job_id).is_final for each in (root, group, first, second)} == {True}
    jobs.retry(root.job_id, tree=True)
    check_records(jobs)
    assert jobs.queries.get_job(group.job_id).status is Status.RUNNING
    assert run_all(jobs) == ["root", "first", "second"]
    assert jobs.queries.get_job(group.job_id).status is Status.COMPLETED


def test_what_is_under_a_completed_job_can_be_retried_and_cancelled(jobs: Jobs) -> None:
    parent = jobs.submit(new("parent"))
    run_all(jobs)
    under = jobs.submit(new("under", parent_job_id=parent.job_id))
    assert jobs.cancel(parent.job_id).status is Status.COMPLETED
    assert jobs.queries.get_job(under.job_id).status is Status.CANCELLED
    assert jobs.cancel(parent.job_id).status is Status.COMPLETED, "it is so already, with all that is under it"
    with pytest.raises(JobStateError, match="is already COMPLETED"):
        jobs.cancel(parent.job_id, tree=False)
    assert jobs.retry(parent.job_id, tree=True).status is Status.COMPLETED
    assert run_all(jobs) == ["under"]
    with pytest.raises(JobStateError, match="is COMPLETED and cannot be retried"):
        jobs.retry(parent.job_id, tree=True)
    check_records(jobs)


def test_a_parent_with_a_task_waits_for_the_jobs_that_it_submits(jobs: Jobs) -> None:
    parent, other = jobs.submit_many([new("parent"), new("other")])
    jobs.add_dependency(parent.job_id, DependsOn(other.job_id, gate="completion"))
    first, second = claim(jobs)
    waiting = jobs.finish(first, Outcome.completed({"made": 1}))
    assert (waiting.status, waiting.is_awaiting, waiting.lease_seconds) == (Status.RUNNING, True, None)
    assert jobs.queries.get_queue("default").running_count == 1
    jobs.finish(second, Outcome.completed())
    ended = jobs.queries.get_job(parent.job_id)
    assert (ended.status, ended.result) == (Status.COMPLETED, {"made": 1})
    check_records(jobs)


@pytest.mark.parametrize("together", [True, False])
def test_a_running_job_waits_for_what_it_is_made_to_wait_for_meanwhile(jobs: Jobs, *, together: bool) -> None:
    running, other = jobs.submit_many([new("running"), new("other")])
    first, second = claim(jobs)
    jobs.add_dependency(running.job_id, DependsOn(other.job_id, gate="completion"))
    if together:
        assert jobs.finish_many([(first, Outcome.completed("made"))]) == []
    else:
        jobs.finish(first, Outcome.completed("made"))
    waiting = jobs.queries.get_job(running.job_id)
    assert (waiting.status, waiting.is_awaiting) == (Status.RUNNING, True)
    jobs.finish(second, Outcome.completed())
    ended = jobs.queries.get_job(running.job_id)
    assert (ended.status, ended.result) == (Status.COMPLETED, "made")
    check_records(jobs)


def test_a_job_whose_dependencies_have_all_started_has_no_gates(jobs: Jobs) -> None:
    first = jobs.submit(new("first"))
    (lease,) = claim(jobs)
    on = DependsOn(first.job_id, condition=EdgeCondition.STARTED)
    second = jobs.submit(new("second", depends_on=(on,)))
    assert not second.is_gated
    assert [edge.outcome for edge in jobs.queries.list_dependencies(second.job_id)] == [Status.RUNNING]
    jobs.finish(lease, Outcome.failed("no"))
    jobs.retry(first.job_id)
    check_records(jobs)
    assert set(run_all(jobs)) == {"first", "second"}
    check_records(jobs)


def test_a_run_that_fails_before_its_worker_knows_that_it_is_cancelled_is_not_tried_again(jobs: Jobs) -> None:
    one, two, three = jobs.submit_many([new(name, max_attempts=3) for name in ("one", "two", "three")])
    leases = claim(jobs)
    for job in (one, two):
        jobs.cancel(job.job_id)
    jobs.stop(three.job_id)
    ends = [(lease, Outcome.failed("too late")) for lease in leases]
    assert jobs.finish(*ends[0]).status is Status.CANCELLED
    assert jobs.finish_many(ends[1:]) == []
    assert jobs.queries.get_job(two.job_id).status is Status.CANCELLED
    assert jobs.queries.get_job(three.job_id).status is Status.STOPPED
    check_records(jobs)


def test_a_cancelled_group_takes_its_children_along(jobs: Jobs) -> None:
    group = jobs.open_group(NewJob(name="sweep"))
    jobs.submit_many(child(f"{number}", group) for number in range(3))
    (lease,) = claim(jobs, limit=1)
    assert jobs.cancel(group.job_id).status is Status.CANCELLED
    jobs.finish(jobs.heartbeat(lease), Outcome.completed())
    assert {each.status for each in jobs.queries.list_children(group)} == {Status.CANCELLED}
    check_records(jobs)


def test_who_comes_late_waits_for_a_retried_job_as_well(jobs: Jobs) -> None:
    first = jobs.submit(new("first"))
    jobs.cancel(first.job_id)
    on = DependsOn(first.job_id, condition=EdgeCondition.FINISHED, gate="completion")
    late = jobs.submit(new("late", depends_on=(on,)))
    later = jobs.submit(new("later"))
    jobs.add_dependency(later.job_id, on)
    check_records(jobs)
    jobs.retry(first.job_id)
    check_records(jobs)
    leases = {lease.job.name: lease for lease in claim(jobs)}
    assert jobs.finish(leases["late"], Outcome.completed()).is_awaiting
    assert jobs.finish(leases["later"], Outcome.completed()).is_awaiting
    jobs.finish(leases["first"], Outcome.completed())
    assert {jobs.queries.get_job(each.job_id).status for each in (first, late, later)} == {Status.COMPLETED}
    assert jobs.queries.get_queue("default").job_count == 0
    check_records(jobs)


def test_a_job_is_not_kept_for_dependents_that_are_deleted(jobs: Jobs) -> None:
    first = jobs.submit(new("first"))
    on = DependsOn(first.job_id, condition=EdgeCondition.STARTED)
    early = jobs.submit(new("early", depends_on=(on,)))
    (running,) = claim(jobs)
    late = jobs.submit(new("late", depends_on=(on,)))
    for lease in claim(jobs):
        jobs.finish(lease, Outcome.completed())
    for each in (early, late):
        jobs.delete(each.job_id)
        check_records(jobs)
    jobs.finish(jobs.refresh(running), Outcome.completed())
    assert jobs.queries.get_queue("default").job_count == 0
    check_records(jobs)


def test_of_two_leases_of_one_job_one_is_lost(jobs: Jobs) -> None:
    """As when a worker has lost a job, gets it again, and ends both runs at once."""
    jobs.submit_many([new("one"), new("two")])
    one, two = claim(jobs)
    jobs.release(one, "drained")
    (again,) = claim(jobs)
    assert jobs.finish_many([(each, Outcome.completed()) for each in (one, two, again)]) == [one]
    assert {job.status for job in jobs.queries.list_jobs()} == {Status.COMPLETED}
    check_records(jobs)


# --- crashes between two transactions -----------------------------------------------------------------------------


def test_dependents_are_told_later_if_whoever_ended_the_job_died(
    jobs: Jobs, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = jobs.submit(new("first"))
    second = jobs.submit(new("second", depends_on=(DependsOn(first.job_id),)))
    (lease,) = claim(jobs)
    with monkeypatch.context() as patch:
        patch.setattr(jobs._endings, "settle", _die)
        with pytest.raises(KeyboardInterrupt):
            jobs.finish(lease, Outcome.completed())
    check_records(jobs)
    assert claim(jobs) == []
    clock.advance(6)
    jobs.promote_due("default")
    assert jobs.queue_position(second) == 1
    assert jobs.queries.get_queue("default").job_count == 1
    check_records(jobs)


def _die(*_: object) -> None:
    raise KeyboardInterrupt


# --- deleting -----------------------------------------------------------------------------------------------------


def test_a_job_is_deleted_with_everything_under_it(jobs: Jobs, clock: FakeClock) -> None:
    group = jobs.open_group(NewJob(name="sweep"))
    kept = jobs.submit(new("kept"))
    one, _ = jobs.submit_many([child("one", group), child("two", group)])
    jobs.seal(group.job_id)
    leases = claim(jobs)
    jobs.store.add(_checkpoint(one.job_id, clock))
    jobs.objects.put(object_key("jobs", one.job_id, "log", "1.txt"), b"text")
    stranger = {"PK": {"S": f"JOB#{one.job_id}"}, "SK": {"S": "STRANGER"}, "TYPE": {"S": "OF_ANOTHER_PROGRAM"}}
    jobs.store.backend.execute("PutItem", {"TableName": jobs.store.table_name(main), "Item": stranger})
    with pytest.raises(JobStateError, match="has children"):
        jobs.delete(group.job_id)
    with pytest.raises(JobStateError, match="cancel it before"):
        jobs.delete(one.job_id)
    jobs.finish_many([(lease, Outcome.completed()) for lease in leases])
    jobs.delete(group.job_id, tree=True)
    left = {type(item).__name__ for item in jobs.store.collection(Job.key(job_id=one.job_id))}
    assert left == set()
    assert [job.job_id for job in jobs.queries.list_jobs()] == [kept.job_id]
    assert list(jobs.objects.list("jobs")) == []
    assert list(jobs.queries.list_dependents(one.job_id)) == []
    check_records(jobs)
