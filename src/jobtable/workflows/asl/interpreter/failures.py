"""What happens when a state fails: retries, catchers, and the failure of the states around it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from jobtable.workflows.asl.interpreter.cutting import cut_children, discard_children
from jobtable.workflows.asl.interpreter.dataflow import (
    DATA_LIMIT,
    QUERY_EVALUATION,
    RUNTIME,
    Leaving,
    check_leaving,
    leave_by_catcher,
)
from jobtable.workflows.asl.interpreter.execution_end import TIMEOUT, fail_run, halt
from jobtable.workflows.asl.interpreter.fanout import fail_child, is_fan_out
from jobtable.workflows.asl.interpreter.history import follow, record, without_none
from jobtable.workflows.asl.interpreter.leaving import leave
from jobtable.workflows.asl.interpreter.map_runs import ITEM_READER_FAILED, RESULT_WRITER_FAILED
from jobtable.workflows.asl.interpreter.strand import Phase, Strand
from jobtable.workflows.asl.machine import StateFault

ALL = "States.ALL"
TASK_FAILED = "States.TaskFailed"
HEARTBEAT_TIMEOUT = "States.HeartbeatTimeout"
_SAID_ALONE = frozenset({DATA_LIMIT, ITEM_READER_FAILED, RESULT_WRITER_FAILED})
"""Errors whose causes do not name the state."""
DEFAULT_ATTEMPTS = 3
_DEFAULT_INTERVAL = 1
_DEFAULT_RATE = 2.0
_LONGEST_DELAY = 31_622_400.0


@dataclass(frozen=True)
class Failure:
    """Why a state failed."""

    error: str | None
    cause: str | None = None
    location: str = ""
    is_raised: bool = False
    """Whether the state itself is at fault, not its task or a child."""
    missed_heartbeat: bool = False


def failure_of(strand: Strand, fault: StateFault) -> Failure:
    """Return the failure of a state whose own fields or data are at fault."""
    cause = fault.cause
    if fault.error not in _SAID_ALONE:
        memory = strand.memory
        cause = (
            f"An error occurred while executing the state '{memory['state']}'"
            f" (entered at the event id #{memory['entered_id']}). {cause}"
        )
    return Failure(fault.error, cause, fault.location, is_raised=True)


def fail(strand: Strand, failure: Failure) -> None:
    """Retry the state, leave it by a catcher, or fail what is around it."""
    _record_evaluation(strand, failure)
    _handle(strand, failure)


def _handle(strand: Strand, failure: Failure) -> None:
    if failure.error == RUNTIME:
        fail_run(strand, failure.error, failure.cause)
        return
    if _retry(strand, failure):
        return
    mark = strand.memory["last"]
    _record_state_failed(strand, failure)
    try:
        caught = _leaving(strand, failure)
    except StateFault as fault:
        follow(strand, mark)
        failure = failure_of(strand, fault)
        _record_evaluation(strand, failure)
        _record_state_failed(strand, failure)
        caught = None
    if caught is None:
        give_up(strand, failure)
    else:
        discard_children(strand)
        leave(strand, caught)


def give_up(strand: Strand, failure: Failure) -> None:
    """Fail what is around a state whose failure is not handled."""
    above = strand.parent
    if above is None:
        fail_run(strand, failure.error, failure.cause)
        return
    exceeded = fail_child(above, strand)
    if exceeded is None:
        return
    if exceeded.error is not None:
        failure = Failure(exceeded.error, exceeded.cause)
    halt(strand)
    cut_children(above, strand)
    # Only the state whose expression failed has an event about it.
    _handle(above, failure)


def _record_evaluation(strand: Strand, failure: Failure) -> None:
    if failure.is_raised and failure.error == QUERY_EVALUATION:
        details = without_none(error=failure.error, cause=failure.cause, location=failure.location or None)
        record(strand, "EvaluationFailed", {**details, "state": strand.memory["state"]})


def _record_state_failed(strand: Strand, failure: Failure) -> None:
    if "map_run" in strand.memory.get("fan", {}):
        record(strand, "MapRunFailed", without_none(error=failure.error, cause=failure.cause))
    if is_fan_out(strand.state):
        record(strand, f"{strand.state.type}StateFailed")


# --- retries and catchers ---------------------------------------------------------------------------------------------


def _retry(strand: Strand, failure: Failure) -> bool:
    for position, retrier in enumerate(strand.fields.get("Retry", ())):
        if not matches(retrier, failure):
            continue
        memory = strand.memory
        attempt = memory["retries"].get(str(position), 0)
        if attempt >= retrier.get("MaxAttempts", DEFAULT_ATTEMPTS):
            return False
        memory["retries"][str(position)] = attempt + 1
        memory["retry_count"] += 1
        discard_children(strand)
        strand.forget_attempt()
        delay = delay_before(strand, retrier, attempt)
        if delay > 0:
            strand.suspend(Phase.RETRYING, strand.run.now() + timedelta(seconds=delay))
        else:
            strand.make_ready(Phase.RETRYING)
        return True
    return False


def delay_before(strand: Strand, retrier: Mapping[str, Any], attempt: int) -> float:
    """Return the seconds before the attempt after so many retries."""
    longest = min(retrier.get("MaxDelaySeconds", _LONGEST_DELAY), _LONGEST_DELAY)
    delay = float(retrier.get("IntervalSeconds", _DEFAULT_INTERVAL))
    rate = retrier.get("BackoffRate", _DEFAULT_RATE)
    for _ in range(attempt):
        delay *= rate
        if delay >= longest:
            break
    delay = min(delay, longest)
    return strand.run.random.uniform(0, delay) if retrier.get("JitterStrategy") == "FULL" else delay


def _leaving(strand: Strand, failure: Failure) -> Leaving | None:
    for position, catcher in enumerate(strand.fields.get("Catch", ())):
        if matches(catcher, failure):
            output = {"Error": failure.error or "", "Cause": failure.cause or ""}
            caught = leave_by_catcher(strand, catcher, output, f"Catch[{position}]/")
            check_leaving(strand, caught)
            return caught
    return None


def matches(clause: Mapping[str, Any], failure: Failure) -> bool:
    """Return whether a retrier or catcher handles a failure."""
    return any(_names(name, failure) for name in clause["ErrorEquals"])


def _names(name: str, failure: Failure) -> bool:
    if name == failure.error:
        return True
    if failure.missed_heartbeat and name == HEARTBEAT_TIMEOUT:
        return True
    if failure.is_raised and failure.error == DATA_LIMIT:
        return False
    return name == ALL or (name == TASK_FAILED and failure.error != TIMEOUT)
