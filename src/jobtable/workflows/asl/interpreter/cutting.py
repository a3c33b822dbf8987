"""Ending the children of a Parallel or Map state before their time."""

from __future__ import annotations

from jobtable.workflows.asl.interpreter.execution_end import abandon, stop
from jobtable.workflows.asl.interpreter.history import append, follow
from jobtable.workflows.asl.interpreter.schedule import note_change
from jobtable.workflows.asl.interpreter.strand import ENDED_PHASES, Phase, Strand
from jobtable.workflows.asl.machine import StateType
from jobtable.workflows.asl.run import RemoveFrames

_ABORTED_TYPES = frozenset({StateType.TASK, StateType.WAIT, StateType.PARALLEL, StateType.MAP})


def cut_children(strand: Strand, failing: Strand | None) -> None:
    """Stop the children that have not ended, because one failed or, if None, because the state itself did.

    The events about them all follow the last event of the child that failed, and so does the state's next one.
    """
    previous = strand.memory["last"] if failing is None else failing.memory["last"]
    for child in strand.children():
        if failing is not None and child.frame is failing.frame:
            _record_failed(strand, child, previous)
        elif child.phase not in ENDED_PHASES:
            _record_cut(strand, child, previous)
            _stop_all(child)
    follow(strand, previous)


def discard_children(strand: Strand) -> None:
    """Forget the children of a state that is left or tried again."""
    removed: list[str] = []
    for child in strand.children():
        _discard(child, removed)
    if removed:
        strand.run.commands.append(RemoveFrames(removed))


def _discard(strand: Strand, removed: list[str]) -> None:
    for child in strand.children():
        _discard(child, removed)
    frame_id = strand.frame.frame_id
    if strand.phase in {Phase.CALLING, Phase.CHILD}:
        abandon(strand)
    del strand.run.frames[frame_id]
    note_change(strand.run, strand.frame, is_gone=True)
    strand.run.changed.discard(frame_id)
    removed.append(frame_id)


def _stop_all(strand: Strand) -> None:
    for child in strand.children():
        _stop_all(child)
    stop(strand)


def _record_failed(strand: Strand, child: Strand, previous: int) -> None:
    if child.memory.get("stopped") == Phase.CHILD:
        return
    if strand.state.type is StateType.MAP:
        append(strand.run, previous, "MapIterationFailed", _iteration(strand, child))
    if child.state.type is StateType.TASK:
        append(strand.run, previous, "TaskStateAborted")


def _record_cut(strand: Strand, child: Strand, previous: int) -> None:
    if child.phase is Phase.CHILD:
        return
    if strand.state.type is StateType.MAP:
        append(strand.run, previous, "MapIterationAborted", _iteration(strand, child))
    if child.phase is Phase.READY:
        return
    for grandchild in child.children():
        if grandchild.phase not in ENDED_PHASES:
            _record_cut(child, grandchild, previous)
    if "map_run" in child.memory.get("fan", {}):
        append(strand.run, previous, "MapRunAborted")
    if child.state.type in _ABORTED_TYPES:
        append(strand.run, previous, f"{child.state.type}StateAborted")


def _iteration(strand: Strand, child: Strand) -> dict[str, object]:
    return {"name": strand.memory["state"], "index": child.memory.get("index", 0)}
