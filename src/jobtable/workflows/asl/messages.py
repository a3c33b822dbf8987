"""Commands and signals as JSON, in which form they are stored."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from jobtable.workflows.asl.run import (
    Abandon,
    CallFunction,
    CallService,
    Command,
    Failed,
    Heartbeat,
    Refused,
    RemoveFrames,
    ScheduleActivity,
    Signal,
    Started,
    StartExecution,
    Submitted,
    Succeeded,
)

_COMMANDS: dict[str, type[Command]] = {
    each.__name__: each for each in (CallFunction, CallService, ScheduleActivity, StartExecution, Abandon, RemoveFrames)
}
_SIGNALS: dict[str, type[Signal]] = {
    each.__name__: each for each in (Started, Submitted, Succeeded, Failed, Refused, Heartbeat)
}


def members_of(message: Command | Signal) -> dict[str, Any]:
    """Return the members of a command or signal as JSON."""
    return asdict(message)


def read_command(kind: str, members: dict[str, Any]) -> Command:
    """Return a stored command."""
    return _COMMANDS[kind](**members)


def read_signal(kind: str, members: dict[str, Any]) -> Signal:
    """Return a stored signal."""
    return _SIGNALS[kind](**members)
