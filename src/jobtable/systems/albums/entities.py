"""The table of album workflows, its four entities, and the watch over executions."""

from __future__ import annotations

from datetime import date as Date  # noqa: N812 - a field is called date
from enum import StrEnum
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field, model_validator

from jobtable.inbox.answer_tokens import as_digest
from jobtable.jobs.stored.field_types import Count
from jobtable.model import (
    Attr,
    Entity,
    Index,
    Json,
    Key,
    Name,
    OrNull,
    Part,
    Stored,
    Table,
    Timestamp,
    camel_case,
    default,
)

workflows = Table(
    "AlbumWorkflows",
    pk="pk",
    sk="sk",
    type_attribute="entityType",
    stream=True,
    indexes=[
        Index("GSI1", ("workflowType", "entityType"), ("status", "createdAt")),
        Index("GSI2", ("workflowType", "executionId"), ("entityType", "sortValue")),
    ],
)

NonEmpty: TypeAlias = Annotated[str, Field(min_length=1)]
Title: TypeAlias = Annotated[str, Field(min_length=1, max_length=200)]
Year: TypeAlias = Annotated[int, Field(ge=1900, le=2100)]
Amount: TypeAlias = Annotated[float, Field(ge=0)]


class WorkflowType(StrEnum):
    """The two ways to run an execution, which the metrics compare."""

    STEP_FUNCTIONS = "step-functions"
    DURABLE_FUNCTIONS = "durable-functions"


class ExecutionStatus(StrEnum):
    """The statuses of an execution."""

    RUNNING = "running"
    WAITING = "waiting"
    COMPLETED = "completed"
    FAILED = "failed"


class Step(StrEnum):
    """The steps of both workflows, in order."""

    READ_IMAGE = "read-image"
    CHECK_YEARS = "check-years"
    VALIDATE = "validate"
    APPLY_ANSWER = "apply-answer"
    PRICE = "price"

    @property
    def number(self) -> int:
        """Its position, from 0."""
        return list(Step).index(self)


class TaskStatus(StrEnum):
    """The statuses of a validation task."""

    PENDING = "pending"
    COMPLETED = "completed"
    TIMED_OUT = "timed-out"


class Region(Part, alias=camel_case):
    """The region of an album in the image."""

    x: Count
    y: Count
    width: Count
    height: Count


class AlbumData(Part, alias=camel_case):
    """The data of an album as a person sees and answers it."""

    album_index: Count
    album_name: Title
    artist: Title
    year: Year | None = None
    """None if neither the image nor a catalogue says it."""
    year_validated: bool | None = None
    price_estimate: Annotated[float, Field(gt=0)] | None = None
    price_confidence: Annotated[float, Field(ge=0, le=1)] | None = None


class OfExecution(Entity):
    """The fields that the items of an execution share. An index lists them by their sortValue."""

    by_execution = Key(index="GSI2")

    execution_id: NonEmpty
    workflow_type: WorkflowType
    sort_value: Count | None = None
    created_at: Timestamp

    @model_validator(mode="before")
    @classmethod
    def _give_sort_value(cls, values: Any) -> Any:
        """Set the sortValue: the index of an album, else 0. An item stored without one stays as it is."""
        if not isinstance(values, dict) or values.get("sort_value", 0) is None:
            return values
        return {**values, "sort_value": values.get("album_index", values.get("sort_value", 0))}


class Execution(OfExecution, table=workflows, type="execution", alias=camel_case):
    """One run of a workflow over one image."""

    key = Key("{execution_id}", "metadata")
    by_status = Key(index="GSI1")

    execution_id: Stored[NonEmpty]
    image_s3_key: Annotated[NonEmpty, Name("imageS3Key")]
    status: Attr[ExecutionStatus] = default(ExecutionStatus.RUNNING)
    current_step: Attr[str | None] = default(None)
    start_time: Timestamp
    end_time: Attr[OrNull[Timestamp]] = default(None)
    duration_ms: Attr[OrNull[Count]] = default(None)
    """Without the time that people took to answer."""
    estimated_cost: Attr[OrNull[Amount]] = default(None)
    """In US dollars, as the figures say."""
    figures: Attr[Json] = default(None)
    """What was measured of it, with the version of the price table; see `measures`."""
    failure: Attr[str | None] = default(None)
    attempt: Attr[Annotated[int, Field(ge=2)] | None] = default(None)
    """After a retry: the number of the latest attempt."""
    attempt_started_at: Attr[Timestamp | None] = default(None)
    earlier_ms: Attr[Count | None] = default(None)
    """The duration of the attempts before that one."""
    waited_ms: Attr[Count | None] = default(None)
    """How long this attempt waited for people."""
    options: Json = None
    """What it was started with: how long to wait for an answer, what follows if none comes, who delivers the task."""
    task_ids: Attr[list[str] | None] = default(None)
    """The ids of its tasks in order, because the index that finds them may be late."""
    created_by: str | None = None
    """Who started it; its jobs say so too."""
    deleted_at: Attr[Timestamp | None] = default(None)
    """When its deletion started. It has ended, and nothing starts in it after that."""
    updated_at: Attr[Timestamp]


class Album(OfExecution, table=workflows, type="album", alias=camel_case):
    """An album that an execution found in its image."""

    key = Key("{execution_id}", "album-{album_index:d}")

    execution_id: Stored[NonEmpty]
    album_index: Stored[Count]
    album_name: Attr[Title]
    artist: Attr[Title]
    year: Attr[Year | None] = default(None)
    year_validated: Attr[bool] = default(False)
    year_original: Year | None = None
    price_estimate: Attr[Annotated[float, Field(gt=0)] | None] = default(None)
    price_confidence: Attr[Annotated[float, Field(ge=0, le=1)] | None] = default(None)
    price_source: Attr[str | None] = default(None)
    """Where the price comes from, or why there is none."""
    image_region: Region | None = None
    updated_at: Attr[Timestamp]


class ValidationTask(
    OfExecution, table=workflows, type="task", alias=camel_case, shares_keys_with=(Execution,)
):  # ids of tasks and executions are random, so they never collide
    """A request to a person to check albums. It is answered with a token, of which only a digest is stored."""

    key = Key("{task_id}", "metadata")
    by_status = Key(index="GSI1")

    task_id: Stored[NonEmpty]
    status: Attr[TaskStatus] = default(TaskStatus.PENDING)
    image_s3_key: Annotated[NonEmpty, Name("imageS3Key")]
    albums: list[AlbumData]
    validated_data: Attr[OrNull[list[AlbumData]]] = default(None)
    token_sha256: Attr[Annotated[str, BeforeValidator(as_digest), Name("taskToken")]]
    expires_at: Timestamp
    completed_at: Attr[OrNull[Timestamp]] = default(None)
    delivery_problem: Attr[str | None] = default(None)
    """Why the token could not be sent; a new one can be created."""
    workflow_sha256: Attr[str | None] = default(None)
    """The SHA-256 of the token or callback id by which the workflow itself is answered."""


class ExecutionWatch(Entity, table=workflows, type="watch", alias=camel_case):
    """When to check on an execution that has not ended, and its definition.

    It changes in one transaction with the execution, and is deleted when that has ended and was measured. GSI1 sorts it
    by its due time.
    """

    key = Key("{execution_id}", "watch")
    by_due = Key(index="GSI1")

    execution_id: NonEmpty
    workflow_type: WorkflowType
    status: Literal["due"] = "due"
    due_at: Attr[Annotated[Timestamp, Name("createdAt")]]
    definition: NonEmpty
    """What runs it: a state machine or a durable function. `module:NAME` was run by an earlier version."""
    job_step: Attr[NonEmpty]
    """The first step of the attempt."""
    task_id: Attr[str | None] = default(None)
    """The latest task of the execution."""


class FunctionCall(Entity, table=workflows, type="call", alias=camel_case):
    """One call of a function of an execution: its figures are computed from them."""

    key = Key("calls-{execution_id}", "call-{started_at}")

    execution_id: NonEmpty
    function: NonEmpty
    step: str
    job_id: str | None = None
    """Of the job that called it; on Lambda the log stream."""
    started_at: Timestamp
    ended_at: Timestamp
    memory_mb: Count
    write_units: Amount
    problem: str | None = None
    """The error that it raised."""


class Comparison(Entity, table=workflows, type="comparison", alias=camel_case):
    """Executions of both styles that were started together, to compare their figures."""

    key = Key("{comparison_id}", "comparison")
    by_created = Key(index="GSI1")

    comparison_id: Stored[NonEmpty]
    workflow_type: Literal["any"] = "any"
    status: Literal["started"] = "started"
    created_at: Timestamp
    images: list[str]
    """The names of the images."""
    runs: Count
    """How often each image was given to each style."""
    execution_ids: list[str]


class WorkflowMetrics(Entity, table=workflows, type="metrics", alias=camel_case):
    """The metrics of a workflow type for one day."""

    key = Key("{date}", "metrics-{workflow_type}")
    by_period = Key(index="GSI1")

    date: Stored[Date]
    workflow_type: Stored[WorkflowType]
    period: str = "daily"
    status: str | None = None
    execution_count: Count
    success_count: Count
    failure_count: Count
    avg_duration_ms: Amount
    total_cost: Amount
    avg_cost_per_execution: Amount
    created_at: Timestamp

    @model_validator(mode="before")
    @classmethod
    def _give_status(cls, values: Any) -> Any:
        """Set the status, by which metrics are listed, to the period. An item stored without one stays as it is."""
        if not isinstance(values, dict) or values.get("status", "") is None:
            return values
        return {**values, "status": values.get("period", "daily")}
