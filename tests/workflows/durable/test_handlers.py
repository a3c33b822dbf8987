"""Handlers written with AWS's SDK have the same result here and in the SDK's own test runner."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.workflows.durable.driving import Driver
from tests.workflows.durable.handlers import HANDLERS

from jobtable.workflows.durable.entities import DurableStatus

_ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    """The SDK logs every failure that a handler raises on purpose."""
    caplog.set_level(logging.CRITICAL)


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The effects and outcomes of all handlers in the SDK's own test runner."""
    folder = tmp_path_factory.mktemp("theirs")
    command = [sys.executable, "-m", "tests.workflows.durable.own_runner", str(folder)]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)


@pytest.mark.parametrize("handler", HANDLERS)
def test_a_handler_ends_as_in_the_own_runner_of_the_sdk(
    driver: Driver, handler: str, tmp_path: Path, theirs: tuple[Path, dict[str, Any]]
) -> None:
    execution = driver.run(handler)
    error: Any = execution.error
    outcome = {
        "status": execution.status.value,
        "output": driver.service.output_of(execution),
        "error": None if error is None else f"{error['ErrorType']}: {error['ErrorMessage']}",
    }
    folder, outcomes = theirs
    assert outcome == outcomes[handler]
    assert sorted(_without_ids(tmp_path / "effects")) == sorted(_without_ids(folder / handler))
    assert execution.status is (DurableStatus.FAILED if handler == "failing_execution" else DurableStatus.SUCCEEDED)


def _without_ids(effects: Path) -> list[str]:
    lines = effects.read_text().splitlines() if effects.exists() else []
    return [line for line in lines if not line.startswith("callback ")]


@pytest.mark.parametrize("handler", HANDLERS)
def test_a_history_has_no_gap_and_ends_every_operation_once(driver: Driver, handler: str) -> None:
    driver.run(handler)
    events = list(driver.service.history(handler, "run"))
    assert [event["EventId"] for event in events] == list(range(1, len(events) + 1))
    assert events[0]["EventType"] == "ExecutionStarted"
    assert events[-1]["EventType"] == f"Execution{'Failed' if handler == 'failing_execution' else 'Succeeded'}"
    assert list(driver.service.history(handler, "run", newest_first=True)) == events[::-1]
    instants = [event["EventTimestamp"] for event in events]
    assert instants == sorted(instants)
    for operation in driver.service.operations(handler, "run"):
        kinds = [event["EventType"] for event in events if event.get("Id") == operation.operation_id]
        assert kinds.count("StepStarted") in (0, operation.attempt)
        assert kinds[0].endswith("Started")
        if operation.type != "STEP":
            assert len(kinds) == (1 if operation.ended_at is None else 2)
