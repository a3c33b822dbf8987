"""A run of a machine between two transitions: its frames, the commands it issues, and the signals it receives.

The interpreter changes a run in memory and does nothing else: no I/O, no clock, no randomness of its own. Its runner
(the durable engine, an express execution, a test) stores the frames and events, carries out the commands in order, and
reports what happened as signals.

A runner does this:

1. `begin` a new run, or load the frames of an older one.
2. `receive` its signals; `fire` each frame whose `due_at` has come.
3. `advance` until it returns False. After each call, or after several, store `events`, the `changed` frames and
   `commands` in one transaction, and empty the three.
4. Carry out the commands, RemoveFrames before anything else of the run. A command is safe to repeat.
5. Stop when `ended` is set. The frames of a run that SUCCEEDED can be deleted. Keep those of any other: they hold what
   `redrive` continues from (each frame in the state in which it failed or was stopped, with that state's input, and the
   outputs of the branches and iterations that had ended).

`machine.timeout_seconds` is the runner's: it calls `time_out` when that much time has passed since the start or the
last redrive.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import Any, Literal, TypeAlias, TypedDict

from jobtable.workflows.asl.machine import Machine
from jobtable.workflows.functions import LATEST

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
    """"0" for the machine itself, "0.2" for a child of it, and so on: a parent's id is a prefix. Never used twice in a
    run, so removing a frame late removes nothing else."""
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
    """The member with the details, as in `{"stateEnteredEventDetails": {"name": ..., "input": "..."}}`; empty if the
    type has none. Without `inputDetails`, `outputDetails` and `assignedVariablesDetails`, which the API adds next to
    each `input`, `output` and `assignedVariables`."""


# --- what a run asks for ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CallFunction:
    """Run a registered function as a job: Started when it starts, then Succeeded with what it returned, or Failed with
    the type of its exception and a cause as of Lambda."""

    frame_id: str
    visit: int
    function: str
    """The name after `function:`, without a version or alias."""
    payload: Json
    timeout_seconds: float | None
    is_async: bool = False
    """Whether the state ends at once (InvocationType Event): Succeeded, with any output, once the job exists."""
    token: str | None = None
    """With `.waitForTaskToken`: a function that returns signals Submitted, one that raises Failed."""
    qualifier: str | None = None
    """The version or alias."""


@dataclass(frozen=True)
class CallService:
    """Ask another service once: Succeeded with its answer, or Submitted if there is a token, or Failed."""

    frame_id: str
    visit: int
    service: str
    """`dynamodb`, `sqs` or `sns`; of an AWS SDK integration `aws-sdk:dynamodb` or `aws-sdk:s3`."""
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


class MapRun(TypedDict):
    """A run of a distributed Map, as its children know it."""

    arn: str
    path: str
    """The path of the Map state, as in `/States/Each`: its item processor is what they run."""
    label: str
    express: bool
    items: int
    """How many items this child has."""


@dataclass(frozen=True)
class StartExecution:
    """Start another execution: a nested machine, or an item batch of a distributed Map.

    It signals Succeeded with `{ExecutionArn, StartDate}` if it awaits the start, otherwise Submitted with them; at the
    end Succeeded with the members of DescribeExecution in Pascal case, or Failed with States.TaskFailed and these
    members as JSON text. A Map's child signals Succeeded with its output as JSON, or Failed with its own error.
    """

    frame_id: str
    visit: int
    machine_arn: str | None
    """None for the item processor of a distributed Map."""
    arguments: Json
    """`Name`, `Input` and so on of `states:startExecution`; for a Map: the input of the child."""
    awaits: Literal["start", "end", "end_as_json", "token"]
    """When it ends the state: at once, `.sync`, `.sync:2` (input and output as JSON, not text), or by its token."""
    token: str | None = None
    map_run: MapRun | None = None
    """For a Map: the run it belongs to."""


@dataclass(frozen=True)
class Abandon:
    """Nobody waits for this visit any more: end its job, child execution or activity task; its token is void."""

    frame_id: str
    visit: int


@dataclass(frozen=True)
class RemoveFrames:
    """Delete these frames; the run has forgotten them already."""

    frame_ids: list[str]


Command: TypeAlias = CallFunction | CallService | ScheduleActivity | StartExecution | Abandon | RemoveFrames


# --- what a runner reports --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Started:
    """An activity's worker took the task, or a function or request has started. Optional: a later signal implies it."""

    frame_id: str
    visit: int
    details: Mapping[str, Json] = field(default_factory=dict)
    """Of an activity: `{"workerName": ...}`, if the worker has one."""
    at: str | None = None
    """When it started, in ISO 8601; None for now."""


@dataclass(frozen=True)
class Submitted:
    """A request that somebody else completes was accepted: a nested execution runs, or a token was delivered."""

    frame_id: str
    visit: int
    output: Json


@dataclass(frozen=True)
class Succeeded:
    """What a frame waits for has succeeded."""

    frame_id: str
    visit: int
    output: Json
    version: str = LATEST
    """Of the function that returned."""


@dataclass(frozen=True)
class Failed:
    """What a frame waits for has failed."""

    frame_id: str
    visit: int
    error: str | None = None
    cause: str | None = None


@dataclass(frozen=True)
class Refused:
    """What a frame asked for was refused: there is no such function, or a service did not take the request."""

    frame_id: str
    visit: int
    error: str | None = None
    cause: str | None = None


@dataclass(frozen=True)
class Heartbeat:
    """A worker that holds a token is alive."""

    frame_id: str
    visit: int


Signal: TypeAlias = Started | Submitted | Succeeded | Failed | Refused | Heartbeat


@dataclass(frozen=True)
class Ended:
    """How the whole execution ended."""

    status: Literal["SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"]
    output: Json = None
    error: str | None = None
    cause: str | None = None


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
    last_event_at: datetime | None = None
    """None if it is not known; not stored."""
    read_items: Callable[[Json], list[Json]] | None = None
    """Reads the items of a Map's ItemReader (`Resource`, `ReaderConfig`, evaluated `Parameters` or `Arguments`)."""
    write_results: Callable[[Json, list[Json]], Json] | None = None
    """Stores the results of a Map's ResultWriter and returns its output."""
    has_activity: Callable[[str], bool] | None = None
    """Returns whether there is an activity with this ARN; None if every activity is taken to exist."""
    most_events: int | None = MOST_EVENTS
    """None for an express execution, which has no limit."""

    notes: dict[str, Any] = field(default_factory=dict, repr=False)
    """What the interpreter derived from the frames, to look it up faster; not stored."""

    # What the last transitions made; the runner stores it and empties it.
    events: list[Event] = field(default_factory=list)
    changed: set[str] = field(default_factory=set)
    """The ids of the frames that were added or changed and still exist."""
    commands: list[Command] = field(default_factory=list)
    ended: Ended | None = None
