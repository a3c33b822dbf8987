"""What is gone for good is asked about first: in a terminal, and refused where there is none."""

from __future__ import annotations

import fcntl
import os
import pty
import subprocess
import termios
from pathlib import Path

import pytest
from tests.cli.conftest import JOBTABLE, CommandLine

from jobtable.app import Services
from jobtable.jobs.definition import NewJob

DESTRUCTIVE = [
    ("jobs", "delete", "x"),
    ("queues", "delete", "x"),
    ("journeys", "delete", "x"),
    ("journeys", "import", "x.zip", "--existing", "replace"),
    ("conversations", "delete", "x"),
    ("receipts", "delete", "x"),
    ("tokens", "revoke", "x"),
    ("objects", "sweep"),
    ("import", "table.jsonl", "--existing", "replace"),
]


@pytest.mark.parametrize("command", DESTRUCTIVE, ids=" ".join)
def test_without_a_terminal_it_is_refused(cli: CommandLine, command: tuple[str, ...]) -> None:
    with Services.open(cli.store) as services:
        services.jobs.submit(NewJob(name="kept", task="mine:nothing"))
    cli.run("export", "jobtable", "table.jsonl")
    refused = cli.run(*command, code=2)
    assert "There is no terminal to ask in: add --yes" in " ".join(refused.stderr.replace("│", "").split())
    assert refused.stdout == ""


def test_without_standard_input_it_is_refused(cli: CommandLine) -> None:
    command = [str(JOBTABLE), "objects", "sweep", "--store", cli.store]
    refused = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" <&-', "sh", *command], capture_output=True, text=True, timeout=60, check=False
    )
    assert refused.returncode == 2
    assert "There is no terminal to ask in: add --yes" in refused.stderr


CTRL_C = b"\x03"
END_OF_INPUT = b"\x04"


def answered(folder: Path, answer: bytes, *command: str) -> int:
    """How a command ends that asks something in a terminal of its own."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [str(JOBTABLE), *command],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY),  # noqa: PLW1509 - it takes no lock
    ) as process:
        assert process.stderr is not None
        assert process.stderr.read(len("Delete")) == b"Delete"
        os.write(ours, answer)
        process.communicate(timeout=60)
    os.close(ours)
    os.close(theirs)
    return process.returncode


def test_in_a_terminal_the_person_decides(cli: CommandLine, tmp_path: Path) -> None:
    with Services.open(cli.store) as services:
        job = services.jobs.submit(NewJob(name="kept", task="mine:nothing"))
        services.jobs.cancel(job.job_id)
        command = ("jobs", "delete", job.job_id, "--store", cli.store)
        assert answered(tmp_path, b"n\n", *command) == 1
        assert answered(tmp_path, END_OF_INPUT, *command) == 1
        assert answered(tmp_path, CTRL_C, *command) == 130
        assert services.jobs.queries.get_job(job.job_id).name == "kept"
        assert answered(tmp_path, b"y\n", *command) == 0
    missing = cli.run("jobs", "show", job.job_id, code=3)
    assert missing.stderr == f"Error: there is no job {job.job_id}; `jobtable jobs list` lists what is there\n"
