"""Jobs that do everything wrong fail with the reason, after their attempts, while their neighbours finish."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from jobtable.app import open_jobs
from jobtable.jobs.engine import Jobs
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.stored.field_types import LogLevel, Status
from jobtable.jobs.submit.definition import NewJob, RetryPolicy
from jobtable.jobs.worker.worker import Worker

REPOSITORY = str(Path(__file__).parents[2])
AT_ONCE = RetryPolicy(first_delay_seconds=0)

POISON: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "fail": ({"message": "nothing works"}, {"max_attempts": 2}, "RuntimeError: nothing works\n\nTraceback"),
    "leave": ({"code": 3}, {"max_attempts": 2}, "exit code 3 before the task returned"),
    "leave_politely": ({"code": 4}, {}, "SystemExit: 4"),
    "crash": ({}, {"max_attempts": 2}, "ended by SIGSEGV"),
    "kill_itself": ({"signum": 9}, {}, "ended by SIGKILL, perhaps by the system because memory ran out"),
    "eat": ({"most_mb": 240}, {"memory_mb": 150}, "MB, and its limit is 150 MB"),
    "eat_at_once": ({"size_mb": 4000}, {"memory_mb": 150}, "out of memory"),
    "hang": ({}, {"timeout_seconds": 0.3, "grace_seconds": 0.2}, "timeout: it ran longer than 0.3 s"),
    "sleep": ({"seconds": 600}, {"timeout_seconds": 0.3}, "timeout: it ran longer than 0.3 s"),
    "give_large": ({"size": 500_000}, {"max_attempts": 2}, "its result is too large: 500,002 bytes"),
    "give_object": ({}, {"max_attempts": 2}, "could not store its result"),
    "refuse": ({}, {"max_attempts": 2}, "TaskError: nothing to be done"),
    "missing": ({}, {"max_attempts": 2}, "has no missing"),
}
NOT_TRIED_AGAIN = {"give_large", "give_object", "refuse", "missing"}


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Jobs, dict[str, Job]]]:
    """All poison jobs and their neighbours, after one worker has worked on them."""
    opener = partial(open_jobs, f"file:{tmp_path_factory.mktemp('poison')}/jobs.db")
    jobs = opener()
    ids = {}
    for name, (params, limits, _) in POISON.items():
        new = NewJob(name=name, task=f"tests.jobs.worker_tasks:{name}", params=params, retry=AT_ONCE, **limits)
        ids[name] = jobs.submit(new).job_id
        neighbour = NewJob(name="add", task="tests.jobs.worker_tasks:add", params={"a": 1, "b": 2}, timeout_seconds=600)
        ids[f"neighbour of {name}"] = jobs.submit(neighbour).job_id
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(REPOSITORY)
        Worker(opener, ["default"], slots=4, until_empty=True, preload=["tests.jobs.worker_tasks"]).run()
    yield jobs, {name: jobs.queries.get_job(job_id) for name, job_id in ids.items()}
    jobs.store.close()
    jobs.objects.close()


@pytest.mark.parametrize("name", POISON)
def test_a_poison_job_fails_with_the_reason(name: str, ended: tuple[Jobs, dict[str, Job]]) -> None:
    job = ended[1][name]
    assert job.status is Status.FAILED
    assert POISON[name][2] in (job.message or "")
    assert job.attempts == (1 if name in NOT_TRIED_AGAIN else job.max_attempts)


@pytest.mark.parametrize("name", POISON)
def test_its_neighbours_finish(name: str, ended: tuple[Jobs, dict[str, Job]]) -> None:
    job = ended[1][f"neighbour of {name}"]
    assert (job.status, job.result) == (Status.COMPLETED, 3)


def test_the_queue_is_empty(ended: tuple[Jobs, dict[str, Job]]) -> None:
    queue = ended[0].queries.get_queue("default")
    assert (queue.job_count, queue.running_count) == (0, 0)


def test_each_attempt_is_a_line_of_history(ended: tuple[Jobs, dict[str, Job]]) -> None:
    jobs, found = ended
    history = [line.status for line in jobs.queries.list_statuses(found["fail"].job_id)]
    assert history == [Status.PENDING, Status.RUNNING, Status.PENDING, Status.RUNNING, Status.FAILED]


def test_the_log_has_the_traceback(ended: tuple[Jobs, dict[str, Job]]) -> None:
    jobs, found = ended
    errors = [line for line in jobs.queries.list_logs(found["fail"].job_id) if line.log_level is LogLevel.ERROR]
    assert [line.message for line in errors] == ["RuntimeError: nothing works"] * 2
    assert "raise RuntimeError(message)" in (errors[0].exception or "")
