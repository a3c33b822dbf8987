"""One sender of each call among the threads and forked processes of a run, also if one of them is killed."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from jobtable.app import open_jobs
from jobtable.assist.providers import Usage
from jobtable.assist.verbs import Ledger
from jobtable.jobs.lifecycle.leases import Lease
from tests.assist.ledgers import calls_of, check_totals, held_job, ledger_of, plan

Act = Callable[[Ledger, Path, int], None]
PROCESSES = 6


def ask_once(ledger: Ledger, folder: Path, number: int) -> None:
    """Ask; write who sent the request, and the answer."""
    begun = ledger.begin(plan())
    if begun.answer is None:
        (folder / f"sent-{number}").touch()
        time.sleep(0.1)
        ledger.end(begun.call, f"from {number}", Usage(1, 1), tries=1, seconds=0.1)
    (folder / f"answer-{number}").write_text(str(begun.answer or f"from {number}"))


def ask_and_die(ledger: Ledger, folder: Path, number: int) -> None:
    """Ask; the first to send the request is killed before it has an answer."""
    begun = ledger.begin(plan())
    if begun.answer is None and not (folder / "died").exists():
        (folder / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if begun.answer is None:
        ledger.end(begun.call, f"from {number}", Usage(1, 1), tries=1, seconds=0.1)
        (folder / f"sent-{number}").touch()
    (folder / f"answer-{number}").write_text(str(begun.answer or f"from {number}"))


def fork_and_ask(url: str, lease: Lease, folder: Path, act: Act) -> None:
    """A task: its ledger is made before it forks."""
    with open_jobs(url) as jobs:
        ledger = ledger_of(jobs, lease)
        ledger.begin(plan("before the fork"))
        context = multiprocessing.get_context("fork")
        forked = [context.Process(target=act, args=(ledger, folder, number)) for number in range(PROCESSES)]
        for process in forked:
            process.start()
        for process in forked:
            process.join()
        ledger.end(ledger.begin(plan("before the fork")).call, "done", Usage(1, 1), tries=1, seconds=1)


@pytest.mark.parametrize(("act", "dead"), [(ask_once, 0), (ask_and_die, 1)])
def test_forked_processes_that_ask_the_same_send_one_request(tmp_path: Path, act: Act, dead: int) -> None:
    url = f"file:{tmp_path / 'store.db'}"
    folder = tmp_path / "told"
    folder.mkdir()
    with open_jobs(url) as jobs:
        lease = held_job(jobs, job_id="j")
    task = multiprocessing.get_context("forkserver").Process(target=fork_and_ask, args=(url, lease, folder, act))
    task.start()
    task.join()
    assert task.exitcode == 0
    (sent,) = folder.glob("sent-*")
    answers = [path.read_text() for path in folder.glob("answer-*")]
    assert answers == [f"from {sent.name.removeprefix('sent-')}"] * (PROCESSES - dead)
    with open_jobs(url) as jobs:
        assert len(calls_of(jobs, "j")) == 2
        check_totals(jobs)


def test_no_lock_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with open_jobs("memory:") as jobs:
        ledger = ledger_of(jobs, held_job(jobs))
        call = ledger.begin(plan()).call
        assert len(list(tmp_path.glob("*.lock"))) == 1
        ledger.begin(plan())
        ledger.end(call, "because", Usage(1, 1), tries=1, seconds=1)
        ledger.begin(plan())
        ledger.fail(ledger.begin(plan(2)).call, "unavailable", tries=1, seconds=1)
        assert list(tmp_path.glob("*.lock")) == []
        ledger.begin(plan(3))
        del ledger
        gc.collect()
        assert list(tmp_path.glob("*.lock")) == [], "nobody can end the call any more"
