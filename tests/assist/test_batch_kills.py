"""SIGKILL at every point of a batch: no answer is lost, none is paid twice, and all totals equal a recount."""

from __future__ import annotations

import multiprocessing
import signal
from collections import Counter
from pathlib import Path

import pytest

from jobtable.app import Services
from jobtable.assist.batch_lines import BatchLine
from jobtable.assist.batch_submission import Batches, NewBatch
from jobtable.jobs.engine import Jobs
from jobtable.jobs.stored.entities import Job, main
from jobtable.jobs.stored.field_types import Status
from jobtable.testing.assist import AssistProcess, Reply
from tests.assist.batch_runs import configure, run_to_end
from tests.assist.killed_asking import Label
from tests.assist.killed_batches import work_until_killed
from tests.assist.ledgers import check_totals

_VALID = Reply('{"label": "spam"}')


def test_a_worker_that_is_killed_anywhere_pays_for_no_line_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line needs a second batch; each answer is charged once, and every line has its own."""
    monkeypatch.chdir(tmp_path)
    urls = f"file:{tmp_path / 'store.db'}", f"file:{tmp_path / 'objects'}"
    lines = [BatchLine("a", "one"), BatchLine("b", "two")]
    was_killed, points = True, 0
    with AssistProcess() as service, Services.open(*urls) as services:
        configure(service, tmp_path)
        services.store.tables.create(main)
        jobs = services.engine
        while was_killed:
            before = len(service.charges)
            service.script(_VALID, Reply("not JSON"), _VALID)
            job_id = f"j-{points}"
            new = NewBatch(
                name="n", purpose="p", kind="chat", lines=lines, output=Label, job_id=job_id, poll_seconds=0, max_cost=1
            )
            Batches(jobs).submit(new)
            was_killed = _work(urls, tmp_path, points) != 0
            ended = _finished(jobs, job_id)
            assert (ended.status, ended.result["answered"]) == (Status.COMPLETED, 2), points
            charges = Counter(charge.custom_id for charge in service.charges[before:])
            assert charges == {"a": 1, "b": 2}, points
            assert [result.output for _, result in Batches(jobs).read_results(job_id)] == [{"label": "spam"}] * 2
            check_totals(jobs)
            points += 1
        assert points > 20, "there are fewer points than a worker passes"


def _work(urls: tuple[str, str], folder: Path, points: int) -> int:
    """Work in a process of its own; return how it ended."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.assist.killed_batches", "openai"])
    process = context.Process(target=work_until_killed, args=(urls, folder, points))
    process.start()
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode


def _finished(jobs: Jobs, job_id: str) -> Job:
    """Take the job from the dead worker, and run it to its end."""
    job = jobs.queries.get_job(job_id)
    if job.status is Status.RUNNING:
        assert jobs.interrupt_lost(job) is not None
    return job if job.is_final else run_to_end(jobs)
