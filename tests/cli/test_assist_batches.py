"""The commands of batches: how far each is, what became of each line, and an early end."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.assist.batch_runs import configure, run_to_end
from tests.cli.conftest import CommandLine

from jobtable.app import Services
from jobtable.assist.batch_lines import BatchLine
from jobtable.assist.batch_submission import Batches, NewBatch
from jobtable.cli.output import ExitCode
from jobtable.jobs.stored.field_types import Status
from jobtable.testing.assist import AssistServer, Reply


def test_a_batch_is_followed_and_its_results_are_read(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commands show what the job records, and an ended batch stays as it is."""
    monkeypatch.chdir(tmp_path)
    lines = [BatchLine("a", "one", {"word": 1}), BatchLine("b", "two")]
    with AssistServer([Reply("first"), Reply("second")]) as server, Services.open(cli.store) as services:
        configure(server, tmp_path)
        new = NewBatch(name="n", purpose="kinds", kind="chat", lines=lines, job_id="batch-job", poll_seconds=0)
        Batches(services.engine).submit(new)
        assert cli.json("assist", "batches", "batch-job")["batches"] == []
        assert run_to_end(services.engine).status is Status.COMPLETED
    (batch,) = cli.json("assist", "batches", "batch-job")["batches"]
    assert (batch["status"], batch["answered"], batch["failed"]) == ("COMPLETED", 2, 0)
    assert "kinds" in cli.run("assist", "batches", "batch-job").stdout
    first, second = cli.json("assist", "results", "batch-job")
    assert first == {"line": "a", "about": {"word": 1}, "output": "first", "error": None}
    assert (second["line"], second["output"]) == ("b", "second")
    assert "second" in cli.run("assist", "results", "batch-job").stdout
    cli.run("assist", "end-batches", "batch-job")
    assert cli.json("jobs", "show", "batch-job")["job"]["status"] == "COMPLETED"
    cli.run("assist", "batches", "none", code=ExitCode.NOT_FOUND)
