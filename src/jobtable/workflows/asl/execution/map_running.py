"""The runs of distributed Maps: their records follow what the interpreter does, and their children are found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import Any

from jobtable.model import Attribute, Update
from jobtable.store.transactions import MOST_ACTIONS, Transaction
from jobtable.workflows.asl.entities import Execution, MapRun, MapRunStatus
from jobtable.workflows.asl.execution.execution_core import ExecutionCore
from jobtable.workflows.asl.execution.links import name_of_child
from jobtable.workflows.asl.interpreter.map_states import MOST_DISTRIBUTED
from jobtable.workflows.asl.interpreter.strand import Phase, Strand
from jobtable.workflows.asl.machine import Machine
from jobtable.workflows.asl.run import Event, Frame, Run, StartExecution
from jobtable.workflows.asl.verbs import ChildExecution

_ENDS = {"MapRunSucceeded": MapRunStatus.SUCCEEDED, "MapRunFailed": MapRunStatus.FAILED}
_COUNTS: dict[str, Attribute[int]] = {
    "running": MapRun.running_count,
    "succeeded": MapRun.succeeded_count,
    "failed": MapRun.failed_count,
    "timed_out": MapRun.timed_out_count,
    "aborted": MapRun.aborted_count,
}
_OPEN = "open map runs"


class MapRunRecords:
    """What the next change of an execution does to the records of its map runs."""

    def __init__(self, execution: Execution, run: Run) -> None:
        self._execution = execution
        self._run = run
        known: dict[str, str] | None = run.notes.get(_OPEN)
        self._open = {} if known is None else known
        """The frame of each map run that has not ended, kept with the run."""
        self._added: dict[str, MapRun] = {}
        self._counts: dict[str, Counter[str]] = {}
        self._updates: dict[str, list[Update]] = {}
        self._seen_events = self._seen_commands = 0
        self._is_needed = has_map_runs(run.machine)
        if self._is_needed and known is None:
            run.notes[_OPEN] = self._open
            self._find_open(run.frames.values())

    def __len__(self) -> int:
        """How many records change."""
        return len(self._added | self._counts | self._updates)

    def observe(self) -> None:
        """Note what the interpreter's last step did."""
        if not self._is_needed:
            return
        events = self._run.events[self._seen_events :]
        commands = self._run.commands[self._seen_commands :]
        self._seen_events, self._seen_commands = len(self._run.events), len(self._run.commands)
        changed = [self._run.frames[each] for each in self._run.changed if each in self._run.frames]
        started = [event for event in events if event.type == "MapRunStarted"]
        self._find_open(changed)
        for event in started:
            self._add(event)
        for event in events:
            if event.type == "MapRunRedriven":
                self._reopen(event)
        for command in commands:
            if isinstance(command, StartExecution) and command.map_run is not None:
                self._count(command.map_run["arn"], "running", 1)
        self._close(events)

    def count_end(self, frame_id: str, status: str) -> None:
        """Note that the child of a frame ended with a status."""
        above = self._run.frames.get(frame_id.rpartition(".")[0])
        arn = None if above is None else _map_run_of(above)
        if arn is not None:
            self._count(arn, "running", -1)
            self._count(arn, status.lower(), 1)

    def add_to(self, tx: Transaction) -> None:
        """Write what was noted with the rest of a transaction."""
        for run_id, record in self._added.items():
            counted = {f"{name}_count": count for name, count in self._counts.pop(run_id, {}).items()}
            tx.put(record.model_copy(update=counted))
        for run_id in self._counts.keys() | self._updates.keys():
            updates = list(self._updates.get(run_id, ()))
            updates += [_COUNTS[name].increment(count) for name, count in self._counts.get(run_id, {}).items()]
            tx.update(MapRun.key(map_run_id=run_id), *updates)

    def forget(self) -> None:
        """Begin anew after the transaction."""
        self._added, self._counts, self._updates = {}, {}, {}
        self._seen_events = self._seen_commands = 0

    def _find_open(self, frames: Any) -> None:
        for frame in frames:
            arn = _map_run_of(frame)
            if arn is not None and frame.memory["phase"] != Phase.STOPPED:
                self._open[arn] = frame.frame_id

    def _add(self, event: Event) -> None:
        arn = event.details["mapRunStartedEventDetails"]["mapRunArn"]
        frame = self._run.frames.get(self._open.get(arn, ""))
        fan = {} if frame is None else frame.memory["fan"]
        limit = fan.get("limit", 0)
        self._open.setdefault(arn, "")
        self._added[run_id_of(arn)] = MapRun(
            map_run_id=run_id_of(arn),
            machine=self._execution.machine,
            name=self._execution.name,
            label=arn.rpartition(":")[0].rpartition("/")[2],
            started_at=event.at,
            max_concurrency=0 if limit == MOST_DISTRIBUTED else limit,
            tolerated_failure_count=int(fan.get("tolerated_count", 0)),
            tolerated_failure_percentage=fan.get("tolerated_percentage", 0.0),
            item_count=fan.get("weight", 0),
            execution_count=fan.get("total", 0),
        )

    def _reopen(self, event: Event) -> None:
        details = event.details["mapRunRedrivenEventDetails"]
        frame = self._run.frames[self._open[details["mapRunArn"]]]
        children = Strand(self._run, frame).children()
        dropped = sum(child.memory.get("weight", 1) for child in children if child.phase is Phase.DROPPED)
        self._updates[run_id_of(details["mapRunArn"])] = [
            MapRun.status.set(MapRunStatus.RUNNING),
            MapRun.stopped_at.set(None),
            MapRun.redrive_count.increment(1),
            MapRun.redriven_at.set(event.at),
            MapRun.failed_count.set(dropped),
            MapRun.timed_out_count.set(0),
            MapRun.aborted_count.set(0),
        ]

    def _close(self, events: list[Event]) -> None:
        for arn, frame_id in list(self._open.items()):
            frame = self._run.frames.get(frame_id)
            if frame is not None and _map_run_of(frame) == arn and frame.memory["phase"] != Phase.STOPPED:
                continue
            del self._open[arn]
            status = next((_ENDS[each.type] for each in events if each.type in _ENDS), MapRunStatus.ABORTED)
            self._end(run_id_of(arn), status, self._run.now())

    def _end(self, run_id: str, status: MapRunStatus, at: datetime) -> None:
        if (added := self._added.get(run_id)) is not None:
            self._added[run_id] = added.model_copy(update={"status": status, "stopped_at": at})
        else:
            self._updates[run_id] = [MapRun.status.set(status), MapRun.stopped_at.set(at)]

    def _count(self, arn: str, name: str, change: int) -> None:
        self._counts.setdefault(run_id_of(arn), Counter())[name] += change


def run_id_of(arn: str) -> str:
    """Return the id of a map run."""
    return arn.rpartition(":")[2]


def has_map_runs(machine: Machine) -> bool:
    """Return whether a machine has a distributed Map."""
    return any(
        any(branch.processor_config.get("Mode") == "DISTRIBUTED" or has_map_runs(branch) for branch in state.branches)
        for state in machine.states.values()
    )


def children_of(core: ExecutionCore, run: Run, execution: Execution, arn: str) -> Iterator[ChildExecution]:
    """Yield the child executions of a map run, in the order of the items."""
    label = arn.rpartition(":")[0].rpartition("/")[2]
    frame = frame_of_map_run(run, run_id_of(arn))
    assert frame is not None
    keys = (
        Execution.key(machine=f"{execution.machine}/{label}", name=name_of_child(run_id_of(arn), child.frame.frame_id))
        for child in Strand(run, frame).children()
    )
    while some := list(islice(keys, MOST_ACTIONS)):
        for found in core.store.batch_get(some):
            if found is not None:
                yield ChildExecution(found, core.input_of(found), core.output_of(found))


def frame_of_map_run(run: Run, run_id: str) -> Frame | None:
    """Return the frame whose Map state has a map run, or None."""
    arns = ((frame, _map_run_of(frame)) for frame in run.frames.values())
    return next((frame for frame, arn in arns if arn is not None and run_id_of(arn) == run_id), None)


def _map_run_of(frame: Frame) -> str | None:
    fan = frame.memory.get("fan")
    return None if fan is None else fan.get("map_run")
