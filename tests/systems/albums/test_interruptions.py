"""Every verb of executions, interrupted and done again, or with something else in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.interruptions import Fault, Surroundings, Verb, check_repetition, interleaved
from tests.systems.albums.driving import KINDS, answer, start, waiting, work

from jobtable.jobs.engine import Jobs
from jobtable.jobs.stored.entities import main
from jobtable.systems.albums.album_executions import Executions
from jobtable.systems.albums.answers import Answers
from jobtable.systems.albums.entities import Album, Execution, ExecutionStatus, FunctionCall, WorkflowType, workflows
from jobtable.systems.albums.service import AlbumWorkflows
from jobtable.systems.albums.style_comparison import Comparisons
from jobtable.systems.albums.watch import Watch
from jobtable.workflows.table_and_queues import workflows as runs

ENDED = (ExecutionStatus.COMPLETED, ExecutionStatus.FAILED)
Act = Callable[[Jobs, Any], object]


def all_executions(jobs: Jobs) -> dict[str, Execution]:
    records = AlbumWorkflows(jobs.store)
    found = (each for workflow_type in WorkflowType for each in records.list_executions(workflow_type))
    return {each.execution_id: each for each in found}


def check(jobs: Jobs) -> None:
    """Whatever has not ended is watched, and nothing is left of what is gone."""
    there = all_executions(jobs)
    items = jobs.store.backend.execute("Scan", {"TableName": workflows.name})["Items"]
    named = {item["executionId"]["S"] for item in items if "executionId" in item}
    assert named <= there.keys()
    for execution_id, execution in there.items():
        watch = Executions(jobs).find_watch(execution_id)
        assert watch is not None or execution.status in ENDED
        assert execution.deleted_at is not None or jobs.objects.get(execution.image_s3_key)


def settle(jobs: Jobs) -> None:
    """What the watch and the workers do; of what is deleted no run is left."""
    for _ in range(4):
        jobs.clock.sleep(61)
        assert Watch(jobs).expire_due().problems == {}
        work(jobs)
    items = jobs.store.backend.execute("Scan", {"TableName": runs.name})["Items"]
    names = {
        item["PK"]["S"].rpartition("#")[2] for item in items if item["TYPE"]["S"] in ("EXECUTION", "DURABLE_EXECUTION")
    }
    there = all_executions(jobs)
    assert names <= {name for each in there for name in (each, f"{each}-2")}
    for execution_id, execution in there.items():
        assert execution.figures is not None or execution.status not in ENDED
        _forget_times(jobs, execution_id)


def _forget_times(jobs: Jobs, execution_id: str) -> None:
    """Remove what was measured: it depends on how long a verb was interrupted."""
    jobs.store.batch_delete(jobs.store.query(FunctionCall.key(execution_id=execution_id)))
    figures = (Execution.figures.set(None), Execution.estimated_cost.set(None), Execution.waited_ms.set(None))
    jobs.store.update(Execution.key(execution_id=execution_id), *figures)


class Records(Surroundings):
    """What is compared are the records; of the runs only that none is left over."""

    def settled(self, jobs: Jobs) -> list[str]:
        return Surroundings((workflows,), self.check, self.settle).settled(jobs)


HERE = Records((main, workflows, runs), check, settle)


def asked(kind: WorkflowType) -> Callable[[Jobs], tuple[str, Any, str]]:
    def ask(jobs: Jobs) -> tuple[str, Any, str]:
        execution, task, token = waiting(jobs, kind, b"A - B (1990)", execution_id="e", on_timeout="continue")
        return execution.execution_id, task, token

    return ask


def overdue(kind: WorkflowType) -> Callable[[Jobs], tuple[str, Any, str]]:
    def expire_soon(jobs: Jobs) -> tuple[str, Any, str]:
        given = asked(kind)(jobs)
        jobs.clock.sleep(301)
        return given

    return expire_soon


def broken(kind: WorkflowType) -> Callable[[Jobs], tuple[str]]:
    def fail(jobs: Jobs) -> tuple[str]:
        started = start(jobs, kind, b"nothing", execution_id="e")
        work(jobs)
        Watch(jobs).check("e")
        return (started.execution_id,)

    return fail


def start_one(kind: WorkflowType) -> Act:
    return lambda jobs, _: start(jobs, kind, b"A - B (1990)", execution_id="e")


def give_answer(jobs: Jobs, given: Any) -> object:
    return Answers(jobs).complete(given[1].task_id, given[2], answer(given[1]))


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


def renew(jobs: Jobs, given: Any) -> object:
    return Answers(jobs).renew_token(given[1].task_id)


def verbs(kind: WorkflowType) -> dict[str, Verb]:
    return {
        "start": Verb(start_one(kind)),
        "answer": Verb(give_answer, asked(kind), refused="was already answered"),
        "time out": Verb(expire, overdue(kind)),
        "renew a token": Verb(renew, asked(kind)),
        "retry": Verb(retry, broken(kind), refused="only a failed one can be retried"),
        "delete": Verb(delete, asked(kind), refused="there is no execution"),
        "put albums": Verb(put_albums, lambda jobs: start_one(kind)(jobs, None)),
    }


@pytest.mark.parametrize("fault", list(Fault))
@pytest.mark.parametrize("name", verbs(KINDS[0]))
@pytest.mark.parametrize("kind", KINDS)
def test_a_verb_that_was_interrupted_may_be_repeated(kind: WorkflowType, name: str, fault: Fault) -> None:
    check_repetition(verbs(kind)[name], HERE, fault)


def interleavings(kind: WorkflowType) -> dict[str, tuple[Callable[[Jobs], Any], Act, Act]]:
    return {
        "start twice": (lambda jobs: "e", start_one(kind), start_one(kind)),
        "start, and delete": (lambda jobs: ("e",), start_one(kind), delete),
        "answer, and delete": (asked(kind), give_answer, delete),
        "retry, and delete": (broken(kind), retry, delete),
        "delete, and retry": (broken(kind), delete, retry),
        "time out, and delete": (overdue(kind), expire, delete),
    }


@pytest.mark.parametrize("name", interleavings(KINDS[0]))
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_left_of_what_is_deleted_at_the_same_time(kind: WorkflowType, name: str) -> None:
    assert list(interleaved(HERE, *interleavings(kind)[name]))


@pytest.mark.parametrize("kind", KINDS)
def test_two_who_watch_over_an_execution_do_not_fail_it(kind: WorkflowType) -> None:
    first, *others = interleaved(HERE, overdue(kind), expire, expire)
    assert others
    assert all(each == first for each in others)


def test_a_comparison_that_was_interrupted_is_completed() -> None:
    def compare(jobs: Jobs, _: object) -> object:
        return Comparisons(jobs).start([("list.txt", b"A - B (1990)")], 1, comparison_id="c")

    check_repetition(Verb(compare), HERE, Fault.DEATH)
