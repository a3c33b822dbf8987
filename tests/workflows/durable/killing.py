"""Kills the worker of one handler after each of its transactions, and prints how each execution went on as JSON.

A program of its own: it forks a process for every run while it has no store open and no thread.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any

from tests.workflows.durable.driving import Driver, JumpingClock
from tests.workflows.durable.handlers import HANDLERS

from jobtable.app import Services
from jobtable.workflows.durable.entities import DurableOperation, OperationType
from jobtable.workflows.durable.execution_state import Change
from jobtable.workflows.durable.lambda_shapes import DETAILS


@dataclass(frozen=True)
class Run:
    """What became of an execution."""

    status: str
    output: str | None
    error: Any
    effects: list[str]
    event_ids: list[int]
    ends: dict[str, int]
    """How often each operation ended, by its id and the number of its attempt."""
    open_steps: int = 0
    """How many steps had started and not ended when the worker was killed."""


def in_fork(work: Callable[[], object]) -> bool:
    """Do something in a process of its own; return whether it was killed."""
    process = os.fork()
    if process == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    _, status = os.waitpid(process, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == 0, "a run failed"
    return False


def driven(folder: Path, act: Callable[[Driver], object]) -> None:
    """Open the store of a folder and work on it."""
    clock = JumpingClock(folder / "clock")
    with Services.open(f"file:{folder}/jobs.db?durability=normal", clock=clock) as services:
        _ = services.durable
        act(Driver(services.engine, clock, folder / "effects", name=f"driver-{os.getpid()}"))


def die_after(transactions: int) -> None:
    """Kill this process after so many transactions of executions, before anybody learns of the last one."""
    committed = count(1)
    commit = Change.commit

    def commit_and_die(change: Change, *arguments: Any, **options: Any) -> None:
        commit(change, *arguments, **options)
        if next(committed) == transactions:
            os.kill(os.getpid(), signal.SIGKILL)

    setattr(Change, "commit", commit_and_die)  # noqa: B010 - it is the same for all executions of this process


def go_on(driver: Driver, handler: str, result: Path) -> None:
    """Take the execution from the worker that died, and run it to its end."""
    open_steps = sum(
        each.type is OperationType.STEP and each.ended_at is None
        for each in driver.jobs.store.query(DurableOperation.key(function=handler, execution="run"))
    )
    driver.take_over()
    execution = driver.run_to_end(handler)
    events = list(driver.service.history(handler, "run"))
    ends: dict[str, int] = {}
    for event in events:
        kind = event["EventType"]
        if "Id" in event and not kind.endswith("Started") and any(kind.endswith(end) for end in DETAILS):
            attempt = event[f"{kind}Details"].get("RetryDetails", {}).get("CurrentAttempt", 1)
            ends[f"{event['Id']}/{attempt}"] = ends.get(f"{event['Id']}/{attempt}", 0) + 1
    effects = driver.effects.read_text().splitlines() if driver.effects.exists() else []
    found = Run(
        execution.status.value,
        driver.service.output_of(execution),
        execution.error,
        effects,
        [event["EventId"] for event in events],
        ends,
        open_steps,
    )
    result.write_text(json.dumps(asdict(found)))


def run_with_kill(folder: Path, handler: str, transactions: int) -> tuple[bool, Any]:
    """Run a handler and kill its worker after so many transactions; return whether it came to that, and the run."""
    folder.mkdir()
    effects, result = folder / "effects", folder / "result"

    def start(driver: Driver) -> None:
        driver.service.start(handler, {"effects": str(effects)}, name="run")
        die_after(transactions)
        driver.run_to_end(handler)

    was_killed = in_fork(lambda: driven(folder, start))
    in_fork(lambda: driven(folder, lambda driver: go_on(driver, handler, result)))
    return was_killed, json.loads(result.read_text())


def main(folder: Path, handler: str) -> None:
    """Kill after the first transaction, then after the second, until an execution ends before its kill."""
    assert handler in HANDLERS
    # What this process has loaded and prepared, none of the forks has to.
    (folder / "prepared").mkdir()
    driven(folder / "prepared", lambda driver: driver.run(handler))
    assert threading.active_count() == 1
    for number in count(1):
        was_killed, run = run_with_kill(folder / str(number), handler, number)
        print(json.dumps({"was_killed": was_killed, **run}))
        if not was_killed:
            return


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    main(Path(sys.argv[1]), sys.argv[2])
