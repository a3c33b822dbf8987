"""Ctrl-C ends a command with 130, and without a traceback, whatever it is at."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jobtable import connect
from jobtable.jobs.stored.entities import main

_INTERRUPT = "import os, signal; os.kill(os.getpid(), signal.SIGINT)"
_LOCK = """
import os, signal, sqlite3, threading
from jobtable.embedded.storage import database_files, writer

database_files._BUSY_SECONDS = 3600.0

def lock_before(owner, name):
    go_on = getattr(owner, name)

    def lock(*arguments):
        other = sqlite3.connect(".jobtable/jobtable.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        threading.Timer(0.5, os.kill, [os.getpid(), signal.SIGINT]).start()
        return go_on(*arguments)

    setattr(owner, name, lock)
"""
"""The store is locked for longer than the test may take, from a certain call on, and Ctrl-C comes while that waits."""


def run(folder: Path, program: str, *arguments: str) -> tuple[int, str]:
    """How a program ends that runs the command, and what it says."""
    done = subprocess.run(
        [sys.executable, "-c", f"{program}\nfrom jobtable.__main__ import run; run()", *arguments],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        cwd=folder,
        # What ran the tests may have it ignored, and that is handed down.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), *sys.path])},
    )
    return done.returncode, done.stderr


def test_while_it_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text(_INTERRUPT)
    assert run(tmp_path, "", "--version") == (130, "")


def test_while_its_options_are_made(tmp_path: Path) -> None:
    made = "import signal, typer.main; typer.main.get_command = lambda app: signal.raise_signal(signal.SIGINT)"
    assert run(tmp_path, made, "--version") == (130, "")


def test_while_one_of_its_groups_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "yaml.py").write_text(_INTERRUPT)
    assert run(tmp_path, "", "jobs", "list") == (130, "")


def test_while_it_ends(tmp_path: Path) -> None:
    at_exit = "import atexit, os, signal; atexit.register(os.kill, os.getpid(), signal.SIGINT)"
    assert run(tmp_path, at_exit, "--version") == (130, "")


def test_where_it_is_ignored_it_stays_so(tmp_path: Path) -> None:
    ignored = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
    (tmp_path / "yaml.py").write_text(f"{_INTERRUPT}\nraise ImportError('loaded')")
    code, said = run(tmp_path, ignored, "jobs", "list")
    assert (code, said.splitlines()[-1]) == (1, "ImportError: loaded")


@pytest.mark.parametrize(
    ("place", "command"),
    [("database_files, 'upgrade'", ("jobs", "list")), ("writer.Writer, '_commit'", ("queues", "create", "gpu"))],
)
def test_while_another_program_keeps_the_store_locked(tmp_path: Path, place: str, command: tuple[str, ...]) -> None:
    with connect(f"file:{tmp_path / '.jobtable' / 'jobtable.db'}") as store:
        store.tables.create(main)
    assert run(tmp_path, f"{_LOCK}\nlock_before({place})", *command) == (130, "")
