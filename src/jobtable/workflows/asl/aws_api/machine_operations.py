"""The operations on state machines themselves."""

from __future__ import annotations

from typing import Any

from jobtable.errors import AlreadyExistsError, NotFoundError
from jobtable.workflows.asl.aws_api.aws_calls import Call, Response, seconds, without_none
from jobtable.workflows.asl.aws_api.executions_found import definition_of, find_execution, record_arns
from jobtable.workflows.asl.aws_api.machine_faults import machine_faults
from jobtable.workflows.asl.aws_api.machine_settings import settings_of, shown_settings
from jobtable.workflows.asl.aws_api.named_resources import MachineArn, check_name, read_machine_arn
from jobtable.workflows.asl.aws_api.page_tokens import page_of
from jobtable.workflows.asl.aws_api.refusals import invalid, invalid_arn, machine_missing, refused
from jobtable.workflows.asl.aws_api.tag_operations import tags_of
from jobtable.workflows.asl.aws_api.variable_references import variable_references
from jobtable.workflows.asl.catalogue.machine_verbs import MachineChange, MachineDraft
from jobtable.workflows.asl.catalogue.records import MachineStatus, StateMachine, StateMachineVersion
from jobtable.workflows.asl.entities import ExecutionStatus, MachineType

_CHANGEABLE = (
    "definition",
    "roleArn",
    "loggingConfiguration",
    "tracingConfiguration",
    "encryptionConfiguration",
)


def create(call: Call) -> Response:
    """CreateStateMachine."""
    request = call.request
    _check_description(call)
    name = check_name(request["name"])
    arn = call.arns.machine(name)
    draft = MachineDraft(
        name,
        request["definition"],
        _check_role(request["roleArn"]),
        MachineType(request.get("type") or MachineType.STANDARD),
        settings_of(request),
        tags_of(arn, request.get("tags")),
    )
    with machine_faults(arn):
        try:
            made = call.machines.create(
                draft,
                arns=call.arns,
                publish=bool(request.get("publish")),
                description=request.get("versionDescription"),
            )
        except AlreadyExistsError as error:
            raise refused("StateMachineAlreadyExists", f"State Machine Already Exists: '{arn}'") from error
    return without_none(
        stateMachineArn=arn_of(made.machine),
        creationDate=seconds(made.machine.created_at),
        stateMachineVersionArn=made.version and f"{arn_of(made.machine)}:{made.version.number}",
    )


def update(call: Call) -> Response:
    """UpdateStateMachine."""
    request = call.request
    arn = read_machine_arn(request["stateMachineArn"])
    if all(request.get(name) is None for name in _CHANGEABLE):
        raise refused(
            "MissingRequiredParameter",
            "Either the definition, the role ARN, the LoggingConfiguration, or the TracingConfiguration must be "
            "specified",
        )
    _check_description(call)
    if arn.qualifier is not None:
        raise machine_missing(arn.text)
    role = request.get("roleArn")
    change = MachineChange(request.get("definition"), role and _check_role(role), settings_of(request))
    with machine_faults(arn.text):
        changed = call.machines.update(
            arn.name, change, publish=bool(request.get("publish")), description=request.get("versionDescription")
        )
    return without_none(
        updateDate=seconds(changed.machine.updated_at),
        revisionId=changed.machine.revision_id,
        stateMachineVersionArn=changed.version and f"{arn_of(changed.machine)}:{changed.version.number}",
    )


def describe(call: Call) -> Response:
    """DescribeStateMachine, of a machine or of one of its versions."""
    arn = read_machine_arn(call.request["stateMachineArn"])
    with machine_faults(arn.text):
        machine = call.machines.get(arn.name)
        if arn.qualifier is None:
            return _description(call, arn_of(machine), machine, machine)
        if arn.version is None:
            raise machine_missing(arn.text)
        version = call.machines.get_version(arn.name, arn.version)
        return _description(call, f"{arn_of(machine)}:{arn.version}", machine, version)


def _description(call: Call, arn: str, machine: StateMachine, shown: StateMachine | StateMachineVersion) -> Response:
    definition = call.machines.read_definition(shown.definition_sha256)
    return {
        **without_none(
            stateMachineArn=arn,
            name=machine.name,
            status=machine.status.value,
            type=shown.type.value,
            roleArn=shown.role_arn,
            creationDate=seconds(shown.created_at),
            revisionId=shown.revision_id,
            description=shown.description if isinstance(shown, StateMachineVersion) else None,
        ),
        **_definition_members(call, definition),
        **shown_settings(shown.settings),
    }


def _definition_members(call: Call, definition: str) -> dict[str, Any]:
    if call.request.get("includedData") == "METADATA_ONLY":
        return {"definition": "{}"}
    references = variable_references(definition)
    return {"definition": definition, **({"variableReferences": references} if references else {})}


def describe_for_execution(call: Call) -> Response:
    """DescribeStateMachineForExecution: the definition that an execution runs, whatever the machine is now."""
    execution = find_execution(call, call.request["executionArn"])
    arns = record_arns(execution)
    name, _, label = execution.machine.partition("/")
    role, settings, updated_at, revision_id = None, {}, execution.started_at, None
    try:
        machine = call.machines.get(name)
    except NotFoundError:  # deleted since; the execution keeps its definition
        pass
    else:
        shown: StateMachine | StateMachineVersion = machine
        if execution.version is not None and execution.version.isdecimal():
            try:
                shown = call.machines.get_version(name, int(execution.version))
            except NotFoundError:
                shown = machine
        role, settings, revision_id = shown.role_arn, shown.settings, shown.revision_id
        updated_at = machine.updated_at if isinstance(shown, StateMachine) else shown.created_at
    return {
        **without_none(
            stateMachineArn=arns.machine(execution.machine),
            name=name,
            roleArn=role or "",
            updateDate=seconds(updated_at),
            mapRunArn=execution.map_run_id and arns.map_run(name, label, execution.map_run_id),
            label=label or None,
            revisionId=revision_id,
        ),
        **_definition_members(call, definition_of(call, execution)),
        **shown_settings(settings),
    }


def delete(call: Call) -> Response:
    """DeleteStateMachine: its executions are stopped, and it disappears when they have ended."""
    arn = read_machine_arn(call.request["stateMachineArn"])
    if arn.qualifier is not None:
        return {}
    call.machines.delete(arn.name)
    for execution in call.executions.list(arn.name, status=ExecutionStatus.RUNNING):
        try:
            call.executions.stop(execution.machine, execution.name)
        except NotFoundError:
            continue  # deleted meanwhile
    return {}


def list_all(call: Call) -> Response:
    """ListStateMachines, by name."""
    found, token = page_of(call.machines.list(), call.request, call.now, keep=lambda each: _is_left(call, each))
    machines = [
        {
            "stateMachineArn": arn_of(each),
            "name": each.name,
            "type": each.type.value,
            "creationDate": seconds(each.created_at),
        }
        for each in found
    ]
    return without_none(stateMachines=machines, nextToken=token)


def arn_of(machine: StateMachine) -> str:
    """Return the ARN of a machine, with the region and account that it was created in."""
    return record_arns(machine).machine(machine.name)


def required_machine(call: Call, arn: MachineArn) -> StateMachine:
    """Return the machine that an ARN names, or raise OperationRefused."""
    with machine_faults(arn.text):
        return call.machines.get(arn.name)


def _is_left(call: Call, machine: StateMachine) -> bool:
    """Whether a machine still exists: one that is being deleted disappears after its executions."""
    if machine.status is MachineStatus.ACTIVE:
        return True
    try:
        call.machines.get(machine.name)
    except NotFoundError:
        return False
    return True


def _check_role(arn: str) -> str:
    if not arn.startswith("arn:"):
        raise invalid_arn(f"Invalid ARN prefix: {arn}")
    return arn


def _check_description(call: Call) -> None:
    if call.request.get("versionDescription") is not None and not call.request.get("publish"):
        raise invalid("Version description can only be set when publish is true")
