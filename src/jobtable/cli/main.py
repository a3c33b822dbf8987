"""The command `jobtable`: its groups, and how an error reaches the person who typed it."""

from __future__ import annotations

import errno
import sys

try:
    import typer
except ModuleNotFoundError:  # The command is installed with the package, its dependencies only with the extra.
    sys.exit("The command line needs the extra 'cli': pip install 'jobtable[cli]'")

from functools import cache
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

import jobtable
from jobtable.cli.groups import Group
from jobtable.cli.options import ObjectsUrl, StoreUrl, give
from jobtable.cli.output import ExitCode, exit_code_of, line_of, say
from jobtable.cli.usage import tell_in_one_line
from jobtable.errors import JobtableError, SettingsError
from jobtable.system import Command, System, declared

_BEFORE_SYSTEMS = {
    "up": Command("jobtable.cli.up", "Run the server with its pages and its API, and a worker."),
    "jobs": Command("jobtable.cli.jobs", "Jobs: submit them, see how far they are, act on them."),
    "queues": Command("jobtable.cli.queues", "Queues: how many jobs run at once, and in which order."),
    "worker": Command("jobtable.cli.worker", "Run jobs until Ctrl-C, or until the queues are empty."),
    "workers": Command("jobtable.cli.workers", "The workers that are or were there."),
}
_AFTER_SYSTEMS = {
    "tables": Command("jobtable.cli.tables", "The tables of the systems."),
    "export": Command("jobtable.cli.export", "Write every item of a table to a file."),
    "import": Command("jobtable.cli.importing", "Store the items of a file in their table."),
    "objects": Command("jobtable.cli.objects", "The objects of the systems: files, logs, checkpoints."),
    "tokens": Command("jobtable.cli.tokens", "Tokens of the server: who may read, write, or work."),
    "config": Command("jobtable.cli.config", "The settings in force."),
    "dynamodb": Command("jobtable.cli.dynamodb", "The embedded engine as a DynamoDB server."),
}


@cache
def commands() -> dict[str, tuple[System | None, Command]]:
    """Every command, with the system that it belongs to, if any.

    The module of a command is loaded when it is used, so that no command waits for the libraries of the others.
    """
    found: dict[str, tuple[System | None, Command]] = {name: (None, each) for name, each in _BEFORE_SYSTEMS.items()}
    for system, of_system in declared("commands"):
        found |= {name: (system, each) for name, each in of_system.items()}
    return found | {name: (None, each) for name, each in _AFTER_SYSTEMS.items()}


_WRITE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

HELP = """
Typed single-table data and jobs: embedded on your laptop, unchanged on DynamoDB and S3.

\b
Exit codes:
    0    done
    1    failed
    2    usage or configuration error
    3    not found
    4    the state does not allow it
    5    the job did not complete
    130  stopped with Ctrl-C
"""


class Commands(Group):
    """The commands, which are loaded when they are used, and tell an error of the package in one line."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for name, (_, command) in commands().items():
            self.add_command(TyperCommand(name, help=command.help))

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
            tell_in_one_line(error)
            raise
        except JobtableError as error:
            say(line_of(error))
            raise typer.Exit(exit_code_of(error)) from error


def _with_server_in_front(args: list[str]) -> list[str]:
    """The arguments with `--server URL` before the command: people write it behind one, too, as they may `--store`."""
    for place, each in enumerate(args):
        if each == "--":
            break
        if each.partition("=")[0] == "--server":
            end = place + (1 if "=" in each else 2)
            return [*args[place:end], *args[:place], *args[end:]]
    return args


def load(name: str) -> Any:
    """The command with this name, with everything under it."""
    system, declaration = commands()[name]
    module = import_module(declaration.module) if system is None else system.load(declaration.module)
    command = get_command(module.app)
    command.name = name
    if isinstance(command, TyperGroup):
        command.help = declaration.help
    # Completion is installed for the whole command line, so only that has the options for it.
    command.params = [each for each in command.params if each.name not in ("install_completion", "show_completion")]
    return command


app = typer.Typer(
    name="jobtable",
    cls=Commands,
    help=HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"jobtable {jobtable.__version__}")
        raise typer.Exit


@app.callback()
def main(
    server: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Work through a server instead of on a store. Without it: JOBTABLE_SERVER."),
    ] = None,
    token: Annotated[
        str | None, typer.Option(metavar="TOKEN", help="The token for the server. Better: JOBTABLE_TOKEN.")
    ] = None,
    store: StoreUrl = None,
    objects: ObjectsUrl = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """The options that stand before a command; a store and a server may be named behind it as well."""
    try:
        folder = str(Path.cwd())  # where a worker looks for tasks, stages and definitions, every command does
    except FileNotFoundError as error:
        raise SettingsError("the current folder is not there any more: change to another one") from error
    if folder not in sys.path:
        sys.path.insert(0, folder)
    give(server=server, token=token, store=store, objects=objects)


def run() -> None:
    """Run the command line. It prints UTF-8 whatever the locale is: names and log lines may have any character."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # one that is closed is None
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    app()
