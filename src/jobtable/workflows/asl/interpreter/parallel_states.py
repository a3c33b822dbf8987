"""Parallel: one child for each branch."""

from __future__ import annotations

from jobtable.workflows.asl.interpreter.dataflow import Leaving, effective_input, leave_with_result, payload
from jobtable.workflows.asl.interpreter.fanout import add_child, gather, open_fan, size_fan
from jobtable.workflows.asl.interpreter.history import record, record_aside
from jobtable.workflows.asl.interpreter.strand import Strand


def start_parallel(strand: Strand) -> None:
    """Start the branches of a Parallel state."""
    value = payload(strand, effective_input(strand))
    started = record(strand, "ParallelStateStarted")
    branches = strand.state.branches
    open_fan(strand, len(branches))
    size_fan(strand, len(branches), len(branches))
    for number in range(len(branches)):
        add_child(strand, number, number, value, started)


def leave_parallel(strand: Strand) -> Leaving:
    """Leave a Parallel state whose branches have all succeeded."""
    outputs = gather(strand)
    record_aside(strand, "ParallelStateSucceeded")
    return leave_with_result(strand, outputs)
