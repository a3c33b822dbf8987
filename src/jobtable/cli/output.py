"""Output of the commands: tables for people, JSON for programs, one line per error, exit codes for scripts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from enum import IntEnum
from itertools import islice
from typing import Any, Literal, TypeVar

import typer
from pydantic import BaseModel
from pydantic_core import to_jsonable_python
from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from jobtable.connection import S3_FORM
from jobtable.errors import (
    BackendUnavailable,
    ConflictError,
    ConnectionUrlError,
    ErrorReason,
    JobtableError,
    NotFoundError,
    ObjectNotFoundError,
    SettingsError,
)
from jobtable.store import Query
from jobtable.system import declared

_UNBOUNDED = 100_000
_LONGEST_IN_ROW = 120
_WIDEST_COLUMN = 32
_NARROWEST_CUT = 10
_GAP = 2
Row = Mapping[str, Any]
T = TypeVar("T")


class ExitCode(IntEnum):
    """How a command ended."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    CONFLICT = 4
    NOT_COMPLETED = 5
    INTERRUPTED = 130


_CODE_OF_ERROR: tuple[tuple[type[JobtableError], ExitCode], ...] = (
    (NotFoundError, ExitCode.NOT_FOUND),
    (ObjectNotFoundError, ExitCode.NOT_FOUND),
    (ConflictError, ExitCode.CONFLICT),
    (SettingsError, ExitCode.USAGE),
    (ConnectionUrlError, ExitCode.USAGE),
)

_LIST_OF_CORE = {
    "access token": "tokens list",
    "activity": "activities list",
    "assist call": "assist calls JOB",
    "function": "functions list",
    "inbox rule": "inbox rules",
    "inbox task": "inbox list",
    "instance": "workers list --all",
    "job": "jobs list",
    "queue": "queues list",
    "provider of models": "assist providers",
    "state machine": "machines list",
    "workflow execution": "workflows list MACHINE",
}
"""The command that lists each kind of thing, as `System.listings` has it for the systems' kinds."""

_HINT_OF_REASON = {
    ErrorReason.JOB_HAS_CHILDREN: "delete the whole tree with `--tree`, or its children first",
    ErrorReason.TARGET_NOT_EMPTY: "choose `--existing merge` or `--existing replace`",
    ErrorReason.TABLE_MISSING: "create it with `jobtable tables create` (your own tables with `--module MODULE`)",
    ErrorReason.INDEX_MISSING: "add it with `jobtable tables update`",
    ErrorReason.OBJECTS_UNSET: f"name one with `--objects`, as in {S3_FORM}",
    ErrorReason.UNAUTHENTICATED: "set JOBTABLE_TOKEN to one from `jobtable tokens create`",
}
"""The advice for the command line, in place of the advice for programs."""
_COLOUR_OF_WORD = {
    "PENDING": "yellow",
    "RUNNING": "cyan",
    "COMPLETED": "green",
    "FAILED": "red",
    "CANCELLED": "magenta",
    "STOPPED": "magenta",
    "INTERRUPTED": "yellow",
    "SUCCEEDED": "green",
    "TIMED_OUT": "red",
    "ABORTED": "magenta",
    "HEALTHY": "green",
    "UNHEALTHY": "red",
    "WARNING": "yellow",
    "ERROR": "red",
    "CRITICAL": "red",
}
_TURNING_CHARACTERS = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""They change the writing direction, also of the text beside them."""
_CONTROL_CHARACTERS = {
    **{code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"},
    **{code: f"\\u{code:04x}" for code in _TURNING_CHARACTERS},
}
_JSON_ESCAPES = {code: f"\\u{code:04x}" for code in (*range(127, 160), *_TURNING_CHARACTERS)}
"""JSON escapes the other control characters itself."""


def to_json(value: Any) -> Any:
    """Convert entities, dataclasses, times and collections of them to JSON."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    return to_jsonable_python(value)


def print_json(value: Any) -> None:
    """Print one JSON document."""
    typer.echo(_json_text(value, indent=2))


def print_json_line(value: Any) -> None:
    """Print one JSON object on one line, for a stream of them."""
    typer.echo(_json_text(value))


def _json_text(value: Any, indent: int | None = None) -> str:
    return json.dumps(to_json(value), indent=indent, ensure_ascii=False).translate(_JSON_ESCAPES)


def print_either(value: Any, show: Callable[[], None], *, as_json: bool) -> None:
    """Print a value as JSON, or let `show` print it for people."""
    if as_json:
        print_json(value)
    else:
        show()


def print_list(
    items: Iterable[T], row: Callable[[T], Row], *, as_json: bool, empty: str, limit: int | None = None
) -> None:
    """Print items as a JSON array, or as a table with a row for each; say `empty` if there are none.

    Prints at most `limit` of them, and says if there are more.
    """
    with first_of(items, limit) as listed:
        if as_json:
            print_json([to_json(item) for item in listed])
        elif listed:
            print_table([row(item) for item in listed])
        else:
            say(empty)


@contextmanager
def first_of(items: Iterable[T], limit: int | None) -> Iterator[list[T]]:
    """Yield the first items, and say after the block if there are more.

    Reads one more than the limit, and of a query no further page.
    """
    if limit is None:
        yield list(items)
        return
    found = list(items.take(limit + 1) if isinstance(items, Query) else islice(items, limit + 1))
    yield found[:limit]
    if len(found) > limit:
        say("There are more; use a larger --limit to see them.")


def columns(kind: type[T], chosen: str) -> Callable[[T], dict[str, Any]]:
    """Return what makes a row of an item; each column is a `member` or a `title=member`. AttributeError for others."""
    members = {title or member: member for title, _, member in (each.rpartition("=") for each in chosen.split())}
    known = {*dir(kind), *getattr(kind, "model_fields", ()), *getattr(kind, "__dataclass_fields__", ())}
    if unknown := set(members.values()) - known:
        raise AttributeError(f"{kind.__name__} has no {', '.join(unknown)}")
    return lambda item: {title: getattr(item, member) for title, member in members.items()}


def print_table(rows: Sequence[Row]) -> None:
    """Print each row on one line, under the names of its members.

    A terminal shows the columns that fit, from the left: put the most important first.
    """
    console = _console()
    names = list(rows[0])
    cells = [[_in_one_line(_cell(value)) for value in row.values()] for row in rows]
    widths = [max(len(name), *(row[place].cell_len for row in cells)) for place, name in enumerate(names)]
    table = Table(box=None, header_style="bold", pad_edge=False)
    for place, width in enumerate(_fitting(widths, console.width)):
        is_number = all(isinstance(row[names[place]], int | float | None) for row in rows)
        justify: Literal["left", "right"] = "right" if is_number else "left"
        table.add_column(names[place], justify=justify, no_wrap=True, overflow="ellipsis", max_width=width)
    for row in cells:
        table.add_row(*row[: len(table.columns)])
    console.print(table)


def print_part(title: str, rows: Sequence[Row]) -> None:
    """Print a table under a title; print nothing if there are no rows."""
    if rows:
        print_text(f"\n{title}", "bold")
        print_table(rows)


def _fitting(widths: Sequence[int], available: int) -> list[int]:
    """Return the widths of the columns that fit: the first, which people copy, whole, and the last with the rest."""
    if sum(widths) + _GAP * (len(widths) - 1) <= available:
        return list(widths)
    chosen = [widths[0]]
    left = available - widths[0]
    for width in widths[1:]:
        wanted = min(width, _WIDEST_COLUMN)
        if left - _GAP < min(wanted, _NARROWEST_CUT):
            break
        chosen.append(min(wanted, left - _GAP))
        left -= _GAP + chosen[-1]
    chosen[-1] += max(0, left)
    return chosen


def _in_one_line(cell: Text) -> Text:
    return Text(" ".join(cell.plain.split("\n")), cell.style) if "\n" in cell.plain else cell


def print_fields(fields: Row) -> None:
    """Print one thing, with a line for each member that has a value."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in fields.items():
        if value is not None and value != "":
            table.add_row(name, _cell(value))
    _console().print(table)


def print_text(text: str, style: str = "") -> None:
    """Print text without interpreting markup in it."""
    _console().print(Text(visible(text), style), soft_wrap=True)


def print_lines(lines: Iterable[tuple[str, str | None]]) -> None:
    """Print texts as they come, each in its colour if the terminal shows colours."""
    shows_colours = _console().color_system is not None and not _console().no_color
    for text, colour in lines:
        typer.echo(typer.style(visible(text), fg=colour) if shows_colours and colour else visible(text))


def print_renderable(drawing: RenderableType) -> None:
    """Print a rich renderable."""
    _console().print(drawing)


def colour_of(word: str) -> str | None:
    """Return the colour of a status or a level, or None."""
    return _COLOUR_OF_WORD.get(word)


def visible(text: str) -> str:
    """Escape control characters: the text of a job must not control the terminal."""
    return text.translate(_CONTROL_CHARACTERS)


def say(message: str) -> None:
    """Print a message for people on stderr; stdout has only data."""
    # A closed pipe or a full disk must not end a server or a worker that prints a message.
    with suppress(OSError):
        typer.echo(visible(message), err=True)


def exit_code_of(error: JobtableError) -> ExitCode:
    """Return the exit code of a command that failed with this error."""
    return next((code for kind, code in _CODE_OF_ERROR if isinstance(error, kind)), ExitCode.FAILED)


def line_of(error: JobtableError) -> str:
    """Return the error as one line, with the advice for the command line."""
    # Without an answer there is no DynamoDB code; `InternalServerError` would mislead.
    statement = error.message if isinstance(error, BackendUnavailable) else error.statement
    hint = _hint_of(error)
    return "Error: " + " ".join((f"{statement}; {hint}" if hint else statement).split())


def _hint_of(error: JobtableError) -> str | None:
    if error.reason is not None and error.reason in _HINT_OF_REASON:
        return _HINT_OF_REASON[error.reason]
    command = listing_commands().get(error.kind or "") if isinstance(error, NotFoundError) else None
    return f"`jobtable {command}` lists them" if command else error.hint


def listing_commands() -> dict[str, str]:
    """Return the command that lists each kind of thing which an error may call missing."""
    found = dict(_LIST_OF_CORE)
    for _, listings in declared("listings"):
        found |= {kind: listing.command for kind, listing in listings.items()}
    return found


class Bar:
    """A visible progress bar."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress = progress
        self._task = task

    def advance(self, steps: float) -> None:
        """Advance by so many steps."""
        self._progress.advance(self._task, steps)

    def reach(self, done: float) -> None:
        """Set the number of steps done."""
        self._progress.update(self._task, completed=done)


@contextmanager
def bar(description: str, total: int | None = None) -> Iterator[Bar]:
    """A progress bar on stderr while the block runs."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        yield Bar(progress, progress.add_task(visible(description), total=total))


def first_line(text: str | None) -> str | None:
    """Return the first line of a text, cut with an ellipsis if it is too long for a row."""
    if text is None:
        return None
    line = text.partition("\n")[0]
    return line if len(line) <= _LONGEST_IN_ROW else f"{line[: _LONGEST_IN_ROW - 1]}…"


def _cell(value: Any) -> Text:
    if value is None:
        return Text("")
    if isinstance(value, datetime):
        return Text(value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ"))
    if isinstance(value, bool):
        return Text("yes" if value else "no")
    if isinstance(value, float):
        # Six digits, and all digits before the point up to 15.
        return Text(f"{value:.0f}" if 1e6 <= abs(value) < 1e15 else f"{value:g}")
    if isinstance(value, (set, frozenset)):
        return Text(visible(", ".join(sorted(map(str, value)))))
    if isinstance(value, (list, tuple)):
        return Text(visible(", ".join(map(str, value))))
    if isinstance(value, dict):
        return Text(_json_text(value) if value else "")
    text = visible(str(value))
    return Text(text, colour_of(text) or "")


def _console() -> Console:
    """Return a console on the current stdout; without a terminal, lines are as wide as their content."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=_UNBOUNDED)
