"""The tables and entities of the backend contract, with every kind of key, index and field."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any

from pydantic import Field

from jobtable.model import Attr, Entity, Index, Json, Key, Part, Table, Timestamp, Vector, default

START = datetime(2025, 11, 1, 20, 30, tzinfo=UTC)

table = Table(
    "contract",
    pk="PK",
    sk="SK",
    type_attribute="TYPE",
    ttl="expires",
    indexes=[Index("GSI1", "GSI1PK", "GSI1SK"), Index("GSI2", "GSI2PK", "GSI2SK"), Index("GSITYPE", "TYPE")],
)
by_look = Index("Group", ("color", "shape"), ("size", "number"))
flat_table = Table("contract-natural", pk="job_id", sk="number", indexes=[by_look])


class Corner(Part):
    """A nested part."""

    x: float
    y: float


class Task(Entity, table=table, type="TASK"):
    """A task in two indexes, one of them sparse."""

    key = Key("TASK#{task_id}", "TASK")
    by_status = Key("STATUS#{status}", "{created_at}", index="GSI1")
    by_queue = Key("QUEUE#{queue}", "{priority:03d}#{task_id}", index="GSI2")

    task_id: str
    created_at: Timestamp
    status: Attr[str] = default("new")
    priority: Attr[Annotated[int, Field(ge=0, le=999)]] = default(5)
    queue: Attr[str | None] = default(None)
    count: Attr[int] = default(0)
    tags: Attr[frozenset[str]] = default(frozenset())
    notes: Attr[list[str]] = default([])
    corner: Attr[Corner | None] = default(None)
    options: Attr[dict[str, int]] = default({})
    anything: Attr[Json] = default(None)
    vector: Vector = []
    exact: Decimal | None = None
    blob: bytes | None = None


class Note(Entity, table=table, type="NOTE"):
    """A note under its task."""

    key = Key("TASK#{task_id}", "NOTE#{topic}#{at}")

    task_id: str
    topic: str
    at: Timestamp
    text: str = ""


class Piece(Entity, table=flat_table):
    """An entity with natural keys, one of them a number, and an index of four attributes."""

    by_look = Key(index="Group")

    job_id: str
    number: int
    color: str
    shape: str
    size: Attr[int]


def make_task(task_id: str = "1", **values: Any) -> Task:
    """Return a task with these values and a time."""
    return Task(task_id=task_id, **{"created_at": START, **values})
