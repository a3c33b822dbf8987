"""The command `jobtable`: its groups, and how an error reaches the person who typed it."""

from __future__ import annotations

import sys

try:
    import typer
except ModuleNotFoundError:  # The command is installed with the package, its dependencies only with the extra.
    sys.exit("The command line needs the extra 'cli': pip install 'jobtable[cli]'")

import jobtable
from jobtable.cli import dynamodb, tables
from jobtable.errors import JobtableError

app = typer.Typer(
    name="jobtable",
    help="Typed single-table data and jobs: embedded on your laptop, unchanged on DynamoDB and S3.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(dynamodb.app, name="dynamodb")
app.add_typer(tables.app, name="tables")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"jobtable {jobtable.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    """The options that stand before a command."""


def run() -> None:
    """Run the command line: exit code 0, 1 when something failed, 2 when the command was written wrongly."""
    try:
        app()
    except JobtableError as error:
        sys.exit(f"Error: {error}")
