"""The command `jobtable`: its groups, and how an error reaches the person who typed it."""

from __future__ import annotations

import sys

try:
    import typer
except ModuleNotFoundError:  # The command is installed with the package, its dependencies only with the extra.
    sys.exit("The command line needs the extra 'cli': pip install 'jobtable[cli]'")

from typing import Any

from typer.core import TyperGroup

import jobtable
from jobtable.cli import config, dynamodb, jobs, queues, tables
from jobtable.cli.output import exit_code_of, line_of, say
from jobtable.errors import JobtableError

_HELP = """
Typed single-table data and jobs: embedded on your laptop, unchanged on DynamoDB and S3.

\b
Exit codes:
    0    done
    1    failed
    2    the command is written wrongly, or a setting is
    3    what it names is not there
    4    what it names is not in a state that allows it
    5    the job that was waited for did not complete
    130  stopped with Ctrl-C
"""


class _Commands(TyperGroup):
    """The commands, which tell an error of the package in one line."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except JobtableError as error:
            say(line_of(error))
            raise typer.Exit(exit_code_of(error)) from error


app = typer.Typer(
    name="jobtable",
    cls=_Commands,
    help=_HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(jobs.app, name="jobs")
app.add_typer(queues.app, name="queues")
app.add_typer(config.app, name="config")
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
    """Run the command line."""
    app()
