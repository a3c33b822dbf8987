"""What live views are told: which topics a change belongs to, and how it is written down."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pydantic_core import to_json

from jobtable.jobs.stored.entities import Instance, Job, Queue, main
from jobtable.store.changes import Change
from jobtable.systems.albums.entities import workflows
from jobtable.systems.journeys.entities import journeys
from jobtable.web.durations import duration_text

_MOST_TOLD = 200
_MOST_BYTES = 1_000_000
"""How long an event may be: many of them may wait for somebody who reads slowly."""
_JOB_FIELDS = {
    "job_id",
    "name",
    "status",
    "progress",
    "message",
    "attempts",
    "created_at",
    "started_at",
    "ended_at",
    "requested",
    "queue_name",
}


def topics_of(change: Change) -> Iterator[str]:
    """The topics of a change, told by its keys, so that what nobody looks at is not decoded.

    jobs            every job           job:ID        a job and everything under it
    queues          queues, workers     journey:ID    a journey and everything under it
    executions      album executions, their tasks and metrics
    """
    item = change.new_item or change.old_item or {}
    if change.table is main:
        kind, _, rest = item["PK"]["S"].partition("#")
        if kind == "JOB":
            yield f"job:{rest}"
        if change.is_of(Job):
            yield "jobs"
        elif change.is_of(Queue, Instance):
            yield "queues"
    elif change.table is journeys:
        yield "journeys"
        yield f"journey:{item['PK']['S'].partition('#')[2]}"
    elif change.table is workflows:
        yield "executions"


def encode_changes(topic: str, changes: list[Change]) -> bytes:
    """Changes of one topic as one event: of each item only the last one, and of too much only that there was."""
    latest: dict[Any, Change] = {}
    for change in changes:
        latest[json.dumps([change.table.name, *_key(change)])] = change
    if len(latest) <= _MOST_TOLD:
        told = [_told(topic, change) for change in latest.values()]
        event = encode("changes", {"topic": topic, "changes": told, "is_complete": True})
        if len(event) <= _MOST_BYTES:
            return event
    return encode("changes", {"topic": topic, "changes": [], "is_complete": False})


def encode(event: str, data: Any) -> bytes:
    """One server-sent event."""
    return b"event: " + event.encode() + b"\ndata: " + to_json(data) + b"\n\n"


def _key(change: Change) -> list[Any]:
    item = change.new_item or change.old_item or {}
    return [item.get(name) for name in change.table.primary]


def _told(topic: str, change: Change) -> dict[str, Any]:
    entity = change.after or change.before
    fields = _JOB_FIELDS if topic == "jobs" else None
    values = entity.model_dump(mode="json", include=fields) if entity is not None else {}
    if topic == "jobs" and isinstance(entity, Job):
        values["took"] = duration_text(entity.duration_seconds)
    return {"kind": change.kind, "type": type(entity).__name__, "values": values}
