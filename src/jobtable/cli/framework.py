"""Help, usage errors and questions of the command line. Only this file uses Typer's internals."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from inspect import cleandoc
from textwrap import indent
from typing import Annotated, Any

import typer
from pydantic import ValidationError
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from jobtable.cli.output import visible

COMMON = "Common options"
"""The section of help for options that most commands have: `typer.Option(..., rich_help_panel=COMMON)`."""
MOST_LINES = 1_000_000_000
"""The largest count that can be asked for, because some counters overflow above it. Help does not mention it."""
SETTINGS = {"help_option_names": ["-h", "--help"]}

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation", rich_help_panel=COMMON)]


class CommandWithHelp(TyperCommand):
    """A command whose help has plain metavars, ranges in words, and the common options in a section of their own."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return ["[OPTIONS]", *(_in_usage(each) for each in self.params if each.param_type_name == "argument")]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        _write_options(self.get_params(ctx), formatter)


class Group(TyperGroup):
    """A group of commands, which its help describes in whole sentences."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        _write_options(self.get_params(ctx), formatter)
        rows = [(name, self.commands[name].get_short_help_str(sys.maxsize)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class CommandGroup(typer.Typer):
    """A Typer app whose commands have this help."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"cls": Group, "rich_markup_mode": None, "context_settings": SETTINGS, **options})

    def command(self, name: str | None = None, *, example: str = "", **options: Any) -> Callable[[Any], Any]:
        """Register a command, whose help ends with the example: one command line or several."""
        options = {"cls": CommandWithHelp, "context_settings": SETTINGS, **options}
        register = super().command
        return lambda function: register(name, help=_help_with(example, function), **options)(function)

    def take_over(self, other: CommandGroup) -> None:
        """Add the commands of another group to this one."""
        self.registered_commands += other.registered_commands


def _help_with(example: str, function: Any) -> str:
    described = cleandoc(function.__doc__ or "")
    # After \b, lines are not wrapped.
    return f"{described}\n\n\b\nExample:\n{indent(example, '    ')}" if example else described


def new_group() -> CommandGroup:
    """Return a new group, to be filled with commands."""
    return CommandGroup(no_args_is_help=True)


def group_of_one() -> CommandGroup:
    """Return a new group that stays a group with its only command."""
    group = new_group()
    group.callback()(lambda: None)
    return group


def command_of(app: typer.Typer, name: str, group_help: str) -> Any:
    """Return the command of an app, under this name; a group gets this help."""
    command = get_command(app)
    command.name = name
    if isinstance(command, TyperGroup):
        command.help = group_help
    # Completion is installed for the whole command line: only that has the options for it.
    command.params = [each for each in command.params if each.name not in ("install_completion", "show_completion")]
    return command


def help_of(command: Any, path: str, width: int) -> str:
    """Return what `PATH --help` prints."""
    sizes = {"terminal_width": width, "max_content_width": width}
    text: str = command.get_help(command.context_class(command, info_name=path, **sizes, **SETTINGS))
    return text.strip()


def walk(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield a command and every command under it, each with its path."""
    yield path, command
    for name, each in getattr(command, "commands", {}).items():
        yield from walk(each, f"{path} {name}")


def arguments_of(ctx: Any) -> Iterator[dict[str, Any]]:
    """Yield what was parsed so far, from the first command to the last."""
    if ctx.parent is not None:
        yield from arguments_of(ctx.parent)
    yield ctx.params


# --- help -----------------------------------------------------------------------------------------------------------


def _write_options(params: Sequence[Any], formatter: Any) -> None:
    sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": [], COMMON: []}
    for each in params:
        if each.param_type_name == "argument":
            section = "Arguments"
        else:
            section = COMMON if each.name == "help" else getattr(each, "rich_help_panel", None) or "Options"
        if not getattr(each, "hidden", False):
            sections[section].append((_names(each), _explained(each)))
    for title, rows in sections.items():
        if rows:
            with formatter.section(title):
                formatter.write_dl(rows)


def _in_usage(param: Any) -> str:
    name = _metavar(param) + ("" if param.nargs == 1 else "...")
    return name if param.required else f"[{name}]"


def _names(param: Any) -> str:
    if param.param_type_name == "argument":
        return _metavar(param)
    opts = ", ".join(sorted(param.opts, key=len))
    if param.is_flag or param.count:
        return " / ".join([opts, *param.secondary_opts])
    return f"{opts} {_metavar(param)}"


def _metavar(param: Any) -> str:
    if param.metavar:
        return str(param.metavar)
    return "N" if param.type_descriptor.annotation in (int, float) else param.name.upper().replace("_", "-")


def _explained(param: Any) -> str:
    """The help of a parameter, with the values that it can have."""
    text = (param.help or "").removesuffix(".")
    described: Any = getattr(param, "type_descriptor", None)  # the help option has none
    values = [str(getattr(each, "value", each)) for each in (described and described.choices) or ()]
    if values and not described.case_sensitive:
        values = [value.lower() for value in values]
    if not all(f"{value}:" in text for value in values):
        text += f": {', '.join(values[:-1])} or {values[-1]}"
    notes = [_range(param)] if getattr(param, "min", None) is not None else []
    default = getattr(param.default, "value", param.default)
    if default not in (None, "", ()) and param.param_type_name == "option" and not param.is_flag:
        notes.append(f"default: {_short(default)}")
    if param.required and param.param_type_name == "option":
        notes.append("required")
    return f"{text} ({'; '.join(notes)})" if notes else text


def _short(value: Any) -> str:
    if isinstance(value, timedelta):
        return f"{value.total_seconds() / 3600:g}h"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _range(param: Any) -> str:
    if param.max is None or param.max == MOST_LINES:
        return f"at least {param.min}"
    return f"{param.min} to {param.max}"


# --- usage errors ---------------------------------------------------------------------------------------------------


def shorten(error: typer.BadParameter) -> None:
    """Let an error about an option or argument fit on one line, without pydantic's words."""
    if isinstance(error.__cause__, ValidationError):
        error.message = _problem(error.__cause__.errors()[0])
    is_general = error.param is None and error.param_hint is None
    line = visible(" ".join((error.message if is_general else error.format_message()).split()))
    error.format_message = lambda: line  # type: ignore[method-assign]  # a missing option composes it anew each time


def _problem(problem: Any) -> str:
    given, bounds = f"{problem['input']!r:.100}", problem.get("ctx", {})
    match problem["type"]:
        case "value_error":
            return str(bounds["error"])
        case "int_parsing" | "int_from_float" | "int_parsing_size":
            return f"{given} is not a whole number"
        case "float_parsing":
            return f"{given} is not a number"
        case "greater_than_equal":
            return f"{given} is too small; the minimum is {bounds['ge']}"
        case "less_than_equal":
            return f"{given} is too large; the maximum is {bounds['le']}"
        case _:
            return f"{given}: {problem['msg']}"


# --- questions ------------------------------------------------------------------------------------------------------


def confirm(question: str, *, yes: bool) -> None:
    """Return if the person says yes, or said so with `--yes`; refuse if there is no terminal to ask in."""
    if yes:
        return
    if sys.stdin is None or not sys.stdin.isatty():  # None: it is closed
        raise typer.BadParameter(f"{question} Without a terminal, confirm with --yes")
    try:
        is_wanted = typer.confirm(question, err=True)
    except typer.Abort as abort:
        if isinstance(abort.__context__, KeyboardInterrupt):  # which ends every other command with 130
            raise KeyboardInterrupt from abort
        raise
    if not is_wanted:
        raise typer.Abort
