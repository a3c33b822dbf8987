"""The end of an execution, from inside or from outside."""

from __future__ import annotations

from jobtable.workflows.asl.interpreter.history import append_end, without_none
from jobtable.workflows.asl.interpreter.strand import ENDED_PHASES, Phase, Strand, dump, root_of
from jobtable.workflows.asl.run import Abandon, Ended, Json, Run

TIMEOUT = "States.Timeout"


def succeed_run(strand: Strand, output: Json) -> None:
    """End the execution with the output of its last state."""
    run = strand.run
    append_end(run, strand.memory["tail"], "ExecutionSucceeded", {"output": dump(output)})
    run.ended = Ended("SUCCEEDED", output)
    strand.suspend(Phase.FINISHED)


def fail_run(strand: Strand, error: str | None, cause: str | None) -> None:
    """End the execution with the failure of a state, and stop whatever else it does."""
    _end_failed(strand.run, strand.memory["tail"], error, cause)


def fail_full_run(run: Run) -> None:
    """End an execution whose history is full."""
    most = run.most_events
    _end_failed(
        run,
        run.last_event_id,
        "States.Runtime",
        f"The execution reached the maximum number of history events ({most}).",
    )


def time_out(run: Run) -> None:
    """End an execution that took longer than its machine allows."""
    append_end(run, 0, "ExecutionTimedOut", {"error": TIMEOUT})
    run.ended = Ended("TIMED_OUT", error=TIMEOUT)
    stop_all(run)


def abort(run: Run, error: str | None, cause: str | None) -> None:
    """End an execution because someone stopped it."""
    append_end(run, root_of(run).memory["tail"], "ExecutionAborted", without_none(error=error, cause=cause))
    run.ended = Ended("ABORTED", error=error, cause=cause)
    stop_all(run)


def crash(run: Run, cause: str) -> None:
    """End an execution that cannot go on, because of a fault that no state can handle."""
    _end_failed(run, run.last_event_id, "States.Runtime", cause)


def stop_all(run: Run) -> None:
    """Stop every frame of an execution that ended without the interpreter, and abandon what they wait for."""
    for frame in list(run.frames.values()):
        stop(Strand(run, frame))


def stop(strand: Strand) -> None:
    """Stop a frame in its state, from which `redrive` can continue it, and abandon what it waits for."""
    phase = strand.phase
    if phase in ENDED_PHASES or phase is Phase.STOPPED:
        return
    if phase in {Phase.CALLING, Phase.CHILD}:
        abandon(strand)
    halt(strand)


def halt(strand: Strand) -> None:
    """Keep a frame in the state in which it failed or was stopped."""
    strand.memory["stopped"] = strand.phase
    strand.suspend(Phase.STOPPED)


def abandon(strand: Strand) -> None:
    """Have whatever the frame waits for end."""
    strand.run.commands.append(Abandon(strand.frame.frame_id, strand.frame.visit))


def _end_failed(run: Run, previous: int, error: str | None, cause: str | None) -> None:
    append_end(run, previous, "ExecutionFailed", without_none(error=error, cause=cause))
    run.ended = Ended("FAILED", error=error, cause=cause)
    stop_all(run)
