"""The command `jobtable`: its groups and its errors."""

from __future__ import annotations

import errno
import sys

try:
    import typer
except ModuleNotFoundError:  # the command comes with the package, its dependencies with the extra
    sys.exit("The command line needs the extra `cli`: pip install 'jobtable[cli]'")

import pkgutil
from functools import cache
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import jobtable
from jobtable.cli.framework import SETTINGS, CommandWithHelp, Group, command_of, shorten
from jobtable.cli.options import ObjectsUrl, StoreUrl, give
from jobtable.cli.output import ExitCode, exit_code_of, line_of, say
from jobtable.errors import JobtableError, SettingsError
from jobtable.system import Command, System, declared

_BEFORE_SYSTEMS = {
    "up": Command("jobtable.cli.up", "Run the server (pages and API) and a worker."),
    "inbox": Command("jobtable.cli.inbox", "List, accept, reject and answer what waits for a person."),
    "jobs": Command("jobtable.cli.jobs", "Submit, list, show, control and delete jobs."),
    "queues": Command("jobtable.cli.queues", "Create, list, show, change, pause and delete queues."),
    "machines": Command("jobtable.cli.machines", "Create, check, list, show and delete state machines."),
    "workflows": Command("jobtable.cli.workflows", "Start, list, show and stop executions of machines."),
    "functions": Command("jobtable.cli.functions", "List and call functions, and watch the durable ones."),
    "activities": Command("jobtable.cli.activities", "Create, list and delete activities, and take their tasks."),
    "assist": Command("jobtable.cli.assist", "Show what jobs asked of models and its cost, and try a model."),
    "worker": Command("jobtable.cli.worker", "Run jobs until Ctrl-C, or until the queues are empty."),
    "workers": Command("jobtable.cli.workers", "List and show workers."),
}
_AFTER_SYSTEMS = {
    "tables": Command("jobtable.cli.tables", "Create, update, compare and describe tables."),
    "export": Command("jobtable.cli.table_files:export_app", "Write every item of a table to a file."),
    "import": Command("jobtable.cli.table_files:import_app", "Store the items of a file in their table."),
    "objects": Command("jobtable.cli.objects", "List and download objects, and delete orphans."),
    "tokens": Command("jobtable.cli.tokens", "Create, list and revoke access tokens of the server."),
    "config": Command("jobtable.cli.config", "Show the settings in force."),
    "aws": Command("jobtable.cli.aws", "Serve and run DynamoDB, Step Functions and Lambda."),
    "dynamodb": Command("jobtable.cli.dynamodb", "Serve DynamoDB's API from the embedded engine."),
}


@cache
def commands() -> dict[str, tuple[System | None, Command]]:
    """Return every command, with its system, if any. A command loads its module when it is used."""
    found: dict[str, tuple[System | None, Command]] = {name: (None, each) for name, each in _BEFORE_SYSTEMS.items()}
    for system, of_system in declared("commands"):
        found |= {name: (system, each) for name, each in of_system.items()}
    return found | {name: (None, each) for name, each in _AFTER_SYSTEMS.items()}


_WRITE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

HELP = """
Typed single-table data and jobs: embedded on your laptop, unchanged on DynamoDB and S3.

\b
Exit codes:
    0    success
    1    failure
    2    usage or configuration error
    3    not found
    4    conflict with the current state
    5    job not completed
    130  interrupted with Ctrl-C
"""


class Commands(Group):
    """All commands, each loaded when it is used. An error of the package becomes one line."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for name, (_, command) in commands().items():
            self.add_command(CommandWithHelp(name, help=command.help))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, _with_server_in_front(args))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        aliases = {command.alias: name for name, (_, command) in commands().items()}
        name, command, rest = super().resolve_command(ctx, [aliases.get(args[0], args[0]), *args[1:]])
        return name, load(name) if name in commands() else command, rest

    def main(self, *args: Any, **options: Any) -> Any:
        try:
            return super().main(*args, **options)
        except OSError as error:
            if error.filename is None and error.errno not in _WRITE_ERRORS:
                raise
            say(f"Error: {error.filename or 'the output could not be written'}: {error.strerror}")
            sys.exit(ExitCode.FAILED)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            shorten(error)
            raise
        except JobtableError as error:
            say(line_of(error))
            raise typer.Exit(exit_code_of(error)) from error


def _with_server_in_front(args: list[str]) -> list[str]:
    """Move `--server URL` before the command: people also write it after the command, as they do `--store`."""
    for place, each in enumerate(args):
        if each == "--":
            break
        if each.partition("=")[0] == "--server":
            end = place + (1 if "=" in each else 2)
            return [*args[place:end], *args[:place], *args[end:]]
    return args


def load(name: str) -> Any:
    """Return the command with this name, with its subcommands."""
    system, declaration = commands()[name]
    path = declaration.module if ":" in declaration.module else f"{declaration.module}:app"
    loaded = pkgutil.resolve_name(path) if system is None else system.load(path)
    return command_of(loaded, name, declaration.help)


app = typer.Typer(
    name="jobtable",
    cls=Commands,
    help=HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings=SETTINGS,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"jobtable {jobtable.__version__}")
        raise typer.Exit


@app.callback()
def main(
    server: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Work through this server instead of a store (default: JOBTABLE_SERVER)"),
    ] = None,
    token: Annotated[str | None, typer.Option(help="Access token for the server; JOBTABLE_TOKEN is safer")] = None,
    store: StoreUrl = None,
    objects: ObjectsUrl = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit")
    ] = False,
) -> None:
    """Take the options before the command; `--store` and `--server` may also follow it."""
    try:
        folder = str(Path.cwd())  # tasks, stages and definitions are imported from here
    except FileNotFoundError as error:
        raise SettingsError("the current folder no longer exists; change to another one") from error
    if folder not in sys.path:
        sys.path.insert(0, folder)
    give(server=server, token=token, store=store, objects=objects)


def run() -> None:
    """Run the command line. It prints UTF-8 in every locale, because names and log lines may have any character."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # one that is closed is None
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    app()
