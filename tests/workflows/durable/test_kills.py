"""A worker that is killed after any of its transactions changes nothing about how an execution ends.

Kills come after a transaction is committed and before anybody learns of it, so both a checkpoint that the handler never
saw answered and one that it never sent are among them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.workflows.durable.handlers import HANDLERS

_ROOT = Path(__file__).parents[3]
_CONCURRENT: dict[str, int] = {"parallel_branches": 4, "mapped": 4, "tolerant_map": 5, "first_of_parallel": 2}
"""How many steps of a handler may run at once, and so be interrupted by one kill."""


@pytest.mark.parametrize("handler", HANDLERS)
def test_a_handler_is_killed_after_every_transaction(handler: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.workflows.durable.killing", str(tmp_path), handler]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *killed, whole = map(json.loads, done.stdout.splitlines())
    assert not whole["was_killed"]
    assert len(killed) >= 2  # the call of the handler and its end, at least
    for run in killed:
        assert run["was_killed"]
        assert_same_end(handler, run, whole)
        assert run["event_ids"] == list(range(1, len(run["event_ids"]) + 1))
        assert set(run["ends"].values()) <= {1}
        assert_effects_once(handler, run, whole)


def assert_same_end(handler: str, run: dict[str, Any], whole: dict[str, Any]) -> None:
    assert (run["status"], run["error"]) == (whole["status"], whole["error"])
    if handler != "at_most_once":
        assert run["output"] == whole["output"]
        return
    # A step that must not run twice and was killed on its way has failed: nobody knows how far it came.
    outcomes = Counter(json.loads(run["output"]))
    assert outcomes["charged"] + outcomes["StepInterruptedError"] == 3
    assert outcomes["StepInterruptedError"] <= run["open_steps"] <= 1


def assert_effects_once(handler: str, run: dict[str, Any], whole: dict[str, Any]) -> None:
    effects, expected = counted(run["effects"]), counted(whole["effects"])
    repeated = effects - expected
    if handler == "at_most_once":
        assert not repeated
        assert (expected - effects).total() <= run["open_steps"]
        return
    assert not expected - effects
    # Only a step whose end was not recorded runs again.
    assert repeated.total() <= (_CONCURRENT[handler] if handler in _CONCURRENT else run["open_steps"])
    assert set(repeated.values()) <= {1}


def counted(effects: list[str]) -> Counter[str]:
    return Counter("callback" if line.startswith("callback ") else line for line in effects)
