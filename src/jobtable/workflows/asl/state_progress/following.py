"""Follows a history, event by event: which states were entered, with what attempts, and how far they are.

An event says which event came before it, seldom to which state it belongs. So each is assigned to the state of the one
before it, or to a state around that one.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import Any, Protocol

from jobtable.workflows.asl.machine import Machine, State, StateType
from jobtable.workflows.asl.state_progress.visits import (
    Attempt,
    Lane,
    StateStatus,
    Visit,
    WaitsFor,
    cut,
)

_REDRIVEN = frozenset({"ExecutionRedriven", "MapRunRedriven"})
_TASKS = ("LambdaFunction", "Activity", "Task")
_FAILURES = ("Failed", "TimedOut")


class HistoryEvent(Protocol):
    """An event of a history, stored or in memory."""

    @property
    def event_id(self) -> int: ...
    @property
    def previous_id(self) -> int: ...
    @property
    def type(self) -> str: ...
    @property
    def at(self) -> datetime: ...
    @property
    def details(self) -> Any: ...


class Progress:
    """The states of one execution. `follow` takes the events in order, all at once or as they come."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.root: Lane | None = None
        self.last_event_id = 0
        self.visits: list[Visit] = []
        """In the order in which they began."""
        self.lanes: dict[int, Lane] = {}
        self._owners: dict[int, tuple[Lane, Visit | None]] = {}
        self._types: dict[int, str] = {}
        self._resumable: dict[str, deque[Callable[[int, datetime], Lane]]] = {}

    def follow(self, events: Iterable[HistoryEvent]) -> None:
        """Take events that come after those taken before."""
        for event in events:
            self._take(event, next(iter((event.details or {}).values()), {}))
            self._types[event.event_id] = event.type
            self.last_event_id = event.event_id

    def owner_of(self, event_id: int) -> Visit | None:
        """Return the visit to which an event belongs."""
        return self._owners.get(event_id, (None, None))[1]

    # --- events -------------------------------------------------------------------------------------------------------

    def _take(self, event: HistoryEvent, details: Mapping[str, Any]) -> None:
        kind = event.type
        if kind.startswith("Execution"):
            self._take_execution(event)
        elif kind.endswith("StateEntered"):
            self._enter(event, details["name"])
        elif kind.endswith("StateExited"):
            self._exit(event, details["name"])
        elif kind.startswith("MapIteration"):
            self._take_iteration(event, details)
        elif kind.startswith("MapRun"):
            self._take_map_run(event, details)
        elif kind == "EvaluationFailed":
            self._fail_evaluation(event, details)
        elif kind.endswith("StateAborted"):
            self._cut_around(event)
        elif kind.startswith(("ParallelState", "MapState")):
            self._take_fan_out(event)
        elif kind.startswith(_TASKS):
            self._take_task(event, details)

    def _take_execution(self, event: HistoryEvent) -> None:
        if event.type == "ExecutionStarted":
            self.root = self._add_lane(event.event_id, self.machine, None, 0, event.at)
            self._owners[0] = self._owners[event.event_id] = (self.root, None)
        elif self.root is not None and event.type == "ExecutionRedriven":
            self._resumable = defaultdict(deque)
            self._expect(self.root)
        elif self.root is not None and event.type == "ExecutionSucceeded":
            self.root.status, self.root.ended_at = StateStatus.SUCCEEDED, event.at
        elif self.root is not None:
            failing = self._chain(event) if event.type == "ExecutionFailed" else frozenset()
            cut(self.root, event.at, failing)

    def _enter(self, event: HistoryEvent, name: str) -> None:
        lane = self._lane_for(event, name)
        before = lane.last
        if before is not None and before.status is StateStatus.SUCCEEDED and _is_only_caught_by(before.state, name):
            before.status = StateStatus.CAUGHT
        visit = Visit(lane, lane.machine.states[name], event.event_id, event.at)
        if visit.state.type is StateType.WAIT:
            visit.status, visit.waits_for = StateStatus.WAITING, WaitsFor.TIME
        elif visit.state.type is StateType.FAIL:
            visit.end(StateStatus.FAILED, event.at)
        lane.visits.append(visit)
        self.visits.append(visit)
        self._own(event, visit)

    def _lane_for(self, event: HistoryEvent, name: str) -> Lane:
        previous = event.previous_id
        if self._types.get(previous) in _REDRIVEN:
            if stopped := self._resumable.get(name):
                return stopped.popleft()(event.event_id, event.at)
            return next(each for each in self.lanes.values() if name in each.machine.states)
        lane, visit = self._owners[previous]
        if visit is not None and self._types[previous] == "ParallelStateStarted":
            return self._add_branch(visit, name, event.event_id, event.at)
        return lane

    def _exit(self, event: HistoryEvent, name: str) -> None:
        visit = next(each for each in self._around(event) if each.state.name == name and each.exited_id is None)
        is_caught = visit.status is StateStatus.FAILED or visit.error is not None
        visit.exited_id = event.event_id
        visit.end(StateStatus.CAUGHT if is_caught else StateStatus.SUCCEEDED, event.at)
        self._own(event, visit)
        parent = visit.lane.parent
        if parent is not None and parent.state.type is StateType.PARALLEL and _is_last(visit.state, is_caught):
            visit.lane.status, visit.lane.ended_at = StateStatus.SUCCEEDED, event.at

    def _take_task(self, event: HistoryEvent, details: Mapping[str, Any]) -> None:
        visit = self._owners[event.previous_id][1]
        if visit is None:
            return
        self._own(event, visit)
        ending = event.type.removeprefix(next(each for each in _TASKS if event.type.startswith(each)))
        if ending.endswith(_FAILURES):
            _fail_attempt(visit, event, details)
        elif ending == "Scheduled":
            visit.attempts.append(Attempt(event.event_id, event.at))
            visit.error = visit.cause = None
            is_activity = event.type.startswith("Activity")
            _wait(visit, WaitsFor.WORKER if is_activity else None)
        elif ending == "Started":
            visit.attempts[-1].started_at = event.at
            _wait(visit, None)
        elif ending == "Submitted":
            visit.attempts[-1].submitted_id = event.event_id
            is_asked = str(details.get("resource", "")).endswith(".waitForTaskToken")
            _wait(visit, WaitsFor.ANSWER if is_asked else WaitsFor.EXECUTION)
        elif ending == "Succeeded":
            visit.attempts[-1].ended_id, visit.attempts[-1].ended_at = event.event_id, event.at
            _wait(visit, None)

    def _fail_evaluation(self, event: HistoryEvent, details: Mapping[str, Any]) -> None:
        name = details.get("state")
        candidates = [*self._around(event), *(each.last for each in self._lanes_after(event) if each.last is not None)]
        visit = next((each for each in candidates if each.state.name == name and each.exited_id is None), None)
        if visit is not None:
            self._own(event, visit)
            _fail_attempt(visit, event, details)

    def _take_fan_out(self, event: HistoryEvent) -> None:
        wanted = StateType.PARALLEL if event.type.startswith("Parallel") else StateType.MAP
        visit = next((each for each in self._around(event) if each.state.type is wanted and each.is_open), None)
        if visit is None:
            return
        if event.type.endswith("Started"):
            self._cut_inside(visit, event)
            visit.end_attempt(event.at, has_failed=True)
            visit.attempts.append(Attempt(event.event_id, event.at, started_at=event.at))
            visit.status, visit.error, visit.cause = StateStatus.RUNNING, None, None
        elif event.type.endswith("Failed"):
            self._cut_inside(visit, event)
            failing = self.owner_of(event.previous_id)
            if visit.error is None and failing is not None:
                visit.error, visit.cause = failing.error, failing.cause
            visit.end(StateStatus.FAILED, event.at)
        elif event.type.endswith("Succeeded"):
            visit.end_attempt(event.at, has_failed=False)
        self._own(event, visit)

    def _take_map_run(self, event: HistoryEvent, details: Mapping[str, Any]) -> None:
        arn = details.get("mapRunArn")
        if event.type == "MapRunRedriven":
            visit = next(each for each in self.visits if any(attempt.map_run == arn for attempt in each.attempts))
            _reopen_visit(visit)
        else:
            maps = [each for each in self._reachable(event) if each.state.type is StateType.MAP]
            visit = next((each for each in maps if each.is_open), maps[0])
        if event.type == "MapRunStarted":
            visit.attempts[-1].map_run = arn
        elif event.type == "MapRunFailed":
            visit.error, visit.cause = details.get("error"), details.get("cause")
        self._own(event, visit)

    def _take_iteration(self, event: HistoryEvent, details: Mapping[str, Any]) -> None:
        index = details["index"]
        visit = next(each for each in self._reachable(event) if each.state.name == details["name"])
        if event.type == "MapIterationStarted":
            lane = self._add_lane(event.event_id, visit.state.branches[0], visit, index, event.at)
            visit.lanes.append(lane)
        else:
            lane = next(each for each in visit.lanes if each.index == index)
            if event.type == "MapIterationSucceeded":
                lane.status, lane.ended_at = StateStatus.SUCCEEDED, event.at
            elif event.type == "MapIterationFailed":
                cut(lane, event.at, self._chain(event))
                lane.status = StateStatus.FAILED
                lane.is_tolerated = True  # until the Map fails because of it
            else:
                cut(lane, event.at)
                lane.status = StateStatus.ABORTED
        self._owners[event.event_id] = (lane, lane.last)
        visit.event_ids.append(event.event_id)

    # --- what fails together ------------------------------------------------------------------------------------------

    def _cut_around(self, event: HistoryEvent) -> None:
        """A sibling of this event's state failed: all of them end."""
        owner = self.owner_of(event.previous_id)
        around = owner if owner is not None and owner.is_open and owner.state.branches else None
        around = around or (owner.lane.parent if owner is not None else None)
        if around is not None:
            self._cut_inside(around, event)
            self._own(event, around)

    def _cut_inside(self, visit: Visit, event: HistoryEvent) -> None:
        failing = self._chain(event)
        for lane in visit.lanes:
            if any(each in failing for each in lane.visits):
                lane.is_tolerated = False
            cut(lane, event.at, failing)

    def _chain(self, event: HistoryEvent) -> frozenset[Visit]:
        """Return the state of the event before this one, and those around it."""
        return frozenset(self._around(event))

    # --- redrives -----------------------------------------------------------------------------------------------------

    def _expect(self, lane: Lane) -> None:
        """Note where a lane goes on that was stopped; a state with such lanes goes on at once."""
        lane.status, lane.ended_at = StateStatus.RUNNING, None
        last = lane.last
        if last is None:
            self._resumable[lane.machine.start_at].append(lambda _id, _at: lane)
            return
        stopped = [each for each in last.lanes if each.status is not StateStatus.SUCCEEDED and not each.is_tolerated]
        missing = self._missing_branches(last) if last.lanes else []
        if not stopped and not missing:
            self._resumable[last.state.name].append(lambda _id, _at: lane)
            return
        _reopen_visit(last)
        for each in stopped:
            self._expect(each)
        for name in missing:
            self._resumable[name].append(partial(self._add_branch, last, name))

    def _missing_branches(self, visit: Visit) -> list[str]:
        """Return the first states of the branches of a Parallel state that were not entered."""
        if visit.state.type is not StateType.PARALLEL:
            return []
        entered = {each.index for each in visit.lanes}
        return [each.start_at for number, each in enumerate(visit.state.branches) if number not in entered]

    # --- where an event belongs ---------------------------------------------------------------------------------------

    def _around(self, event: HistoryEvent) -> Iterator[Visit]:
        """Yield the state of the event before this one, then the states around it."""
        found = self._owners.get(event.previous_id)
        if found is None:
            return
        lane, visit = found
        if visit is None:
            visit = lane.last
        if visit is not None:
            yield visit
            if lane.last is not None and lane.last is not visit:
                yield lane.last
        for each in lane.around():
            if each.parent is not None:
                yield each.parent

    def _reachable(self, event: HistoryEvent) -> Iterator[Visit]:
        """Yield the states around the event before this one, then those inside them: a cut goes down again."""
        around = list(self._around(event))
        yield from around
        for each in around:
            yield from _inside(each)

    def _lanes_after(self, event: HistoryEvent) -> list[Lane]:
        """Return the branches that began with the event before this one."""
        visit = self.owner_of(event.previous_id)
        return [] if visit is None else visit.lanes

    def _own(self, event: HistoryEvent, visit: Visit) -> None:
        self._owners[event.event_id] = (visit.lane, visit)
        visit.event_ids.append(event.event_id)

    def _add_lane(self, lane_id: int, machine: Machine, parent: Visit | None, index: int, at: datetime) -> Lane:
        lane = self.lanes[lane_id] = Lane(lane_id, machine, parent, index, at)
        return lane

    def _add_branch(self, visit: Visit, name: str, lane_id: int, at: datetime) -> Lane:
        taken = {each.index for each in visit.lanes}
        branches = enumerate(visit.state.branches)
        index = next(number for number, each in branches if each.start_at == name and number not in taken)
        lane = self._add_lane(lane_id, visit.state.branches[index], visit, index, at)
        visit.lanes.append(lane)
        return lane


def _inside(visit: Visit) -> Iterator[Visit]:
    for lane in visit.lanes:
        if lane.last is not None and lane.last.state.branches:
            yield lane.last
            yield from _inside(lane.last)


def _wait(visit: Visit, waits_for: WaitsFor | None) -> None:
    is_running = waits_for in (None, WaitsFor.EXECUTION)
    visit.status = StateStatus.RUNNING if is_running else StateStatus.WAITING
    visit.waits_for = waits_for


def _fail_attempt(visit: Visit, event: HistoryEvent, details: Mapping[str, Any]) -> None:
    visit.error, visit.cause = details.get("error"), details.get("cause")
    if event.type.endswith("TimedOut") and visit.error is None:
        visit.error = "States.Timeout"
    visit.waits_for = None
    visit.status = StateStatus.RETRYING if visit.state.fields.get("Retry") else StateStatus.RUNNING
    if visit.attempts and not visit.state.branches:
        attempt = visit.attempts[-1]
        attempt.ended_id, attempt.ended_at, attempt.has_failed = event.event_id, event.at, True
        attempt.error, attempt.cause = visit.error, visit.cause


def _reopen_visit(visit: Visit) -> None:
    visit.status, visit.ended_at, visit.error, visit.cause = StateStatus.RUNNING, None, None, None
    if visit.attempts:
        visit.attempts[-1].ended_at, visit.attempts[-1].has_failed = None, False


def _is_only_caught_by(state: State, name: str) -> bool:
    """Return whether only a Catch of a state leads to the state of that name."""
    caught = {each.get("Next") for each in state.fields.get("Catch", ())}
    return name in caught and name != state.next


def _is_last(state: State, is_caught: bool) -> bool:
    return not is_caught and state.next is None and state.type is not StateType.CHOICE
