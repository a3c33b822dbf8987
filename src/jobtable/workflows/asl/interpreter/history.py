"""The history: events in the order, with the predecessors and with the details that Step Functions gives them.

Each frame has a chain of its own: an event follows the frame's last one. Two kinds of events stay beside it. One is
followed only by the end of the execution (ParallelStateSucceeded, MapRunSucceeded, ...), another by nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from jobtable.workflows.asl.interpreter.strand import Strand
from jobtable.workflows.asl.run import Event, Json, Run


class HistoryFullError(Exception):
    """The history has no room for another event but the last one."""


def append(
    run: Run, previous: int, event_type: str, details: Mapping[str, Json] | None = None, at: datetime | None = None
) -> int:
    """Add an event after any other one and return its id; HistoryFullError.

    `at` is when it happened, by default now; it is recorded no earlier than the event before it.
    """
    if run.most_events is not None and run.last_event_id + 1 >= run.most_events:
        raise HistoryFullError
    return _add(run, previous, event_type, details, at)


def append_end(run: Run, previous: int, event_type: str, details: Mapping[str, Json] | None = None) -> None:
    """Add the last event of an execution, for which there is always room."""
    _add(run, previous, event_type, details)


def record(
    strand: Strand, event_type: str, details: Mapping[str, Json] | None = None, at: datetime | None = None
) -> int:
    """Add an event that the frame's next one follows."""
    event_id = append(strand.run, strand.memory["last"], event_type, details, at)
    follow(strand, event_id)
    return event_id


def record_aside(strand: Strand, event_type: str, details: Mapping[str, Json] | None = None) -> None:
    """Add an event that only the end of the execution follows."""
    strand.memory["tail"] = append(strand.run, strand.memory["tail"], event_type, details)
    strand.touch()


def follow(strand: Strand, event_id: int) -> None:
    """Let the frame's next event follow this one."""
    strand.memory["last"] = strand.memory["tail"] = event_id
    strand.touch()


def without_none(**members: Any) -> dict[str, Any]:
    """Return the members that have a value."""
    return {name: value for name, value in members.items() if value is not None}


def _add(
    run: Run, previous: int, event_type: str, details: Mapping[str, Json] | None, at: datetime | None = None
) -> int:
    run.last_event_id += 1
    named = {} if details is None else {_details_name(event_type): dict(details)}
    at = run.now() if at is None else max(at, run.last_event_at or at)  # so that times rise with ids
    run.events.append(Event(run.last_event_id, previous, event_type, at, named))
    run.last_event_at = at
    return run.last_event_id


def _details_name(event_type: str) -> str:
    for ending, name in (("StateEntered", "stateEntered"), ("StateExited", "stateExited")):
        if event_type.endswith(ending):
            return f"{name}EventDetails"
    return f"{event_type[0].lower()}{event_type[1:]}EventDetails"
