"""Short runs of the experiments in faults/, each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[1]


def experiment(name: str, trials: int) -> dict[str, Any]:
    """What an experiment tells at its end, in which all held that must."""
    outcome = tried(name, trials)
    assert outcome["violations"] == 0, outcome
    return outcome


def tried(name: str, trials: int) -> dict[str, Any]:
    """What an experiment tells at its end, whatever it found."""
    command = [sys.executable, "-m", "faults", "--trials", str(trials), name]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    print(done.stderr)
    assert done.returncode in (0, 1), done.stderr
    outcome: dict[str, Any] = json.loads(done.stdout)
    assert outcome["fault"] == name
    return outcome
