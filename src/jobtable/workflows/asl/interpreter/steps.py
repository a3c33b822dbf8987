"""Transitions: a frame leaves its state, and enters and starts the next one."""

from __future__ import annotations

from collections.abc import Callable

from jobtable.workflows.asl.interpreter.choice_states import leave_choice
from jobtable.workflows.asl.interpreter.cutting import cut_children
from jobtable.workflows.asl.interpreter.dataflow import Leaving, check_leaving, leave_with_input
from jobtable.workflows.asl.interpreter.execution_end import fail_full_run
from jobtable.workflows.asl.interpreter.failures import Failure, fail, failure_of
from jobtable.workflows.asl.interpreter.history import HistoryFullError, append, record
from jobtable.workflows.asl.interpreter.leaving import leave
from jobtable.workflows.asl.interpreter.map_states import leave_map, start_map, top_up
from jobtable.workflows.asl.interpreter.parallel_states import leave_parallel, start_parallel
from jobtable.workflows.asl.interpreter.plain_states import DeclaredFailure, leave_fail, leave_pass
from jobtable.workflows.asl.interpreter.schedule import ready_frames
from jobtable.workflows.asl.interpreter.strand import (
    ROOT,
    Phase,
    StoredFailure,
    Strand,
    dump,
    new_strand,
    strand_of,
    write_instant,
)
from jobtable.workflows.asl.interpreter.task_states import leave_task, start_task
from jobtable.workflows.asl.interpreter.wait_states import start_wait
from jobtable.workflows.asl.machine import StateFault, StateType
from jobtable.workflows.asl.run import Json, Run

_START: dict[StateType, Callable[[Strand], None]] = {
    StateType.TASK: start_task,
    StateType.WAIT: start_wait,
    StateType.PARALLEL: start_parallel,
    StateType.MAP: start_map,
}
"""How a state starts that waits for something; the others are left in the next transition."""
_LEAVE: dict[StateType, Callable[[Strand], Leaving]] = {
    StateType.PASS: leave_pass,
    StateType.TASK: leave_task,
    StateType.CHOICE: leave_choice,
    StateType.WAIT: leave_with_input,
    StateType.SUCCEED: leave_with_input,
    StateType.FAIL: leave_fail,
    StateType.PARALLEL: leave_parallel,
    StateType.MAP: leave_map,
}


def begin(run: Run, payload: Json, text: str | None = None) -> None:
    """Start an execution with an input; `text` is the input as it was written."""
    details: dict[str, Json] = {"input": dump(payload) if text is None else text}
    role = run.context.get("Execution", {}).get("RoleArn")
    if role is not None:
        details["roleArn"] = role
    append(run, 0, "ExecutionStarted", details)
    new_strand(run, ROOT, [], run.machine, payload, 0)


def advance(run: Run) -> bool:
    """Move one ready frame by one transition; False if no frame is ready."""
    if run.ended is not None:
        return False
    ready = ready_frames(run)
    if not ready:
        return False
    strand = min((Strand(run, frame) for frame in ready), key=_turn)
    try:
        _move(strand)
        settle(strand)
    except HistoryFullError:
        fail_full_run(run)
    return True


def settle(strand: Strand) -> None:
    """Let the frames above go on if one of their children ended: start more of them, or leave their state."""
    run = strand.run
    below = strand.frame.frame_id
    while run.ended is None and (frame_id := below.rpartition(".")[0]):
        above = strand_of(run, frame_id)
        child = run.frames.get(below)
        below = frame_id
        if above is None or above.phase is not Phase.FORKED:
            continue
        try:
            top_up(above, above.memory["last"] if child is None else child.memory.get("before", above.memory["last"]))
        except StateFault as fault:
            cut_children(above, None)
            fail(above, failure_of(above, fault))


def _turn(strand: Strand) -> tuple[int, list[int]]:
    return strand.memory["turn"], [int(number) for number in strand.frame.frame_id.split(".")]


def _move(strand: Strand) -> None:
    try:
        match strand.phase:
            case Phase.READY:
                _enter(strand)
            case Phase.RETRYING:
                _start(strand)
            case Phase.FORKED:
                strand.suspend(Phase.FORKED)
                top_up(strand, strand.memory["last"])
            case Phase.FAILED:
                fail(strand, _reported(strand))
            case _:
                _leave(strand)
    except DeclaredFailure as declared:
        fail(strand, Failure(declared.error or None, declared.cause or None))
    except StateFault as fault:
        fail(strand, failure_of(strand, fault))


def _enter(strand: Strand) -> None:
    memory = strand.memory
    memory["retries"] = {}
    memory["retry_count"] = 0
    memory["entered_at"] = write_instant(strand.run.now())
    memory["arrived"] = memory["last"]
    details = {"name": memory["state"], "input": dump(memory["input"])}
    memory["entered_id"] = record(strand, f"{strand.state.type}StateEntered", details)
    _start(strand)


def _start(strand: Strand) -> None:
    start = _START.get(strand.state.type)
    if start is None:
        strand.make_ready(Phase.ENTERED)
    else:
        start(strand)


def _leave(strand: Strand) -> None:
    leaving = _LEAVE[strand.state.type](strand)
    check_leaving(strand, leaving)
    leave(strand, leaving)
    if strand.run.ended is None and strand.phase is Phase.READY:
        _enter(strand)


def _reported(strand: Strand) -> Failure:
    kept: StoredFailure = strand.frame.memory["failure"]
    return Failure(kept["error"], kept["cause"], missed_heartbeat=kept["heartbeat"])
