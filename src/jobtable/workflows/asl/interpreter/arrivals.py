"""What reaches a frame that waits: signals, and the instant it waits for."""

from __future__ import annotations

from datetime import datetime, timedelta

from jobtable.workflows.asl.interpreter.dataflow import check_size
from jobtable.workflows.asl.interpreter.execution_end import TIMEOUT, abandon, fail_full_run
from jobtable.workflows.asl.interpreter.failures import Failure, give_up
from jobtable.workflows.asl.interpreter.fanout import finish_child
from jobtable.workflows.asl.interpreter.history import HistoryFullError
from jobtable.workflows.asl.interpreter.schedule import note_change
from jobtable.workflows.asl.interpreter.steps import settle
from jobtable.workflows.asl.interpreter.strand import (
    Call,
    Phase,
    StoredFailure,
    Strand,
    keep_instant,
    kept_instant,
    strand_of,
)
from jobtable.workflows.asl.interpreter.task_events import (
    record_failed,
    record_started,
    record_submitted,
    record_succeeded,
)
from jobtable.workflows.asl.interpreter.task_results import shape_response, shape_result
from jobtable.workflows.asl.interpreter.task_states import await_call, resource_of
from jobtable.workflows.asl.machine import StateFault
from jobtable.workflows.asl.resources import Pattern, Resource, ResourceKind
from jobtable.workflows.asl.run import Failed, Heartbeat, Json, Refused, Run, Signal, Started, Submitted, Succeeded


def receive(run: Run, signal: Signal) -> bool:
    """Take a signal for the current visit of a frame; False if the frame does not wait for it any more."""
    strand = strand_of(run, signal.frame_id)
    if run.ended is not None or strand is None or strand.frame.visit != signal.visit:
        return False
    try:
        if strand.phase is Phase.CHILD:
            return _receive_for_batch(strand, signal)
        if strand.phase is Phase.CALLING:
            return _receive_for_task(strand, signal)
    except HistoryFullError:
        fail_full_run(run)
        return True
    return False


def fire(run: Run, frame_id: str) -> None:
    """Let the time of a frame come: its Wait is over, its retry is due, or its task took too long."""
    strand = strand_of(run, frame_id)
    if run.ended is not None or strand is None:
        return
    due_at = strand.frame.due_at
    if due_at is None or due_at > run.now():
        return
    try:
        match strand.phase:
            case Phase.WAITING:
                strand.make_ready(Phase.ENTERED)
            case Phase.RETRYING:
                strand.make_ready(Phase.RETRYING)
            case Phase.CALLING:
                _time_out_call(strand)
            case _:
                strand.frame.due_at = None
                note_change(strand.run, strand.frame)
                strand.touch()
    except HistoryFullError:
        fail_full_run(run)


# --- the batches of a distributed Map ---------------------------------------------------------------------------------


def _receive_for_batch(strand: Strand, signal: Signal) -> bool:
    match signal:
        case Succeeded():
            finish_child(strand, signal.output)
        case Failed():
            give_up(strand, Failure(signal.error, signal.cause))
        case _:
            return True
    settle(strand)
    return True


# --- tasks ------------------------------------------------------------------------------------------------------------


def _receive_for_task(strand: Strand, signal: Signal) -> bool:
    resource = resource_of(strand)
    call = strand.call
    match signal:
        case Heartbeat():
            _beat(strand, call)
        case Started():
            _start(strand, resource, call, signal.details.get("workerName"), kept_instant(signal.at))
        case Submitted():
            _start(strand, resource, call)
            record_submitted(strand, resource, shape_response(strand, resource, signal.output))
        case Succeeded():
            _start(strand, resource, call)
            version = signal.version
            result = shape_result(strand, resource, signal.output, is_async=call["is_async"], version=version)
            _succeed(strand, resource, result)
        case Failed():
            _start(strand, resource, call)
            _fail(strand, resource, signal.error, signal.cause)
        case Refused():
            _refuse(strand, resource, call, signal)
    strand.touch()
    return True


def _beat(strand: Strand, call: Call) -> None:
    seconds = call["heartbeat_seconds"]
    if seconds is not None:
        call["heartbeat_at"] = keep_instant(strand.run.now() + timedelta(seconds=seconds))
        await_call(strand)


def _start(
    strand: Strand, resource: Resource, call: Call, worker: str | None = None, at: datetime | None = None
) -> None:
    if not call["started"]:
        call["started"] = True
        record_started(strand, resource, worker, at)


def _succeed(strand: Strand, resource: Resource, result: Json) -> None:
    subject = resource.arn if resource.kind is ResourceKind.FUNCTION else resource.history_type
    try:
        check_size(result, subject)
    except StateFault as fault:
        _fail(strand, resource, fault.error, fault.cause)
        return
    record_succeeded(strand, resource, result)
    strand.memory["result"] = result
    strand.make_ready(Phase.ANSWERED)


def _fail(strand: Strand, resource: Resource, error: str | None, cause: str | None) -> None:
    record_failed(strand, resource, "Failed", error, cause)
    _keep_failure(strand, error, cause)


def _refuse(strand: Strand, resource: Resource, call: Call, refused: Refused) -> None:
    """Record what did not come about: a function that never started, a request that somebody else was to complete."""
    if resource.kind is ResourceKind.FUNCTION:
        ending = "StartFailed"
    else:
        _start(strand, resource, call)
        ending = "Failed" if resource.pattern is Pattern.RESPONSE else "SubmitFailed"
    record_failed(strand, resource, ending, refused.error, refused.cause)
    _keep_failure(strand, refused.error, refused.cause)


def _time_out_call(strand: Strand) -> None:
    resource = resource_of(strand)
    call = strand.call
    if resource.kind is not ResourceKind.ACTIVITY:
        _start(strand, resource, call)
    record_failed(strand, resource, "TimedOut", TIMEOUT, None)
    abandon(strand)
    timeout_at = kept_instant(call["timeout_at"])
    _keep_failure(strand, TIMEOUT, None, heartbeat=timeout_at is None or timeout_at > strand.run.now())


def _keep_failure(strand: Strand, error: str | None, cause: str | None, *, heartbeat: bool = False) -> None:
    strand.memory["failure"] = StoredFailure(error=error, cause=cause, heartbeat=heartbeat)
    strand.make_ready(Phase.FAILED)
