"""A sweep finds exactly the objects of workflows that no record names, at any instant of an execution."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path
from unittest.mock import patch

import pytest
from typer.testing import CliRunner

from jobtable.app import Services
from jobtable.cli.main import app
from jobtable.errors import BackendUnavailable
from jobtable.store import Store
from jobtable.workflows.asl.arns import Arns
from jobtable.workflows.asl.catalogue.machine_verbs import MachineDraft

_ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("kind", "step"), [("durable", 1), ("machine", 3)])
def test_a_sweep_after_a_kill_finds_what_no_record_names(kind: str, step: int, tmp_path: Path) -> None:
    """Each run sweeps with no grace time after every job, and compares what is named with every item of the store."""
    command = [sys.executable, "-m", "tests.workflows.sweeping", str(tmp_path), kind, str(step)]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *killed, whole = map(json.loads, done.stdout.splitlines())
    assert whole["outcome"][0] == "SUCCEEDED"
    assert whole["outcome"][2] > 5
    assert len(killed) > 8
    # Some payloads are stored twice, so that a record named their object before its worker was killed.
    assert sum(run["orphans"] > 0 for run in killed) > len(killed) / 2
    assert {json.dumps(run["outcome"]) for run in killed} == {json.dumps(whole["outcome"])}
    assert {run["left"] for run in (*killed, whole)} == {0}, "a deletion left objects"


def long_definition(comment: str) -> str:
    """Return a definition that only an object can hold."""
    return json.dumps({"Comment": comment * 400_000, "StartAt": "A", "States": {"A": {"Type": "Succeed"}}})


def test_the_command_deletes_only_what_no_record_names(tmp_path: Path) -> None:
    url, objects = f"file:{tmp_path}/jobs.db", tmp_path / "objects"
    with Services.open(url, f"file:{objects}") as services:
        services.machines.create(MachineDraft("kept", long_definition("k")), arns=Arns())
        with (
            pytest.raises(BackendUnavailable),
            patch.object(Store, "put", side_effect=BackendUnavailable("the store is gone")),
        ):
            services.machines.create(MachineDraft("lost", long_definition("l")), arns=Arns())
        for key in ("durable/state-machine/gone/0", "durable/f/gone/0", "workflows/other", "buckets/mine/a.json"):
            services.objects.put(key, b"content")
        young = [found.key for found in services.objects.list()]
    command = ["objects", "sweep", "--yes", "--grace", "1h", "--store", url, "--objects", f"file:{objects}", "--json"]
    assert json.loads(CliRunner().invoke(app, command).stdout)["orphans"] == 0
    assert len(young) == 6
    for path in objects.rglob("*"):
        os.utime(path, (time.time() - 7200, time.time() - 7200))
    assert json.loads(CliRunner().invoke(app, command).stdout)["orphans"] == 4
    kept = sha256(long_definition("k").encode()).hexdigest()
    with Services.open(url, f"file:{objects}") as services:
        assert {found.key for found in services.objects.list()} == {
            f"workflows/definitions/{kept}.json",
            "buckets/mine/a.json",
        }
        assert services.machines.read_definition(kept) == long_definition("k")
