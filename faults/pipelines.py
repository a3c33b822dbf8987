"""kill -9 of workers while conversations are analysed and album executions run: the outcome is that of a quiet day.

`python -m faults.pipelines URL LEASE_SECONDS` is a worker that works until it is killed.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from faults.jobs import jobs_in_folder, problems_in, start, url_of

from jobtable.app import open_jobs
from jobtable.jobs.engine import Jobs
from jobtable.jobs.stored.field_types import FINAL, Status
from jobtable.jobs.worker.worker import Worker
from jobtable.systems.albums.album_executions import Executions
from jobtable.systems.albums.answers import Answers
from jobtable.systems.albums.entities import ExecutionStatus, WorkflowType, workflows
from jobtable.systems.conversations.analysis.polis_export import read_files, write_export
from jobtable.systems.conversations.conversation_runs import QUEUE as CONVERSATIONS
from jobtable.systems.conversations.conversation_runs import ConversationRuns, RunSettings
from jobtable.systems.conversations.example import generate_export
from jobtable.systems.conversations.run_comparison import compare_runs
from jobtable.systems.conversations.service import tables
from jobtable.workflows.table_and_queues import QUEUES
from jobtable.workflows.table_and_queues import workflows as runs_table

_LEASE_SECONDS = 1.5
_MOST_SECONDS = 600
_PRELOAD = ("jobtable.systems.conversations.stages", "jobtable.systems.albums.album_functions")
_LISTING = b"Pink Floyd - Animals (1977)\nKraftwerk - Autobahn (1974)\n"


def run(trials: int = 20, seed: int = 1) -> Iterator[dict[str, object]]:
    """In each trial a worker dies twice: before people are asked, and after they have answered."""
    chance = random.Random(seed)
    problems: list[str] = []
    with jobs_in_folder("pipelines") as (jobs, folder):
        jobs.store.tables.create(workflows, runs_table, *tables())
        write_export(generate_export(seed, comments=60, voters=20), folder / "export")
        files = read_files(folder / "export")
        quiet = _analyse(jobs, files)
        _work(folder, lambda: _is_analysed(jobs, quiet))
        for _ in range(trials):
            disturbed = _analyse(jobs, files)
            executions = [_execute(jobs, each) for each in WorkflowType]
            _kill(jobs, folder, chance.uniform(0, 1.5))
            _work(folder, partial(_waits, jobs, disturbed, executions))
            problems += _compare(jobs, quiet, disturbed)
            for execution in executions:
                problems += _answer(jobs, execution)
            _kill(jobs, folder, chance.uniform(0, 0.5))
            _work(folder, lambda: all(job.is_final for job in jobs.queries.list_jobs()))
            for execution in executions:
                problems += _look_at(jobs, execution)
        interrupted = sum(job.interruptions for job in jobs.queries.list_jobs())
        problems += problems_in(jobs)
    for problem in problems:
        print(problem, file=sys.stderr)
    told = {"trials": trials, "violations": len(problems), "interrupted": interrupted, "seed": seed}
    yield {"fault": "pipelines", **told}


def _analyse(jobs: Jobs, files: tuple[bytes, bytes]) -> str:
    return ConversationRuns(jobs).start("town", *files, RunSettings(seed=7)).record.run_id


def _execute(jobs: Jobs, workflow_type: WorkflowType) -> str:
    return Executions(jobs).start(workflow_type, _LISTING, "shelf.txt").execution_id


def _compare(jobs: Jobs, quiet: str, disturbed: str) -> list[str]:
    runs = ConversationRuns(jobs)
    status = runs.get(disturbed).status
    if status is not Status.COMPLETED:
        return [f"run {disturbed} is {status}"]
    return [] if compare_runs(runs, quiet, disturbed).is_same else [f"run {disturbed} has other results"]


def _answer(jobs: Jobs, execution_id: str) -> list[str]:
    records = Executions(jobs).records
    execution = records.get_execution(execution_id)
    tasks = list(records.list_execution_tasks(execution.workflow_type, execution_id))
    if execution.status is not ExecutionStatus.WAITING or len(tasks) != 1:
        return [f"execution {execution_id} is {execution.status} with {len(tasks)} tasks"]
    answers = Answers(jobs)
    token = answers.renew_token(tasks[0].task_id)
    answers.complete(tasks[0].task_id, token, [album.model_dump() for album in tasks[0].albums[1:]])
    return []


def _look_at(jobs: Jobs, execution_id: str) -> list[str]:
    found = Executions(jobs).records.get_execution_with_albums(execution_id)
    names = [album.album_name for album in found.albums if album.price_source]
    if found.execution.status is ExecutionStatus.COMPLETED and names == ["Autobahn"]:
        return []
    return [f"execution {execution_id} is {found.execution.status} with {names}"]


def _kill(jobs: Jobs, folder: Path, seconds: float) -> None:
    """Start a worker, and kill it so many seconds after it has begun its first job."""
    worker: subprocess.Popen[str] = start("faults.pipelines", url_of(folder), _LEASE_SECONDS)
    while not any(jobs.queries.get_queue(name).running_count for name in (CONVERSATIONS, *QUEUES)):
        if worker.poll() is not None:
            raise RuntimeError("a worker ended by itself")
        time.sleep(0.01)
    time.sleep(seconds)
    worker.kill()
    worker.communicate()


def _work(folder: Path, is_done: Callable[[], bool]) -> None:
    """Let a worker do what is left; executions that wait for a person would keep it for an hour."""
    worker: subprocess.Popen[str] = start("faults.pipelines", url_of(folder), _LEASE_SECONDS)
    until = time.monotonic() + _MOST_SECONDS
    while not is_done():
        if worker.poll() is not None or time.monotonic() > until:
            worker.kill()
            raise RuntimeError(f"the worker ended by itself, or was not done after {_MOST_SECONDS} seconds")
        time.sleep(0.05)
    worker.terminate()
    worker.communicate()


def _is_analysed(jobs: Jobs, run_id: str) -> bool:
    return ConversationRuns(jobs).get(run_id).status in FINAL


def _waits(jobs: Jobs, run_id: str, executions: list[str]) -> bool:
    """Return whether a run has ended, and the executions wait for a person or have ended."""
    records = Executions(jobs).records
    statuses = {records.get_execution(execution_id).status for execution_id in executions}
    return _is_analysed(jobs, run_id) and ExecutionStatus.RUNNING not in statuses


def main(url: str, lease_seconds: str) -> None:
    """Work until killed."""
    queues = [CONVERSATIONS, *QUEUES]
    Worker(partial(open_jobs, url), queues, slots=3, lease_seconds=float(lease_seconds), preload=_PRELOAD).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
