"""Executions that failed: retried from the step where they did, and deleted with everything that they left."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from tests.interruptions import dies_after
from tests.running import run_again, run_jobs
from tests.systems.albums import workflows as flows
from tests.systems.albums.access_patterns import DURABLE
from tests.systems.albums.access_patterns import execution as stored_execution
from tests.systems.albums.test_executions import path, state, waiting

from jobtable.errors import ConflictError, JobStateError, NotFoundError
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import Outcome
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.stored.field_types import Status
from jobtable.jobs.submit.definition import NewJob
from jobtable.objects import ObjectStore
from jobtable.store import Store
from jobtable.systems.albums.answers import Answers
from jobtable.systems.albums.entities import Execution, ExecutionStatus, ValidationTask
from jobtable.systems.albums.executions import QUEUE, Executions
from jobtable.systems.albums.watch import Watch
from jobtable.testing import FakeClock

TYPES = ["STEP_ONCE", "DURABLE_ONCE"]


@pytest.fixture(autouse=True)
def _quick_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flows, "STEP_SECONDS", [0.0])


def failed(jobs: Jobs, name: str, step: str) -> Execution:
    """An execution that failed at a step before the question."""
    flows.BROKEN.add(step)
    started = Executions(jobs).start(path(name), b"image", "image.jpg")
    run_jobs(jobs, QUEUE)
    flows.BROKEN.clear()
    flows.RAN.clear()
    found = Executions(jobs).records.get_execution(started.execution_id)
    assert (found.status, found.current_step) == (ExecutionStatus.FAILED, step)
    return found


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize(("step", "ran"), [("one", ["one", "two"]), ("two", ["two"])])
def test_a_failed_execution_goes_on_where_it_failed(each_jobs: Jobs, name: str, step: str, ran: list[str]) -> None:
    executions = Executions(each_jobs)
    before = failed(each_jobs, name, step)
    again = executions.retry(before.execution_id)
    assert (again.status, again.current_step, again.attempt) == (ExecutionStatus.RUNNING, step, 2)
    assert (again.end_time, again.duration_ms, again.failure) == (None, None, None)
    run_jobs(each_jobs, QUEUE)
    assert ran == flows.RAN
    asked, token = flows.DELIVERED[-1]
    Answers(each_jobs).complete(asked.task_id, token, [])
    run_jobs(each_jobs, QUEUE)
    ended = executions.records.get_execution(before.execution_id)
    assert (ended.status, ended.attempt) == (ExecutionStatus.COMPLETED, 2)
    assert [*ran, "three"] == flows.RAN
    below = list(each_jobs.queries.list_descendants(before.execution_id))
    assert {job.parent_job_id for job in below} == {before.execution_id}
    assert sum(job.job_stage == step and job.status is Status.COMPLETED for job in below) == 1


@pytest.mark.parametrize("name", TYPES)
def test_no_step_begins_in_a_tree_that_was_ended_until_the_execution_is_retried(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    executions = Executions(jobs)
    started = executions.start(path(name), b"image", "image.jpg").execution_id
    cancel = partial(jobs.cancel, started)

    def deliver_and_cancel(asked: ValidationTask, token: str) -> None:
        flows.DELIVERED.append((asked, token))
        cancel()  # the job that asks has not ended yet

    monkeypatch.setattr(flows, "deliver", deliver_and_cancel)
    run_jobs(jobs, QUEUE)
    asked, token = flows.DELIVERED[-1]
    ended = Answers(jobs).complete(asked.task_id, token, [])
    assert ended.status is ExecutionStatus.FAILED
    assert ended.failure == f"job {started} was CANCELLED with all its descendants"
    run_jobs(jobs, QUEUE)
    assert flows.RAN == ["one", "two"]
    executions.retry(started)
    run_jobs(jobs, QUEUE)
    assert flows.RAN == ["one", "two", "three"]
    assert executions.records.get_execution(started).status is ExecutionStatus.COMPLETED


@pytest.mark.parametrize("name", TYPES)
def test_only_the_time_of_the_attempts_counts(jobs: Jobs, clock: FakeClock, name: str) -> None:
    flows.STEP_SECONDS[0] = 2.0
    before = failed(jobs, name, "two")
    assert before.duration_ms == 2000
    clock.advance(3600)
    Executions(jobs).retry(before.execution_id)
    flows.BROKEN.add("two")
    began = clock.monotonic()
    run_jobs(jobs, QUEUE)
    took = 1000 * (clock.monotonic() - began)
    ended = Executions(jobs).records.get_execution(before.execution_id)
    assert (ended.status, ended.attempt) == (ExecutionStatus.FAILED, 2)
    assert ended.duration_ms == pytest.approx(before.duration_ms + took, abs=2)
    assert (Executions(jobs).retry(before.execution_id)).attempt == 3


@pytest.mark.parametrize("name", TYPES)
def test_the_answer_of_a_person_outlives_a_failure(jobs: Jobs, name: str) -> None:
    execution, asked, token = waiting(jobs, name)
    flows.BROKEN.add("three")
    Answers(jobs).complete(asked.task_id, token, [])
    run_jobs(jobs, QUEUE)
    flows.BROKEN.clear()
    Executions(jobs).retry(execution.execution_id)
    answer = Executions(jobs).find_answer(execution.execution_id)
    assert answer is not None
    assert answer.task_id == asked.task_id
    run_jobs(jobs, QUEUE)
    assert Executions(jobs).records.get_execution(execution.execution_id).status is ExecutionStatus.COMPLETED
    assert len(flows.DELIVERED) == 1


@pytest.mark.parametrize("name", TYPES)
def test_the_answer_of_a_person_is_found_before_an_index_shows_its_task(
    late_jobs: Jobs, clock: FakeClock, name: str
) -> None:
    execution, asked, token = waiting_unseen(late_jobs, clock, name)
    answered = Answers(late_jobs).complete(asked.task_id, token, [])
    Executions(late_jobs).fail(answered, "stopped by ada")
    Executions(late_jobs).retry(execution.execution_id)
    answer = Executions(late_jobs).find_answer(execution.execution_id)
    assert answer is not None
    assert answer.task_id == asked.task_id


def waiting_unseen(jobs: Jobs, clock: FakeClock, name: str) -> tuple[Execution, ValidationTask, str]:
    """An execution that waits since a moment ago, so that late indexes do not show its task."""
    execution_id = Executions(jobs).start(path(name), b"image", "image.jpg").execution_id
    while Executions(jobs).records.get_execution(execution_id).status is ExecutionStatus.RUNNING:
        clock.advance(2)  # or nobody would find the job
        run_jobs(jobs, QUEUE, most=1)
    return Executions(jobs).records.get_execution(execution_id), *flows.DELIVERED[-1]


@pytest.mark.parametrize("name", TYPES)
def test_a_question_that_nobody_answered_is_asked_again(jobs: Jobs, clock: FakeClock, name: str) -> None:
    execution, asked, old_token = waiting(jobs, name)
    clock.advance(301)
    assert Watch(jobs).expire_due().timed_out == 1
    again = Executions(jobs).retry(execution.execution_id)
    assert (again.status, again.current_step) == (ExecutionStatus.WAITING, "ask")
    anew, token = flows.DELIVERED[-1]
    assert anew.task_id != asked.task_id
    with pytest.raises(ConflictError):
        Answers(jobs).complete(asked.task_id, old_token, [])
    Answers(jobs).complete(anew.task_id, token, [])
    run_jobs(jobs, QUEUE)
    assert Executions(jobs).records.get_execution(execution.execution_id).status is ExecutionStatus.COMPLETED


def test_only_what_failed_on_the_engine_is_retried(jobs: Jobs) -> None:
    execution, *_ = waiting(jobs)
    with pytest.raises(ConflictError, match="only a failed one"):
        Executions(jobs).retry(execution.execution_id)
    with pytest.raises(NotFoundError):
        Executions(jobs).retry("nobody")
    Executions(jobs).records.add_execution(stored_execution("other", DURABLE, 1).replace(status=ExecutionStatus.FAILED))
    with pytest.raises(NotFoundError, match="not run by the job engine"):
        Executions(jobs).retry("other")


def test_of_several_retries_one_wins(jobs: Jobs) -> None:
    execution_id = failed(jobs, "STEP_ONCE", "two").execution_id

    def retry(_: int) -> bool:
        try:
            Executions(jobs).retry(execution_id)
        except ConflictError:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(retry, range(8))) == 1
    assert run_jobs(jobs, QUEUE) == 1


@pytest.mark.parametrize("name", TYPES)
def test_a_job_of_an_earlier_attempt_does_nothing_any_more(jobs: Jobs, name: str) -> None:
    """Its worker was lost after it had failed the execution, so it is run again."""
    execution_id = failed(jobs, name, "one").execution_id
    Executions(jobs).retry(execution_id)
    run_again(jobs, [jobs.queries.get_job(execution_id)])
    assert flows.RAN == []
    assert Executions(jobs).records.get_execution(execution_id).current_step == "one"


def test_a_retry_whose_job_was_not_submitted_goes_on(jobs: Jobs, clock: FakeClock) -> None:
    execution_id = failed(jobs, "STEP_ONCE", "two").execution_id
    for writes in range(10):
        if not dies_after(jobs.store, jobs.objects, writes, partial(_retry, execution_id)):
            break
        if Executions(jobs).records.get_execution(execution_id).status is ExecutionStatus.RUNNING:
            clock.advance(11)
            Watch(jobs).expire_due()
            break
    run_jobs(jobs, QUEUE)
    assert Executions(jobs).records.get_execution(execution_id).status is ExecutionStatus.WAITING


def _retry(execution_id: str, store: Store, objects: ObjectStore) -> None:
    Executions(Jobs(store, objects)).retry(execution_id)


# --- deleting ---------------------------------------------------------------------------------------------------------


def left(jobs: Jobs) -> list[str]:
    """What is left besides queues, in the tables and in object storage."""
    kinds = [item.get("TYPE", item.get("entityType"))["S"] for items in state(jobs) for item in items]
    return [kind for kind in kinds if kind not in ("QUEUE", "DEPENDENCY_GRAPH")] + [k.key for k in jobs.objects.list()]


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("is_answered", [False, True])
def test_what_no_index_shows_yet_is_deleted_too(
    late_jobs: Jobs, clock: FakeClock, name: str, is_answered: bool
) -> None:
    execution, asked, token = waiting_unseen(late_jobs, clock, name)
    if is_answered:
        Answers(late_jobs).complete(asked.task_id, token, [])
    Executions(late_jobs).delete(execution.execution_id, stop=True)
    assert left(late_jobs) == []


@pytest.mark.parametrize("name", TYPES)
def test_an_execution_is_deleted_with_all_it_left(each_jobs: Jobs, name: str) -> None:
    execution, asked, token = waiting(each_jobs, name)
    with pytest.raises(ConflictError, match="is waiting; stop it or wait"):
        Executions(each_jobs).delete(execution.execution_id)
    Answers(each_jobs).complete(asked.task_id, token, [])
    run_jobs(each_jobs, QUEUE)
    assert Executions(each_jobs).delete(execution.execution_id) > 5
    assert left(each_jobs) == []


def test_what_runs_is_stopped_first_when_that_is_asked_for(jobs: Jobs) -> None:
    execution_id = Executions(jobs).start(path("STEP"), b"image", "image.jpg").execution_id
    (lease,) = jobs.claim(QUEUE, limit=1, instance_id="test", lease_seconds=60)
    with pytest.raises(ConflictError, match="a worker runs job"):
        Executions(jobs).delete(execution_id, stop=True)
    assert Executions(jobs).records.get_execution(execution_id).failure == "stopped by local"
    jobs.finish(lease, Outcome("cancelled"))
    Executions(jobs).delete(execution_id)
    assert left(jobs) == []
    waiting(jobs)
    Executions(jobs).delete(flows.DELIVERED[-1][0].execution_id, stop=True)
    assert left(jobs) == []


def test_a_step_that_ends_while_its_execution_is_stopped_does_no_harm(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    executions = Executions(jobs)
    execution_id = executions.start(path("STEP"), b"image", "image.jpg").execution_id

    def stop_meanwhile(name: str, job: JobContext) -> int:
        executions.fail(executions.records.get_execution(execution_id), "stopped by ada")
        jobs.cancel(execution_id)
        return 1

    monkeypatch.setattr(flows, "_run", stop_meanwhile)
    assert run_jobs(jobs, QUEUE, retryable=True) == 1
    assert jobs.queries.get_job(execution_id).status is Status.COMPLETED
    executions.delete(execution_id)
    assert left(jobs) == []


def test_an_execution_that_moves_while_it_is_stopped_is_stopped_where_it_is(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    executions = Executions(jobs)
    execution_id = executions.start(path("STEP"), b"image", "image.jpg").execution_id
    real, moved = executions.fail, list[int]()

    def move_first(execution: Execution, reason: str) -> Execution:
        if not moved:
            moved.append(run_jobs(jobs, QUEUE, most=1))
        return real(execution, reason)

    monkeypatch.setattr(executions, "fail", move_first)
    executions.delete(execution_id, stop=True)
    assert left(jobs) == []


def test_a_job_that_only_has_the_same_id_stays(jobs: Jobs) -> None:
    Executions(jobs).records.add_execution(stored_execution("other", DURABLE, 1).replace(status=ExecutionStatus.FAILED))
    jobs.submit(NewJob(name="of somebody else", task="builtins:print", job_id="other"))
    Executions(jobs).delete("other")
    assert jobs.queries.get_job("other").status is Status.PENDING


def test_a_job_of_an_execution_is_not_deleted_without_it(jobs: Jobs) -> None:
    execution_id = waiting(jobs)[0].execution_id
    with pytest.raises(JobStateError, match=f"`jobtable executions delete {execution_id}`"):
        jobs.delete(execution_id, tree=True)
    (second,) = jobs.queries.list_descendants(execution_id)
    with pytest.raises(JobStateError, match=f"`jobtable executions delete {execution_id}`"):
        jobs.delete(second.job_id)
    jobs.submit(NewJob(name="of somebody else", task="m:f", job_id="mine", job_type="album-execution"))
    jobs.cancel("mine")
    assert jobs.delete("mine") > 0


def test_an_execution_whose_first_job_is_gone_fails_with_that_reason(jobs: Jobs, clock: FakeClock) -> None:
    execution, asked, token = waiting(jobs)
    jobs.delete_for_system(execution.execution_id)
    answered = Answers(jobs).complete(asked.task_id, token, [])
    assert (answered.status, answered.failure) == (
        ExecutionStatus.FAILED,
        f"job {execution.execution_id}, the root of its jobs, no longer exists",
    )
    started = Executions(jobs).start(path("STEP"), b"image", "image.jpg")
    run_jobs(jobs, QUEUE, most=1)
    jobs.cancel(second_job(jobs, started.execution_id))
    jobs.delete_for_system(started.execution_id)
    clock.advance(11)
    assert Watch(jobs).expire_due().failed == 1
    assert "no longer exists" in str(Executions(jobs).records.get_execution(started.execution_id).failure)


def second_job(jobs: Jobs, execution_id: str) -> str:
    """The job of the second step."""
    (second,) = jobs.queries.list_descendants(execution_id)
    return second.job_id


def test_an_execution_whose_id_a_job_of_somebody_else_took_fails(jobs: Jobs, clock: FakeClock) -> None:
    started = Executions(jobs).start(path("STEP"), b"image", "image.jpg")
    jobs.cancel(started.execution_id)
    jobs.delete_for_system(started.execution_id)
    jobs.submit(NewJob(name="of somebody else", task="m:f", job_id=started.execution_id))
    clock.advance(11)
    assert Watch(jobs).expire_due().failed == 1
    assert "is not of this execution" in str(Executions(jobs).records.get_execution(started.execution_id).failure)


def test_a_deletion_that_was_interrupted_is_finished_by_the_next(jobs: Jobs) -> None:
    for writes in range(1000):
        execution_id = waiting(jobs)[0].execution_id
        was_interrupted = dies_after(jobs.store, jobs.objects, writes, partial(_delete, execution_id))
        if not was_interrupted:
            assert writes > 5
            break
        Executions(jobs).delete(execution_id, stop=True)
        assert left(jobs) == []
    assert left(jobs) == []


def _delete(execution_id: str, store: Store, objects: ObjectStore) -> None:
    Executions(Jobs(store, objects)).delete(execution_id, stop=True)


def test_an_execution_that_changes_all_the_time_is_not_deleted(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    execution, _, _ = waiting(jobs)
    tries = 0

    def refuse(*_: object) -> Execution:
        nonlocal tries
        tries += 1
        assert tries < 1000, "it never gives up"
        raise ConflictError("it has moved on")

    monkeypatch.setattr(Executions, "fail", refuse)
    with pytest.raises(ConflictError, match=f"could not delete execution {execution.execution_id}: it kept changing"):
        Executions(jobs).delete(execution.execution_id, stop=True)
