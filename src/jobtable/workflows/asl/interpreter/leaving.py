"""Leaving a state: its Exited event, its variables, and what comes next."""

from __future__ import annotations

from jobtable.workflows.asl.interpreter.dataflow import Leaving
from jobtable.workflows.asl.interpreter.execution_end import succeed_run
from jobtable.workflows.asl.interpreter.fanout import finish_child
from jobtable.workflows.asl.interpreter.history import record
from jobtable.workflows.asl.interpreter.strand import Phase, Strand, dump
from jobtable.workflows.asl.run import Json


def leave(strand: Strand, leaving: Leaving) -> None:
    """Record the state's exit and point the frame to the next state, or end it."""
    memory = strand.memory
    details: dict[str, Json] = {"name": memory["state"], "output": dump(leaving.output)}
    if leaving.assigned:
        details["assignedVariables"] = {name: dump(value) for name, value in leaving.assigned.items()}
    record(strand, f"{strand.state.type}StateExited", details)
    memory["variables"].update(leaving.assigned)
    strand.forget_attempt()
    if leaving.next is not None:
        memory["state"] = leaving.next
        memory["input"] = leaving.output
        strand.make_ready(Phase.READY)
    elif strand.parent is None:
        succeed_run(strand, leaving.output)
    else:
        finish_child(strand, leaving.output)
