"""Every verb of executions, interrupted and done again, or with something else in between."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from tests.interruptions import Fault, Surroundings, Verb, check_repetition, interleaved
from tests.running import run_jobs
from tests.systems.albums import workflows as flows
from tests.systems.albums.test_executions import path, waiting
from tests.systems.albums.test_retry import failed

from jobtable.clock import wall_time
from jobtable.jobs.engine import Jobs
from jobtable.jobs.stored.entities import main
from jobtable.systems.albums.answers import Answers
from jobtable.systems.albums.entities import Album, Execution, ExecutionStatus, ExecutionWatch, WorkflowType, workflows
from jobtable.systems.albums.executions import QUEUE, Executions
from jobtable.systems.albums.service import AlbumWorkflows
from jobtable.systems.albums.watch import Watch

ENDED = (ExecutionStatus.COMPLETED, ExecutionStatus.FAILED)
Act = Callable[[Jobs, Any], object]


@pytest.fixture(autouse=True)
def _quick_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flows, "STEP_SECONDS", [0.0])


def all_executions(jobs: Jobs) -> dict[str, Execution]:
    records = AlbumWorkflows(jobs.store)
    found = (each for workflow_type in WorkflowType for each in records.list_executions(workflow_type))
    return {each.execution_id: each for each in found}


def check(jobs: Jobs) -> None:
    """Whatever has not ended is watched, and nothing is left of what is gone."""
    there = all_executions(jobs)
    items = jobs.store.backend.execute("Scan", {"TableName": workflows.name})["Items"]
    assert {item.get("executionId", item["pk"])["S"] for item in items} <= there.keys()
    for execution_id, execution in there.items():
        watch = jobs.store.find(ExecutionWatch.key(execution_id=execution_id))
        assert (watch is None) == (execution.status in ENDED)
        assert execution.deleted_at is not None or jobs.objects.get(execution.image_s3_key)
    assert {job.root_job_id or job.job_id for job in jobs.queries.list_jobs()} <= there.keys()


def settle(jobs: Jobs) -> None:
    """What the watch and the workers do."""
    for _ in range(3):
        jobs.clock.sleep(61)
        assert Watch(jobs).expire_due().problems == {}
        run_jobs(jobs, QUEUE)
    flows.RAN.clear()  # steps return how many ran, which is to be the same in the next world


HERE = Surroundings((main, workflows), check, settle)


def started(jobs: Jobs) -> str:
    return Executions(jobs).start(path("STEP"), b"image", "image.jpg", execution_id="e").execution_id


def start(jobs: Jobs, _: object) -> object:
    return started(jobs)


def asked(jobs: Jobs) -> tuple[str, Any, str]:
    execution, task, token = waiting(jobs, "STEP_CONTINUES")
    return execution.execution_id, task, token


def overdue(jobs: Jobs) -> tuple[str, Any, str]:
    given = asked(jobs)
    jobs.clock.sleep(301)
    return given


def broken(jobs: Jobs) -> tuple[str]:
    return (failed(jobs, "STEP_ONCE", "two").execution_id,)


def answer(jobs: Jobs, given: Any) -> object:
    return Answers(jobs).complete(given[1].task_id, given[2], [])


def expire(jobs: Jobs, _: object) -> object:
    return Watch(jobs).expire_due()


def retry(jobs: Jobs, given: Any) -> object:
    return Executions(jobs).retry(given[0])


def delete(jobs: Jobs, given: Any) -> object:
    return Executions(jobs).delete(given[0], stop=True)


def put_albums(jobs: Jobs, _: object) -> object:
    now = all_executions(jobs)["e"].created_at
    albums = (
        Album(
            execution_id="e",
            workflow_type=WorkflowType.STEP_FUNCTIONS,
            album_index=number,
            album_name="Autobahn",
            artist="Kraftwerk",
            year=1974,
            created_at=now,
            updated_at=now,
        )
        for number in range(30)
    )
    return AlbumWorkflows(jobs.store).put_albums(albums)


VERBS = {
    "start": Verb(start),
    "answer": Verb(answer, asked, refused="was already answered"),
    "time out": Verb(expire, overdue),
    "renew a token": Verb(lambda jobs, given: Answers(jobs).renew_token(given[1].task_id), asked),
    "retry": Verb(retry, broken, refused="only a failed one can be retried"),
    "delete": Verb(delete, asked, refused="there is no execution"),
    "put albums": Verb(put_albums, started),
}


@pytest.mark.parametrize("fault", list(Fault))
@pytest.mark.parametrize("name", VERBS)
def test_a_verb_that_was_interrupted_may_be_repeated(name: str, fault: Fault) -> None:
    check_repetition(VERBS[name], HERE, fault)


INTERLEAVINGS: dict[str, tuple[Callable[[Jobs], Any], Act, Act]] = {
    "start twice": (lambda jobs: "e", start, start),
    "start, and delete": (lambda jobs: "e", start, delete),
    "answer, and delete": (asked, answer, delete),
    "retry, and delete": (broken, retry, delete),
    "delete, and retry": (broken, delete, retry),
    "time out, and delete": (overdue, expire, delete),
}


@pytest.mark.parametrize("name", INTERLEAVINGS)
def test_nothing_is_left_of_what_is_deleted_at_the_same_time(name: str) -> None:
    assert list(interleaved(HERE, *INTERLEAVINGS[name]))


def test_two_who_watch_over_an_execution_do_not_fail_it() -> None:
    first, *others = interleaved(HERE, overdue, expire, expire)
    assert others
    assert all(each == first for each in others)


def unsent(jobs: Jobs) -> None:
    """An execution whose question was not sent, because the process that was to do so has died."""
    execution_id, *_ = asked(jobs)
    flows.DELIVERED.clear()
    due = ExecutionWatch.due_at.set(wall_time(jobs.clock) - timedelta(seconds=1))
    jobs.store.update(ExecutionWatch.key(execution_id=execution_id), due)


def test_of_two_who_watch_one_sends_a_question_that_was_not_sent() -> None:
    def check_sent(jobs: Jobs) -> None:
        ((task, token),) = flows.DELIVERED
        assert Answers(jobs).complete(task.task_id, token, []).status is ExecutionStatus.RUNNING

    assert list(interleaved(Surroundings(HERE.tables, check_sent), unsent, expire, expire))
