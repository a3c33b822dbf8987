"""PublishStateMachineVersion, DeleteStateMachineVersion, ListStateMachineVersions."""

from __future__ import annotations

from jobtable.errors import ConflictError
from jobtable.workflows.asl.aws_api.aws_calls import Call, Response, seconds, without_none
from jobtable.workflows.asl.aws_api.machine_faults import machine_faults
from jobtable.workflows.asl.aws_api.machine_operations import arn_of, required_machine
from jobtable.workflows.asl.aws_api.named_resources import read_machine_arn
from jobtable.workflows.asl.aws_api.page_tokens import page_of
from jobtable.workflows.asl.aws_api.refusals import invalid_arn, machine_missing, refused
from jobtable.workflows.asl.catalogue.machine_verbs import MachineDeletingError, QuotaExceededError


def publish(call: Call) -> Response:
    """PublishStateMachineVersion."""
    arn = read_machine_arn(call.request["stateMachineArn"])
    if arn.qualifier is not None:
        raise machine_missing(arn.text)
    revision_id = call.request.get("revisionId")
    with machine_faults(arn.text):
        try:
            made = call.machines.publish(arn.name, revision_id=revision_id, description=call.request.get("description"))
        except (MachineDeletingError, QuotaExceededError):
            raise
        except ConflictError as error:
            current = call.machines.get(arn.name).revision_id
            raise refused(
                "ConflictException",
                f"Failed to publish the State Machine version for revision {revision_id}. The current State Machine "
                f"revision is {current}.",
            ) from error
    if made.version is None:
        raise machine_missing(arn.text)
    return {
        "creationDate": seconds(made.version.created_at),
        "stateMachineVersionArn": f"{arn_of(made.machine)}:{made.version.number}",
    }


def delete(call: Call) -> Response:
    """DeleteStateMachineVersion."""
    arn = read_machine_arn(call.request["stateMachineVersionArn"])
    if arn.version is None:
        raise invalid_arn(arn.text)
    naming = [each.name for each in call.machines.aliases(arn.name) if arn.version in dict(each.weights)]
    try:
        call.machines.delete_version(arn.name, arn.version)
    except ConflictError as error:
        raise refused(
            "ConflictException",
            "Version to be deleted must not be referenced by an alias. Current list of aliases referencing this "
            f"version: [{', '.join(naming)}]",
        ) from error
    return {}


def list_all(call: Call) -> Response:
    """ListStateMachineVersions, the newest first."""
    arn = read_machine_arn(call.request["stateMachineArn"])
    machine = required_machine(call, arn)
    found, token = page_of(call.machines.versions(arn.name), call.request, call.now)
    versions = [
        {"stateMachineVersionArn": f"{arn_of(machine)}:{each.number}", "creationDate": seconds(each.created_at)}
        for each in found
    ]
    return without_none(stateMachineVersions=versions, nextToken=token)
