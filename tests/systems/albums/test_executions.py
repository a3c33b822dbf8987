"""Executions of both workflow types: from step to step, through questions, failures and crashes, to their end."""

from __future__ import annotations

import contextlib
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.clouds import BusyItems
from tests.jobs.engines import DisturbedBackend
from tests.running import jobs_in_memory, run_again, run_jobs, run_task
from tests.systems.albums import workflows as flows
from tests.systems.albums.access_patterns import DURABLE, execution, task

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import (
    AlreadyExistsError,
    ConflictError,
    DefinitionError,
    JobtableError,
    NotFoundError,
    TaskClosedError,
    Throttled,
    TokenRefusedError,
    ValueRefusedError,
)
from jobtable.jobs.engine import Jobs
from jobtable.jobs.stored.entities import Job, main
from jobtable.jobs.stored.field_types import Status
from jobtable.jobs.submit.definition import NewJob
from jobtable.store import Store
from jobtable.systems.albums.answers import Answers
from jobtable.systems.albums.definitions import HumanStep, Step, WorkflowDefinition, load_definition
from jobtable.systems.albums.entities import (
    Album,
    AlbumData,
    Execution,
    ExecutionStatus,
    ExecutionWatch,
    TaskStatus,
    ValidationTask,
    WorkflowType,
    token_digest,
    workflows,
)
from jobtable.systems.albums.example import PATHS
from jobtable.systems.albums.executions import QUEUE, Executions
from jobtable.systems.albums.service import AlbumWorkflows
from jobtable.systems.albums.watch import Watch, WatchReport
from jobtable.testing import FakeClock

LISTING = b"""Pink Floyd - The Dark Side of the Moon (1973)
The Beatles - Abbey Road (1996)
this is no album
Nobody - Nothing (1066)
Kraftwerk - Autobahn (1974)
"""


def path(name: str) -> str:
    return f"tests.systems.albums.workflows:{name}"


def waiting(jobs: Jobs, name: str = "STEP") -> tuple[Execution, ValidationTask, str]:
    """An execution that waits for a person, its task, and the token."""
    executions = Executions(jobs)
    started = executions.start(path(name), b"image", "image.jpg")
    run_jobs(jobs, QUEUE)
    execution = executions.records.get_execution(started.execution_id)
    assert execution.status is ExecutionStatus.WAITING
    return execution, *flows.DELIVERED[-1]


def state(jobs: Jobs) -> list[Any]:
    """Every item of the two tables."""
    names = [jobs.store.table_name(table) for table in (Execution.__schema__.table, Job.__schema__.table)]
    return [jobs.store.backend.execute("Scan", {"TableName": name})["Items"] for name in names]


# --- how much a person can be asked -----------------------------------------------------------------------------------


def many_albums(jobs: Jobs, name: str, count: int) -> Execution:
    """An execution that has come to its question with so many albums of half a kilobyte."""
    executions = Executions(jobs)
    started = executions.start(path(name), b"image", "image.jpg")
    first = Album(
        execution_id=started.execution_id,
        workflow_type=started.workflow_type,
        album_index=0,
        album_name="x" * 200,
        artist="x" * 200,
        year=1973,
        created_at=started.created_at,
        updated_at=started.created_at,
    )
    executions.records.put_albums(first.replace(album_index=index, sort_value=index) for index in range(count))
    run_jobs(jobs, QUEUE)
    return executions.records.get_execution(started.execution_id)


@pytest.mark.parametrize("name", ["STEP", "DURABLE"])
def test_what_a_person_is_asked_about_can_be_answered(jobs: Jobs, name: str) -> None:
    assert many_albums(jobs, name, 380).status is ExecutionStatus.WAITING
    asked, token = flows.DELIVERED[-1]
    Answers(jobs).complete(asked.task_id, token, [album.model_dump(mode="json") for album in asked.albums])
    run_jobs(jobs, QUEUE)
    assert Executions(jobs).records.get_execution(asked.execution_id).status is ExecutionStatus.COMPLETED


@pytest.mark.parametrize("name", ["STEP", "DURABLE"])
@pytest.mark.parametrize("count", [450, 2_000])
def test_more_albums_than_a_person_can_answer_about_end_the_execution_at_once(
    jobs: Jobs, name: str, count: int
) -> None:
    execution = many_albums(jobs, name, count)
    assert execution.status is ExecutionStatus.FAILED
    assert f"has {count:,} albums, too many for one question" in str(execution.failure)
    assert flows.DELIVERED == []
    (failed,) = jobs.queries.list_jobs_by_status(Status.FAILED)
    assert failed.attempts == 1
    assert Executions(jobs).records.list_albums(execution.execution_id)[-1].album_index == count - 1


# --- from start to end ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workflow_type", list(WorkflowType))
def test_the_example_runs_from_a_listing_to_priced_albums(each_jobs: Jobs, workflow_type: WorkflowType) -> None:
    executions = Executions(each_jobs)
    started = executions.start(PATHS[workflow_type], LISTING, "shelf.txt")
    assert (started.status, started.current_step) == (ExecutionStatus.RUNNING, "extract")
    run_jobs(each_jobs, QUEUE)
    execution = executions.records.get_execution(started.execution_id)
    assert (execution.status, execution.current_step) == (ExecutionStatus.WAITING, "validate")
    watch = executions.get_watch(started.execution_id)
    asked = executions.records.get_task(str(watch.task_id))
    assert [album.album_name for album in asked.albums] == ["The Dark Side of the Moon", "Abbey Road", "Autobahn"]
    token = Answers(each_jobs).renew_token(asked.task_id)
    answer = [album.model_dump(mode="json") for album in asked.albums[:2]]
    answer[1]["year"] = 1969
    Answers(each_jobs).complete(asked.task_id, token, answer)
    run_jobs(each_jobs, QUEUE)
    found = executions.records.get_execution_with_albums(started.execution_id)
    assert found.execution.status is ExecutionStatus.COMPLETED
    assert [(album.album_name, album.year, album.year_original) for album in found.albums] == [
        ("The Dark Side of the Moon", 1973, 1973),
        ("Abbey Road", 1969, 1996),
    ]
    assert all(album.price_estimate and album.year_validated for album in found.albums)
    jobs_of = list(each_jobs.queries.list_descendants(started.execution_id))
    stages = (
        ["check-years", "apply-answer", "price"] if workflow_type is WorkflowType.STEP_FUNCTIONS else ["apply-answer"]
    )
    assert sorted(str(job.job_stage) for job in jobs_of) == sorted(stages)
    assert {job.parent_job_id for job in jobs_of} == {started.execution_id}
    with pytest.raises(NotFoundError):
        executions.get_watch(started.execution_id)


@pytest.mark.parametrize(("name", "jobs_before"), [("STEP", 2), ("DURABLE", 1)])
def test_time_and_cost_are_kept(jobs: Jobs, clock: FakeClock, name: str, jobs_before: int) -> None:
    execution, asked, token = waiting(jobs, name)
    assert flows.RAN == ["one", "two"]
    assert len(list(jobs.queries.list_jobs_by_status(Status.COMPLETED))) == jobs_before
    assert execution.estimated_cost == pytest.approx(2 * (1.0 + 2 * 0.25))
    assert (execution.end_time, execution.duration_ms) == (None, None)
    clock.advance(60)
    Answers(jobs).complete(asked.task_id, token, [])
    run_jobs(jobs, QUEUE)
    ended = Executions(jobs).records.get_execution(execution.execution_id)
    assert ended.status is ExecutionStatus.COMPLETED
    assert ended.estimated_cost == pytest.approx(3 * (1.0 + 2 * 0.25))
    assert ended.duration_ms == pytest.approx(66_000, abs=1)
    assert ended.end_time is not None
    assert ended.end_time - ended.start_time == pytest.approx(timedelta(seconds=66), abs=timedelta(milliseconds=1))


def test_an_execution_cannot_have_the_id_of_a_task(jobs: Jobs) -> None:
    _, asked, _ = waiting(jobs)
    before = state(jobs)
    with pytest.raises(ConflictError, match=f"{asked.task_id} is already the id of a task"):
        Executions(jobs).start(path("STEP"), b"image", "image.jpg", execution_id=asked.task_id)
    assert state(jobs) == before


def test_no_worker_is_held_while_an_execution_waits(jobs: Jobs) -> None:
    waiting(jobs)
    assert {job.status for job in jobs.queries.list_jobs()} == {Status.COMPLETED}
    assert list(jobs.queries.list_ready(QUEUE)) == []


def test_one_question_can_follow_another(jobs: Jobs) -> None:
    execution, first, token = waiting(jobs, "TWO_QUESTIONS")
    between = Answers(jobs).complete(first.task_id, token, [])
    assert (between.status, between.current_step) == (ExecutionStatus.WAITING, "ask-again")
    second, token = flows.DELIVERED[-1]
    assert second.task_id != first.task_id
    assert Answers(jobs).complete(second.task_id, token, []).status is ExecutionStatus.COMPLETED
    assert Executions(jobs).records.get_execution(execution.execution_id).end_time is not None


# --- answers ----------------------------------------------------------------------------------------------------------


def test_an_answer_is_taken_also_if_the_next_question_cannot_be_delivered(jobs: Jobs) -> None:
    execution, asked, token = waiting(jobs, "UNDELIVERED")
    answered = Answers(jobs).complete(asked.task_id, token, [])
    assert (answered.status, answered.current_step) == (ExecutionStatus.WAITING, "ask-again")
    next_task = Executions(jobs).records.get_task(str(Executions(jobs).get_watch(execution.execution_id).task_id))
    assert "fail_to_deliver failed: RuntimeError: the mail server is down" in str(next_task.delivery_problem)
    assert asked.delivery_problem is None
    Answers(jobs).complete(next_task.task_id, Answers(jobs).renew_token(next_task.task_id), [])


def test_the_token_is_given_once_and_only_its_digest_is_kept(jobs: Jobs) -> None:
    _, asked, token = waiting(jobs)
    assert len(token) >= 22
    assert Executions(jobs).records.get_task(asked.task_id).token_sha256 == token_digest(token)
    assert token not in str(state(jobs))
    assert len(flows.DELIVERED) == 1


ALBUM = {"albumIndex": 1, "albumName": "Autobahn", "artist": "Kraftwerk", "year": 1974}


@pytest.mark.parametrize(
    "answer",
    [
        None,
        "yes",
        {},
        [1],
        [{}],
        [{**ALBUM, "year": 1066}],
        [{**ALBUM, "albumName": ""}],
        [{**ALBUM, "albumName": "x" * 201}],
        [{**ALBUM, "priceConfidence": 2}],
        [{**ALBUM, "albumIndex": 9}],
        [ALBUM, ALBUM],
        [{**ALBUM, "artist": "\ud800"}],
    ],
    ids=repr,
)
def test_a_malformed_answer_changes_nothing(jobs: Jobs, answer: object) -> None:
    executions = Executions(jobs)
    execution = executions.start(path("EXAMPLE"), b"Kraftwerk - Autobahn (1974)", "list.txt")
    run_jobs(jobs, QUEUE)
    asked, token = flows.DELIVERED[-1]
    before = state(jobs)
    with pytest.raises(ValueRefusedError):
        Answers(jobs).complete(asked.task_id, token, answer)
    assert state(jobs) == before
    answers = Answers(jobs)
    assert answers.complete(asked.task_id, token, [ALBUM]).status is ExecutionStatus.RUNNING
    assert executions.find_answer(execution.execution_id) is not None


def test_a_forged_a_repeated_and_a_late_answer_change_nothing(jobs: Jobs, clock: FakeClock) -> None:
    _, asked, token = waiting(jobs)
    answers = Answers(jobs)
    before = state(jobs)
    for forged in ("", token[:-1], token + "x", token_digest(token), "\ud800"):
        with pytest.raises(TokenRefusedError):
            answers.complete(asked.task_id, forged, [])
    with pytest.raises(NotFoundError, match="there is no task nothing"):
        answers.complete("nothing", token, [])
    with pytest.raises(NotFoundError):
        answers.complete("", token, [])
    assert state(jobs) == before
    answers.complete(asked.task_id, token, [])
    before = state(jobs)
    with pytest.raises(TaskClosedError, match="already answered"):
        answers.complete(asked.task_id, token, [])
    with pytest.raises(TokenRefusedError):
        answers.complete(asked.task_id, "forged", [])
    clock.advance(3600)
    with pytest.raises(TaskClosedError, match="already answered"):
        answers.complete(asked.task_id, token, [])
    assert state(jobs) == before


def test_a_renewed_token_takes_the_place_of_the_first(jobs: Jobs) -> None:
    _, asked, token = waiting(jobs)
    answers = Answers(jobs)
    renewed = answers.renew_token(asked.task_id)
    with pytest.raises(TokenRefusedError):
        answers.complete(asked.task_id, token, [])
    answers.complete(asked.task_id, renewed, [])
    with pytest.raises(TaskClosedError):
        answers.renew_token(asked.task_id)


def test_an_answer_is_kept_with_the_task(jobs: Jobs) -> None:
    Executions(jobs).start(path("EXAMPLE"), LISTING, "list.txt")
    run_jobs(jobs, QUEUE)
    asked, token = flows.DELIVERED[-1]
    Answers(jobs).complete(asked.task_id, token, [{**ALBUM, "albumIndex": 3}])
    kept = Executions(jobs).records.get_task(asked.task_id)
    assert kept.status is TaskStatus.COMPLETED
    assert kept.validated_data == [AlbumData(album_index=3, album_name="Autobahn", artist="Kraftwerk", year=1974)]
    assert kept.completed_at is not None


# --- time -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "status", "step"),
    [
        ("STEP", ExecutionStatus.FAILED, "ask"),
        ("DURABLE", ExecutionStatus.FAILED, "ask"),
        ("STEP_CONTINUES", ExecutionStatus.RUNNING, "three"),
        ("DURABLE_SKIPS", ExecutionStatus.RUNNING, "three"),
    ],
)
@pytest.mark.parametrize("by", ["sweep", "answer"])
def test_a_task_times_out_and_the_execution_goes_its_way(
    jobs: Jobs, clock: FakeClock, name: str, status: ExecutionStatus, step: str, by: str
) -> None:
    execution, asked, token = waiting(jobs, name)
    watch = Watch(jobs)
    clock.set(asked.expires_at - timedelta(milliseconds=1))
    assert watch.expire_due().looked_at == 0
    clock.set(asked.expires_at + timedelta(milliseconds=1))
    if by == "sweep":
        assert watch.expire_due().timed_out == 1
    with pytest.raises(TaskClosedError, match="timed out at"):
        Answers(jobs).complete(asked.task_id, token, [])
    assert watch.expire_due().timed_out == 0
    records = Executions(jobs).records
    assert records.get_task(asked.task_id).status is TaskStatus.TIMED_OUT
    moved = records.get_execution(execution.execution_id)
    assert (moved.status, moved.current_step) == (status, step)
    if status is ExecutionStatus.FAILED:
        assert moved.failure == "nobody answered step ask in time"
        assert moved.duration_ms is not None
    else:
        run_jobs(jobs, QUEUE)
        assert records.get_execution(execution.execution_id).status is ExecutionStatus.COMPLETED
        assert flows.RAN == ["one", "two", "three"]


def test_a_clock_that_was_ahead_for_a_while_times_no_task_out(jobs: Jobs, clock: FakeClock) -> None:
    _, asked, token = waiting(jobs, "STEP_CONTINUES")
    right = clock.now()
    clock.set(asked.expires_at + timedelta(days=1))
    clock.now()
    clock.set(right)
    assert Watch(jobs).expire_due().looked_at == 0
    Answers(jobs).complete(asked.task_id, token, [])
    assert Executions(jobs).records.get_task(asked.task_id).status is TaskStatus.COMPLETED


def test_after_a_clock_was_ahead_deadlines_are_as_far_away_as_they_were(jobs: Jobs, clock: FakeClock) -> None:
    right = clock.now()
    clock.set(right + timedelta(days=365))
    clock.now()
    clock.set(right)
    lost = Executions(jobs).start(path("STEP"), b"", "image.jpg")
    jobs.cancel(lost.execution_id)
    clock.advance(11)
    assert Watch(jobs).expire_due().failed == 1
    _, asked, _ = waiting(jobs)
    clock.set(asked.expires_at - timedelta(milliseconds=1))
    assert asked.expires_at < right + timedelta(days=365)
    assert Watch(jobs).expire_due().timed_out == 0
    clock.advance(1)
    assert Watch(jobs).expire_due().timed_out == 1


# --- failures and crashes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["STEP", "DURABLE"])
def test_a_step_that_fails_often_enough_fails_the_execution(jobs: Jobs, clock: FakeClock, name: str) -> None:
    flows.BROKEN.add("two")
    started = Executions(jobs).start(path(name), b"", "image.jpg")
    for _ in range(10):
        run_jobs(jobs, QUEUE, retryable=True)
        clock.advance(600)
        jobs.promote_due(QUEUE)
    ended = Executions(jobs).records.get_execution(started.execution_id)
    assert (ended.status, ended.current_step) == (ExecutionStatus.FAILED, "two")
    assert ended.failure == "step two failed: RuntimeError: two is broken"
    assert flows.RAN == ["one", "two", "two", "two"]


@pytest.mark.parametrize("name", ["STEP", "DURABLE"])
def test_a_job_that_ends_without_a_word_is_found(jobs: Jobs, clock: FakeClock, name: str) -> None:
    started = Executions(jobs).start(path(name), b"", "image.jpg")
    jobs.cancel(started.execution_id)
    clock.advance(5)
    assert Watch(jobs).expire_due().looked_at == 0
    clock.advance(6)
    assert Watch(jobs).expire_due().failed == 1
    ended = Executions(jobs).records.get_execution(started.execution_id)
    assert ended.status is ExecutionStatus.FAILED
    assert "is CANCELLED" in str(ended.failure)
    clock.advance(60)
    assert Watch(jobs).expire_due().looked_at == 0


def test_an_execution_whose_job_is_well_is_looked_at_seldom(jobs: Jobs, clock: FakeClock) -> None:
    Executions(jobs).start(path("STEP"), b"", "image.jpg")
    looks = 0
    for _ in range(60):
        clock.advance(1)
        looks += Watch(jobs).expire_due().looked_at
    assert 4 <= looks <= 6


@pytest.mark.parametrize("name", ["STEP", "DURABLE"])
def test_every_crash_between_a_move_and_its_job_is_healed(
    jobs: Jobs, clock: FakeClock, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    executions = Executions(jobs)
    with monkeypatch.context() as patched:
        patched.setattr(jobs, "submit_many", _crash)
        with pytest.raises(KeyboardInterrupt):
            executions.start(path(name), b"", "image.jpg", execution_id="e")
    assert run_jobs(jobs, QUEUE) == 0
    clock.advance(11)
    Watch(jobs).expire_due()
    run_jobs(jobs, QUEUE)
    asked, token = flows.DELIVERED[-1]
    with monkeypatch.context() as patched:
        patched.setattr(jobs, "submit_many", _crash)
        with pytest.raises(KeyboardInterrupt):
            Answers(jobs).complete(asked.task_id, token, [])
    assert executions.records.get_execution("e").status is ExecutionStatus.RUNNING
    clock.advance(11)
    Watch(jobs).expire_due()
    run_jobs(jobs, QUEUE)
    assert executions.records.get_execution("e").status is ExecutionStatus.COMPLETED
    assert flows.RAN == ["one", "two", "three"]


@pytest.mark.parametrize("name", ["STEP", "DURABLE"])
def test_a_question_whose_process_died_over_its_delivery_is_delivered(
    jobs: Jobs, clock: FakeClock, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    execution_id = Executions(jobs).start(path(name), b"", "image.jpg").execution_id
    with monkeypatch.context() as patched:
        patched.setattr(flows, "deliver", _crash)
        with pytest.raises(KeyboardInterrupt):
            run_jobs(jobs, QUEUE)
    assert Executions(jobs).records.get_execution(execution_id).status is ExecutionStatus.WAITING
    for _ in range(3):
        clock.advance(61)
        Watch(jobs).expire_due()
    ((asked, token),) = flows.DELIVERED
    assert Answers(jobs).complete(asked.task_id, token, []).current_step == "three"


def test_who_answers_at_once_leaves_an_execution_that_is_looked_at(
    jobs: Jobs, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before it is known that the question was delivered, the next step has begun."""
    execution_id = Executions(jobs).start(path("STEP"), b"", "image.jpg").execution_id
    monkeypatch.setattr(flows, "deliver", lambda asked, token: Answers(jobs).complete(asked.task_id, token, []))
    run_jobs(jobs, QUEUE, most=2)
    assert Executions(jobs).get_watch(execution_id).due_at <= clock.now() + timedelta(seconds=10)


def _crash(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("name", ["STEP", "DURABLE"])
def test_a_job_that_runs_again_leaves_finished_steps_alone(jobs: Jobs, name: str) -> None:
    execution, asked, token = waiting(jobs, name)
    ended = list(jobs.queries.list_jobs_by_status(Status.COMPLETED))
    run_again(jobs, ended)
    Answers(jobs).complete(asked.task_id, token, [])
    run_again(jobs, ended)
    run_jobs(jobs, QUEUE)
    run_again(jobs, ended)
    assert flows.RAN == ["one", "two", "three"]
    assert Executions(jobs).records.get_execution(execution.execution_id).status is ExecutionStatus.COMPLETED


@pytest.mark.parametrize("is_broken", [False, True])
@pytest.mark.parametrize("name", ["STEP_ONCE", "DURABLE_ONCE"])
def test_a_worker_that_was_taken_for_dead_moves_nothing(
    jobs: Jobs, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, name: str, is_broken: bool
) -> None:
    execution_id = Executions(jobs).start(path(name), b"image", "image.jpg").execution_id
    (zombie,) = jobs.claim(QUEUE, limit=1, instance_id="zombie", lease_seconds=60)
    monkeypatch.setattr(flows, "BROKEN", {"one"} if is_broken else set())
    jobs.release(zombie, "taken for dead")
    with contextlib.suppress(RuntimeError):
        run_task(jobs, zombie)
    at = Executions(jobs).records.get_execution(execution_id)
    assert (at.status, at.current_step) == (ExecutionStatus.RUNNING, "one")
    monkeypatch.undo()
    run_jobs(jobs, QUEUE)
    clock.advance(60)
    assert Watch(jobs).expire_due().failed == 0
    assert Executions(jobs).records.get_execution(execution_id).status is ExecutionStatus.WAITING


@pytest.mark.parametrize("name", ["STEP", "DURABLE"])
def test_a_step_whose_end_others_are_in_the_way_of_is_tried_again(
    clock: FakeClock, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A conflict says nothing of the execution: it stands where it stood, and its job is not done."""
    backend = BusyItems(EmbeddedBackend(None, clock=clock))
    with Store(backend, clock=clock) as store:
        store.tables.create(main, workflows)
        jobs = jobs_in_memory(store)
        execution_id = Executions(jobs).start(path(name), b"", "image.jpg").execution_id
        monkeypatch.setattr(flows, "_run", lambda *_: setattr(backend, "conflicts", 8))
        run_jobs(jobs, QUEUE, most=1, retryable=True)
        monkeypatch.undo()
        clock.advance(60)
        Watch(jobs).expire_due()
        jobs.promote_due(QUEUE)
        run_jobs(jobs, QUEUE)
        assert Executions(jobs).records.get_execution(execution_id).status is ExecutionStatus.WAITING


def test_a_start_with_the_same_id_is_one_execution(jobs: Jobs) -> None:
    executions = Executions(jobs)
    first, second = (executions.start(path("STEP"), b"1", "image.jpg", execution_id="e", user="ada") for _ in range(2))
    assert first == second
    for other in (
        (path("STEP"), b"2", "image.jpg"),
        (path("STEP"), b"1", "b.jpg"),
        (path("DURABLE"), b"1", "image.jpg"),
    ):
        with pytest.raises(AlreadyExistsError, match="execution e was started with another"):
            executions.start(*other, execution_id="e", user="ada")
    assert jobs.objects.get(first.image_s3_key) == b"1"
    run_jobs(jobs, QUEUE)
    assert [job.created_by for job in jobs.queries.list_jobs()] == ["ada", "ada"]


@pytest.mark.parametrize("other", ["STEP", "DURABLE"])
def test_two_starts_with_the_same_id_at_once_are_one_execution(other: str) -> None:
    backend = DisturbedBackend(EmbeddedBackend(None))
    with Store(backend) as store:
        store.tables.create(main, workflows)
        executions = Executions(jobs_in_memory(store))
        backend.disturb(lambda: executions.start(path(other), b"1", "image.jpg", execution_id="e"))
        if other == "STEP":
            assert executions.start(path("STEP"), b"1", "image.jpg", execution_id="e").execution_id == "e"
        else:
            with pytest.raises(AlreadyExistsError, match="execution e was started with another"):
                executions.start(path("STEP"), b"1", "image.jpg", execution_id="e")
        assert len(list(store.query(Job.by_type()))) == 1


def test_a_start_does_not_put_its_image_in_the_place_of_another_one(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    executions, put = Executions(jobs), jobs.objects.put

    def put_behind_another_start(key: str, source: bytes) -> object:
        monkeypatch.setattr(jobs.objects, "put", put)
        executions.start(path("STEP"), b"first", "image.jpg", execution_id="e")
        return put(key, source)

    monkeypatch.setattr(jobs.objects, "put", put_behind_another_start)
    with pytest.raises(AlreadyExistsError, match="execution e was started with another"):
        executions.start(path("STEP"), b"second", "image.jpg", execution_id="e")
    assert jobs.objects.get(executions.records.get_execution("e").image_s3_key) == b"first"


def test_what_cannot_be_looked_at_stands_in_nobodys_way(jobs: Jobs, clock: FakeClock) -> None:
    executions = Executions(jobs)
    for name in ("bad", "good"):
        executions.start(path("STEP"), b"", "image.jpg", execution_id=name)
    jobs.store.update(ExecutionWatch.key(execution_id="bad"), ExecutionWatch.definition.set("no.such:THING"))  # type: ignore[attr-defined] # not declared as Attr: nothing in the package changes it
    for name in ("bad", "good"):
        jobs.cancel(name)
    clock.advance(11)
    sweep = Watch(jobs).expire_due()
    assert (sweep.looked_at, sweep.failed) == (2, 1)
    assert "cannot load the workflow definition 'no.such:THING'" in sweep.problems["bad"]
    assert Watch(jobs).expire_due().looked_at == 0


def test_an_execution_whose_question_is_gone_is_told(jobs: Jobs, clock: FakeClock) -> None:
    execution, asked, _ = waiting(jobs)
    jobs.store.delete(ValidationTask.key(task_id=asked.task_id))
    clock.advance(3600)
    sweep = Watch(jobs).expire_due()
    assert asked.task_id in sweep.problems[execution.execution_id]
    assert Watch(jobs).expire_due().looked_at == 0, "it is due again later, not all the time"


@pytest.mark.parametrize("raised", ["raise RuntimeError('no licence')", "import sys; sys.exit(2)"])
def test_a_module_that_cannot_be_imported_stands_in_nobodys_way(
    jobs: Jobs, clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raised: str
) -> None:
    executions = Executions(jobs)
    for name in ("bad", "good"):
        executions.start(path("STEP"), b"", "image.jpg", execution_id=name)
    (tmp_path / "broken_flows.py").write_text(raised)
    monkeypatch.syspath_prepend(tmp_path)
    jobs.store.update(ExecutionWatch.key(execution_id="bad"), ExecutionWatch.definition.set("broken_flows:THING"))  # type: ignore[attr-defined] # not declared as Attr: nothing in the package changes it
    for name in ("bad", "good"):
        jobs.cancel(name)
    clock.advance(11)
    sweep = Watch(jobs).expire_due()
    assert sweep.failed == 1
    assert "broken_flows:THING" in sweep.problems["bad"]
    with pytest.raises(DefinitionError, match=r"cannot load .* 'broken_flows:THING'.*(RuntimeError|SystemExit)"):
        executions.start("broken_flows:THING", b"", "x")


def test_the_watch_outlives_what_it_does_not_expect(
    jobs: Jobs, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    Executions(jobs).start(path("STEP"), b"", "image.jpg", execution_id="e")
    clock.advance(11)
    monkeypatch.setattr("jobtable.systems.albums.watch.load_definition", lambda path: 1 // 0)
    assert "ZeroDivisionError" in Watch(jobs).expire_due().problems["e"]
    assert Watch(jobs).expire_due().looked_at == 0


def test_a_problem_of_the_watch_that_lasts_is_told_once(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    watch, should_stop, problems = Watch(jobs), threading.Event(), list[str]()
    looks = iter([Throttled("busy"), Throttled("busy"), None, Throttled("busy"), RuntimeError("odd")])

    def look() -> WatchReport:
        error = next(looks)
        if error is not None:
            raise error
        return WatchReport()

    def note(problem: str) -> None:
        problems.append(problem)
        if "odd" in problem:
            should_stop.set()

    monkeypatch.setattr("jobtable.systems.albums.watch.TICK_SECONDS", 0)
    monkeypatch.setattr(watch, "expire_due", look)
    watch.keep(should_stop.wait, note)
    assert problems == ["ThrottlingException: busy"] * 2 + ["RuntimeError: odd"]


def test_a_start_that_is_refused_stores_nothing(jobs: Jobs) -> None:
    before = state(jobs)
    with pytest.raises(ValueRefusedError):
        Executions(jobs).start(path("STEP"), b"image", "n" * 5000)
    assert state(jobs) == before
    jobs.submit(NewJob(name="of somebody else", task="m:f", job_id="e"))
    before = state(jobs)
    with pytest.raises(ConflictError, match="job e already exists and is not an execution"):
        Executions(jobs).start(path("STEP"), b"image", "image.jpg", execution_id="e")
    assert state(jobs) == before
    assert list(jobs.objects.list()) == []


def test_a_listing_without_albums_fails_the_execution(jobs: Jobs) -> None:
    definition = PATHS[WorkflowType.STEP_FUNCTIONS]
    for number, listing in enumerate((b"nothing", b"\xff", b"")):
        Executions(jobs).start(definition, listing, "list.txt", execution_id=str(number))
        run_jobs(jobs, QUEUE)
        assert Executions(jobs).records.get_execution(str(number)).status is ExecutionStatus.FAILED


def test_objects_of_executions_are_known_to_the_sweep(jobs: Jobs) -> None:
    executions = Executions(jobs)
    started = executions.start(path("STEP"), b"x", "image.jpg")
    assert executions.is_referenced(started.image_s3_key)
    assert not executions.is_referenced("uploads/other/image.jpg")
    assert not executions.is_referenced("jobs/x")


# --- definitions ------------------------------------------------------------------------------------------------------


STEP = Step("a", "m:f")
ASK = HumanStep("b", timedelta(1))


@pytest.mark.parametrize(
    "steps",
    [(), (STEP, STEP), (Step("", "m:f"),), (ASK,), (STEP, HumanStep("b", timedelta(1), on_timeout="a"))],
)
def test_a_definition_that_cannot_work_is_refused(steps: tuple[Step | HumanStep, ...]) -> None:
    with pytest.raises(DefinitionError):
        WorkflowDefinition(WorkflowType.STEP_FUNCTIONS, steps)


@pytest.mark.parametrize("expires_in", [timedelta(0), timedelta(seconds=-5), timedelta(days=999999999)])
def test_a_question_has_a_time_that_can_come(expires_in: timedelta) -> None:
    with pytest.raises(DefinitionError, match="ask: expires_in must be"):
        WorkflowDefinition(WorkflowType.STEP_FUNCTIONS, (STEP, HumanStep("ask", expires_in)))


def test_a_job_is_tried_at_least_once() -> None:
    with pytest.raises(DefinitionError, match="max_attempts must be"):
        WorkflowDefinition(WorkflowType.STEP_FUNCTIONS, (STEP,), max_attempts=0)


@pytest.mark.parametrize(
    "name", ["no.such:THING", "tests.systems.albums.workflows:NOTHING", "tests.systems.albums.workflows:RAN", ""]
)
def test_a_definition_that_is_not_there_is_named(jobs: Jobs, name: str) -> None:
    with pytest.raises(JobtableError, match=r"definition|Definition"):
        Executions(jobs).start(name, b"", "x")
    assert load_definition(path("STEP")) is flows.STEP
    assert list(jobs.objects.list()) == []


def test_a_task_of_an_execution_that_does_not_wait_is_closed(jobs: Jobs) -> None:
    records = AlbumWorkflows(jobs.store, make_token=lambda: "token")
    records.create_task(task("t", DURABLE, 0).replace(expires_at=jobs.clock.now() + timedelta(hours=1)))
    with pytest.raises(NotFoundError):
        Answers(jobs).complete("t", "token", [])
    records.add_execution(execution("exec-2", DURABLE, 0))
    with pytest.raises(TaskClosedError, match="is not waiting for task t"):
        Answers(jobs).complete("t", "token", [])
    assert records.get_task("t").status is TaskStatus.PENDING
