"""The states that an execution has entered: each visit with its attempts, in lanes of visits that follow each other.

A lane is the machine itself, a branch of a Parallel state, or an iteration of a Map state.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from jobtable.workflows.asl.machine import Machine, State


class StateStatus(StrEnum):
    """How far a visit of a state is, or an iteration of a Map."""

    RUNNING = "running"
    WAITING = "waiting"
    """For a time, a worker of an activity, or an answer with a task token."""
    RETRYING = "retrying"
    """An attempt failed, and another one follows."""
    FAILED = "failed"
    CAUGHT = "caught"
    """It failed, and a Catch led to another state."""
    ABORTED = "aborted"
    """It was cut off, because something around it ended."""
    SUCCEEDED = "succeeded"


OPEN = frozenset({StateStatus.RUNNING, StateStatus.WAITING, StateStatus.RETRYING})


class WaitsFor(StrEnum):
    """What a waiting state waits for."""

    TIME = "its time"
    WORKER = "a worker of its activity"
    ANSWER = "an answer with its task token"
    EXECUTION = "another execution"


@dataclass(eq=False)
class Lane:
    """States that follow each other."""

    lane_id: int
    """The event with which it began."""
    machine: Machine
    parent: Visit | None
    index: int
    """The number of the branch or iteration."""
    started_at: datetime
    visits: list[Visit] = field(default_factory=list)
    status: StateStatus = StateStatus.RUNNING
    ended_at: datetime | None = None
    is_tolerated: bool = False
    """Whether it failed, and its Map went on without it."""

    @property
    def is_open(self) -> bool:
        """Whether it has not ended."""
        return self.status in OPEN

    @property
    def last(self) -> Visit | None:
        """The visit that began last."""
        return self.visits[-1] if self.visits else None

    def around(self) -> Iterator[Lane]:
        """Yield this lane and those around it, up to the machine itself."""
        lane: Lane | None = self
        while lane is not None:
            yield lane
            lane = None if lane.parent is None else lane.parent.lane


@dataclass(eq=False)
class Attempt:
    """One attempt at a Task, Parallel or Map."""

    began_id: int
    began_at: datetime
    """When a task was handed over, or the children were started."""
    started_at: datetime | None = None
    """When somebody started to work on a task."""
    submitted_id: int | None = None
    """The event that says that somebody else completes it, with what the service answered."""
    ended_id: int | None = None
    ended_at: datetime | None = None
    has_failed: bool = False
    error: str | None = None
    cause: str | None = None
    map_run: str | None = None
    """The ARN of the run of a distributed Map."""
    lanes: list[Lane] = field(default_factory=list)


@dataclass(eq=False)
class Visit:
    """One time that a state was entered."""

    lane: Lane
    state: State
    entered_id: int
    entered_at: datetime
    status: StateStatus = StateStatus.RUNNING
    waits_for: WaitsFor | None = None
    exited_id: int | None = None
    ended_at: datetime | None = None
    error: str | None = None
    cause: str | None = None
    attempts: list[Attempt] = field(default_factory=list)
    event_ids: list[int] = field(default_factory=list)

    @property
    def is_open(self) -> bool:
        """Whether it has neither been left nor cut off."""
        return self.status in OPEN

    @property
    def lanes(self) -> list[Lane]:
        """The branches or iterations of its last attempt."""
        return self.attempts[-1].lanes if self.attempts else []

    def end(self, status: StateStatus, at: datetime) -> None:
        """End the visit, its last attempt, and what is open inside it."""
        self.status, self.ended_at, self.waits_for = status, at, None
        self.end_attempt(at, has_failed=status is not StateStatus.SUCCEEDED)

    def end_attempt(self, at: datetime, *, has_failed: bool) -> None:
        """End the last attempt, and what is open inside it."""
        if not self.attempts:
            return
        attempt = self.attempts[-1]
        if attempt.ended_at is None:
            attempt.ended_at, attempt.has_failed = at, has_failed
        for lane in attempt.lanes:
            cut(lane, at)


def cut(lane: Lane, at: datetime, failing: frozenset[Visit] = frozenset()) -> None:
    """End what is open in a lane: what fails with `failing` has failed, the rest was aborted."""
    status = StateStatus.ABORTED
    for visit in lane.visits:
        if visit.is_open:
            for inner in visit.lanes:
                cut(inner, at, failing)
            visit.end(StateStatus.FAILED if visit in failing else StateStatus.ABORTED, at)
        if visit in failing:
            status = StateStatus.FAILED
    if lane.is_open:
        lane.status, lane.ended_at = status, at
