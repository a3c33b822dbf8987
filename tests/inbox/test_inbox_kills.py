"""kill -9 at every write of asking, answering, expiring, proposing and accepting: each ends once, nothing is lost."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).parents[2]
ANSWERED = {"statuses": ["ANSWERED"], "applied": None, "ended": "SUCCEEDED"}
APPLIED = {"statuses": ["ACCEPTED"], "applied": ["B", 1]}
EXPECTED: dict[str, dict[str, Any]] = {
    "ask by a machine": ANSWERED | {"answers": 1},
    "ask by a function": ANSWERED | {"output": '"shipped"'},
    "answer a machine": ANSWERED | {"answers": 1},
    "answer a function": ANSWERED | {"output": '"shipped"'},
    "expire": {"statuses": ["EXPIRED"], "applied": None, "ended": "FAILED", "answers": 0},
    "accept": APPLIED,
    "propose to a rule": APPLIED,
}


@pytest.mark.parametrize("scenario", EXPECTED)
def test_whatever_is_killed_ends_once(scenario: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.inbox.killing", str(tmp_path), scenario]
    done = subprocess.run(command, cwd=REPOSITORY, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    runs = [json.loads(line) for line in done.stdout.splitlines()]
    assert [run.pop("was_killed") for run in runs] == [True] * (len(runs) - 1) + [False]
    assert len(runs) > 1
    for killed_after, run in enumerate(runs):
        assert (run.pop("due"), run.pop("problems")) == ([], [None]), f"killed after {killed_after} writes"
        ids = run.pop("event_ids", [])
        assert ids == list(range(1, len(ids) + 1)), f"killed after {killed_after} writes"
        assert run == EXPECTED[scenario], f"killed after {killed_after} writes"
