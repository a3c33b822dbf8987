"""What an execution of a state machine stores.

An execution is a job: its job moves it, and its items hold its state. Every change of them is one transaction that
raises the execution's revision, and fails if somebody else was faster or if the worker no longer holds the job. Others
leave a signal and wake the job, in one transaction. Events after the execution's last one are parts of a change that
was not finished: they do not exist yet.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from jobtable.jobs.stored.field_types import Count
from jobtable.model import Attr, Entity, Json, Key, Name, Stored, Timestamp, default
from jobtable.workflows.table_and_queues import workflows


class ExecutionStatus(StrEnum):
    """The statuses of an execution, as Step Functions names them."""

    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"
    ABORTED = "ABORTED"
    PENDING_REDRIVE = "PENDING_REDRIVE"


class MachineType(StrEnum):
    """The types of state machines."""

    STANDARD = "STANDARD"
    EXPRESS = "EXPRESS"


class MapRunStatus(StrEnum):
    """The statuses of a run of a distributed Map, as Step Functions names them."""

    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    ABORTED = "ABORTED"


class MachineDefinition(Entity, table=workflows, type="MACHINE_DEFINITION"):
    """The text of a definition under its digest; executions name the one that they started with."""

    key = Key("DEFINITION#{sha256}", "DEFINITION")

    sha256: str
    text: str | None = None
    """None if it is in the object store, because it is too large for an item."""
    object_key: str | None = None
    created_at: Timestamp


class Execution(Entity, table=workflows, type="EXECUTION"):
    """One execution of a state machine."""

    key = Key("EXECUTION#{machine}#{name}", "EXECUTION")
    by_machine = Key("MACHINE#{machine}", "STARTED#{started_at}", index="GSI1")
    by_status = Key("MACHINE#{machine}#STATUS#{status}", "STARTED#{started_at}", index="GSI2")

    machine: str
    """The name of the machine; of a distributed Map's children `MACHINE/LABEL`."""
    name: str
    job_id: str
    """The job that moves it: a redrive of an ended one has a job of its own."""
    earlier_job_ids: list[str] = []
    status: Attr[ExecutionStatus] = default(ExecutionStatus.RUNNING)
    type: MachineType = MachineType.STANDARD
    definition_sha256: str
    processor_path: str | None = None
    """The path of the Map state whose item processor it runs; None for a whole machine."""
    qualifier: str | None = None
    """The version or alias that it was started with."""
    version: str | None = None
    region: str
    account: str
    role_arn: str | None = None
    created_by: str = "local"
    """Who started it, or what is above it; its jobs say so too."""
    input: str
    """Empty if it is in the object store, because it is too large for an item."""
    input_object: str | None = None
    output: Attr[str | None] = default(None)
    """None also if it is in the object store."""
    output_object: Attr[str | None] = default(None)
    error: Attr[str | None] = default(None)
    cause: Attr[str | None] = default(None)
    started_at: Attr[Timestamp]
    stopped_at: Attr[Timestamp | None] = default(None)
    revision: Attr[Count] = default(0)
    """Raised by each transaction that changes the execution, its frames or its events."""
    last_event_id: Attr[Count] = default(0)
    redrive_count: Attr[Count] = default(0)
    redriven_at: Attr[Timestamp | None] = default(None)
    trace_header: str | None = None
    map_run_id: str | None = None
    parent: Json = None
    """The link to the state that waits for its end; see `execution/links.py`."""
    time_to_live: Annotated[Attr[int | None], Name("TimeToLive")] = default(None)


class ExecutionFrame(Entity, table=workflows, type="FRAME"):
    """A thread of control of an execution that has not ended."""

    key = Key("EXECUTION#{machine}#{name}", "FRAME#{frame_id}")

    machine: str
    name: str
    frame_id: Stored[str]
    memory: str
    """The interpreter's, as JSON; empty if it is in the object store, because it is too large for an item."""
    memory_object: str | None = None
    is_ready: bool
    due_at: Timestamp | None = None
    visit: Attr[Count]
    revision: Count


class ExecutionEvent(Entity, table=workflows, type="EXECUTION_EVENT"):
    """An event of an execution's history, with those that follow it in the same change; see `execution/event_packs`."""

    key = Key("EXECUTION#{machine}#{name}", "EVENT#{event_id:05d}")

    machine: str
    name: str
    event_id: Stored[Annotated[int, Field(ge=1, le=99_999)]]
    previous_id: Count
    type: str
    at: Timestamp
    details: Json = None
    more: Annotated[Json, Field(exclude=True)] = None
    """The events that follow: `[type, previous_id, microseconds after this one, details]` each."""
    is_ahead: Annotated[bool | None, Field(exclude=True)] = None
    """Whether it was stored before the change that it belongs to, which may never have been made."""
    time_to_live: Annotated[int | None, Name("TimeToLive")] = None


class ExecutionCommands(Entity, table=workflows, type="EXECUTION_COMMANDS"):
    """What a change asked for and nobody has done yet. Doing it twice is harmless."""

    key = Key("EXECUTION#{machine}#{name}", "OUTBOX#{revision:08d}#{position:01d}")

    machine: str
    name: str
    revision: Stored[Count]
    """Of the change."""
    position: Stored[Annotated[int, Field(ge=0, le=9)]]
    """0 for what must be done before the next change, 1 for the others."""
    commands: str
    """A JSON array of commands, each `[kind, members]`; empty if it is in the object store."""
    commands_object: str | None = None


class ExecutionSignal(Entity, table=workflows, type="EXECUTION_SIGNAL"):
    """What a frame waits for has happened; its execution's job was woken in the same transaction."""

    key = Key("EXECUTION#{machine}#{name}", "SIGNAL#{signal_id}")

    machine: str
    name: str
    signal_id: Stored[str]
    """Sorted by time; one that says how a job ended is derived from the job, so that it is left once."""
    kind: str
    members: str
    """JSON, without an output or cause that is too large for an item."""
    payload_object: str | None = None
    """The object with that output, as JSON, or with that cause."""
    at: Timestamp


class MapRun(Entity, table=workflows, type="MAP_RUN"):
    """A run of a distributed Map: its children are executions of `MACHINE/LABEL`."""

    key = Key("MAP_RUN#{map_run_id}", "MAP_RUN")
    by_execution = Key("EXECUTION#{machine}#{name}", "MAP_RUN#{started_at}", index="GSI1")

    map_run_id: str
    machine: str
    """Of the execution that has the Map state."""
    name: str
    label: str
    status: Attr[MapRunStatus] = default(MapRunStatus.RUNNING)
    started_at: Timestamp
    stopped_at: Attr[Timestamp | None] = default(None)
    max_concurrency: Attr[Count] = default(0)
    tolerated_failure_count: Attr[Count] = default(0)
    tolerated_failure_percentage: Attr[float] = default(0.0)
    item_count: Attr[Count] = default(0)
    execution_count: Attr[Count] = default(0)
    """How many children the items make, in batches or alone."""
    running_count: Attr[Count] = default(0)
    succeeded_count: Attr[Count] = default(0)
    failed_count: Attr[Count] = default(0)
    timed_out_count: Attr[Count] = default(0)
    aborted_count: Attr[Count] = default(0)
    results_written_count: Attr[Count] = default(0)
    redrive_count: Attr[Count] = default(0)
    redriven_at: Attr[Timestamp | None] = default(None)
    time_to_live: Annotated[Attr[int | None], Name("TimeToLive")] = default(None)


class TaskToken(Entity, table=workflows, type="TASK_TOKEN"):
    """Where the answer with a task token goes. Only the token's digest is stored."""

    key = Key("TOKEN#{sha256}", "TOKEN")

    sha256: str
    machine: str
    name: str
    frame_id: str
    visit: Count
    answered_at: Attr[Timestamp | None] = default(None)
    time_to_live: Annotated[Attr[int | None], Name("TimeToLive")] = default(None)


class ActivityTask(Entity, table=workflows, type="ACTIVITY_TASK"):
    """A task that waits for a poller of its activity. Polling takes it."""

    key = Key("ACTIVITY#{activity}", "TASK#{scheduled_at}#{machine}#{name}#{frame_id}#{visit:06d}")

    activity: str
    scheduled_at: Timestamp
    machine: str
    name: str
    frame_id: str
    visit: Count
    token: str
    """Readable until it is polled: who may poll the activity may have it."""
    input: str
    time_to_live: Annotated[int | None, Name("TimeToLive")] = None
