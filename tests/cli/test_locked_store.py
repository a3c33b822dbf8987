"""A store that another program keeps locked: the person who waits for it is told so."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from tests.cli.conftest import JOBTABLE, CommandLine, run_in_terminal

from jobtable import Store, connect
from jobtable.cli import opening
from jobtable.errors import StorageLocked
from jobtable.settings import Settings

WORD = "Waiting for jobs.db, which another program keeps locked ..."


@contextmanager
def locked(file: Path) -> Iterator[sqlite3.Connection]:
    """The file, locked by another program until that rolls back."""
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield other


@pytest.mark.parametrize("command", [("jobs", "list"), ("tables", "list"), ("queues", "create", "gpu")])
def test_a_store_that_is_locked_is_waited_for_with_a_word_about_it(
    cli: CommandLine, tmp_path: Path, command: tuple[str, ...]
) -> None:
    cli.run("tables", "create", "--system", "jobs")
    with locked(tmp_path / "jobs.db") as other:
        code, shown = run_in_terminal(
            tmp_path,
            *command,
            awaited=b"Waiting for",
            act=lambda: other.execute("ROLLBACK"),
            JOBTABLE_STORE="file:jobs.db",
        )
    first, *_ = shown.splitlines()
    assert first == WORD
    assert shown.count("Waiting for") == 1
    assert code == 0, shown


@pytest.mark.parametrize(("command", "greeting"), [("worker", "Serving"), ("up --no-worker --port 0", "Jobtable is")])
def test_what_runs_on_says_once_that_it_waits_and_goes_on_by_itself(
    cli: CommandLine, tmp_path: Path, command: str, greeting: str
) -> None:
    cli.make_store()
    environment = os.environ | {"JOBTABLE_STORE": "file:jobs.db"}
    with (
        locked(tmp_path / "jobs.db") as other,
        subprocess.Popen(
            [str(JOBTABLE), *command.split()], stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environment
        ) as process,
    ):
        try:
            assert process.stderr is not None
            assert process.stderr.readline().rstrip() == WORD
            other.execute("ROLLBACK")
            assert process.stderr.readline().startswith(greeting)
            process.send_signal(signal.SIGINT)
            said = process.stderr.read()
        except BaseException:  # or it would be waited for as long as it runs
            process.kill()
            raise
    assert "Waiting for" not in said


def test_what_runs_on_waits_for_longer_than_the_engine_does(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = [StorageLocked("locked"), StorageLocked("locked")]

    def connect_when_free(url: str) -> Store:
        if failures:
            raise failures.pop()
        return connect(url)

    monkeypatch.setattr(opening, "connect", connect_when_free)
    opening.wait_for_store(Settings(store=cli.store))
    assert (tmp_path / "jobs.db").exists()


def test_the_time_in_which_the_engine_is_loaded_is_no_waiting_for_a_file(tmp_path: Path) -> None:
    program = """
import sys, threading
from jobtable.cli import opening
from jobtable.settings import Settings

class Timer(threading.Timer):
    def start(self):
        print({"jobtable.embedded", "jobtable.objects"} - {*sys.modules})

threading.Timer = Timer
opening.wait_for_store(Settings(store="file:jobs.db"))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, timeout=240, check=False
    )
    assert (done.stdout, done.stderr) == ("set()\n", "")
