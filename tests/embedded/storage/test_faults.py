"""A small version of every fault experiment; `make faults` runs the long ones."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest
from tests.experiments import REPOSITORY, experiment, tried


def test_kills() -> None:
    outcome = experiment("kills", 3)
    assert outcome["trials"] == 3
    assert outcome["acknowledged"] > 0


def test_restores() -> None:
    outcome = experiment("restores", 4)
    assert outcome["interrupted"] > 0


def test_backups() -> None:
    outcome = experiment("backups", 4)
    assert outcome["interrupted"] > 0


def test_counter() -> None:
    assert experiment("counter", 40)["final"] == 320


def test_fairness() -> None:
    """A process that the machine does not let run is passed by as well, but not every time."""
    assert any(tried("fairness", 40)["violations"] == 0 for _ in range(4))


def test_a_full_disk() -> None:
    outcome = experiment("disk_full", 1)
    if "not_run" in outcome:
        pytest.skip(outcome["not_run"])
    assert outcome["refused_writes"] == 20


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler to make a failing disk with")
def test_a_failing_disk() -> None:
    outcome = experiment("io_errors", 2)
    assert outcome["failed_system_calls"] > 0


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler to record a disk with")
def test_power_cuts() -> None:
    outcome = experiment("power_cuts", 25)
    assert outcome["notes"] > 0


def test_an_unknown_experiment_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "faults", "nonsense"], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "there is no experiment nonsense" in done.stderr
