"""Executions that failed: retried from the step where they did, and deleted with everything that they left."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from tests.interruptions import dies_after
from tests.systems.albums.access_patterns import DURABLE
from tests.systems.albums.access_patterns import execution as stored_execution
from tests.systems.albums.driving import DELIVERED, KINDS, answer, checked, start, waiting, work
from tests.systems.albums.test_executions import FUNCTIONS, each_kind, state

from jobtable.errors import ConflictError, JobStateError, NotFoundError
from jobtable.jobs.engine import Jobs
from jobtable.jobs.stored.field_types import Status
from jobtable.jobs.submit.definition import NewJob
from jobtable.objects import ObjectStore
from jobtable.store import Store
from jobtable.systems.albums import album_checks
from jobtable.systems.albums.album_executions import Executions
from jobtable.systems.albums.answers import Answers
from jobtable.systems.albums.entities import Execution, ExecutionStatus, ValidationTask, WorkflowType
from jobtable.systems.albums.found_albums import find_albums
from jobtable.systems.albums.watch import Watch
from jobtable.testing import FakeClock
from jobtable.workflows.table_and_queues import QUEUES

BROKEN: set[str] = set()
RAN: list[str] = []


@pytest.fixture(autouse=True)
def _breakable(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What the steps call says which step ran, and fails it if it is in BROKEN."""

    def breaking(step: str, real: Any) -> Any:
        def called(*given: Any, **more: Any) -> Any:
            RAN.append(step)
            if step in BROKEN:
                raise TypeError(f"{step} is broken")
            return real(*given, **more)

        return called

    monkeypatch.setattr(f"{FUNCTIONS}.find_albums", breaking("read-image", find_albums))
    for name, step in (("check_year", "check-years"), ("apply_answer", "apply-answer"), ("price", "price")):
        monkeypatch.setattr(album_checks, name, breaking(step, getattr(album_checks, name)))
    BROKEN.clear()
    RAN.clear()
    yield
    BROKEN.clear()


def failed(jobs: Jobs, kind: WorkflowType, step: str) -> Execution:
    """An execution that failed at a step before the question."""
    BROKEN.add(step)
    found = checked(jobs, start(jobs, kind).execution_id)
    BROKEN.clear()
    RAN.clear()
    assert (found.status, found.current_step) == (ExecutionStatus.FAILED, step)
    assert f"TypeError: {step} is broken" in str(found.failure)
    return found


@each_kind
@pytest.mark.parametrize(
    ("step", "ran"), [("read-image", {"read-image", "check-years"}), ("check-years", {"check-years"})]
)
def test_a_failed_execution_goes_on_where_it_failed(
    each_jobs: Jobs, kind: WorkflowType, step: str, ran: set[str]
) -> None:
    executions = Executions(each_jobs)
    BROKEN.add(step)
    before = start(each_jobs, kind)
    _until_failed(each_jobs, before.execution_id)
    BROKEN.clear()
    RAN.clear()
    again = executions.retry(before.execution_id)
    assert (again.status, again.current_step, again.attempt) == (ExecutionStatus.RUNNING, step, 2)
    assert (again.end_time, again.duration_ms, again.failure) == (None, None, None)
    work(each_jobs)
    assert set(RAN) == ran
    asked, token = DELIVERED[-1]
    Answers(each_jobs).complete(asked.task_id, token, answer(asked))
    ended = checked(each_jobs, before.execution_id)
    assert (ended.status, ended.attempt) == (ExecutionStatus.COMPLETED, 2)
    assert set(RAN) == ran | {"apply-answer", "price"}


def _until_failed(jobs: Jobs, execution_id: str) -> None:
    """Work with pauses by whichever clock there is: a step is tried three times."""
    while checked(jobs, execution_id).status is not ExecutionStatus.FAILED:
        jobs.clock.sleep(0.2)


@each_kind
def test_only_the_time_of_the_attempts_counts(jobs: Jobs, clock: FakeClock, kind: WorkflowType) -> None:
    before = failed(jobs, kind, "check-years")
    assert before.duration_ms is not None
    clock.advance(3600)
    Executions(jobs).retry(before.execution_id)
    BROKEN.add("check-years")
    began = clock.now()
    ended = checked(jobs, before.execution_id)
    took = 1000 * (clock.now() - began).total_seconds()
    assert (ended.status, ended.attempt) == (ExecutionStatus.FAILED, 2)
    assert ended.duration_ms == pytest.approx(before.duration_ms + took, abs=20)
    assert Executions(jobs).retry(before.execution_id).attempt == 3


@each_kind
def test_the_answer_of_a_person_outlives_a_failure(jobs: Jobs, kind: WorkflowType) -> None:
    execution, asked, token = waiting(jobs, kind)
    BROKEN.add("price")
    Answers(jobs).complete(asked.task_id, token, answer(asked)[:2])
    assert checked(jobs, execution.execution_id).status is ExecutionStatus.FAILED
    BROKEN.clear()
    Executions(jobs).retry(execution.execution_id)
    assert checked(jobs, execution.execution_id).status is ExecutionStatus.COMPLETED
    assert len(Executions(jobs).records.list_albums(execution.execution_id)) == 2
    assert len(DELIVERED) == 1


@each_kind
def test_the_answer_of_a_person_is_found_before_an_index_shows_its_task(
    late_jobs: Jobs, clock: FakeClock, kind: WorkflowType
) -> None:
    execution, asked, token = waiting_unseen(late_jobs, clock, kind)
    Answers(late_jobs).complete(asked.task_id, token, answer(asked)[:1])
    for _ in range(9):
        clock.advance(2)
        work(late_jobs)
    assert Executions(late_jobs).records.get_execution(execution.execution_id).status is ExecutionStatus.COMPLETED
    assert len(Executions(late_jobs).records.list_albums(execution.execution_id)) == 1


def waiting_unseen(jobs: Jobs, clock: FakeClock, kind: WorkflowType) -> tuple[Execution, ValidationTask, str]:
    """An execution that waits since a moment ago, so that late indexes do not show its task."""
    execution_id = start(jobs, kind).execution_id
    while Executions(jobs).records.get_execution(execution_id).status is ExecutionStatus.RUNNING:
        clock.advance(2)  # or nobody would find the job
        work(jobs, most=1)
    return Executions(jobs).records.get_execution(execution_id), *DELIVERED[-1]


@each_kind
def test_a_question_that_nobody_answered_is_asked_again(jobs: Jobs, clock: FakeClock, kind: WorkflowType) -> None:
    execution, asked, old_token = waiting(jobs, kind)
    clock.advance(301)
    assert Watch(jobs).expire_due().timed_out == 1
    assert checked(jobs, execution.execution_id).status is ExecutionStatus.FAILED
    Executions(jobs).retry(execution.execution_id)
    work(jobs)
    again = Executions(jobs).records.get_execution(execution.execution_id)
    assert (again.status, again.current_step) == (ExecutionStatus.WAITING, "validate")
    anew, token = DELIVERED[-1]
    assert anew.task_id != asked.task_id
    with pytest.raises(ConflictError):
        Answers(jobs).complete(asked.task_id, old_token, [])
    Answers(jobs).complete(anew.task_id, token, [])
    assert checked(jobs, execution.execution_id).status is ExecutionStatus.COMPLETED


@each_kind
def test_only_what_failed_on_the_engine_is_retried(jobs: Jobs, kind: WorkflowType) -> None:
    execution, *_ = waiting(jobs, kind)
    with pytest.raises(ConflictError, match="only a failed one"):
        Executions(jobs).retry(execution.execution_id)
    with pytest.raises(NotFoundError):
        Executions(jobs).retry("nobody")
    Executions(jobs).records.add_execution(stored_execution("other", kind, 1).replace(status=ExecutionStatus.FAILED))
    with pytest.raises(NotFoundError, match="is not run by Jobtable"):
        Executions(jobs).retry("other")


@each_kind
def test_of_several_retries_one_wins(jobs: Jobs, kind: WorkflowType) -> None:
    execution_id = failed(jobs, kind, "check-years").execution_id

    def retry(_: int) -> bool:
        try:
            Executions(jobs).retry(execution_id)
        except ConflictError:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(retry, range(8))) == 1
    work(jobs)
    assert len(DELIVERED) == 1


@each_kind
def test_a_retry_whose_run_was_not_started_goes_on(jobs: Jobs, clock: FakeClock, kind: WorkflowType) -> None:
    writes = -1
    for writes in range(12):
        execution_id = failed(jobs, kind, "check-years").execution_id
        if not dies_after(jobs.store, jobs.objects, writes, partial(_retry, execution_id)):
            break
        if Executions(jobs).records.get_execution(execution_id).status is ExecutionStatus.RUNNING:
            clock.advance(11)
            Watch(jobs).expire_due()
            work(jobs)
            assert Executions(jobs).records.get_execution(execution_id).status is ExecutionStatus.WAITING
    assert 0 < writes < 11


def _retry(execution_id: str, store: Store, objects: ObjectStore) -> None:
    Executions(Jobs(store, objects)).retry(execution_id)


# --- deleting ---------------------------------------------------------------------------------------------------------

_OF_THE_STORE = {"QUEUE", "DEPENDENCY_GRAPH", "FUNCTION", "DURABLE_KEY", "STATE_MACHINE", "MACHINE_DEFINITION"}


def left(jobs: Jobs) -> list[str]:
    """What is left of executions in the tables and in object storage; digests of answered tokens go by themselves."""
    there = [item for items in state(jobs) for item in items if "TimeToLive" not in item]
    kinds = [item.get("TYPE", item.get("entityType"))["S"] for item in there]
    return [kind for kind in kinds if kind not in _OF_THE_STORE] + [each.key for each in jobs.objects.list()]


@each_kind
@pytest.mark.parametrize("is_answered", [False, True])
def test_what_no_index_shows_yet_is_deleted_too(
    late_jobs: Jobs, clock: FakeClock, kind: WorkflowType, is_answered: bool
) -> None:
    execution, asked, token = waiting_unseen(late_jobs, clock, kind)
    if is_answered:
        Answers(late_jobs).complete(asked.task_id, token, [])
    Executions(late_jobs).delete(execution.execution_id, stop=True)
    assert left(late_jobs) == []


@each_kind
def test_an_execution_is_deleted_with_all_it_left(each_jobs: Jobs, kind: WorkflowType) -> None:
    execution, asked, token = waiting(each_jobs, kind)
    with pytest.raises(ConflictError, match="is waiting; stop it or wait"):
        Executions(each_jobs).delete(execution.execution_id)
    Answers(each_jobs).complete(asked.task_id, token, [])
    checked(each_jobs, execution.execution_id)
    assert Executions(each_jobs).delete(execution.execution_id) > 5
    assert left(each_jobs) == []


@each_kind
def test_a_retried_execution_is_deleted_with_all_attempts(jobs: Jobs, kind: WorkflowType) -> None:
    execution_id = failed(jobs, kind, "check-years").execution_id
    Executions(jobs).retry(execution_id)
    work(jobs)
    Executions(jobs).delete(execution_id, stop=True)
    assert left(jobs) == []


@each_kind
def test_what_runs_is_stopped_first_when_that_is_asked_for(jobs: Jobs, kind: WorkflowType) -> None:
    execution_id = start(jobs, kind).execution_id
    leases = [each for queue in QUEUES for each in jobs.claim(queue, limit=1, instance_id="x", lease_seconds=60)]
    with pytest.raises(ConflictError, match="a worker runs job"):
        Executions(jobs).delete(execution_id, stop=True)
    assert Executions(jobs).records.get_execution(execution_id).failure == "stopped by local"
    for lease in leases:
        jobs.interrupt_lost(jobs.queries.get_job(lease.job.job_id))
    Executions(jobs).delete(execution_id)
    assert left(jobs) == []
    waiting(jobs, kind)
    Executions(jobs).delete(DELIVERED[-1][0].execution_id, stop=True)
    assert left(jobs) == []


@each_kind
def test_a_step_that_ends_while_its_execution_is_stopped_does_no_harm(
    jobs: Jobs, kind: WorkflowType, monkeypatch: pytest.MonkeyPatch
) -> None:
    executions = Executions(jobs)
    execution_id = start(jobs, kind).execution_id
    real = find_albums

    def stop_meanwhile(read: Any) -> Any:
        executions.fail(executions.records.get_execution(execution_id), "stopped by ada")
        return real(read)

    monkeypatch.setattr(f"{FUNCTIONS}.find_albums", stop_meanwhile)
    work(jobs)
    assert executions.records.list_albums(execution_id) == []
    executions.delete(execution_id)
    assert left(jobs) == []


@each_kind
def test_an_execution_that_moves_while_it_is_stopped_is_stopped_where_it_is(
    jobs: Jobs, kind: WorkflowType, monkeypatch: pytest.MonkeyPatch
) -> None:
    executions = Executions(jobs)
    execution_id = start(jobs, kind).execution_id
    real, moved = executions.fail, list[int]()

    def move_first(execution: Execution, reason: str) -> Execution:
        if not moved:
            moved.append(work(jobs))
        return real(execution, reason)

    monkeypatch.setattr(executions, "fail", move_first)
    executions.delete(execution_id, stop=True)
    assert left(jobs) == []


def test_a_job_that_only_has_the_same_id_stays(jobs: Jobs) -> None:
    Executions(jobs).records.add_execution(stored_execution("other", DURABLE, 1).replace(status=ExecutionStatus.FAILED))
    jobs.submit(NewJob(name="of somebody else", task="builtins:print", job_id="other"))
    Executions(jobs).delete("other")
    assert jobs.queries.get_job("other").status is Status.PENDING


@each_kind
def test_a_job_of_an_execution_is_not_deleted_without_it(jobs: Jobs, kind: WorkflowType) -> None:
    execution, asked, token = waiting(jobs, kind)
    Answers(jobs).complete(asked.task_id, token, answer(asked))
    checked(jobs, execution.execution_id)
    for job in jobs.queries.list_jobs():
        with pytest.raises(JobStateError, match=f"`jobtable executions delete {execution.execution_id}`"):
            jobs.delete(job.job_id, tree=True)
    jobs.submit(NewJob(name="of somebody else", task="m:f", job_id="mine", job_type="album-execution"))
    jobs.cancel("mine")
    assert jobs.delete("mine") > 0


def test_an_execution_that_changes_all_the_time_is_not_deleted(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    execution, _, _ = waiting(jobs, KINDS[1])
    tries = 0

    def refuse(*_: object) -> Execution:
        nonlocal tries
        tries += 1
        assert tries < 1000, "it never gives up"
        raise ConflictError("it has moved on")

    monkeypatch.setattr(Executions, "fail", refuse)
    with pytest.raises(ConflictError, match=f"could not delete execution {execution.execution_id}: it kept changing"):
        Executions(jobs).delete(execution.execution_id, stop=True)
