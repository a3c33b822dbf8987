"""Processes that write the log of one job at once, and processes that are killed while they do."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from jobtable.connection import connect
from jobtable.jobs.stored.entities import main

REPOSITORY = Path(__file__).parents[2]


def experiments(code: str) -> list[dict[str, object]]:
    """The outcomes of small versions of what `make faults` does."""
    command = [
        sys.executable,
        "-c",
        f"import json\nfrom faults import logs\nfor told in {code}:\n    print(json.dumps(told))",
    ]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]
    assert all(outcome["violations"] == 0 for outcome in outcomes), done.stderr
    return outcomes


def test_logs_of_eight_processes_killed_writers_and_a_long_log() -> None:
    written, killed, long = experiments("logs.run(20_000)")
    assert written["trials"] == 800
    assert killed["trials"] == 1
    assert long["tail_read_units"] == pytest.approx(5.5, abs=2.5)
    assert long["follow_step_read_units"] == 2  # one for the job's status, one for the line


def test_eight_processes_with_frozen_clocks_lose_nothing_on_dynamodb(dynamodb_local_url: str) -> None:
    address = dynamodb_local_url.removeprefix("http://")
    url = f"dynamodb+http://a:b@{address}?prefix=t{uuid.uuid4().hex[:12]}-"
    (written,) = experiments(f"[logs.writers({url!r}, 30)]")
    assert written["trials"] == 240
    with connect(url) as store:
        store.tables.delete(main)
