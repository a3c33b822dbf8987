"""Real workers run executions: a task times out in time, a killed worker is replaced, and figures say so."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from tests.systems.albums.driving import answer
from tests.systems.albums.test_executions import each_kind

from jobtable.app import Services
from jobtable.systems.albums.album_executions import Executions
from jobtable.systems.albums.answers import Answers
from jobtable.systems.albums.entities import Execution, ExecutionStatus, WorkflowType
from jobtable.systems.albums.service import AlbumWorkflows
from jobtable.workflows.table_and_queues import QUEUES

JOBTABLE = Path(sys.executable).parent / "jobtable"
SLOW = """
import time
from jobtable.systems.albums.entities import ValidationTask

def deliver(task: ValidationTask, token: str) -> None:
    open("delivering", "a").write("x")
    if open("delivering").read() == "x":
        time.sleep(600)
"""
FATAL = """
import os, signal

def deliver(task, token):
    open("deliveries", "a").write("x")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@contextmanager
def worker(folder: Path, url: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [str(JOBTABLE), "worker", *(f"--queue={queue}" for queue in QUEUES), "--store", url, "--lease-seconds=1"]
    process = subprocess.Popen(command, cwd=folder, env={**os.environ, "PYTHONPATH": _path(folder)})
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(240)


@contextmanager
def sender(folder: Path, text: str) -> Iterator[None]:
    """Let this process and the worker find the module `a_sender`."""
    (folder / "a_sender.py").write_text(text)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop("a_sender", None)


def _path(folder: Path) -> str:
    return os.pathsep.join([str(folder), *sys.path[1:]])


def until(services: Services, execution_id: str, is_so: Callable[[Execution], bool]) -> Execution:
    """Look until an execution is as wanted."""
    end = time.monotonic() + 240
    while not is_so(found := services.get(AlbumWorkflows).get_execution(execution_id)):
        assert time.monotonic() < end, found
        time.sleep(0.05)
    return found


@each_kind
def test_a_task_times_out_under_a_worker(tmp_path: Path, kind: WorkflowType) -> None:
    url = f"file:{tmp_path / 'albums.db'}"
    with Services.open(url) as services, worker(tmp_path, url):
        started = services.get(Executions).start(kind, b"A - B (1974)", "a.txt", answer_within=timedelta(seconds=2))
        ended = until(services, started.execution_id, lambda each: each.status is ExecutionStatus.FAILED)
        (task_id,) = ended.task_ids or []
        assert services.get(AlbumWorkflows).get_task(task_id).status == "timed-out"


@each_kind
def test_an_execution_whose_step_kills_its_process_fails_with_that_reason(tmp_path: Path, kind: WorkflowType) -> None:
    url = f"file:{tmp_path / 'albums.db'}"
    with sender(tmp_path, FATAL), Services.open(url) as services, worker(tmp_path, url):
        started = services.get(Executions).start(kind, b"A - B (1974)", "a.txt", deliver="a_sender:deliver")
        failed = until(services, started.execution_id, lambda each: each.status is ExecutionStatus.FAILED)
    assert "SIGKILL" in str(failed.failure)
    assert 1 < len((tmp_path / "deliveries").read_text()) < 10, "it was tried again, and not for ever"


@each_kind
def test_an_execution_outlives_its_worker_and_says_how_long_that_took(tmp_path: Path, kind: WorkflowType) -> None:
    url = f"file:{tmp_path / 'albums.db'}"
    with sender(tmp_path, SLOW), Services.open(url) as services:
        executions = services.get(Executions)
        with worker(tmp_path, url) as killed:
            execution_id = executions.start(kind, b"A - B (1974)", "a.txt", deliver="a_sender:deliver").execution_id
            until(services, execution_id, lambda _: (tmp_path / "delivering").exists())
            killed.kill()
        with worker(tmp_path, url):
            until(services, execution_id, lambda _: (tmp_path / "delivering").read_text() == "xx")
            task_id = (executions.records.get_execution(execution_id).task_ids or [""])[-1]
            answers = services.get(Answers)
            task = services.get(AlbumWorkflows).get_task(task_id)
            answers.complete(task_id, answers.renew_token(task_id), answer(task))
            measured = until(services, execution_id, lambda each: each.figures is not None)
    assert measured.status is ExecutionStatus.COMPLETED
    assert isinstance(measured.figures, dict)
    assert measured.figures["recovery_ms"] is not None
    assert measured.figures["attempts"] > 1
