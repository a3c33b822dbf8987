"""Runs as they are stored: how one is read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from jobtable.store import TryAgain
from jobtable.workflows.asl.arns import Arns
from jobtable.workflows.asl.entities import (
    Execution,
    ExecutionCommands,
    ExecutionFrame,
    ExecutionSignal,
    MachineType,
)
from jobtable.workflows.asl.execution.execution_core import ExecutionCore
from jobtable.workflows.asl.execution.links import arn_of
from jobtable.workflows.asl.execution.map_running import children_of
from jobtable.workflows.asl.interpreter.strand import write_instant
from jobtable.workflows.asl.run import MOST_EVENTS, Frame, Json, Run

STORE_FRAMES = "StoreFrames"
"""The command to store the frames of a change that were too many for its transaction."""


@dataclass
class StoredRun:
    """An execution as of one revision."""

    execution: Execution
    run: Run
    kept: set[str] = field(default_factory=set)
    """The ids of the frames that have an item."""
    outbox: list[ExecutionCommands] = field(default_factory=list)
    """The commands of earlier changes that may not have been carried out."""


def read_run(core: ExecutionCore, machine: str, name: str) -> StoredRun:
    """Read an execution with its frames and commands."""

    def read(execution: Execution) -> StoredRun:
        keys = {"machine": machine, "name": name}
        frames = list(core.store.query(ExecutionFrame.key(**keys)))
        outbox = list(core.store.query(ExecutionCommands.key(**keys)))
        if core.get(machine, name).revision != execution.revision:
            raise TryAgain
        stored = StoredRun(execution, new_run(core, execution), {each.frame_id for each in frames}, outbox)
        for frame in frames:
            memory = json.loads(core.texts.read(frame.memory, frame.memory_object))
            stored.run.frames[frame.frame_id] = Frame(frame.frame_id, memory, frame.is_ready, frame.due_at, frame.visit)
        for kind, members in (command for each in outbox for command in commands_in(core, each)):
            if kind == "RemoveFrames":
                for frame_id in members["frame_ids"]:
                    stored.run.frames.pop(frame_id, None)
            elif kind == STORE_FRAMES:
                stored.run.frames |= {frame.frame_id: frame for frame in map(frame_from, members["frames"])}
        return stored

    return core.store.retrying(lambda: core.get(machine, name), read, f"read execution {machine}/{name}")


def new_run(core: ExecutionCore, execution: Execution) -> Run:
    """Return the run of an execution, without its frames."""
    run = Run(
        machine=core.machine_of(execution),
        context=context_of(core, execution),
        frames={},
        now=core.now,
        random=core.random,
        new_token=lambda frame_id, visit: core.token_of(execution, frame_id, visit),
        last_event_id=execution.last_event_id,
        read_items=core.services.read_items,
        has_activity=core.has_activity,
        most_events=None if execution.type is MachineType.EXPRESS else MOST_EVENTS,
    )

    def write_results(writer: Json, results: list[Json]) -> Json:
        return core.services.write_results(writer, results, children_of(core, run, execution, writer["MapRunArn"]))

    run.write_results = write_results
    return run


def context_of(core: ExecutionCore, execution: Execution) -> dict[str, Json]:
    """Return the members of the context object that do not change."""
    arns = Arns(execution.region, execution.account)
    return {
        "Execution": {
            "Id": arn_of(execution),
            "Input": json.loads(core.input_of(execution)),
            "Name": execution.name,
            **({} if execution.role_arn is None else {"RoleArn": execution.role_arn}),
            "StartTime": write_instant(execution.started_at),
            "RedriveCount": execution.redrive_count,
            **_redrive_time(execution),
        },
        "StateMachine": {"Id": arns.machine(execution.machine), "Name": execution.machine},
    }


def _redrive_time(execution: Execution) -> dict[str, Json]:
    """Return the time of the last redrive, which express executions do not know."""
    if execution.redriven_at is None or execution.type is MachineType.EXPRESS:
        return {}
    return {"RedriveTime": write_instant(execution.redriven_at)}


def read_signals(core: ExecutionCore, execution: Execution) -> list[ExecutionSignal]:
    """Return the signals that were left for an execution, in order."""
    return list(core.store.query(ExecutionSignal.key(machine=execution.machine, name=execution.name)))


def commands_in(core: ExecutionCore, stored: ExecutionCommands) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the commands of a change: the kind and the members of each."""
    yield from json.loads(core.texts.read(stored.commands, stored.commands_object))


def frame_as_json(frame: Frame) -> dict[str, Any]:
    """Return a frame as a command to store it holds it."""
    due_at = None if frame.due_at is None else frame.due_at.isoformat()
    return {
        "frame_id": frame.frame_id,
        "memory": frame.memory,
        "is_ready": frame.is_ready,
        "due_at": due_at,
        "visit": frame.visit,
    }


def frame_from(members: dict[str, Any]) -> Frame:
    """Return the frame of a command to store it."""
    due_at = None if members["due_at"] is None else datetime.fromisoformat(members["due_at"])
    return Frame(members["frame_id"], members["memory"], members["is_ready"], due_at, members["visit"])
