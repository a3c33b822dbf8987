"""Waiting for executions on the command line."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import typer

from jobtable.app import Services
from jobtable.cli.job_waiting import say_what_nobody_serves
from jobtable.cli.output import ExitCode, say

T = TypeVar("T")
_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 1.0


def wait_for_end(
    services: Services, queue: str, look: Callable[[], T], is_over: Callable[[T], bool], timeout: float | None
) -> T:
    """Look until it is over or the time is; return what was seen last."""
    clock = services.store.clock
    deadline = None if timeout is None else clock.monotonic() + timeout
    pause = _PAUSE_SECONDS
    seen = look()
    if not is_over(seen):
        say_what_nobody_serves(services.jobs, [queue])
    while not is_over(seen):
        if deadline is not None and clock.monotonic() >= deadline:
            say(f"Not ended after {timeout:g} seconds.")
            return seen
        clock.sleep(pause)
        pause = min(pause * 1.2, _LONGEST_PAUSE_SECONDS)
        seen = look()
    return seen


def exit_unless(succeeded: bool) -> None:
    """Exit with 5 if what was awaited has not succeeded."""
    if not succeeded:
        raise typer.Exit(ExitCode.NOT_COMPLETED)
