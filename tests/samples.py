"""Entities in the styles of all the systems that Jobtable is for; the tests of the model run over every one."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Annotated, Literal

from pydantic import Field

from jobtable.model import (
    Attr,
    Beside,
    Entity,
    Index,
    Json,
    Key,
    Name,
    OrNull,
    PackedVector,
    Part,
    Stored,
    Table,
    Timestamp,
    Uuid,
    Vector,
    camel_case,
    default,
)

main = Table(
    "sample-main",
    pk="PK",
    sk="SK",
    type_attribute="TYPE",
    ttl="TimeToLive",
    indexes=[
        Index("GSI1", "GSI1PK", "GSI1SK"),
        Index("GSI2", "GSI2PK", "GSI2SK"),
        Index("GSI3", "GSI3PK", "GSI3SK"),
        Index("GSITYPE", "TYPE"),
    ],
)


class Status(StrEnum):
    PENDING = "PENDING"
    RUNNING = "RUNNING"
    DONE = "DONE"


class Level(Enum):
    LOW = 1
    HIGH = 2


class Limits(Part):
    """A part with a part's freedom: optional, nested, repeated."""

    memory_mb: int
    note: str | None = None


class Job(Entity, table=main, type="JOB"):
    """A job, in the single-table style with three indexes."""

    key = Key("JOB#{job_id}", "JOB")
    by_status = Key("STATUS#{status}", "CREATED#{created_at}", index="GSI1")
    by_user = Key("USER#{created_by}", "CREATED#{created_at}", index="GSI2")
    by_queue = Key("QUEUE#{queue}", "PRIORITY#{priority:03d}#{created_at}", index="GSI3")

    job_id: str
    created_at: Timestamp
    created_by: str
    status: Attr[Status] = default(Status.PENDING)
    priority: Attr[Annotated[int, Field(ge=0, le=999)]] = default(50)
    queue: Attr[str | None] = default(None)
    attempts: Attr[int] = default(0)
    tags: Attr[frozenset[str]] = default(frozenset())
    history: Attr[list[str]] = default([])
    job_config: Attr[Json] = default(None)
    limits: Attr[Limits | None] = default(None)


class JobMetric(Entity, table=main, type="JOB_METRIC"):
    """One value of one metric of a job at one instant."""

    key = Key("JOB#{job_id}", "METRIC#{metric_name}#{timestamp}")
    by_name = Key("METRIC#{metric_name}", "{timestamp}", index="GSI1")
    by_value = Key("METRIC#{metric_name}", "VALUE#{value:ordered}", index="GSI2")

    job_id: str
    metric_name: Stored[str]
    timestamp: Stored[Timestamp]
    value: float
    unit: str | None = None
    step: int | None = None


class Line(Entity, table=main, type="LINE"):
    """A line of an image; its number is padded, so that it sorts."""

    key = Key("IMAGE#{image_id}", "LINE#{line_id:05d}")

    image_id: Uuid
    line_id: int
    text: str
    confidence: Annotated[float, Field(ge=0, le=1)]


class Word(Entity, table=main, type="WORD"):
    """A word under its line, whose key begins with the line's."""

    key = Key("IMAGE#{image_id}", "LINE#{line_id:05d}#WORD#{word_id:05d}")
    by_confidence = Key("WORDS", "CONFIDENCE#{confidence:1.}", index="GSI1")

    image_id: Uuid
    line_id: int
    word_id: int
    confidence: Annotated[float, Field(ge=0, le=1)]


class Kitchen(Entity, table=main, type="KITCHEN"):
    """Every field type in one entity."""

    key = Key("KITCHEN#{name}", "DAY#{day}#{level}")

    name: str
    day: date
    level: Status
    grade: Level
    amount: Decimal
    ratio: float
    count: int
    flag: bool
    blob: bytes
    seen: Timestamp
    mode: Literal["slow", "fast"]
    parts: list[Limits]
    by_name: dict[str, Limits]
    maybe: list[str | None]
    numbers: frozenset[int]
    blobs: frozenset[bytes]
    vector: Vector
    packed: PackedVector
    anything: Json
    nested: Limits
    required_or_none: str | None
    has_default: str | None = "there"
    ended: OrNull[Timestamp] = None


journeys = Table(
    "sample-journeys", pk="PK", sk="SK", type_attribute="EntityType", indexes=[Index("GSI1", "GSI1PK", "GSI1SK")]
)


class Step(Part, alias=camel_case):
    """A step, in the names of its system."""

    step_id: str
    ai_assisted: bool = False


class Stage(Entity, table=journeys, type="StageDefinition", envelope="Data", alias=camel_case):
    """A stage in an envelope: its fields stand under Data, in camelCase."""

    key = Key("JOURNEY#{journey_id}", "STAGE#{order:02d}#{stage_id}")
    by_journey = Key("JOURNEY#{journey_id}#STAGES", "{order:02d}", index="GSI1")

    journey_id: str
    order: Stored[int]
    stage_id: Stored[str]
    can_skip: bool = False
    steps: list[Step] = []
    error_message: OrNull[str] = None
    created_at: Annotated[Timestamp, Beside("CreatedAt")]
    updated_at: Annotated[Timestamp | None, Beside("UpdatedAt")] = None


comments = Table(
    "sample-comments", pk="job_id", sk="comment_id", indexes=[Index("Conv", "conversation_id", "created_at")]
)


class Comment(Entity, table=comments):
    """Natural keys: the table's key attributes are fields, one of them a number."""

    by_conversation = Key(index="Conv")

    job_id: str
    comment_id: int
    conversation_id: str
    created_at: Timestamp
    embedding: Vector


albums = Table(
    "sample-albums",
    pk="pk",
    sk="sk",
    type_attribute="entityType",
    indexes=[
        Index("GSI1", ("workflowType", "entityType"), ("status", "createdAt")),
        Index("GSI2", ("workflowType", "executionId"), ("entityType", "sortValue")),
    ],
)


class Execution(Entity, table=albums, type="execution", alias=camel_case):
    """Multi-attribute index keys, made from fields as they are."""

    key = Key("{execution_id}", "metadata")
    by_status = Key(index="GSI1")
    by_execution = Key(index="GSI2")

    execution_id: Stored[str]
    workflow_type: Literal["step-functions", "durable-functions"]
    status: Attr[str]
    created_at: Timestamp
    sort_value: int = 0
    end_time: OrNull[Timestamp] = None


class Album(Entity, table=albums, type="album", alias=camel_case):
    """An album of an execution, beside it in the partition."""

    key = Key("{execution_id}", "album-{album_index:d}")
    by_execution = Key(index="GSI2")

    execution_id: Stored[str]
    album_index: Annotated[Stored[int], Name("albumIndex")]
    workflow_type: Literal["step-functions", "durable-functions"]
    sort_value: int = Field(default_factory=lambda data: data["album_index"])


TABLES = [main, journeys, comments, albums]
ENTITIES: list[type[Entity]] = [schema.cls for table in TABLES for schema in table.entities.values()]
