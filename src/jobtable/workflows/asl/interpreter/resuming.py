"""Redrive: an execution that did not succeed continues from the states in which it was stopped."""

from __future__ import annotations

from jobtable.workflows.asl.interpreter.cutting import discard_children
from jobtable.workflows.asl.interpreter.history import append, follow
from jobtable.workflows.asl.interpreter.map_runs import submit_batch
from jobtable.workflows.asl.interpreter.strand import Phase, Strand, root_of, write_instant
from jobtable.workflows.asl.run import Run


def redrive(run: Run, count: int = 1) -> None:
    """Continue a run whose frames were kept after it failed, timed out or was aborted; `count` is how often so far."""
    run.ended = None
    run.notes.clear()
    known = run.context.get("Execution", {})
    if known.get("RedriveCount") != count:
        redriven_now = {"RedriveCount": count, "RedriveTime": write_instant(run.now())}
        run.context = {**run.context, "Execution": {**known, **redriven_now}}
    redriven = append(run, run.last_event_id, "ExecutionRedriven", {"redriveCount": count})
    _continue(root_of(run), redriven, count)


def _continue(strand: Strand, redriven: int, count: int) -> None:
    if strand.phase is not Phase.STOPPED:
        return
    memory = strand.memory
    stopped = memory.pop("stopped", None)
    children = list(strand.children())
    follow(strand, redriven)
    above = strand.parent
    if stopped == Phase.CHILD and above is not None:
        submit_batch(above, strand, above.fan.get("map_run", ""))
    elif any(each.phase is Phase.STOPPED for each in children):
        if (map_run := strand.fan.get("map_run")) is not None:
            details = {"mapRunArn": map_run, "redriveCount": count}
            follow(strand, append(strand.run, redriven, "MapRunRedriven", details))
        strand.suspend(Phase.FORKED)
        for child in children:
            _continue(child, redriven, count)
    else:
        discard_children(strand)
        strand.forget_attempt()
        strand.make_ready(Phase.READY)
