"""TestState: run one state, with its task or with a mock of it, and show what happens to the data."""

from __future__ import annotations

import json
import uuid
from contextlib import suppress
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

from jobtable.errors import JobtableError
from jobtable.objects.memory import MemoryObjectStore
from jobtable.workflows.asl.aws_api.aws_calls import Call, Response
from jobtable.workflows.asl.aws_api.state_inspection import Inspection, MockedFailure, TestedStrand
from jobtable.workflows.asl.aws_api.state_test_requests import StateTest, read_state_test
from jobtable.workflows.asl.entities import ExecutionStatus, MachineType
from jobtable.workflows.asl.interpreter.dataflow import RUNTIME, Leaving, leave_by_catcher
from jobtable.workflows.asl.interpreter.failures import DEFAULT_ATTEMPTS, Failure, delay_before, matches
from jobtable.workflows.asl.interpreter.strand import ROOT, Strand, dump, new_strand, write_instant
from jobtable.workflows.asl.machine import Machine, State, StateFault
from jobtable.workflows.asl.run import Run
from jobtable.workflows.asl.services.buckets import key_in_bucket
from jobtable.workflows.asl.services.item_reader import read_items
from jobtable.workflows.asl.verbs import RunnableMachine

_LONGEST_SECONDS = 300


def test_state(call: Call) -> Response:
    """TestState. The level of inspection decides how much of the data is shown."""
    test = read_state_test(call)
    inspection = Inspection(test, _strand_of(call, test))
    try:
        leaving = inspection.leave(partial(_perform, call))
    except StateFault as fault:
        is_raised = not isinstance(fault, MockedFailure)
        failure = Failure(fault.error or None, fault.cause or None, fault.location, is_raised=is_raised)
        answer = _failed(inspection, failure)
    else:
        answer = {"status": "SUCCEEDED", **_left(inspection, leaving)}
    if (call.request.get("inspectionLevel") or "INFO") != "INFO":
        answer["inspectionData"] = inspection.shown
    return answer


test_state.__test__ = False  # type: ignore[attr-defined]  # an operation, no test


def _left(inspection: Inspection, leaving: Leaving) -> Response:
    variables = {**inspection.test.variables, **leaving.assigned}
    if variables:
        inspection.note("variables", variables)
    left: Response = {"output": inspection.text_of(leaving.output)}
    return left if leaving.next is None else {**left, "nextState": leaving.next}


def _failed(inspection: Inspection, failure: Failure) -> Response:
    """Return what a failed state does: it is retried, caught, or fails for good."""
    why = {name: text for name, text in (("error", failure.error), ("cause", failure.cause)) if text is not None}
    if failure.error == RUNTIME:
        return {"status": "FAILED", **why}
    inside = (_strand_inside(inspection, state) for state in inspection.test.failing)
    for strand in (*inside, inspection.strand):
        details = _retry_details(strand, failure, inspection.test.retry_count)
        if details is not None:
            inspection.shown["errorDetails"] = details
        if details is not None and "retryBackoffIntervalSeconds" in details:
            return {"status": "RETRIABLE", **why}
        for position, catcher in enumerate(strand.fields.get("Catch", ())):
            if matches(catcher, failure):
                output = {"Error": failure.error or "", "Cause": failure.cause or ""}
                leaving = leave_by_catcher(strand, catcher, output, f"Catch[{position}]/")
                inspection.shown["errorDetails"] = {"catchIndex": position}
                return {"status": "CAUGHT_ERROR", **why, **_left(inspection, leaving)}
    return {"status": "FAILED", **why}


def _retry_details(strand: Strand, failure: Failure, attempts: int) -> Response | None:
    """Return which retrier handles a failure, and how long it waits, unless it has no attempts left."""
    for position, retrier in enumerate(strand.fields.get("Retry", ())):
        if matches(retrier, failure):
            if attempts >= retrier.get("MaxAttempts", DEFAULT_ATTEMPTS):
                return {"retryIndex": position}
            return {
                "retryIndex": position,
                "retryBackoffIntervalSeconds": int(delay_before(strand, retrier, attempts)),
            }
    return None


def _strand_inside(inspection: Inspection, state: State) -> Strand:
    """Return the frame of a state inside the tested one, from which the mocked error comes."""
    outer = inspection.strand
    machine = Machine(state.name, {state.name: state}, state.language)
    return _entered(replace(outer.run, machine=machine, frames={}), inspection.test, outer.memory["entered_at"])


def _entered(run: Run, test: StateTest, at: str) -> TestedStrand:
    """Return the only frame of a run, in its state since an instant."""
    strand = TestedStrand(run, new_strand(run, ROOT, [], run.machine, test.input, 0).frame, test.context)
    strand.memory["entered_at"] = at
    strand.memory["variables"] = dict(test.variables)
    strand.memory["retry_count"] = test.retry_count
    return strand


def _strand_of(call: Call, test: StateTest) -> TestedStrand:
    """Return the only frame of a run that has just entered the state."""
    name = str(uuid.uuid4())
    machine = Machine(test.state.name, {test.state.name: test.state}, test.state.language)
    now = write_instant(call.now)
    context = {
        "Execution": {
            "Id": call.arns.express("TestState", name, name),
            "Input": test.input,
            "Name": name,
            "RoleArn": call.request.get("roleArn") or "",
            "StartTime": now,
        },
        "StateMachine": {"Id": call.arns.machine("TestState"), "Name": "TestState"},
    }
    run = Run(
        machine=machine,
        context=context,
        frames={},
        now=lambda: call.now,
        random=Random(),  # noqa: S311 - for States.UUID and $random, as in any run
        new_token=lambda frame_id, visit: str(uuid.uuid4()),
        read_items=None if test.reader_data is None else partial(_read_given, test.reader_data),
    )
    strand = _entered(run, test, now)
    if test.mock is not None:
        strand.memory["token"] = run.new_token(ROOT, 0)
    return strand


def _read_given(data: str, reader: Any) -> Any:
    """Read items from the data of a test, as if it were the object that the reader names."""
    where = reader["Parameters"]
    objects = MemoryObjectStore()
    with suppress(JobtableError):  # for a reader without a bucket and a key, reading says what is missing
        objects.put(key_in_bucket(str(where.get("Bucket", "")), str(where.get("Key", ""))), data.encode())
    return read_items(objects, reader)


def _perform(call: Call, strand: Strand, handed: Any) -> Any:
    """Do what a Task state asks for, as an express execution of it alone."""
    task = {"Type": "Task", "Resource": strand.fields["Resource"], "End": True}
    definition = {"StartAt": "Task", "States": {"Task": task}, "TimeoutSeconds": _timeout(strand)}
    machine = RunnableMachine("TestState", json.dumps(definition), MachineType.EXPRESS)
    ended = call.executions.run_express(machine, dump(handed), arns=call.arns).execution
    if ended.status is ExecutionStatus.SUCCEEDED:
        return json.loads(call.read_text(ended.output or "null", ended.output_object))
    raise MockedFailure(ended.error or "", ended.cause or "")


def _timeout(strand: Strand) -> int:
    wanted = strand.fields.get("TimeoutSeconds")
    return min(wanted, _LONGEST_SECONDS) if isinstance(wanted, int) else _LONGEST_SECONDS
