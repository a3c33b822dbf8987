"""The shell completes ids: what it is told, and that it is told nothing else."""

from __future__ import annotations

import socket
import threading
from pathlib import Path
from unittest.mock import patch

import pytest
from tests.cli.conftest import CommandLine
from typer.testing import CliRunner

from jobtable.cli.main import app


def completed(line: str, patience_seconds: float = 60) -> list[str]:
    """What a shell offers at the end of a line."""
    words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1), "_JOBTABLE_COMPLETE": "complete_bash"}
    with patch("jobtable.cli.completion._PATIENCE_SECONDS", patience_seconds):
        done = CliRunner().invoke(app, [], env=words, prog_name="jobtable")
    assert done.stderr == ""
    return done.stdout.split()


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_ids_are_completed_the_newest_first(cli: CommandLine) -> None:
    ids = [cli.run("jobs", "submit", "--task", "mine:work").stdout.strip() for _ in range(3)]
    assert completed(f"jobtable jobs show --store {cli.store} ") == ids[::-1]
    assert completed(f"jobtable --store {cli.store} jobs cancel {ids[0][:-1]}") == [ids[0]]


def test_ids_of_sweeps_and_executions_are_completed(cli: CommandLine) -> None:
    Path("sweep.yaml").write_text(
        "{task: 'm:f', objective: loss, trials: 1, space: {x: {type: float, low: 0, high: 1}}}"
    )
    Path("shelf.txt").write_text("Pink Floyd - Animals (1977)\n")
    sweep_id = cli.run("sweeps", "run", "sweep.yaml", "--workers", "0").stdout.strip()
    execution = cli.json("executions", "start", "shelf.txt", "--submit-only")["execution"]
    assert completed(f"jobtable --store {cli.store} sweeps show ") == [sweep_id]
    assert completed(f"jobtable --store {cli.store} executions show ") == [execution["execution_id"]]


def test_where_nothing_is_nothing_is_made(tmp_path: Path) -> None:
    assert completed("jobtable jobs show ") == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("store", ["memory:", "nonsense", "file:/dev/null", "file:jobtable.toml"])
def test_a_store_that_cannot_be_used_completes_nothing(tmp_path: Path, store: str) -> None:
    (tmp_path / "jobtable.toml").write_text("slots = 2\n")
    assert completed(f"jobtable --store {store} jobs show ") == []


def test_a_server_that_does_not_answer_is_not_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = f"http://127.0.0.1:{silent.getsockname()[1]}"
        before = set(threading.enumerate())
        assert completed(f"jobtable --server {server} jobs show ", patience_seconds=0.1) == []
        (waits,) = set(threading.enumerate()) - before
        assert waits.daemon, "nor when the program ends"
