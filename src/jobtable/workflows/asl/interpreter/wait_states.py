"""Wait: until a number of seconds has passed, or until an instant."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from jobtable.workflows.asl.interpreter.dataflow import (
    QUERY_EVALUATION,
    RUNTIME,
    effective_input,
    evaluate,
    is_jsonata,
    read_number,
)
from jobtable.workflows.asl.interpreter.instants import parse_instant
from jobtable.workflows.asl.interpreter.strand import Phase, Strand, dump
from jobtable.workflows.asl.machine import StateFault
from jobtable.workflows.asl.query_languages import read_path
from jobtable.workflows.asl.run import Json

MOST_SECONDS = 99_999_999


def start_wait(strand: Strand) -> None:
    """Suspend the frame until the time of its Wait state."""
    now = strand.run.now()
    due_at = _due_at(strand, now)
    if due_at <= now:
        strand.make_ready(Phase.ENTERED)
    else:
        strand.suspend(Phase.WAITING, due_at)


def _due_at(strand: Strand, now: datetime) -> datetime:
    value = strand.memory["input"] if is_jsonata(strand) else effective_input(strand)
    seconds = read_number(strand, "Seconds", value)
    if seconds is None:
        return _timestamp(strand, value)
    if seconds > MOST_SECONDS:
        raise StateFault(RUNTIME, f"The Seconds of a Wait state must be from 0 to {MOST_SECONDS}, not {seconds}")
    return now + timedelta(seconds=seconds)


def _timestamp(strand: Strand, value: Json) -> datetime:
    fields = strand.fields
    if "TimestampPath" in fields:
        path = fields["TimestampPath"]
        found = read_path(path, strand.scope(value), field="TimestampPath")
        problem = StateFault(
            RUNTIME,
            "The TimestampPath parameter does not reference a valid ISO-8601 extended offset date-time format string:"
            f" {path} == {found if isinstance(found, str) else dump(found)}",
        )
    else:
        found = evaluate(strand, "Timestamp", fields["Timestamp"], value) if is_jsonata(strand) else fields["Timestamp"]
        problem = StateFault(
            QUERY_EVALUATION if is_jsonata(strand) else RUNTIME,
            f"The Timestamp of the Wait state is no valid ISO-8601 extended offset date-time: {dump(found)}",
            "Timestamp",
        )
    at = parse_instant(found)
    if at is None:
        raise problem
    return at.astimezone(UTC)
