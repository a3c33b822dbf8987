"""A worker that serves the queue of albums looks after executions: a task times out within a second."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.running import run_jobs

from jobtable.app import open_jobs
from jobtable.systems.albums.entities import ExecutionStatus, ExecutionWatch, ValidationTask, workflows
from jobtable.systems.albums.example import PATHS
from jobtable.systems.albums.executions import QUEUE, Executions

JOBTABLE = Path(sys.executable).parent / "jobtable"


def test_a_task_times_out_under_a_worker(tmp_path: Path) -> None:
    url = f"file:{tmp_path / 'albums.db'}"
    jobs = open_jobs(url)
    jobs.store.tables.create(workflows)
    executions = Executions(jobs)
    started = executions.start(next(iter(PATHS.values())), b"Kraftwerk - Autobahn (1974)", "shelf.txt")
    run_jobs(jobs, QUEUE)
    watch = executions.get_watch(started.execution_id)
    soon = datetime.now(UTC) + timedelta(seconds=0.2)
    task = executions.records.get_task(str(watch.task_id)).replace(expires_at=soon)
    with jobs.store.transaction() as tx:
        tx.put(task)
        tx.update(ExecutionWatch.key(execution_id=watch.execution_id), ExecutionWatch.due_at.set(soon))
    worker = subprocess.Popen([JOBTABLE, "worker", "--queue", QUEUE, "--store", url], cwd=tmp_path, env=os.environ)
    try:
        until = time.monotonic() + 240
        while executions.records.get_execution(started.execution_id).status is ExecutionStatus.WAITING:
            assert time.monotonic() < until, "the task did not time out"
            time.sleep(0.05)
    finally:
        worker.send_signal(signal.SIGTERM)
        worker.wait(240)
    assert executions.records.get_execution(started.execution_id).status is ExecutionStatus.FAILED
    assert jobs.store.get(ValidationTask.key(task_id=task.task_id)).status == "timed-out"
    jobs.store.close()
    jobs.objects.close()
