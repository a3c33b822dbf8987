"""How every command prints: tables for people, JSON for programs, one line for an error, and a code for scripts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import IntEnum
from typing import Any, TypeVar

import typer
from pydantic import BaseModel
from pydantic_core import to_jsonable_python
from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from jobtable.errors import (
    ConflictError,
    JobtableError,
    NotFoundError,
    ObjectNotFoundError,
    SettingsError,
    TableNotFound,
)

_UNBOUNDED = 100_000
_LONGEST_IN_ROW = 120
T = TypeVar("T")
Row = Mapping[str, Any]


class ExitCode(IntEnum):
    """How a command ends."""

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
)

_COLOUR_OF_WORD = {
    "PENDING": "yellow",
    "RUNNING": "cyan",
    "COMPLETED": "green",
    "FAILED": "red",
    "CANCELLED": "magenta",
    "STOPPED": "magenta",
    "INTERRUPTED": "yellow",
    "HEALTHY": "green",
    "UNHEALTHY": "red",
    "WARNING": "yellow",
    "ERROR": "red",
    "CRITICAL": "red",
}


_CONTROL_CHARACTERS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


def to_json(value: Any) -> Any:
    """Entities, dataclasses, times and what is made of them, as JSON has it."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    return to_jsonable_python(value)


def print_json(value: Any) -> None:
    """Print one JSON document."""
    typer.echo(json.dumps(to_json(value), indent=2, ensure_ascii=False))


def print_json_line(value: Any) -> None:
    """Print one JSON object on one line, for output that goes on."""
    typer.echo(json.dumps(to_json(value), ensure_ascii=False))


def print_list(items: Iterable[Any], row: Callable[[Any], Row], *, as_json: bool, empty: str) -> None:
    """Print many: as a JSON array of the items, or as a table with a row for each, or the line that says: none."""
    listed = list(items)
    if as_json:
        print_json([to_json(item) for item in listed])
    elif listed:
        print_table([row(item) for item in listed])
    else:
        say(empty)


def print_table(rows: Sequence[Row]) -> None:
    """Print rows under the names of their members."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for number, name in enumerate(rows[0]):
        is_number = all(isinstance(row[name], int | float) or row[name] is None for row in rows)
        # The first column names the row: it is what people copy, so it is never folded.
        table.add_column(name, justify="right" if is_number else "left", no_wrap=number == 0)
    for row in rows:
        table.add_row(*(_cell(value) for value in row.values()))
    _console().print(table)


def print_fields(fields: Row) -> None:
    """Print one thing: a line for each of its members that has a value."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in fields.items():
        if value is not None and value != "":
            table.add_row(name, _cell(value))
    _console().print(table)


def print_text(text: str, style: str = "") -> None:
    """Print text as it is: nothing in it is taken for markup."""
    _console().print(Text(visible(text), style), soft_wrap=True)


def print_renderable(drawing: RenderableType) -> None:
    """Print something that rich can draw."""
    _console().print(drawing)


def colour_of(word: str) -> str | None:
    """The colour of a status or a level, or None."""
    return _COLOUR_OF_WORD.get(word)


def visible(text: str) -> str:
    """The text with control characters written out: what a job says must not steer the terminal that shows it."""
    return text.translate(_CONTROL_CHARACTERS)


def say(message: str) -> None:
    """Tell the person something that is no data: it goes to stderr, so that stdout has only data."""
    typer.echo(message, err=True)


def exit_code_of(error: JobtableError) -> ExitCode:
    """The code with which a command ends that failed with this error."""
    return next((code for kind, code in _CODE_OF_ERROR if isinstance(error, kind)), ExitCode.FAILED)


def line_of(error: JobtableError) -> str:
    """The error as one line."""
    text = " ".join(str(error).split())
    if isinstance(error, TableNotFound):
        text = text.replace(
            "create it with store.tables.create(...)", "(create the tables with `jobtable tables create`)"
        )
    return f"Error: {text}"


def progress_bar(description: str, items: Iterable[T], total: int | None = None) -> Iterator[T]:
    """The items one by one, with a bar on stderr that shows how far they are; no bar where no one looks on."""
    with bar(description, total) as advance:
        for item in items:
            yield item
            advance(1)


@contextmanager
def bar(description: str, total: int | None = None) -> Iterator[Callable[[float], None]]:
    """A progress bar on stderr while the block runs; it gives the function that moves it on."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(description, total=total)
        yield lambda steps: progress.advance(task, steps)


def first_line(text: str | None) -> str | None:
    """What fits into a row of a text that may have many lines."""
    return None if text is None else text.partition("\n")[0][:_LONGEST_IN_ROW]


def time_text(moment: datetime | None) -> str | None:
    """A time as people read it, to the second."""
    return None if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def _cell(value: Any) -> Text:
    if value is None:
        return Text("")
    if isinstance(value, datetime):
        return Text(time_text(value) or "")
    if isinstance(value, bool):
        return Text("yes" if value else "no")
    if isinstance(value, float):
        return Text(f"{value:g}")
    if isinstance(value, (set, frozenset)):
        return Text(visible(", ".join(sorted(map(str, value)))))
    if isinstance(value, (list, tuple)):
        return Text(visible(", ".join(map(str, value))))
    if isinstance(value, dict):
        return Text(json.dumps(to_json(value)))
    text = visible(str(value))
    return Text(text, colour_of(text) or "")


def _console() -> Console:
    """A console on stdout as it is now. Where no one looks on, lines are as wide as what they say."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=_UNBOUNDED)
