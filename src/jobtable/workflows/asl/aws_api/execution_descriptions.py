"""DescribeExecution and ListExecutions."""

from __future__ import annotations

from datetime import datetime, timedelta

from jobtable.errors import NotFoundError
from jobtable.workflows.asl.aws_api.aws_calls import Call, Response, seconds, without_none
from jobtable.workflows.asl.aws_api.executions_found import execution_arn, find_execution, record_arns
from jobtable.workflows.asl.aws_api.machine_operations import required_machine
from jobtable.workflows.asl.aws_api.named_resources import MachineArn, read_machine_arn, read_map_run_arn
from jobtable.workflows.asl.aws_api.page_tokens import page_of
from jobtable.workflows.asl.aws_api.refusals import invalid, machine_missing, resource_missing, type_not_supported
from jobtable.workflows.asl.catalogue.records import MachineStatus
from jobtable.workflows.asl.entities import Execution, ExecutionStatus, MachineType

_REDRIVABLE_FOR = timedelta(days=14)
_MOST_EVENTS_TO_REDRIVE = 24_999


def describe(call: Call) -> Response:
    """DescribeExecution."""
    found = find_execution(call, call.request["executionArn"])
    status, reason = redrive_status(call, found)
    return {
        **_common(found),
        **without_none(
            traceHeader=found.trace_header,
            mapRunArn=_map_run_arn(found),
            error=found.error,
            cause=found.cause,
            redriveStatus=status,
            redriveStatusReason=reason,
        ),
        **payload_members(call, found),
    }


def list_all(call: Call) -> Response:
    """ListExecutions, of a machine, a version, an alias or a map run; the newest first."""
    machine_arn, map_run_arn = call.request.get("stateMachineArn"), call.request.get("mapRunArn")
    if (machine_arn is None) == (map_run_arn is None):
        raise invalid("1 validation error detected: Must provide exactly one of a StateMachine ARN and a MapRun ARN")
    status = call.request.get("statusFilter")
    if map_run_arn is not None:
        return _list_of_map_run(call, map_run_arn, status)
    arn = read_machine_arn(str(machine_arn))
    if status == ExecutionStatus.PENDING_REDRIVE:
        raise invalid("The status PENDING_REDRIVE is only supported with a MapRun ARN")
    _check_listed(call, arn)
    query = call.executions.list(arn.name, status=None if status is None else ExecutionStatus(status))
    found, token = page_of(query, call.request, call.now, keep=lambda each: _is_listed(call, each, arn))
    return without_none(executions=[_common(each) for each in found], nextToken=token)


def _list_of_map_run(call: Call, arn_text: str, status: str | None) -> Response:
    arn = read_map_run_arn(arn_text)
    try:
        run = call.executions.get_map_run(arn.run_id)
    except NotFoundError as error:
        raise resource_missing(arn_text) from error
    query = call.executions.list(
        f"{run.machine}/{run.label}", status=None if status is None else ExecutionStatus(status)
    )

    def is_child(execution: Execution) -> bool:
        return execution.map_run_id == arn.run_id and _has_redrives(call, execution)

    found, token = page_of(query, call.request, call.now, keep=is_child)
    return without_none(
        executions=[{**_common(each), "mapRunArn": _map_run_arn(each)} for each in found], nextToken=token
    )


def _check_listed(call: Call, arn: MachineArn) -> None:
    machine = required_machine(call, arn)
    if machine.type is not MachineType.STANDARD:
        raise type_not_supported()
    if arn.qualifier is None:
        return
    try:
        if arn.version is not None:
            call.machines.get_version(arn.name, arn.version)
        else:
            call.machines.get_alias(arn.name, arn.qualifier)
    except NotFoundError as error:
        raise machine_missing(arn.text) from error


def _is_listed(call: Call, execution: Execution, arn: MachineArn) -> bool:
    if arn.version is not None and execution.version != arn.qualifier:
        return False
    if arn.qualifier is not None and arn.version is None and execution.qualifier != arn.qualifier:
        return False
    return _has_redrives(call, execution)


def _has_redrives(call: Call, execution: Execution) -> bool:
    wanted = call.request.get("redriveFilter")
    return wanted is None or (execution.redrive_count > 0) == (wanted == "REDRIVEN")


def _common(execution: Execution) -> Response:
    """Return the members of an execution that descriptions and lists have."""
    machine_arn = record_arns(execution).machine(execution.machine)
    is_alias = execution.qualifier is not None and execution.qualifier != execution.version
    return without_none(
        executionArn=execution_arn(execution),
        stateMachineArn=machine_arn,
        name=execution.name,
        status=execution.status.value,
        startDate=seconds(execution.started_at),
        stopDate=_seconds_or_none(execution.stopped_at),
        redriveCount=execution.redrive_count,
        redriveDate=_seconds_or_none(execution.redriven_at),
        stateMachineVersionArn=execution.version and f"{machine_arn}:{execution.version}",
        stateMachineAliasArn=f"{machine_arn}:{execution.qualifier}" if is_alias else None,
    )


def payload_members(call: Call, execution: Execution) -> Response:
    """Return the input and output of an execution, unless only the rest is wanted."""
    is_included = call.request.get("includedData") != "METADATA_ONLY"
    members: Response = {"inputDetails": {"included": is_included}}
    if is_included:
        members["input"] = call.read_text(execution.input, execution.input_object)
    if execution.status is ExecutionStatus.SUCCEEDED:
        members["outputDetails"] = {"included": is_included}
        if is_included:
            members["output"] = call.read_text(execution.output or "", execution.output_object)
    return members


def redrive_status(call: Call, execution: Execution) -> tuple[str, str | None]:
    """Return whether an execution can be redriven, and if not, why."""
    reason = _reason_against_redrive(call, execution)
    if reason is not None:
        return "NOT_REDRIVABLE", reason
    return ("REDRIVABLE" if execution.map_run_id is None else "REDRIVABLE_BY_MAP_RUN"), None


def _reason_against_redrive(call: Call, execution: Execution) -> str | None:
    if execution.status in {ExecutionStatus.RUNNING, ExecutionStatus.SUCCEEDED}:
        return f"Execution is {execution.status} and cannot be redriven"
    if execution.last_event_id >= _MOST_EVENTS_TO_REDRIVE:
        return "Execution history event limit exceeded"
    if execution.stopped_at is not None and call.now - execution.stopped_at > _REDRIVABLE_FOR:
        return "Execution redrivable period exceeded"
    try:
        machine = call.machines.get(execution.machine.partition("/")[0])
    except NotFoundError:
        return "State machine is in DELETING status"
    return "State machine is in DELETING status" if machine.status is MachineStatus.DELETING else None


def _map_run_arn(execution: Execution) -> str | None:
    if execution.map_run_id is None:
        return None
    machine, _, label = execution.machine.partition("/")
    return record_arns(execution).map_run(machine, label, execution.map_run_id)


def _seconds_or_none(at: datetime | None) -> float | None:
    return None if at is None else seconds(at)
