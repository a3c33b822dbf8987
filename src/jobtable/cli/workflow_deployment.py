"""`jobtable workflows template`: state machines and their functions for AWS."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jobtable.cli.framework import COMMON, new_group
from jobtable.cli.json_options import read_text
from jobtable.cli.output import print_json
from jobtable.cli.tables import tables_in
from jobtable.cli.template_output import print_template
from jobtable.cli.user_modules import import_module_of_user
from jobtable.dynamodb.template import table_resource
from jobtable.workflows.asl.entities import MachineType
from jobtable.workflows.asl.machine_definition import check_definition
from jobtable.workflows.deployment.workflow_template import MachineToDeploy, workflow_template
from jobtable.workflows.functions import functions

app = new_group()


@app.command(
    example=(
        "jobtable workflows template orders.asl.json --module shop.payments > template.yaml\n"
        "jobtable workflows template orders.asl.json prices.asl.json --express prices --prefix prod-"
    )
)
def template(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE", help="Definitions; orders.asl.json defines the machine orders")
    ],
    module: Annotated[
        list[str] | None,
        typer.Option(metavar="MODULE", help="Module with functions or tables that the machines use; repeatable"),
    ] = None,
    express: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Machine of the type express; repeatable")
    ] = None,
    prefix: Annotated[
        str, typer.Option(metavar="NAME", help="Prefix of the names of machines, functions and tables")
    ] = "",
    runtime: Annotated[str, typer.Option(metavar="NAME", help="Lambda runtime of the functions")] = "python3.13",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of YAML", rich_help_panel=COMMON)] = False,
) -> None:
    """Print a CloudFormation template: state machines, functions, their tables, log groups, roles and policies.

    The definitions stay as they are; names of functions, tables and machines in them become placeholders. Each policy
    allows what its definition asks for, and nothing else.
    """
    modules = [import_module_of_user(each) for each in module or ()]
    tables = {table.name: table for each in modules for table in tables_in(each)}
    machines = [_machine(file, express or []) for file in files]
    if unknown := set(express or ()) - {each.name for each in machines}:
        raise typer.BadParameter(f"--express {min(unknown)}: no file defines this machine")
    made = workflow_template(
        machines,
        functions(),
        {name: table_resource(table, prefix) for name, table in tables.items()},
        prefix=prefix,
        runtime=runtime,
    )
    if as_json:
        print_json(made)
    else:
        print_template(made)


def _machine(file: Path, express: list[str]) -> MachineToDeploy:
    """Return the machine of a file, named after it; refuse a definition with faults."""
    name = file.name.removesuffix(".json").removesuffix(".asl")
    kind = MachineType.EXPRESS if name in express else MachineType.STANDARD
    text = read_text(file)
    check_definition(text, kind)
    return MachineToDeploy(name, text, kind)
