"""A small version of the fault experiments of journeys; `make faults` runs the long ones."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[2]


def experiment(name: str, trials: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "faults", "--trials", str(trials), name]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    outcome: dict[str, Any] = json.loads(done.stdout)
    return outcome


def test_a_killed_journey_goes_on() -> None:
    outcome = experiment("journeys", 2)
    assert (outcome["trials"], outcome["violations"]) == (2, 0)


def test_damaged_files_are_refused() -> None:
    outcome = experiment("journey_files", 100)
    assert (outcome["trials"], outcome["violations"]) == (100, 0)
