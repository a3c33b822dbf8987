"""Starts and deletions of runs, interrupted and done again, or with something else in between."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from tests.interruptions import Fault, Surroundings, Verb, check_repetition, interleaved
from tests.running import run_jobs

from jobtable.errors import JobtableError
from jobtable.jobs.engine import Jobs
from jobtable.jobs.stored.entities import main
from jobtable.systems.conversations.conversation_runs import QUEUE, ConversationRuns
from jobtable.systems.conversations.pipeline import PipelineStage, stage_job_id
from jobtable.systems.conversations.service import tables

COMMENTS = b"timestamp,datetime,comment-id,author-id,agrees,disagrees,moderated,comment-body\n"
VOTES = b"timestamp,datetime,comment-id,voter-id,vote\n"


Act = Callable[[Jobs, Any], object]


def export(word: str) -> tuple[bytes, bytes]:
    rows = (f"1,today,{number},1,1,1,1,{word} {number}\n" for number in range(3))
    return COMMENTS + "".join(rows).encode(), VOTES + b"1,today,0,1,1\n1,today,1,1,-1\n"


def check(jobs: Jobs) -> None:
    """A run that is there has all its jobs and the export that it was started with; nothing is left of others."""
    everyone = {job.job_id for job in jobs.queries.list_jobs() if job.deleted_at is None}
    expected = set[str]()
    for record in ConversationRuns(jobs).list_runs("c"):
        if jobs.queries.get_job(record.run_id).deleted_at is None:
            kept = [jobs.objects.head(file.key).sha256 for file in (record.comments, record.votes)]
            assert kept == [record.comments.sha256, record.votes.sha256]
            expected |= {record.run_id, *(stage_job_id(record.run_id, stage) for stage in PipelineStage)}
    assert everyone == expected
    for table in tables():
        results = jobs.store.backend.execute("Scan", {"TableName": table.name})["Items"]
        assert {result["job_id"]["S"] for result in results} <= everyone


HERE = Surroundings((main, *tables()), check, lambda jobs: run_jobs(jobs, QUEUE))


def start(jobs: Jobs, _: object = None) -> object:
    return ConversationRuns(jobs).start("c", *export("Rivers"), run_id="run")


def start_another(jobs: Jobs, _: object) -> object:
    return ConversationRuns(jobs).start("c", *export("Roads"), run_id="run")


def analysed(jobs: Jobs) -> None:
    start(jobs)
    run_jobs(jobs, QUEUE)


def rerun(jobs: Jobs, _: object) -> object:
    return ConversationRuns(jobs).rerun("run", PipelineStage.TOPICS, new_run_id="again")


def cancelled(jobs: Jobs) -> None:
    start(jobs)
    jobs.cancel("run", tree=True)


def retry_and_start(jobs: Jobs, _: object) -> object:
    with suppress(JobtableError):
        jobs.retry("run", tree=True)
    return start(jobs)


def delete(jobs: Jobs, _: object) -> object:
    return ConversationRuns(jobs).delete("run")


def stop_and_delete(jobs: Jobs, _: object) -> object:
    return ConversationRuns(jobs).delete("run", stop=True)


VERBS = {"start": Verb(start), "rerun": Verb(rerun, analysed)}


@pytest.mark.parametrize("fault", list(Fault))
@pytest.mark.parametrize("name", VERBS)
def test_a_verb_that_was_interrupted_may_be_repeated(name: str, fault: Fault) -> None:
    check_repetition(VERBS[name], HERE, fault)


def nothing(_: Jobs) -> Any:
    return None


def test_a_run_that_is_started_twice_at_once_is_there_once() -> None:
    first, *others = interleaved(HERE, nothing, start, start)
    assert others
    assert all(each == first for each in others)


def test_of_two_starts_with_one_id_each_finds_its_own_export_or_is_refused() -> None:
    left = list(interleaved(HERE, nothing, start, start_another))
    assert left
    assert not any("FAILED" in item for each in left for item in each)


INTERLEAVINGS: dict[str, tuple[Callable[[Jobs], Any], Act, Act]] = {
    "start, and delete": (nothing, start, stop_and_delete),
    "rerun, and delete": (analysed, rerun, delete),
    "delete, and retry and start": (cancelled, delete, retry_and_start),
}


@pytest.mark.parametrize("name", INTERLEAVINGS)
def test_a_run_that_is_deleted_at_the_same_time_is_there_as_a_whole_or_not_at_all(name: str) -> None:
    assert list(interleaved(HERE, *INTERLEAVINGS[name]))
