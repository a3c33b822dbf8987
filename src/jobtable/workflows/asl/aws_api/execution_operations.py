"""StartExecution, StartSyncExecution, StopExecution."""

from __future__ import annotations

from jobtable.errors import AlreadyExistsError, JobStateError, NotFoundError
from jobtable.workflows.asl.aws_api.aws_calls import Call, Response, seconds, without_none
from jobtable.workflows.asl.aws_api.execution_descriptions import payload_members
from jobtable.workflows.asl.aws_api.executions_found import execution_arn, find_execution, record_arns
from jobtable.workflows.asl.aws_api.machine_faults import machine_faults
from jobtable.workflows.asl.aws_api.named_resources import check_name, read_machine_arn
from jobtable.workflows.asl.aws_api.refusals import execution_missing, invalid, refused, type_not_supported
from jobtable.workflows.asl.aws_api.request_rules import MOST_DATA_BYTES
from jobtable.workflows.asl.entities import MachineType
from jobtable.workflows.asl.json_text import JsonTextFault, read_json
from jobtable.workflows.asl.verbs import RunnableMachine


def start(call: Call) -> Response:
    """StartExecution."""
    machine, name, payload = _asked(call)
    try:
        started = call.executions.start(
            machine, payload, name, arns=call.arns, trace=call.request.get("traceHeader") or None
        )
    except AlreadyExistsError as error:
        arn = call.arns.execution(machine.name, name or "")
        raise refused("ExecutionAlreadyExists", f"Execution Already Exists: '{arn}'") from error
    return {"executionArn": execution_arn(started), "startDate": seconds(started.started_at)}


def start_sync(call: Call) -> Response:
    """StartSyncExecution: run an express machine here and answer with its end."""
    machine, name, payload = _asked(call)
    if machine.type is not MachineType.EXPRESS:
        raise type_not_supported()
    result = call.executions.run_express(machine, payload, name, arns=call.arns)
    ended = result.execution
    return {
        **without_none(
            executionArn=execution_arn(ended),
            stateMachineArn=record_arns(ended).machine(ended.machine),
            name=ended.name,
            startDate=seconds(ended.started_at),
            stopDate=seconds(ended.stopped_at or call.now),
            status=ended.status.value,
            error=ended.error,
            cause=ended.cause,
            traceHeader=call.request.get("traceHeader"),
        ),
        **payload_members(call, ended),
        "billingDetails": {
            "billedDurationInMilliseconds": result.billed_ms,
            "billedMemoryUsedInMB": result.billed_mb,
        },
    }


def stop(call: Call) -> Response:
    """StopExecution. An execution that has ended stays as it is."""
    found = find_execution(call, call.request["executionArn"])
    if found.stopped_at is None:
        try:
            found = call.executions.stop(
                found.machine, found.name, error=call.request.get("error"), cause=call.request.get("cause")
            )
        except NotFoundError as error:
            raise execution_missing(call.request["executionArn"]) from error
        except JobStateError:  # it has ended meanwhile
            found = call.executions.get(found.machine, found.name)
    return {"stopDate": seconds(found.stopped_at or call.now)}


def _asked(call: Call) -> tuple[RunnableMachine, str | None, str]:
    """Return what to run, under which name and with which input, or raise OperationRefused."""
    arn = read_machine_arn(call.request["stateMachineArn"])
    name = call.request.get("name")
    if name is not None:
        check_name(name)
    payload = call.request.get("input")
    payload = "{}" if payload is None else payload
    with machine_faults(arn.text):
        machine = call.machines.runnable(arn.name, arn.qualifier)
    if len(payload.encode()) > MOST_DATA_BYTES:
        raise invalid(
            "1 validation error detected: Value at 'input' failed to satisfy constraint: Member must have length less "
            f"than or equal to {MOST_DATA_BYTES}"
        )
    try:
        read_json(payload)
    except JsonTextFault as fault:
        raise refused("InvalidExecutionInput", f"Invalid State Machine Execution Input: '{fault}'") from fault
    return machine, name, payload
