"""The operations on aliases of state machines."""

from __future__ import annotations

from typing import Any

from jobtable.errors import AlreadyExistsError, NotFoundError
from jobtable.workflows.asl.aws_api.aws_calls import Call, Response, seconds, without_none
from jobtable.workflows.asl.aws_api.executions_found import record_arns
from jobtable.workflows.asl.aws_api.machine_faults import machine_faults
from jobtable.workflows.asl.aws_api.machine_operations import arn_of, required_machine
from jobtable.workflows.asl.aws_api.named_resources import MachineArn, read_machine_arn
from jobtable.workflows.asl.aws_api.page_tokens import page_of
from jobtable.workflows.asl.aws_api.refusals import invalid, invalid_arn, reference_missing, refused
from jobtable.workflows.asl.catalogue.machine_verbs import AliasRoute
from jobtable.workflows.asl.catalogue.records import StateMachine, StateMachineAlias

_ROUTING = "INVALID_ROUTING_CONFIGURATION"


def create(call: Call) -> Response:
    """CreateStateMachineAlias. The versions say which machine it is an alias of."""
    arns, routes = _routes(call.request["routingConfiguration"])
    name = call.request["name"]
    machine = arns[0].name
    _check_versions(call, arns, routes)
    with machine_faults(arns[0].text):
        try:
            made = call.machines.create_alias(machine, name, routes, call.request.get("description"))
        except AlreadyExistsError as error:
            raise refused(
                "ConflictException",
                "Failed to create alias because an alias with the same name and a different routing configuration "
                "already exists.",
            ) from error
        arn = f"{arn_of(call.machines.get(machine))}:{name}"
    return {"stateMachineAliasArn": arn, "creationDate": seconds(made.created_at)}


def update(call: Call) -> Response:
    """UpdateStateMachineAlias."""
    arn = _alias_arn(call)
    routing, description = call.request.get("routingConfiguration"), call.request.get("description")
    if routing is None and description is None:
        raise invalid(
            "Either the description or the RoutingConfiguration must be specified", "MISSING_REQUIRED_PARAMETER"
        )
    routes = None
    if routing is not None:
        arns, routes = _routes(routing)
        _check_versions(call, arns, routes)
        if arns[0].name != arn.name:
            raise invalid("Routing configuration must contain versions of the state machine of the alias", _ROUTING)
    _find(call, arn)
    with machine_faults(arn.text):
        changed = call.machines.update_alias(arn.name, str(arn.qualifier), routes, description)
    return {"updateDate": seconds(changed.updated_at)}


def describe(call: Call) -> Response:
    """DescribeStateMachineAlias."""
    arn = _alias_arn(call)
    found = _find(call, arn)
    machine = required_machine(call, arn)
    base = arn_of(machine)
    return without_none(
        stateMachineAliasArn=f"{base}:{found.name}",
        name=found.name,
        description=found.description,
        routingConfiguration=[
            {"stateMachineVersionArn": f"{base}:{version}", "weight": weight} for version, weight in found.weights
        ],
        creationDate=seconds(found.created_at),
        updateDate=seconds(found.updated_at),
    )


def delete(call: Call) -> Response:
    """DeleteStateMachineAlias."""
    arn = _alias_arn(call)
    call.machines.delete_alias(arn.name, str(arn.qualifier))
    return {}


def list_all(call: Call) -> Response:
    """ListStateMachineAliases, of a machine or of one of its versions."""
    arn = read_machine_arn(call.request["stateMachineArn"])
    machine = required_machine(call, arn)

    def names_version(alias: StateMachineAlias) -> bool:
        return arn.qualifier is None or arn.version in dict(alias.weights)

    found, token = page_of(call.machines.aliases(arn.name), call.request, call.now, keep=names_version)
    aliases = [_item(machine, each) for each in found]
    return without_none(stateMachineAliases=aliases, nextToken=token)


def _item(machine: StateMachine, alias: StateMachineAlias) -> Response:
    arn = f"{record_arns(machine).machine(machine.name)}:{alias.name}"
    return {"stateMachineAliasArn": arn, "creationDate": seconds(alias.created_at)}


def _alias_arn(call: Call) -> MachineArn:
    arn = read_machine_arn(call.request["stateMachineAliasArn"])
    if arn.qualifier is None or arn.version is not None:
        raise invalid_arn(arn.text)
    return arn


def _find(call: Call, arn: MachineArn) -> StateMachineAlias:
    try:
        return call.machines.get_alias(arn.name, str(arn.qualifier))
    except NotFoundError as error:
        raise reference_missing() from error


def _routes(routing: list[dict[str, Any]]) -> tuple[list[MachineArn], tuple[AliasRoute, ...]]:
    """Return the versions of a routing configuration and their weights, or raise OperationRefused."""
    texts = [each["stateMachineVersionArn"] for each in routing]
    shown = f"[{', '.join(texts)}]"
    if len(set(texts)) < len(texts):
        raise invalid(
            f"Routing configuration must contain distinct state machine version ARNs. Received: {shown}", _ROUTING
        )
    arns = [read_machine_arn(text) for text in texts]
    weights = [each["weight"] for each in routing]
    if sum(weights) != 100:
        raise invalid(f"Sum of routing configuration weights must equal 100. Received: {weights}", _ROUTING)
    if any(arn.version is None for arn in arns):
        raise invalid(f"Routing configuration must contain state machine version ARNs. Received: {shown}", _ROUTING)
    if len({arn.name for arn in arns}) > 1:
        raise invalid(
            f"Routing configuration must contain versions of the same state machine. Received: {shown}", _ROUTING
        )
    return arns, tuple(AliasRoute(arn.version or 0, weight) for arn, weight in zip(arns, weights, strict=True))


def _check_versions(call: Call, arns: list[MachineArn], routes: tuple[AliasRoute, ...]) -> None:
    for arn, route in zip(arns, routes, strict=True):
        try:
            call.machines.get_version(arn.name, route.version)
        except NotFoundError as error:
            raise reference_missing() from error
