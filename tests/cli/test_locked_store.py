"""A store that another program keeps locked: the person who waits for it is told so."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.cli.conftest import CommandLine, run_in_terminal


@pytest.mark.parametrize("command", [("jobs", "list"), ("tables", "list"), ("queues", "create", "gpu")])
def test_a_store_that_is_locked_is_waited_for_with_a_word_about_it(
    cli: CommandLine, tmp_path: Path, command: tuple[str, ...]
) -> None:
    cli.run("tables", "create", "--system", "jobs")
    with closing(sqlite3.connect(tmp_path / "jobs.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        code, shown = run_in_terminal(
            tmp_path,
            *command,
            awaited=b"Waiting for",
            act=lambda: other.execute("ROLLBACK"),
            JOBTABLE_STORE="file:jobs.db",
        )
    first, *_ = shown.splitlines()
    assert first == "Waiting for jobs.db, which another program keeps locked or is writing to ..."
    assert shown.count("Waiting for") == 1
    assert code == 0, shown
