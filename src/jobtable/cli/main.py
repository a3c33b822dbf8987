"""The command `jobtable`: its groups, and how an error reaches the person who typed it."""

from __future__ import annotations

import errno
import sys

try:
    import typer
except ModuleNotFoundError:  # The command is installed with the package, its dependencies only with the extra.
    sys.exit("The command line needs the extra 'cli': pip install 'jobtable[cli]'")

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

COMMANDS: dict[str, tuple[str, str]] = {
    "up": ("up", "Run the server with its pages and its API, and a worker."),
    "jobs": ("jobs", "Jobs: submit them, see how far they are, act on them."),
    "queues": ("queues", "Queues: how many jobs run at once, and in which order."),
    "worker": ("worker", "Run jobs until Ctrl-C, or until the queues are empty."),
    "workers": ("workers", "The workers that are or were there."),
    "journeys": ("journeys", "Journeys: create, run, export and import them."),
    "sweeps": ("sweeps", "Sweeps: try many parameters, and find the best ones."),
    "conversations": ("conversations", "Conversations: analyse Polis exports, and compare the runs."),
    "executions": ("executions", "Executions: run album workflows, and see how they went."),
    "tasks": ("tasks", "Tasks: what people are asked, and what they answer."),
    "tables": ("tables", "The tables of the systems."),
    "export": ("export", "Write every item of a table to a file."),
    "import": ("importing", "Store the items of a file in their table."),
    "objects": ("objects", "The objects of the systems: files, logs, checkpoints."),
    "receipts": ("receipts", "Receipts: what OCR has read, its labels and validations."),
    "tokens": ("tokens", "Tokens of the server: who may read, write, or work."),
    "config": ("config", "The settings in force."),
    "dynamodb": ("dynamodb", "The embedded engine as a DynamoDB server."),
}
"""The commands: the module of this package whose `app` each one is, and what it is for.

A module is loaded when its command is used, so that no command waits for the libraries of the others.
"""
_WRITE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
ALIASES = {"sweep": "sweeps"}
"""Other names of commands, which are understood and not listed."""

HELP = """
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


class Commands(Group):
    """The commands, which are loaded when they are used, and tell an error of the package in one line."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for name, (_, purpose) in COMMANDS.items():
            self.add_command(TyperCommand(name, help=purpose))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, _with_server_in_front(args))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, command, rest = super().resolve_command(ctx, [ALIASES.get(args[0], args[0]), *args[1:]])
        return name, load(name) if name in COMMANDS else command, rest

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
    module = import_module(f"jobtable.cli.{COMMANDS[name][0]}")
    command = get_command(module.app)
    command.name = name
    if isinstance(command, TyperGroup):
        command.help = COMMANDS[name][1]
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
