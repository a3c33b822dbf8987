"""What a durable execution stores.

An execution is a job: its job calls the handler, and suspends itself while the execution waits. Every change of the
operations is one transaction that raises the revision of the progress item, so each writer knows whether what it read
is still true. The progress item ends with the execution: without it, nothing of the execution changes any more.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from jobtable.jobs.stored.field_types import Count
from jobtable.model import Attr, Entity, Json, Key, Stored, Timestamp, default
from jobtable.workflows.table_and_queues import workflows


class DurableStatus(StrEnum):
    """The statuses of a durable execution, as Lambda names them."""

    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"
    STOPPED = "STOPPED"


class OperationType(StrEnum):
    """What an operation is."""

    EXECUTION = "EXECUTION"
    CONTEXT = "CONTEXT"
    STEP = "STEP"
    WAIT = "WAIT"
    CALLBACK = "CALLBACK"
    CHAINED_INVOKE = "CHAINED_INVOKE"


class OperationStatus(StrEnum):
    """How far an operation is."""

    STARTED = "STARTED"
    PENDING = "PENDING"
    """A step that waits for its next attempt."""
    READY = "READY"
    """A step whose next attempt is due."""
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    TIMED_OUT = "TIMED_OUT"
    STOPPED = "STOPPED"


class DurableExecution(Entity, table=workflows, type="DURABLE_EXECUTION"):
    """One execution of a durable function."""

    key = Key("DURABLE#{function}#{name}", "EXECUTION")
    by_function = Key("DURABLE_FUNCTION#{function}", "STARTED#{started_at}", index="GSI1")
    by_status = Key("DURABLE_FUNCTION#{function}#STATUS#{status}", "STARTED#{started_at}", index="GSI2")

    function: str
    name: str
    execution_id: str
    """Also the id of its job, and of the operation of type EXECUTION."""
    version: str = "$LATEST"
    created_by: str = "local"
    """Who started it, or what is above it; its jobs say so too."""
    region: str
    account: str
    status: Attr[DurableStatus] = default(DurableStatus.RUNNING)
    input: Json
    """JSON as text; `{"object": key}` if it is too large for an item."""
    input_sha256: str
    output: Attr[Json] = default(None)
    error: Attr[Json] = default(None)
    """As Lambda's ErrorObject."""
    started_at: Attr[Timestamp]
    ended_at: Attr[Timestamp | None] = default(None)
    timeout_seconds: Count = 0
    """0 for none."""
    retention_days: Annotated[int, Field(ge=1)] = 14
    parent: Json = None
    """The chained invoke that started it: `{function, name, execution_id, number}`."""


class DurableProgress(Entity, table=workflows, type="DURABLE_PROGRESS"):
    """How far a running execution is; the hot item, kept small because every checkpoint writes it."""

    key = Key("DURABLE#{function}#{name}", "PROGRESS")

    function: str
    name: str
    execution_id: Attr[str]
    revision: Attr[Count] = default(0)
    invocation: Attr[Count] = default(0)
    """The number of the latest call of the handler; checkpoints of earlier ones are refused."""
    invoked_at: Timestamp | None = None
    """When the call that now runs was made."""
    lease_epoch: Count = 0
    """Of the job's lease under which it was made."""
    checkpoint: Attr[Count] = default(0)
    """The number of the next checkpoint of this call."""
    seen_revision: Count = 0
    """What the handler knows: operations of a later revision are new to it."""
    client_token: str | None = None
    """Of the last checkpoint, so that a repeated request gets the same answer."""
    client_revision: Count = 0
    operation_count: Count = 0
    event_count: Count = 0
    stored_bytes: Count = 0
    failures: Count = 0
    """How many calls in a row failed without a checkpoint between them."""
    crashes: Count = 0
    """How many attempts of its job have failed so far: another one is a crash of the handler's process."""
    retry_at: Timestamp | None = None
    """When a handler that failed is called again."""
    times_out_at: Timestamp | None = None


class DurableOperation(Entity, table=workflows, type="DURABLE_OPERATION"):
    """One operation of an execution: a step, wait, callback, chained invoke or context."""

    key = Key("DURABLE#{function}#{execution}", "OPERATION#{number:06d}")

    function: str
    execution: str
    number: Stored[Annotated[int, Field(ge=1, le=999_999)]]
    """In the order in which they were started."""
    operation_id: str
    parent_id: str | None = None
    name: str | None = None
    type: OperationType
    sub_type: str | None = None
    status: OperationStatus
    revision: Count
    """Of the change that it had last."""
    started_at: Timestamp
    ended_at: Timestamp | None = None
    attempt: Count = 0
    due_at: Timestamp | None = None
    """The end of a wait, the next attempt of a step, or the timeout of a callback."""
    beat_due_at: Timestamp | None = None
    """When the next heartbeat of a callback must have come."""
    timeout_seconds: Count = 0
    heartbeat_seconds: Count = 0
    result: Json = None
    """JSON as text; `{"object": key}` if it is too large for an item."""
    error: Json = None
    replays_children: bool = False
    target: str | None = None
    """The function that a chained invoke names."""
    child: Json = None
    """What a chained invoke started: `{function, name, execution_id}`, or `{job_id}`."""
    input: Json = None
    """Of a chained invoke."""


class DurableEvents(Entity, table=workflows, type="DURABLE_EVENTS"):
    """The history events of one change, in order."""

    key = Key("DURABLE#{function}#{execution}", "EVENTS#{first_id:07d}")

    function: str
    execution: str
    first_id: Stored[Annotated[int, Field(ge=1, le=9_999_999)]]
    events: str
    """A JSON array; see `lambda_shapes`."""


class PayloadFolder(Entity, table=workflows, type="PAYLOAD_FOLDER"):
    """Whose payloads lie in a folder of the object store. It is stored before them, and deleted with the execution."""

    key = Key("PAYLOADS#{owner_id}", "FOLDER")

    owner_id: str
    """The id of an execution, the part of its objects' keys before the last."""
    function: str
    """The part before that."""
    machine: str | None = None
    """None for a durable execution."""
    name: str


class DurableKey(Entity, table=workflows, type="DURABLE_KEY"):
    """The key under which a store signs checkpoint tokens and callback ids, so that neither is stored nor guessed."""

    key = Key("DURABLE_KEY", "KEY")

    secret: bytes
