"""What is gone for good is asked about first: in a terminal, and refused where there is none."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.cli.conftest import CTRL_C, JOBTABLE, CommandLine, run_in_terminal

from jobtable.app import Services
from jobtable.jobs.submit.definition import NewJob

DESTRUCTIVE = [
    ("jobs", "delete", "x"),
    ("queues", "delete", "x"),
    ("journeys", "delete", "x"),
    ("journeys", "import", "x.zip", "--existing", "replace"),
    ("conversations", "delete", "x"),
    ("executions", "delete", "x"),
    ("receipts", "delete", "x"),
    ("tokens", "revoke", "x"),
    ("objects", "sweep"),
    ("import", "table.jsonl", "--existing", "replace"),
    ("tables", "create", "--delete-existing"),
]


@pytest.mark.parametrize("command", DESTRUCTIVE, ids=" ".join)
def test_without_a_terminal_it_is_refused(cli: CommandLine, command: tuple[str, ...]) -> None:
    with Services.open(cli.store) as services:
        services.engine.submit(NewJob(name="kept", task="mine:nothing"))
    cli.run("export", "jobtable", "table.jsonl")
    refused = cli.run(*command, code=2)
    assert "Without a terminal, confirm with --yes" in " ".join(refused.stderr.replace("│", "").split())
    assert refused.stdout == ""


def test_a_sweep_of_objects_names_what_it_compares(cli: CommandLine) -> None:
    cli.make_store()
    refused = cli.run("objects", "sweep", "--objects", "file:elsewhere", code=2)
    asked = " ".join(refused.stderr.replace("│", "").split())
    assert f"every object in file:elsewhere that no record in {cli.store} names?" in asked


def test_without_standard_input_it_is_refused(cli: CommandLine) -> None:
    cli.make_store()
    command = [str(JOBTABLE), "objects", "sweep", "--store", cli.store]
    refused = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" <&-', "sh", *command], capture_output=True, text=True, timeout=240, check=False
    )
    assert refused.returncode == 2
    assert "Without a terminal, confirm with --yes" in refused.stderr


END_OF_INPUT = b"\x04"


def test_in_a_terminal_the_person_decides(cli: CommandLine, tmp_path: Path) -> None:
    with Services.open(cli.store) as services:
        job = services.engine.submit(NewJob(name="kept", task="mine:nothing"))
        services.engine.cancel(job.job_id)
        command = ("jobs", "delete", job.job_id, "--store", cli.store)
        assert run_in_terminal(tmp_path, *command, answer=b"n\n")[0] == 1
        assert run_in_terminal(tmp_path, *command, answer=END_OF_INPUT)[0] == 1
        assert run_in_terminal(tmp_path, *command, answer=CTRL_C)[0] == 130
        assert services.engine.queries.get_job(job.job_id).name == "kept"
        assert run_in_terminal(tmp_path, *command, answer=b"y\n")[0] == 0
    missing = cli.run("jobs", "show", job.job_id, code=3)
    assert missing.stderr == f"Error: there is no job {job.job_id}; `jobtable jobs list` lists them\n"
