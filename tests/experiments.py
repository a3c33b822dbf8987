"""Short runs of the experiments in faults/, each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[1]


def experiment(name: str, trials: int) -> dict[str, Any]:
    """What an experiment tells at its end."""
    command = [sys.executable, "-m", "faults", "--trials", str(trials), name]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    outcome: dict[str, Any] = json.loads(done.stdout)
    assert outcome["fault"] == name
    return outcome
