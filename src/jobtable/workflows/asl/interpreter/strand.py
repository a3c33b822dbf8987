"""A frame of a run: what it remembers, and what its expressions can read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NotRequired, TypedDict, cast

from jobtable.workflows.asl.interpreter.schedule import note_change
from jobtable.workflows.asl.machine import Machine, State, StateType
from jobtable.workflows.asl.query_languages.scope import Scope
from jobtable.workflows.asl.run import Frame, Json, Run

ROOT = "0"
_RETRIED = frozenset({StateType.TASK, StateType.PARALLEL, StateType.MAP})


class Phase(StrEnum):
    """What a frame does next, or waits for."""

    READY = "ready"
    """It enters its state in its next transition."""
    ENTERED = "entered"
    """It leaves its state in its next transition: a Pass, a Choice, a Wait that is over."""
    WAITING = "waiting"
    """A Wait, until its time."""
    CALLING = "calling"
    """A Task, until a signal or a timeout."""
    RETRYING = "retrying"
    """A Task, Parallel or Map, until its next attempt."""
    ANSWERED = "answered"
    """It leaves its state with a result in its next transition."""
    FAILED = "failed"
    """Its task failed, which its next transition handles."""
    FORKED = "forked"
    """A Parallel or Map, until its children have ended."""
    CHILD = "child"
    """An item batch of a distributed Map, until its execution has ended."""
    FINISHED = "finished"
    """A child that ended and waits for its siblings."""
    DROPPED = "dropped"
    """A child of a Map that failed, which is tolerated."""
    STOPPED = "stopped"
    """The run failed, timed out or was aborted while the frame was in its state; `redrive` continues it."""


ENDED_PHASES = frozenset({Phase.FINISHED, Phase.DROPPED})


class Call(TypedDict):
    """A task that was handed over."""

    started: bool
    is_async: bool
    """Whether it is a function that nobody waits for."""
    timeout_at: str | None
    heartbeat_at: str | None
    heartbeat_seconds: float | None


class Fan(TypedDict):
    """The children of a Parallel or Map state."""

    first: int
    """The number of the first child: child i has the id `FRAME.{first + i}`."""
    total: int
    weight: int
    """The number of items; a distributed Map gives several to one child."""
    limit: int
    """How many run at the same time."""
    tolerated_count: float
    tolerated_percentage: float
    map_run: NotRequired[str]
    """The ARN of the run of a distributed Map."""


class StoredFailure(TypedDict):
    """A failure of a task that the next transition handles."""

    error: str | None
    cause: str | None
    heartbeat: bool


class Memory(TypedDict):
    """What a frame remembers."""

    phase: str
    path: list[list[Any]]
    """The fan-outs above it: each the name of its state and the number of its branch."""
    state: str
    input: Json
    """The raw input of its state."""
    variables: dict[str, Json]
    """Those of its own scope; the scopes above it belong to the frames above it."""
    last: int
    """The event that its next one follows."""
    tail: int
    """The event that the end of the execution follows: some events are followed only by the end."""
    turn: int
    """Ready frames move in this order."""
    born: int
    """How many children it has had."""
    arrived: int
    """The event before the state was entered."""
    entered_id: int
    entered_at: str
    retries: dict[str, int]
    """Attempts by the position of the retrier."""
    retry_count: int
    index: NotRequired[int]
    """Which child of its parent it is."""
    weight: NotRequired[int]
    """How many items it has, if it is a batch."""
    item: NotRequired[dict[str, Json]]
    """`Map.Item` of the context object."""
    items: NotRequired[list[Json]]
    token: NotRequired[str]
    result: NotRequired[Json]
    failure: NotRequired[StoredFailure]
    call: NotRequired[Call]
    fan: NotRequired[Fan]
    before: NotRequired[int]
    """Of a child that ended: the last event inside it."""
    stopped: NotRequired[str]
    """The phase in which it was stopped."""


_OF_ONE_ATTEMPT = ("items", "token", "result", "failure", "call", "fan", "stopped")


@dataclass(frozen=True)
class Strand:
    """A frame with its run."""

    run: Run
    frame: Frame

    @property
    def memory(self) -> Memory:
        """What the frame remembers."""
        return cast(Memory, self.frame.memory)

    @property
    def phase(self) -> Phase:
        """What the frame does next, or waits for."""
        return Phase(self.memory["phase"])

    @property
    def machine(self) -> Machine:
        """The machine, branch or item processor that the frame runs."""
        machine = self.run.machine
        for name, number in self.memory["path"]:
            machine = machine.states[name].branches[number]
        return machine

    @property
    def state(self) -> State:
        """The frame's state."""
        return self.machine.states[self.memory["state"]]

    @property
    def fields(self) -> Mapping[str, Any]:
        """The members of the state's definition."""
        return self.state.fields

    @property
    def parent(self) -> Strand | None:
        """The frame whose fan-out made this one."""
        above = self.frame.frame_id.rpartition(".")[0]
        return Strand(self.run, self.run.frames[above]) if above else None

    # What it remembers for some time only; reading it at another time is a KeyError.

    @property
    def fan(self) -> Fan:
        """The children's description, while there are any."""
        fan: Fan = self.frame.memory["fan"]
        return fan

    @property
    def call(self) -> Call:
        """The task that was handed over, until it ends."""
        call: Call = self.frame.memory["call"]
        return call

    @property
    def items(self) -> list[Json]:
        """What the children of a Map process."""
        items: list[Json] = self.frame.memory["items"]
        return items

    @property
    def index(self) -> int:
        """Which child of its parent it is."""
        index: int = self.frame.memory["index"]
        return index

    @property
    def result(self) -> Json:
        """What its task returned, or its last state."""
        return self.frame.memory["result"]

    def child(self, index: int) -> Strand | None:
        """Return the child with that index if it has been started."""
        frame = self.run.frames.get(f"{self.frame.frame_id}.{self.fan['first'] + index}")
        return None if frame is None else Strand(self.run, frame)

    def children(self) -> Iterator[Strand]:
        """The children that have been started, in order."""
        if "fan" not in self.memory:
            return
        for index in range(self.fan["total"]):
            child = self.child(index)
            if child is None:
                return
            yield child

    def touch(self) -> None:
        """Have the frame stored after this transition."""
        self.run.changed.add(self.frame.frame_id)

    def make_ready(self, phase: Phase) -> None:
        """Let the frame move when the frames that are ready already have moved."""
        self.memory["phase"] = phase
        self.memory["turn"] = self.run.last_event_id
        self.frame.is_ready = True
        self.frame.due_at = None
        note_change(self.run, self.frame)
        self.touch()

    def suspend(self, phase: Phase, due_at: datetime | None = None) -> None:
        """Let the frame wait for a signal, a child, or an instant."""
        self.memory["phase"] = phase
        self.frame.is_ready = False
        self.frame.due_at = due_at
        note_change(self.run, self.frame)
        self.touch()

    def forget_attempt(self) -> None:
        """Drop what belongs to one attempt at a state."""
        for name in _OF_ONE_ATTEMPT:
            self.frame.memory.pop(name, None)

    # --- what expressions read ----------------------------------------------------------------------------------------

    def variables(self) -> dict[str, Json]:
        """The variables that the state can read: its own and those of the scopes around it."""
        above = self.parent
        return {**(above.variables() if above else {}), **self.memory["variables"]}

    def context(self) -> dict[str, Json]:
        """The context object."""
        memory = self.memory
        state: dict[str, Json] = {"EnteredTime": memory["entered_at"], "Name": memory["state"]}
        if self.state.type in _RETRIED:
            state["RetryCount"] = memory["retry_count"]
        context = {**self.run.context, "State": state}
        item = self._item()
        if item is not None:
            context["Map"] = {"Item": item}
        if "token" in memory:
            context["Task"] = {"Token": memory["token"]}
        return context

    def scope(self, value: Json, *, result: Json = None, error_output: Json = None) -> Scope:
        """Return what an expression of the state can read, with a value as `$`."""
        return Scope(
            input=value,
            context=self.context(),
            variables=self.variables(),
            now=self.run.now(),
            random=self.run.random,
            result=result,
            error_output=error_output,
        )

    def _item(self) -> dict[str, Json] | None:
        if "item" in self.memory:
            return self.memory["item"]
        above = self.parent
        return above._item() if above else None


def new_strand(run: Run, frame_id: str, path: list[list[Any]], machine: Machine, value: Json, last: int) -> Strand:
    """Add a frame that is about to enter the first state of a machine."""
    memory = Memory(
        phase=Phase.READY,
        path=path,
        state=machine.start_at,
        input=value,
        variables={},
        last=last,
        tail=last,
        turn=last,
        born=0,
        arrived=last,
        entered_id=0,
        entered_at="",
        retries={},
        retry_count=0,
    )
    frame = Frame(frame_id, memory=cast(dict[str, Json], memory))
    run.frames[frame_id] = frame
    note_change(run, frame)
    strand = Strand(run, frame)
    strand.touch()
    return strand


def strand_of(run: Run, frame_id: str) -> Strand | None:
    """Return a frame of the run, or None."""
    frame = run.frames.get(frame_id)
    return None if frame is None else Strand(run, frame)


def root_of(run: Run) -> Strand:
    """Return the frame of the machine itself."""
    return Strand(run, run.frames[ROOT])


def dump(value: Json) -> str:
    """Return JSON text as Step Functions writes it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def write_instant(at: datetime) -> str:
    """Return an instant as the context object has it."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def keep_instant(at: datetime | None) -> str | None:
    """Return an instant for a frame's memory."""
    return None if at is None else at.isoformat()


def kept_instant(text: str | None) -> datetime | None:
    """Return an instant from a frame's memory."""
    return None if text is None else datetime.fromisoformat(text)
