"""Executions with a real worker: a step that kills its process, and the whole example from another process."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from jobtable.app import open_jobs
from jobtable.jobs.worker.worker import Worker
from jobtable.systems.albums.entities import ExecutionStatus, workflows
from jobtable.systems.albums.executions import QUEUE, Executions
from jobtable.systems.albums.watch import Watch
from jobtable.testing import FakeClock

REPOSITORY = Path(__file__).parents[3]


def test_an_execution_whose_process_is_killed_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(REPOSITORY))
    url = f"file:{tmp_path / 'albums.db'}"
    jobs = open_jobs(url)
    jobs.store.tables.create(workflows)
    executions = Executions(jobs)
    started = executions.start("tests.systems.albums.workflows:FATAL", b"", "image.jpg")
    Worker(partial(open_jobs, url), [QUEUE], until_empty=True).run()
    assert executions.records.get_execution(started.execution_id).status is ExecutionStatus.RUNNING
    jobs.clock = FakeClock(started.start_time + timedelta(seconds=11))
    assert Watch(jobs).expire_due().failed == 1
    failed = executions.records.get_execution(started.execution_id)
    assert failed.status is ExecutionStatus.FAILED
    assert "SIGKILL" in str(failed.failure)
    jobs.store.close()
    jobs.objects.close()
