"""A hundred answers at once: one wins, the others hear so, and the execution goes on once."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.systems.albums.driving import DELIVERED, checked, start, work
from tests.systems.albums.test_executions import each_kind

from jobtable.app import open_jobs
from jobtable.errors import TaskClosedError
from jobtable.jobs.engine import Jobs
from jobtable.systems.albums.album_executions import Executions
from jobtable.systems.albums.answers import Answers
from jobtable.systems.albums.entities import ExecutionStatus, TaskStatus, ValidationTask, WorkflowType, workflows
from jobtable.workflows.table_and_queues import workflows as runs

ANSWERS = 100
ROOT = Path(__file__).parents[3]


def asked(jobs: Jobs, kind: WorkflowType) -> tuple[ValidationTask, str]:
    start(jobs, kind, b"Kraftwerk - Autobahn (1974)")
    work(jobs)
    return DELIVERED[-1]


def answer(jobs: Jobs, task: ValidationTask, token: str, number: int) -> str:
    album = {"albumIndex": 1, "albumName": f"answer {number}", "artist": "Kraftwerk", "year": 1974}
    try:
        Answers(jobs).complete(task.task_id, token, [album])
    except TaskClosedError:
        return "closed"
    return "won"


def check(jobs: Jobs, task: ValidationTask, outcomes: list[str]) -> None:
    assert Counter(outcomes) == {"won": 1, "closed": ANSWERS - 1}
    records = Executions(jobs).records
    kept = records.get_task(task.task_id)
    assert kept.status is TaskStatus.COMPLETED
    assert kept.validated_data is not None
    assert kept.validated_data[0].album_name == f"answer {outcomes.index('won')}"
    assert checked(jobs, task.execution_id).status is ExecutionStatus.COMPLETED
    (album,) = records.list_albums(task.execution_id)
    assert album.album_name == kept.validated_data[0].album_name


@each_kind
def test_threads(each_jobs: Jobs, kind: WorkflowType) -> None:
    task, token = asked(each_jobs, kind)
    with ThreadPoolExecutor(16) as pool:
        outcomes = list(pool.map(lambda number: answer(each_jobs, task, token, number), range(ANSWERS)))
    check(each_jobs, task, outcomes)


def main(url: str, task_id: str, token: str, numbers: list[int]) -> list[str]:
    """What one process does."""
    jobs = open_jobs(url)
    try:
        task = Executions(jobs).records.get_task(task_id)
        return [answer(jobs, task, token, number) for number in numbers]
    finally:
        jobs.store.close()
        jobs.objects.close()


def start_process(*arguments: object) -> subprocess.Popen[str]:
    program = (
        f"import json; from {__name__} import main; print(json.dumps(main(*json.loads({json.dumps(arguments)!r}))))"
    )
    return subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True)


@each_kind
def test_processes(tmp_path: Path, kind: WorkflowType) -> None:
    url = f"file:{tmp_path / 'albums.db'}"
    jobs = open_jobs(url)
    jobs.store.tables.create(workflows, runs)
    task, token = asked(jobs, kind)
    shares = [list(range(first, ANSWERS, 4)) for first in range(4)]
    processes = [start_process(url, task.task_id, token, share) for share in shares]
    outcomes = [""] * ANSWERS
    for share, process in zip(shares, processes, strict=True):
        printed, _ = process.communicate(timeout=240)
        for number, outcome in zip(share, json.loads(printed), strict=True):
            outcomes[number] = outcome
    check(jobs, task, outcomes)
    jobs.store.close()
    jobs.objects.close()
