"""`jobtable machines`: state machines, their versions and aliases."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from jobtable.app import Services
from jobtable.cli.completion import completed
from jobtable.cli.framework import Yes, confirm, new_group
from jobtable.cli.json_options import read_text
from jobtable.cli.options import AsJson, Limit, on_services
from jobtable.cli.output import (
    ExitCode,
    print_either,
    print_fields,
    print_json,
    print_list,
    print_part,
    print_table,
    print_text,
    say,
)
from jobtable.errors import NotFoundError
from jobtable.workflows.asl.arns import Arns
from jobtable.workflows.asl.catalogue.machine_verbs import (
    LOCAL_ROLE,
    AliasRoute,
    MachineChange,
    MachineDraft,
    Revision,
)
from jobtable.workflows.asl.catalogue.records import StateMachine, StateMachineAlias, StateMachineVersion
from jobtable.workflows.asl.entities import ExecutionStatus, MachineType
from jobtable.workflows.asl.machine import Diagnostic
from jobtable.workflows.asl.machine_definition import diagnose

app = new_group()

complete_machine = completed(lambda services: (machine.name for machine in services.machines.list()))
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the state machine", autocompletion=complete_machine)]
Definition = Annotated[
    Path, typer.Argument(metavar="FILE", help="Definition in the Amazon States Language (JSON); - for stdin")
]
Kind = Annotated[
    MachineType,
    typer.Option(
        "--type",
        case_sensitive=False,
        help="standard: may last a year, with a history. express: lasts up to 5 minutes, without",
    ),
]
Role = Annotated[str | None, typer.Option("--role", metavar="ARN", help="IAM role of the machine, kept for AWS")]
Publish = Annotated[bool, typer.Option("--publish", help="Also publish it as a version")]
Description = Annotated[
    str | None, typer.Option("--description", metavar="TEXT", help="Description of the published version")
]
AliasName = Annotated[str, typer.Argument(metavar="ALIAS", help="Name of the alias")]
Number = Annotated[int, typer.Argument(metavar="VERSION", min=1, help="Number of the version")]


@app.command(example="jobtable machines create orders orders.asl.json --publish")
@on_services(creates=True)
def create(
    services: Services,
    name: Name,
    definition: Definition,
    kind: Kind = MachineType.STANDARD,
    role: Role = None,
    tag: Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="Tag; repeatable")] = None,
    publish: Publish = False,
    description: Description = None,
    as_json: AsJson = False,
) -> None:
    """Create a state machine. Creating the same again changes nothing; exit with 4 if another one has its name."""
    draft = MachineDraft(name, read_text(definition), role or LOCAL_ROLE, kind, tags=_tags(tag or ()))
    _print(services.machines.create(draft, arns=Arns(), publish=publish, description=description), as_json)


@app.command(example="jobtable machines update orders orders.asl.json")
@on_services
def update(
    services: Services,
    name: Name,
    definition: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="New definition (default: it stays); - for stdin")
    ] = None,
    role: Role = None,
    publish: Publish = False,
    description: Description = None,
    as_json: AsJson = False,
) -> None:
    """Change a state machine. Executions that run keep the definition that they started with."""
    change = MachineChange(None if definition is None else read_text(definition), role)
    _print(services.machines.update(name, change, publish=publish, description=description), as_json)


@app.command("list", example="jobtable machines list")
@on_services
def list_machines(services: Services, limit: Limit = 50, as_json: AsJson = False) -> None:
    """List state machines by name."""
    empty = "There are no state machines yet; create one with `jobtable machines create NAME FILE`."
    print_list(services.machines.list(), _row, as_json=as_json, empty=empty, limit=limit)


@app.command(example="jobtable machines show orders\njobtable machines show orders --definition > orders.asl.json")
@on_services
def show(
    services: Services,
    name: Name,
    version: Annotated[int | None, typer.Option(min=1, help="Show this version, not what the machine is now")] = None,
    definition: Annotated[bool, typer.Option("--definition", help="Print only the definition, as written")] = False,
    as_json: AsJson = False,
) -> None:
    """Show a state machine with its versions and aliases."""
    machine = services.machines.get(name)
    shown = machine if version is None else services.machines.get_version(name, version)
    text = services.machines.read_definition(shown.definition_sha256)
    if definition:
        typer.echo(text, nl=not text.endswith("\n"))
        return
    versions, aliases = list(services.machines.versions(name)), list(services.machines.aliases(name))
    if as_json:
        print_json({"machine": shown, "definition": text, "versions": versions, "aliases": aliases})
        return
    print_fields({**_row(machine), "role": shown.role_arn, "tags": machine.tags or None})
    print_part("Versions", [_version_row(each) for each in versions])
    print_part("Aliases", [_alias_row(each) for each in aliases])
    print_text("\nDefinition", "bold")
    print_text(text)


@app.command(example="jobtable machines validate orders.asl.json")
def validate(definition: Definition, kind: Kind = MachineType.STANDARD, as_json: AsJson = False) -> None:
    """Check a definition and print all its faults with their places; exit with 1 if it has errors.

    Nothing is stored.
    """
    faults = diagnose(read_text(definition), kind)
    print_list(faults, _fault_row, as_json=as_json, empty="The definition is valid.")
    if any(fault.severity == "ERROR" for fault in faults):
        raise typer.Exit(ExitCode.FAILED)


@app.command(example='jobtable machines publish orders --description "charges twice at most"')
@on_services
def publish(services: Services, name: Name, description: Description = None, as_json: AsJson = False) -> None:
    """Publish a state machine as it is now under the next version number; what is published never changes."""
    _print(services.machines.publish(name, description=description), as_json)


@app.command(example="jobtable machines versions orders")
@on_services
def versions(services: Services, name: Name, limit: Limit = 50, as_json: AsJson = False) -> None:
    """List the versions of a state machine, newest first."""
    services.machines.get(name)
    found = services.machines.versions(name)
    print_list(found, _version_row, as_json=as_json, empty=f"{name} has no versions.", limit=limit)


@app.command("delete-version", example="jobtable machines delete-version orders 1")
@on_services
def delete_version(services: Services, name: Name, number: Number, as_json: AsJson = False) -> None:
    """Delete a version; exit with 4 if an alias names it."""
    services.machines.get_version(name, number)
    services.machines.delete_version(name, number)
    _print_deleted({"machine": name, "version": number}, f"version {number} of {name}", as_json)


@app.command(example="jobtable machines aliases orders")
@on_services
def aliases(services: Services, name: Name, as_json: AsJson = False) -> None:
    """List the aliases of a state machine."""
    services.machines.get(name)
    print_list(services.machines.aliases(name), _alias_row, as_json=as_json, empty=f"{name} has no aliases.")


@app.command(
    example=(
        "jobtable machines alias orders live --route 3\njobtable machines alias orders live --route 3=90 --route 4=10"
    )
)
@on_services
def alias(
    services: Services,
    name: Name,
    alias_name: AliasName,
    route: Annotated[
        list[str],
        typer.Option(metavar="VERSION=PERCENT", help="Version and its share of the executions; one or two of them"),
    ],
    description: Annotated[str | None, typer.Option(metavar="TEXT", help="Purpose of the alias")] = None,
    as_json: AsJson = False,
) -> None:
    """Create or change an alias: a name for a version, or for two that share the executions."""
    routes = tuple(map(_route, route))
    try:
        services.machines.get_alias(name, alias_name)
    except NotFoundError:
        made = services.machines.create_alias(name, alias_name, routes, description)
    else:
        made = services.machines.update_alias(name, alias_name, routes, description)
    print_either(made, lambda: print_table([_alias_row(made)]), as_json=as_json)


@app.command("delete-alias", example="jobtable machines delete-alias orders live")
@on_services
def delete_alias(services: Services, name: Name, alias_name: AliasName, as_json: AsJson = False) -> None:
    """Delete an alias; its versions stay."""
    services.machines.get_alias(name, alias_name)
    services.machines.delete_alias(name, alias_name)
    _print_deleted({"machine": name, "alias": alias_name}, f"alias {alias_name} of {name}", as_json)


@app.command(example="jobtable machines delete orders --yes")
@on_services
def delete(
    services: Services,
    name: Name,
    stop: Annotated[bool, typer.Option("--stop", help="Also abort its running executions")] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Delete a state machine with its versions and aliases, as soon as its executions have ended."""
    services.machines.get(name)
    confirm(f"Delete the state machine {name} with its versions and aliases?", yes=yes)
    services.machines.delete(name)
    if stop:
        for execution in list(services.executions.list(name, status=ExecutionStatus.RUNNING)):
            services.executions.stop(name, execution.name, cause=f"the state machine {name} is deleted")
    _print_deleted({"machine": name}, name, as_json)


def _tags(texts: Sequence[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    if wrong := next((key for key, equals, _ in pairs if not key or not equals), None):
        raise typer.BadParameter(f"invalid --tag {wrong!r}; write KEY=VALUE")
    return {key: value for key, _, value in pairs}


def _route(text: str) -> AliasRoute:
    version, _, weight = text.partition("=")
    if not version.isdecimal() or not (weight or "100").isdecimal():
        raise typer.BadParameter(f"invalid --route {text!r}; write VERSION=PERCENT, as in 3=90")
    return AliasRoute(int(version), int(weight or "100"))


def _print(revision: Revision, as_json: bool) -> None:
    if as_json:
        print_json({"machine": revision.machine, "version": revision.version})
        return
    print_table([_row(revision.machine)])
    if revision.version is not None:
        say(f"Published as version {revision.version.number}.")


def _print_deleted(values: dict[str, Any], what: str, as_json: bool) -> None:
    print_either(values, lambda: print_text(f"{what} deleted"), as_json=as_json)


def _row(machine: StateMachine) -> dict[str, Any]:
    return {
        "machine": machine.name,
        "type": machine.type,
        "status": machine.status,
        "version": machine.published_version,
        "created": machine.created_at,
        "updated": machine.updated_at,
    }


def _version_row(version: StateMachineVersion) -> dict[str, Any]:
    return {"version": version.number, "created": version.created_at, "description": version.description}


def _alias_row(alias_record: StateMachineAlias) -> dict[str, Any]:
    routes = [f"{weight} % to version {version}" for version, weight in alias_record.weights]
    return {"alias": alias_record.name, "routes": routes, "description": alias_record.description}


def _fault_row(fault: Diagnostic) -> dict[str, Any]:
    return {"severity": fault.severity, "place": fault.location or "/", "code": fault.code, "message": fault.message}
