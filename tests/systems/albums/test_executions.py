"""Executions of both styles: from an image through a question to priced albums, through failures and crashes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.jobs.engines import DisturbedBackend
from tests.running import jobs_in_memory
from tests.systems.albums import driving
from tests.systems.albums.access_patterns import DURABLE, STEP, execution, task
from tests.systems.albums.driving import DELIVERED, KINDS, answer, checked, start, waiting, work

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import (
    AlreadyExistsError,
    ConflictError,
    DefinitionError,
    NotFoundError,
    TaskClosedError,
    Throttled,
    TokenRefusedError,
    ValueRefusedError,
)
from jobtable.inbox.answer_tokens import token_digest
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import has_lease
from jobtable.jobs.stored.entities import Job, main
from jobtable.jobs.submit.definition import NewJob
from jobtable.store import Store
from jobtable.systems.albums import album_functions
from jobtable.systems.albums.album_executions import Executions
from jobtable.systems.albums.answers import Answers
from jobtable.systems.albums.entities import (
    AlbumData,
    Execution,
    ExecutionStatus,
    ExecutionWatch,
    TaskStatus,
    ValidationTask,
    WorkflowType,
    workflows,
)
from jobtable.systems.albums.found_albums import find_albums
from jobtable.systems.albums.service import AlbumWorkflows
from jobtable.systems.albums.watch import Watch, WatchReport
from jobtable.testing import FakeClock
from jobtable.workflows.table_and_queues import QUEUES
from jobtable.workflows.table_and_queues import workflows as runs

ALBUM = {"albumIndex": 1, "albumName": "Autobahn", "artist": "Kraftwerk", "year": 1974}
FUNCTIONS = "jobtable.systems.albums.album_functions"
each_kind = pytest.mark.parametrize("kind", KINDS)


def state(jobs: Jobs) -> list[Any]:
    """Every item of the three tables."""
    names = [jobs.store.table_name(table) for table in (workflows, main, runs)]
    return [jobs.store.backend.execute("Scan", {"TableName": name})["Items"] for name in names]


def status(jobs: Jobs, execution_id: str) -> ExecutionStatus:
    return Executions(jobs).records.get_execution(execution_id).status


# --- how much a person can be asked -----------------------------------------------------------------------------------


def long_listing(count: int) -> bytes:
    """Albums of half a kilobyte each."""
    return "\n".join(f"{'x' * 195}{n:05d} - {'y' * 200} (1973)" for n in range(count)).encode()


@each_kind
def test_what_a_person_is_asked_about_can_be_answered(jobs: Jobs, kind: WorkflowType) -> None:
    _, asked, token = waiting(jobs, kind, long_listing(380))
    Answers(jobs).complete(asked.task_id, token, answer(asked))
    assert checked(jobs, asked.execution_id).status is ExecutionStatus.COMPLETED


@each_kind
@pytest.mark.parametrize("count", [470, 2_000])
def test_more_albums_than_a_person_can_answer_about_end_the_execution_at_once(
    jobs: Jobs, kind: WorkflowType, count: int
) -> None:
    ended = checked(jobs, start(jobs, kind, long_listing(count)).execution_id)
    assert ended.status is ExecutionStatus.FAILED
    assert f"has {count:,} albums, too many for one question" in str(ended.failure)
    assert DELIVERED == []
    assert Executions(jobs).records.list_albums(ended.execution_id)[-1].album_index == count


# --- from start to end ------------------------------------------------------------------------------------------------


@each_kind
def test_an_image_becomes_priced_albums(
    each_jobs: Jobs, kind: WorkflowType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.csv").write_text(
        "artist,title,year,price\nThe Beatles,Abbey Road,1969,18.5\nPink Floyd,The Dark Side of the Moon,1973,\n"
    )
    monkeypatch.setenv("JOBTABLE_ALBUMS_CATALOGUE", str(tmp_path / "mine.csv"))
    started = start(each_jobs, kind)
    assert (started.status, started.current_step) == (ExecutionStatus.RUNNING, "read-image")
    work(each_jobs)
    records = Executions(each_jobs).records
    execution = records.get_execution(started.execution_id)
    assert (execution.status, execution.current_step) == (ExecutionStatus.WAITING, "validate")
    asked = records.get_task((execution.task_ids or [""])[-1])
    assert [(album.album_name, album.year, album.year_validated) for album in asked.albums] == [
        ("The Dark Side of the Moon", 1973, True),
        ("Abbey Road", 1969, True),
        ("Autobahn", 1974, False),
    ]
    token = Answers(each_jobs).renew_token(asked.task_id)
    answered: Any = answer(asked)
    answered[2]["album_name"] = "Trans-Europe Express"
    Answers(each_jobs).complete(asked.task_id, token, answered[1:])
    ended = checked(each_jobs, started.execution_id)
    assert (ended.status, ended.current_step) == (ExecutionStatus.COMPLETED, "price")
    found = records.get_execution_with_albums(started.execution_id).albums
    assert [(each.album_name, each.year_original, each.year_validated) for each in found] == [
        ("Abbey Road", 1996, True),
        ("Trans-Europe Express", 1974, True),
    ]
    assert [(each.price_estimate, each.price_confidence, each.price_source) for each in found] == [
        (18.5, 1.0, "mine.csv"),
        (None, None, "none: mine.csv does not have this album"),
    ]
    assert Executions(each_jobs).find_watch(started.execution_id) is None


@each_kind
def test_without_a_catalogue_nothing_is_invented(jobs: Jobs, kind: WorkflowType) -> None:
    _, asked, token = waiting(jobs, kind)
    assert {album.year_validated for album in asked.albums} == {False}
    Answers(jobs).complete(asked.task_id, token, answer(asked))
    assert checked(jobs, asked.execution_id).status is ExecutionStatus.COMPLETED
    albums = Executions(jobs).records.list_albums(asked.execution_id)
    assert {(each.price_estimate, each.price_source) for each in albums} == {(None, "none: no catalogue is configured")}


@each_kind
def test_a_catalogue_that_stays_away_leaves_albums_unchecked_and_unpriced(
    jobs: Jobs, kind: WorkflowType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOBTABLE_ALBUMS_CATALOGUE", "discogs")
    monkeypatch.setenv("JOBTABLE_DISCOGS_TOKEN", "t")
    monkeypatch.setenv("JOBTABLE_DISCOGS_URL", "http://127.0.0.1:9")
    _, asked, token = waiting(jobs, kind, b"Kraftwerk - Autobahn (1974)")
    assert [album.year_validated for album in asked.albums] == [False]
    Answers(jobs).complete(asked.task_id, token, answer(asked))
    assert checked(jobs, asked.execution_id).status is ExecutionStatus.COMPLETED
    (album,) = Executions(jobs).records.list_albums(asked.execution_id)
    assert (album.price_estimate, album.price_source) == (None, "none: the catalogue did not answer")


@each_kind
def test_an_answer_that_keeps_no_album_completes_the_execution(jobs: Jobs, kind: WorkflowType) -> None:
    _, asked, token = waiting(jobs, kind)
    Answers(jobs).complete(asked.task_id, token, [])
    assert checked(jobs, asked.execution_id).status is ExecutionStatus.COMPLETED
    assert Executions(jobs).records.list_albums(asked.execution_id) == []


@each_kind
def test_time_and_cost_are_kept_without_the_wait_for_people(jobs: Jobs, clock: FakeClock, kind: WorkflowType) -> None:
    execution, asked, token = waiting(jobs, kind)
    assert (execution.end_time, execution.duration_ms, execution.estimated_cost) == (None, None, None)
    clock.advance(60)
    Answers(jobs).complete(asked.task_id, token, answer(asked))
    ended = checked(jobs, execution.execution_id)
    assert ended.end_time is not None
    took = (ended.end_time - ended.start_time) // timedelta(milliseconds=1)
    assert ended.waited_ms is not None
    assert 59_999 <= ended.waited_ms < 61_000
    assert ended.duration_ms == took - ended.waited_ms
    assert isinstance(ended.figures, dict)
    assert ended.estimated_cost == ended.figures["cost"] > 0


def test_an_execution_cannot_have_the_id_of_a_task(jobs: Jobs) -> None:
    _, asked, _ = waiting(jobs, DURABLE)
    before = state(jobs)
    with pytest.raises(ConflictError, match=f"{asked.task_id} is already the id of a task"):
        start(jobs, DURABLE, execution_id=asked.task_id)
    assert state(jobs) == before


@each_kind
def test_no_worker_is_held_while_an_execution_waits(jobs: Jobs, kind: WorkflowType) -> None:
    waiting(jobs, kind)
    assert not any(has_lease(job) for job in jobs.queries.list_jobs())
    assert [entry for queue in QUEUES for entry in jobs.queries.list_ready(queue)] == []


# --- answers ----------------------------------------------------------------------------------------------------------


@each_kind
def test_a_question_that_cannot_be_delivered_waits_and_says_why(jobs: Jobs, kind: WorkflowType) -> None:
    started = start(jobs, kind, deliver=f"{driving.__name__}:fail_to_deliver")
    work(jobs)
    records = Executions(jobs).records
    asked = records.get_task((records.get_execution(started.execution_id).task_ids or [""])[-1])
    assert "fail_to_deliver failed: RuntimeError: the mail server is down" in str(asked.delivery_problem)
    Answers(jobs).complete(asked.task_id, Answers(jobs).renew_token(asked.task_id), [])
    assert checked(jobs, started.execution_id).status is ExecutionStatus.COMPLETED


@each_kind
def test_the_token_is_given_once_and_only_its_digest_is_kept(jobs: Jobs, kind: WorkflowType) -> None:
    _, asked, token = waiting(jobs, kind)
    assert len(token) >= 22
    assert Executions(jobs).records.get_task(asked.task_id).token_sha256 == token_digest(token)
    assert token not in str(state(jobs))
    assert len(DELIVERED) == 1


@pytest.mark.parametrize(
    "given",
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
def test_a_malformed_answer_changes_nothing(jobs: Jobs, given: object) -> None:
    execution, asked, token = waiting(jobs, DURABLE, b"Kraftwerk - Autobahn (1974)")
    before = state(jobs)
    with pytest.raises(ValueRefusedError):
        Answers(jobs).complete(asked.task_id, token, given)
    assert state(jobs) == before
    assert Answers(jobs).complete(asked.task_id, token, [ALBUM]).status is ExecutionStatus.RUNNING
    assert checked(jobs, execution.execution_id).status is ExecutionStatus.COMPLETED


@each_kind
def test_a_forged_a_repeated_and_a_late_answer_change_nothing(jobs: Jobs, clock: FakeClock, kind: WorkflowType) -> None:
    _, asked, token = waiting(jobs, kind)
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


@each_kind
def test_a_renewed_token_takes_the_place_of_the_first(jobs: Jobs, kind: WorkflowType) -> None:
    execution, asked, token = waiting(jobs, kind)
    answers = Answers(jobs)
    renewed = answers.renew_token(asked.task_id)
    with pytest.raises(TokenRefusedError):
        answers.complete(asked.task_id, token, [])
    answers.complete(asked.task_id, renewed, [])
    with pytest.raises(TaskClosedError):
        answers.renew_token(asked.task_id)
    assert checked(jobs, execution.execution_id).status is ExecutionStatus.COMPLETED


def test_an_answer_is_kept_with_the_task(jobs: Jobs) -> None:
    _, asked, token = waiting(jobs, DURABLE)
    Answers(jobs).complete(asked.task_id, token, [{**ALBUM, "albumIndex": 3}])
    kept = Executions(jobs).records.get_task(asked.task_id)
    assert kept.status is TaskStatus.COMPLETED
    assert kept.validated_data == [AlbumData(album_index=3, album_name="Autobahn", artist="Kraftwerk", year=1974)]
    assert kept.completed_at is not None


# --- time -------------------------------------------------------------------------------------------------------------


@each_kind
@pytest.mark.parametrize(
    ("on_timeout", "ends"), [("fail", ExecutionStatus.FAILED), ("continue", ExecutionStatus.COMPLETED)]
)
@pytest.mark.parametrize("by", ["sweep", "answer"])
def test_a_task_times_out_and_the_execution_goes_its_way(
    jobs: Jobs, clock: FakeClock, kind: WorkflowType, on_timeout: str, ends: ExecutionStatus, by: str
) -> None:
    execution, asked, token = waiting(jobs, kind, on_timeout=on_timeout)
    watch = Watch(jobs)
    clock.set(asked.expires_at - timedelta(milliseconds=1))
    assert watch.expire_due().timed_out == 0
    clock.set(asked.expires_at + timedelta(milliseconds=1))
    if by == "sweep":
        assert watch.expire_due().timed_out == 1
        assert watch.expire_due().timed_out == 0
    else:
        with pytest.raises(TaskClosedError, match="timed out"):
            Answers(jobs).complete(asked.task_id, token, [])
    kept = Executions(jobs).records.get_task(asked.task_id)
    assert (kept.status, kept.validated_data) == (TaskStatus.TIMED_OUT, None)
    ended = checked(jobs, execution.execution_id)
    assert ended.status is ends
    if ends is ExecutionStatus.FAILED:
        assert f"nobody answered task {asked.task_id} in time" in str(ended.failure)
    with pytest.raises(TaskClosedError, match="timed out"):
        Answers(jobs).complete(asked.task_id, token, [])


@each_kind
def test_an_answer_at_the_last_moment_wins_over_the_timeout_of_the_workflow(
    jobs: Jobs, clock: FakeClock, kind: WorkflowType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer is recorded, and its process dies before the workflow hears of it."""
    execution, asked, token = waiting(jobs, kind)
    clock.set(asked.expires_at - timedelta(milliseconds=1))
    with monkeypatch.context() as patched:
        patched.setattr(Executions, "resume", _crash)
        with pytest.raises(KeyboardInterrupt):
            Answers(jobs).complete(asked.task_id, token, answer(asked))
    clock.advance(2)
    assert work(jobs) > 0
    assert checked(jobs, execution.execution_id).status is ExecutionStatus.COMPLETED
    assert Executions(jobs).records.get_task(asked.task_id).status is TaskStatus.COMPLETED


# --- failures and crashes ---------------------------------------------------------------------------------------------


def _crash(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


@each_kind
def test_every_crash_between_the_records_and_the_workflow_is_healed(
    jobs: Jobs, clock: FakeClock, kind: WorkflowType, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(jobs, "submit_together", _crash)
        with pytest.raises(KeyboardInterrupt):
            start(jobs, kind, execution_id="e")
    assert work(jobs) == 0
    clock.advance(11)
    Watch(jobs).expire_due()
    work(jobs)
    asked, token = DELIVERED[-1]
    with monkeypatch.context() as patched:
        patched.setattr(Executions, "resume", _crash)
        with pytest.raises(KeyboardInterrupt):
            Answers(jobs).complete(asked.task_id, token, answer(asked))
    assert status(jobs, "e") is ExecutionStatus.RUNNING
    clock.advance(11)
    Watch(jobs).expire_due()
    work(jobs)
    assert status(jobs, "e") is ExecutionStatus.COMPLETED
    assert len(DELIVERED) == 1


@each_kind
def test_a_question_whose_process_died_over_its_delivery_is_delivered(
    jobs: Jobs, clock: FakeClock, kind: WorkflowType, monkeypatch: pytest.MonkeyPatch
) -> None:
    execution_id = start(jobs, kind).execution_id
    with monkeypatch.context() as patched:
        patched.setattr(driving, "deliver", _crash)
        with pytest.raises(BaseException, match=r"^$"):
            work(jobs)
    for job in jobs.queries.list_jobs():
        if has_lease(job):
            jobs.interrupt_lost(job)
    work(jobs)
    ((asked, token),) = DELIVERED
    assert status(jobs, execution_id) is ExecutionStatus.WAITING
    Answers(jobs).complete(asked.task_id, token, answer(asked))
    assert checked(jobs, execution_id).status is ExecutionStatus.COMPLETED


@each_kind
def test_who_answers_at_once_is_heard(jobs: Jobs, kind: WorkflowType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the function that asks has ended, the question is answered."""
    execution_id = start(jobs, kind).execution_id
    monkeypatch.setattr(
        driving, "deliver", lambda asked, token: Answers(jobs).complete(asked.task_id, token, answer(asked))
    )
    assert checked(jobs, execution_id).status is ExecutionStatus.COMPLETED


@each_kind
def test_a_step_that_fails_now_and_then_is_repeated(
    jobs: Jobs, kind: WorkflowType, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = iter([True, True, False, False, False, False])
    real = find_albums

    def flaky(read: Any) -> Any:
        if next(failures):
            raise RuntimeError("the disk was busy")
        return real(read)

    monkeypatch.setattr(f"{FUNCTIONS}.find_albums", flaky)
    execution, *_ = waiting(jobs, kind)
    assert len(Executions(jobs).records.list_albums(execution.execution_id)) == 3


@each_kind
def test_a_step_that_keeps_failing_fails_the_execution_with_its_reason(
    jobs: Jobs, kind: WorkflowType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{FUNCTIONS}.find_albums", lambda read: 1 // 0)
    ended = checked(jobs, start(jobs, kind).execution_id)
    assert ended.status is ExecutionStatus.FAILED
    assert "ZeroDivisionError: integer division or modulo by zero" in str(ended.failure)


@each_kind
def test_a_function_that_comes_too_late_changes_nothing(jobs: Jobs, kind: WorkflowType) -> None:
    """A worker that was taken for dead goes on with a step that another one has done."""
    execution, asked, token = waiting(jobs, kind)
    Answers(jobs).complete(asked.task_id, token, answer(asked)[:1])
    assert checked(jobs, execution.execution_id).status is ExecutionStatus.COMPLETED
    before = state(jobs)
    event = {"execution_id": execution.execution_id, "album_index": 1, "token": token, "answer_within_seconds": 9}
    context = SimpleNamespace(jobs=jobs)
    late: tuple[Callable[..., Any], ...] = (
        album_functions.read_image,
        album_functions.check_years,
        album_functions.ask,
        album_functions.price,
    )
    for each in late:
        with pytest.raises(ConflictError, match="is completed at price"):
            each(event, context)
    assert state(jobs) == before


# --- starting ---------------------------------------------------------------------------------------------------------


@each_kind
def test_the_jobs_of_an_execution_say_who_started_it(jobs: Jobs, kind: WorkflowType) -> None:
    execution, asked, token = waiting(jobs, kind, user="ada")
    assert execution.created_by == "ada"
    Answers(jobs).complete(asked.task_id, token, answer(asked))
    assert checked(jobs, execution.execution_id).status is ExecutionStatus.COMPLETED
    assert {job.created_by for job in jobs.queries.list_jobs()} == {"ada"}


@each_kind
def test_a_start_with_the_same_id_is_one_execution(jobs: Jobs, kind: WorkflowType) -> None:
    first, second = (start(jobs, kind, b"A - B (1990)", execution_id="e") for _ in range(2))
    assert first == second
    other = next(each for each in KINDS if each is not kind)
    others: tuple[Callable[[], object], ...] = (
        lambda: start(jobs, kind, b"C - D (1990)", execution_id="e"),
        lambda: start(jobs, other, b"A - B (1990)", execution_id="e"),
        lambda: start(jobs, kind, b"A - B (1990)", execution_id="e", on_timeout="continue"),
        lambda: Executions(jobs).start(kind, b"A - B (1990)", "b.txt", execution_id="e"),
    )
    for different in others:
        with pytest.raises(AlreadyExistsError, match="execution e was started with another"):
            different()
    assert jobs.objects.get(first.image_s3_key) == b"A - B (1990)"
    work(jobs)
    assert len(DELIVERED) == 1


@pytest.mark.parametrize("other", KINDS)
def test_two_starts_with_the_same_id_at_once_are_one_execution(other: WorkflowType) -> None:
    backend = DisturbedBackend(EmbeddedBackend(None))
    with Store(backend) as store:
        store.tables.create(main, workflows, runs)
        jobs = jobs_in_memory(store)
        backend.disturb(lambda: start(jobs, other, execution_id="e"))
        if other is DURABLE:
            assert start(jobs, DURABLE, execution_id="e").execution_id == "e"
        else:
            with pytest.raises(AlreadyExistsError, match="execution e was started with another"):
                start(jobs, DURABLE, execution_id="e")
        assert len(list(store.query(Job.by_type()))) == 1


def test_a_start_does_not_put_its_image_in_the_place_of_another_one(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = jobs.objects.put

    def put_behind_another_start(key: str, source: bytes) -> object:
        monkeypatch.setattr(jobs.objects, "put", put)
        start(jobs, DURABLE, b"first", execution_id="e")
        return put(key, source)

    monkeypatch.setattr(jobs.objects, "put", put_behind_another_start)
    with pytest.raises(AlreadyExistsError, match="execution e was started with another"):
        start(jobs, DURABLE, b"second", execution_id="e")
    assert jobs.objects.get(Executions(jobs).records.get_execution("e").image_s3_key) == b"first"


@each_kind
def test_an_id_that_no_run_may_have_is_still_an_id(jobs: Jobs, kind: WorkflowType) -> None:
    strange = "K\u00f6ln / " + "x" * 200
    execution, asked, token = waiting(jobs, kind, execution_id=strange)
    assert execution.execution_id == strange
    Answers(jobs).complete(asked.task_id, token, [])
    assert checked(jobs, strange).status is ExecutionStatus.COMPLETED
    assert Executions(jobs).delete(strange) > 3


def test_a_start_that_is_refused_stores_nothing(jobs: Jobs) -> None:
    before = state(jobs)
    refused: list[dict[str, Any]] = [
        {"execution_id": "n" * 5000},
        {"answer_within": timedelta(0)},
        {"answer_within": timedelta(days=999)},
        {"on_timeout": "later"},
    ]
    for wrong in refused:
        with pytest.raises(ValueRefusedError):
            start(jobs, DURABLE, **wrong)
    for sender in ("no.such:thing", "tests.systems.albums.driving:nothing", ""):
        with pytest.raises(DefinitionError, match="cannot load the function that sends tokens"):
            start(jobs, DURABLE, deliver=sender)
    assert state(jobs) == before
    assert list(jobs.objects.list()) == []


@each_kind
def test_a_listing_without_albums_fails_the_execution(jobs: Jobs, kind: WorkflowType) -> None:
    for number, listing in enumerate((b"nothing", b"\xff", b"")):
        ended = checked(jobs, start(jobs, kind, listing, execution_id=str(number)).execution_id)
        assert ended.status is ExecutionStatus.FAILED
        assert ("names no albums" in str(ended.failure)) == (listing != b"\xff")


def test_objects_of_executions_are_known_to_the_sweep(jobs: Jobs) -> None:
    started = start(jobs, DURABLE)
    executions = Executions(jobs)
    assert executions.is_referenced(started.image_s3_key)
    assert not executions.is_referenced("uploads/other/image.jpg")
    assert not executions.is_referenced("jobs/x")


def test_a_task_of_an_execution_that_does_not_wait_is_closed(jobs: Jobs) -> None:
    records = AlbumWorkflows(jobs.store, make_token=lambda: "token")
    records.create_task(task("t", DURABLE, 0).replace(expires_at=jobs.clock.now() + timedelta(hours=1)))
    with pytest.raises(NotFoundError):
        Answers(jobs).complete("t", "token", [])
    records.add_execution(execution("exec-2", DURABLE, 0))
    with pytest.raises(TaskClosedError, match="is not waiting for task t"):
        Answers(jobs).complete("t", "token", [])
    assert records.get_task("t").status is TaskStatus.PENDING


# --- the watch --------------------------------------------------------------------------------------------------------


@each_kind
def test_an_execution_whose_workflow_was_stopped_fails(jobs: Jobs, clock: FakeClock, kind: WorkflowType) -> None:
    started = start(jobs, kind)
    (job,) = jobs.queries.list_jobs()
    jobs.cancel(job.job_id)
    clock.advance(11)
    assert Watch(jobs).expire_due().failed == 1
    assert status(jobs, started.execution_id) is ExecutionStatus.FAILED
    clock.advance(60)
    Watch(jobs).expire_due()
    clock.advance(60)
    assert Watch(jobs).expire_due().looked_at == 0


def test_an_execution_whose_job_is_well_is_looked_at_seldom(jobs: Jobs, clock: FakeClock) -> None:
    start(jobs, DURABLE)
    looks = 0
    for _ in range(60):
        clock.advance(1)
        looks += Watch(jobs).expire_due().looked_at
    assert 15 <= looks <= 30


def test_what_cannot_be_looked_at_stands_in_nobodys_way(
    jobs: Jobs, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("bad", "good"):
        start(jobs, DURABLE, execution_id=name)
    for job in jobs.queries.list_jobs():
        jobs.cancel(job.job_id)
    real = Executions.fail

    def fail(executions: Executions, execution: Execution, reason: str) -> Execution:
        if execution.execution_id == "bad":
            raise ZeroDivisionError
        return real(executions, execution, reason)

    monkeypatch.setattr(Executions, "fail", fail)
    clock.advance(11)
    sweep = Watch(jobs).expire_due()
    assert (sweep.looked_at, sweep.failed) == (2, 1)
    assert "ZeroDivisionError" in sweep.problems["bad"]
    assert "bad" not in Watch(jobs).expire_due().problems


def test_an_execution_whose_question_is_gone_is_told(jobs: Jobs, clock: FakeClock) -> None:
    execution, asked, _ = waiting(jobs, DURABLE)
    jobs.store.delete(ValidationTask.key(task_id=asked.task_id))
    clock.advance(3600)
    sweep = Watch(jobs).expire_due()
    assert asked.task_id in sweep.problems[execution.execution_id]
    assert Watch(jobs).expire_due().looked_at == 0, "it is due again later, not all the time"


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

    monkeypatch.setattr("jobtable.inbox.watching.TICK_SECONDS", 0)
    monkeypatch.setattr(watch, "expire_due", look)
    watch.keep(should_stop.wait, note)
    assert problems == ["ThrottlingException: busy"] * 2 + ["RuntimeError: odd"]


# --- executions of earlier versions -----------------------------------------------------------------------------------


def former(jobs: Jobs, status: ExecutionStatus) -> Execution:
    """An execution as an earlier version left it: under way with a watch, or ended, with its first job."""
    old = execution("old", STEP, 0, status).replace(current_step="validate", task_ids=["asked"])
    jobs.store.add(old)
    jobs.store.add(task("asked", STEP, 0).replace(execution_id="old", expires_at=jobs.clock.now() + timedelta(1)))
    jobs.submit(NewJob(name="extract", task="jobtable.albums.runner:run_steps", job_id="old", queue="albums"))
    if status is not ExecutionStatus.FAILED:
        watch = ExecutionWatch(
            execution_id="old",
            workflow_type=STEP,
            due_at=jobs.clock.now(),
            definition="jobtable.albums.example:STEP_FUNCTIONS",
            job_step="extract",
            task_id="asked",
        )
        jobs.store.add(watch)
    return old


def test_an_execution_of_an_earlier_version_is_listed_and_says_how_to_finish_it(jobs: Jobs, clock: FakeClock) -> None:
    old = former(jobs, ExecutionStatus.WAITING)
    assert Executions(jobs).records.list_newest_executions(limit=9) == [old]
    clock.advance(11)
    told = "was run by an earlier version of Jobtable, which can finish it; or delete it with"
    assert told in Watch(jobs).expire_due().problems["old"]
    assert Watch(jobs).expire_due().looked_at == 0
    with pytest.raises(ConflictError, match=told):
        Answers(jobs).complete("asked", "secret", [])
    assert Executions(jobs).records.get_execution("old") == old
    assert Executions(jobs).delete("old", stop=True) >= 4
    assert list(jobs.queries.list_jobs()) == []


def test_a_failed_execution_of_an_earlier_version_is_not_retried(jobs: Jobs) -> None:
    former(jobs, ExecutionStatus.FAILED)
    with pytest.raises(ConflictError, match="was run by an earlier version of Jobtable"):
        Executions(jobs).retry("old")
