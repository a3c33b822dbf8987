"""Runs cases in memory: time jumps to the next thing that happens, and tasks answer as the case says."""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from random import Random
from typing import Any

from tests.workflows.asl.case_files import Case, object_content

from jobtable.objects.memory import MemoryObjectStore
from jobtable.workflows.asl.arns import Arns
from jobtable.workflows.asl.entities import Execution, ExecutionStatus
from jobtable.workflows.asl.interpreter import abort, advance, begin, fire, receive, redrive, time_out
from jobtable.workflows.asl.interpreter.schedule import ready_frames, timed_frames
from jobtable.workflows.asl.interpreter.strand import dump, write_instant
from jobtable.workflows.asl.machine import Machine
from jobtable.workflows.asl.machine_definition import read_definition
from jobtable.workflows.asl.messages import members_of, read_command, read_signal
from jobtable.workflows.asl.run import (
    MOST_EVENTS,
    Abandon,
    CallFunction,
    CallService,
    Command,
    Ended,
    Event,
    Failed,
    Frame,
    Heartbeat,
    Refused,
    RemoveFrames,
    Run,
    ScheduleActivity,
    Signal,
    Started,
    StartExecution,
    Submitted,
    Succeeded,
)
from jobtable.workflows.asl.services.buckets import key_in_bucket
from jobtable.workflows.asl.services.item_reader import read_items
from jobtable.workflows.asl.services.result_writer import write_results
from jobtable.workflows.asl.verbs import ChildExecution


class NothingHappensError(Exception):
    """The execution waits for an answer that the world does not give."""


START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ARNS = Arns()


@dataclass
class World:
    """What the tasks of a case answer."""

    answers: dict[str, list[Any]] = field(default_factory=dict)
    machines: dict[str, Any] = field(default_factory=dict)
    objects: MemoryObjectStore = field(default_factory=MemoryObjectStore)
    asked: dict[str, int] = field(default_factory=dict)
    children: dict[str, list[ChildExecution]] = field(default_factory=dict)
    """The executions of each run of a distributed Map."""

    def answer(self, name: str) -> Any:
        """Return the next answer of that name; the last one repeats."""
        answers = self.answers[name]
        position = self.asked.get(name, 0)
        self.asked[name] = position + 1
        return answers[min(position, len(answers) - 1)]

    def fill(self, objects: dict[str, Any]) -> None:
        """Put objects into the bucket b."""
        for key, value in objects.items():
            self.objects.put(key_in_bucket("b", key), object_content(value))


@dataclass
class MemoryRunner:
    """Runs one execution, and the executions it starts, to the end."""

    machine: Machine
    payload: Any
    world: World
    name: str = "case"
    machine_name: str = "cases"
    is_express: bool = False
    interrupts: bool = False
    """Whether the run is dropped after each transition and continued from what was stored, as after a kill."""
    instant: datetime = START
    most_events: int = MOST_EVENTS
    history: list[Event] = field(default_factory=list)
    stored: dict[str, dict[str, Any]] = field(default_factory=dict)
    abandoned: list[Abandon] = field(default_factory=list)
    transitions: int = 0

    def __post_init__(self) -> None:
        self._queue: list[tuple[datetime, int, str, Any]] = []
        self._numbers = count()
        self._random = Random(7)
        self.began = self._started_at = self.instant
        self._redriven = 0
        self.run = self._new_run({})

    # --- running ------------------------------------------------------------------------------------------------------

    def finish(self, outside: list[dict[str, Any]] | None = None) -> Ended:
        """Run to the end and return how the execution ended."""
        redrives = [each for each in outside or () if "redrive" in each]
        for each in outside or ():
            if "abort" in each:
                self._push(each.get("after", 0), "abort", each["abort"] or {})
        begin(self.run, self.payload)
        self._store()
        ended = self._until_ended()
        for _ in redrives:
            self._redriven += 1
            self._queue.clear()
            self._started_at = self.instant
            redrive(self.run, self._redriven)
            self._store()
            ended = self._until_ended()
        return ended

    def _until_ended(self) -> Ended:
        while True:
            while self.run.ended is None and advance(self.run):
                self.transitions += 1
                self._store()
            if self.run.ended is not None:
                return self.run.ended
            self._wait()

    def _wait(self) -> None:
        due = {frame.frame_id: frame.due_at for frame in self.run.frames.values() if frame.due_at is not None}
        first_due = min(due, key=lambda each: (due[each], [int(part) for part in each.split(".")]), default=None)
        timeout = self.machine.timeout_seconds
        ends_at = None if timeout is None else self._started_at + timedelta(seconds=timeout)
        moments = [at for at in (ends_at, due[first_due] if first_due else None) if at is not None]
        if self._queue:
            moments.append(self._queue[0][0])
        if not moments:
            raise NothingHappensError(self.run.frames)
        self.instant = max(self.instant, min(moments))
        if self._queue and self._queue[0][0] <= self.instant:
            _, _, kind, thing = heapq.heappop(self._queue)
            if kind == "abort":
                abort(self.run, thing.get("error"), thing.get("cause"))
            else:
                receive(self.run, thing)
        elif ends_at is not None and ends_at <= self.instant:
            time_out(self.run)
        elif first_due is not None:
            fire(self.run, first_due)
        self._store()

    # --- storing ------------------------------------------------------------------------------------------------------

    def _store(self) -> None:
        run = self.run
        for frame_id in run.changed:
            frame = run.frames[frame_id]
            self.stored[frame_id] = {
                "memory": json.dumps(frame.memory),
                "is_ready": frame.is_ready,
                "due_at": frame.due_at,
                "visit": frame.visit,
            }
        self.history += run.events
        commands = [(type(each).__name__, json.loads(json.dumps(members_of(each)))) for each in run.commands]
        run.events.clear()
        run.changed.clear()
        run.commands.clear()
        for kind, members in commands:
            self._carry_out(read_command(kind, members))
        if self.interrupts and run.ended is None:
            self.run = self._new_run({name: self._load(name) for name in self.stored})
            self.run.last_event_id = run.last_event_id
        assert set(self.stored) == set(self.run.frames)
        frames = list(self.run.frames.values())
        assert _ids(ready_frames(self.run)) == _ids(each for each in frames if each.is_ready)
        assert _ids(timed_frames(self.run)) == _ids(each for each in frames if each.due_at is not None)

    def _load(self, frame_id: str) -> Frame:
        stored = self.stored[frame_id]
        memory = json.loads(stored["memory"])
        return Frame(frame_id, memory, stored["is_ready"], stored["due_at"], stored["visit"])

    def _new_run(self, frames: dict[str, Frame]) -> Run:
        return Run(
            machine=self.machine,
            context={
                "Execution": {
                    "Id": ARNS.execution(self.machine_name, self.name),
                    "Input": self.payload,
                    "Name": self.name,
                    "RoleArn": "arn:aws:iam::000000000000:role/cases",
                    "StartTime": "2026-01-02T03:04:05.000Z",
                    "RedriveCount": self._redriven,
                    **({"RedriveTime": write_instant(self._started_at)} if self._redriven else {}),
                },
                "StateMachine": {"Id": ARNS.machine(self.machine_name), "Name": self.machine_name},
            },
            frames=frames,
            now=lambda: self.instant,
            random=self._random,
            new_token=lambda frame_id, visit: f"token-{frame_id}-{visit}",
            read_items=self._read_items,
            write_results=self._write_results,
            has_activity=lambda arn: f"activity:{arn.rpartition(':')[2]}" in self.world.answers,
            most_events=None if self.is_express else self.most_events,
        )

    # --- the world ----------------------------------------------------------------------------------------------------

    def _carry_out(self, command: Command) -> None:
        match command:
            case RemoveFrames():
                for frame_id in command.frame_ids:
                    self.stored.pop(frame_id, None)
            case Abandon():
                self.abandoned.append(command)
            case CallFunction():
                self._answer(command, command.function, command.payload, command.token)
            case CallService():
                name = f"{command.service}:{command.action}"
                self._answer(command, name, command.arguments, command.token)
            case ScheduleActivity():
                name = command.activity_arn.rpartition(":")[2]
                self._answer(command, f"activity:{name}", command.input, None)
            case StartExecution():
                self._start(command)

    def _answer(
        self, command: CallFunction | CallService | ScheduleActivity, name: str, payload: Any, token: str | None
    ) -> None:
        at = (command.frame_id, command.visit)
        answer = self.world.answer(name)
        if not isinstance(answer, dict) or not any(each.startswith("$") for each in answer):
            members: dict[str, Any] = {"$output": answer}
        else:
            members = answer
        if isinstance(command, ScheduleActivity) and "$never" not in members:
            self._push(0, "signal", Started(*at, {"workerName": "worker"}))
        if token is not None and "$submitted" in members:
            self._push(0, "signal", Submitted(*at, members["$submitted"]))
        for seconds in members.get("$beats", ()):
            self._push(seconds, "signal", Heartbeat(*at))
        after = members.get("after", 0)
        if "$refused" in members:
            self._push(after, "signal", Refused(*at, members["$refused"], members.get("$cause")))
        elif "$error" in members:
            self._push(after, "signal", Failed(*at, members["$error"], members.get("$cause")))
        elif "$large" in members:
            self._push(after, "signal", Succeeded(*at, "x" * members["$large"]))
        elif "$echo" in members:
            self._push(after, "signal", Succeeded(*at, payload))
        elif "$output" in members:
            self._push(after, "signal", Succeeded(*at, members["$output"]))

    def _start(self, command: StartExecution) -> None:
        at = (command.frame_id, command.visit)
        if command.map_run is None and str(command.machine_arn).rpartition(":")[2] not in self.world.machines:
            why = f"State Machine Does Not Exist: '{command.machine_arn}'"
            self._push(0, "signal", Refused(*at, "StepFunctions.StateMachineDoesNotExistException", why))
            return
        child = self._child(command)
        reference = {"ExecutionArn": ARNS.execution(child.machine_name, child.name), "StartDate": 1767323045000}
        if command.awaits == "start":
            self._push(0, "signal", Succeeded(*at, reference))
            return
        if command.map_run is None:
            self._push(0, "signal", Submitted(*at, reference))
        ended = child.finish()
        took = (child.instant - self.instant).total_seconds()
        if command.map_run is not None:
            self.world.children.setdefault(command.map_run["arn"], []).append(_described(child, ended))
            result: Signal = (
                Succeeded(*at, ended.output) if ended.status == "SUCCEEDED" else Failed(*at, ended.error, ended.cause)
            )
            self._push(took, "signal", result)
            return
        if command.awaits == "token":
            return
        as_text = (lambda value: value) if command.awaits == "end_as_json" else dump
        described = {**reference, "Input": as_text(child.payload), "Status": ended.status}
        if ended.status == "SUCCEEDED":
            self._push(took, "signal", Succeeded(*at, {**described, "Output": as_text(ended.output)}))
        else:
            cause = json.dumps({**described, "Error": ended.error, "Cause": ended.cause})
            self._push(took, "signal", Failed(*at, "States.TaskFailed", cause))

    def _child(self, command: StartExecution) -> MemoryRunner:
        name = f"{self.name}-{command.frame_id}-{command.visit}"
        if command.map_run is not None:
            machine = _at_path(self.machine, command.map_run["path"])
            payload = command.arguments
            machine_name = f"{self.machine_name}/{command.map_run['label']}"
        else:
            machine_name = (command.machine_arn or "").rpartition(":")[2]
            machine = read_definition(json.dumps(self.world.machines[machine_name]))
            payload = command.arguments.get("Input", {})
            payload = json.loads(payload) if isinstance(payload, str) else payload
        return MemoryRunner(machine, payload, self.world, name, machine_name, instant=self.instant)

    def _read_items(self, reader: Any) -> list[Any]:
        items: list[Any] = read_items(self.world.objects, reader)
        return items

    def _write_results(self, writer: Any, results: list[Any]) -> Any:
        return write_results(self.world.objects, writer, results, self.world.children.get(writer["MapRunArn"], ()))

    def _push(self, seconds: float, kind: str, thing: Any) -> None:
        if kind == "signal":
            thing = read_signal(type(thing).__name__, json.loads(json.dumps(members_of(thing))))
        heapq.heappush(self._queue, (self.instant + timedelta(seconds=seconds), next(self._numbers), kind, thing))


def _ids(frames: Iterable[Frame]) -> set[str]:
    return {each.frame_id for each in frames}


def run_case(
    case: Case, *, interrupts: bool = False, kind: type[MemoryRunner] = MemoryRunner
) -> tuple[MemoryRunner, Ended]:
    """Run a case to its end, in a runner of that kind."""
    world = World(case.answers, case.machines)
    world.fill(case.objects)
    runner = kind(
        read_definition(json.dumps(case.definition)),
        case.input,
        world,
        is_express=case.type == "EXPRESS",
        interrupts=interrupts,
    )
    return runner, runner.finish(case.events)


def _described(child: MemoryRunner, ended: Ended) -> ChildExecution:
    record = Execution(
        machine=child.machine_name,
        name=child.name,
        job_id="job",
        status=ExecutionStatus(ended.status),
        definition_sha256="",
        region=ARNS.region,
        account=ARNS.account,
        input="",
        error=ended.error,
        cause=ended.cause,
        started_at=child.began,
        stopped_at=child.instant,
    )
    output = json.dumps(ended.output) if ended.status == "SUCCEEDED" else None
    return ChildExecution(record, json.dumps(child.payload), output)


def _at_path(machine: Machine, path: str) -> Machine:
    """Return the item processor of the Map state at a path."""
    for state in machine.states.values():
        if state.path == path:
            return state.branches[0]
        for branch in state.branches:
            if path.startswith(f"{state.path}/"):
                found = _at_path(branch, path)
                if found is not branch or any(each.path == path for each in branch.states.values()):
                    return found
    return machine
