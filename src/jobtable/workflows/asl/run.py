"""A run of a machine between two transitions: its frames, what it has to do, and what it is told.

The interpreter changes a run in memory and does nothing else: no I/O, no clock, no randomness of its own. Whoever runs
it (the durable engine, an express execution, a test) stores the frames and events, carries out the commands in order,
and reports what happened as signals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import Any, Literal, TypeAlias

from jobtable.workflows.asl.machine import Machine

Json: TypeAlias = Any

MOST_PAYLOAD_BYTES = 262_144
MOST_EVENTS = 25_000


@dataclass
class Frame:
    """A thread of control: the machine itself, a branch of a Parallel state, or an iteration of a Map state.

    `memory` is the interpreter's own, JSON: the raw input of the current state, variables, retries, the position of a
    fan-out, the previous event's id. The runner stores it as it is and reads only the other members.
    """

    frame_id: str
    """"0" for the machine itself, "0.2" for the third child of its fan-out, and so on: a parent's id is a prefix."""
    memory: dict[str, Json] = field(default_factory=dict)
    is_ready: bool = True
    """Whether `advance` can move it now; otherwise it waits for a signal or an instant."""
    due_at: datetime | None = None
    """When it becomes ready by itself: the end of a Wait, a timeout, a missed heartbeat, a retry."""
    visit: int = 0
    """Raised for each thing that it waits for: a signal to an earlier visit is ignored."""


@dataclass(frozen=True)
class Event:
    """One entry of the history, with the names of Step Functions."""

    event_id: int
    previous_id: int
    type: str
    """As in `TaskStateEntered`."""
    at: datetime
    details: Mapping[str, Json]
    """The member with the details, as in `{"stateEnteredEventDetails": {"name": ..., "input": "..."}}`."""


# --- what a run asks for ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CallFunction:
    """Run a registered function as a job and signal its end."""

    frame_id: str
    visit: int
    function: str
    """The name after `function:`, without a version or alias."""
    payload: Json
    timeout_seconds: float | None
    is_async: bool = False
    """Whether the state ends at once (InvocationType Event)."""
    token: str | None = None
    """With `.waitForTaskToken`: only the token ends the state, and a failing function fails it."""
    as_invocation: bool = False
    """Whether the result is the answer of `lambda:invoke` (`Payload`, `StatusCode`), not the bare value."""


@dataclass(frozen=True)
class CallService:
    """Ask another service once and signal its answer."""

    frame_id: str
    visit: int
    service: str
    """`dynamodb`, `s3`, `sqs`, `sns` or `states`."""
    action: str
    """In camel case, as in `putItem`."""
    arguments: Json
    token: str | None = None


@dataclass(frozen=True)
class ScheduleActivity:
    """Offer a task to the pollers of an activity; its token is the answer's address."""

    frame_id: str
    visit: int
    activity_arn: str
    input: Json
    token: str
    timeout_seconds: float | None
    heartbeat_seconds: float | None


@dataclass(frozen=True)
class StartExecution:
    """Start another execution: a nested machine, or an item batch of a distributed Map."""

    frame_id: str
    visit: int
    machine_arn: str | None
    """None for the item processor of a distributed Map."""
    arguments: Json
    """`Name`, `Input` and so on of `states:startExecution`; for a Map: the input of the child."""
    awaits: Literal["start", "end", "end_as_json", "token"]
    """When it signals: at once, `.sync`, `.sync:2`, or by its task token."""
    token: str | None = None


@dataclass(frozen=True)
class Abandon:
    """Nobody waits for this visit any more: end its job, child execution or activity task; its token is void."""

    frame_id: str
    visit: int


@dataclass(frozen=True)
class RemoveFrames:
    """Delete a frame and all frames below it."""

    frame_id: str


Command: TypeAlias = CallFunction | CallService | ScheduleActivity | StartExecution | Abandon | RemoveFrames


# --- what a run is told -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Started:
    """An activity's worker took the task, or a job or execution has started."""

    frame_id: str
    visit: int
    details: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True)
class Succeeded:
    """What a frame waits for has succeeded."""

    frame_id: str
    visit: int
    output: Json


@dataclass(frozen=True)
class Failed:
    """What a frame waits for has failed."""

    frame_id: str
    visit: int
    error: str
    cause: str


@dataclass(frozen=True)
class Heartbeat:
    """A worker that holds a token is alive."""

    frame_id: str
    visit: int


Signal: TypeAlias = Started | Succeeded | Failed | Heartbeat


# --- the run ----------------------------------------------------------------------------------------------------------


@dataclass
class Run:
    """One execution in memory."""

    machine: Machine
    context: dict[str, Json]
    """The context object's `Execution` and `StateMachine` members; the interpreter adds State, Task and Map."""
    frames: dict[str, Frame]
    now: Callable[[], datetime]
    random: Random
    """For jitter, States.UUID, $random and so on."""
    new_token: Callable[[str, int], str]
    """Makes the task token of a frame's visit."""
    last_event_id: int = 0
    is_express: bool = False
    read_items: Callable[[Json], list[Json]] | None = None
    """Reads the items of a Map's ItemReader (`Resource`, `ReaderConfig`, evaluated `Parameters` or `Arguments`)."""
    write_results: Callable[[Json, list[Json]], Json] | None = None
    """Stores the results of a Map's ResultWriter and returns its output."""

    # What the last transitions made; the runner stores it and empties it.
    events: list[Event] = field(default_factory=list)
    changed: set[str] = field(default_factory=set)
    """The ids of the frames that were added or changed."""
    commands: list[Command] = field(default_factory=list)
    ended: Succeeded | Failed | None = None
    """The end of the whole execution; a Failed one may be `States.Timeout` (status TIMED_OUT)."""
