"""The options that commands share, and how a command opens what they name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from jobtable.app import Services
from jobtable.cli.opening import services_of, store_of
from jobtable.clock import SYSTEM_CLOCK
from jobtable.connection import store_file
from jobtable.errors import SettingsError, ValueRefusedError
from jobtable.settings import Resolved, Settings, resolve, without_secret
from jobtable.store import Store

_GIVEN: ContextVar[Mapping[str, str]] = ContextVar("flags before the command", default={})  # noqa: B039 - never changed
MOST_LINES = 1_000_000_000
"""The largest count that can be asked for: some of what counts lines overflows beyond."""
_LONGEST = timedelta(days=365_000)  # so that now, a duration ago and a duration ahead are all years of the calendar
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}

StoreUrl = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        help="file:PATH, dynamodb://REGION, dynamodb+http://HOST:PORT. "
        "Without it: JOBTABLE_STORE, jobtable.toml, or file:.jobtable/jobtable.db.",
    ),
]
ObjectsUrl = Annotated[
    str | None,
    typer.Option(
        "--objects",
        metavar="URL",
        help="file:PATH or s3://BUCKET/PREFIX. "
        "Without it: JOBTABLE_OBJECTS, jobtable.toml, or beside the store's file.",
    ),
]
User = Annotated[
    str | None,
    typer.Option("--user", metavar="NAME", help="In whose name. Without it: JOBTABLE_USER, jobtable.toml, or local."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=MOST_LINES, help="How many to show at most.")]


def duration(text: str | timedelta) -> timedelta:
    """A time such as 90s, 15m, 24h or 30d."""
    if isinstance(text, timedelta):
        return text
    number, unit = text[:-1], _UNITS.get(text[-1:])
    if unit is None or not number.isdecimal():
        raise typer.BadParameter(f"{text!r} is no duration: write a number and s, m, h, d or w, as in 24h")
    try:
        length = timedelta(**{unit: int(number)})
    except (OverflowError, ValueError):  # Python does not read thousands of digits
        length = timedelta.max
    if length > _LONGEST:
        raise typer.BadParameter(f"{text!r} is longer than can be counted: write {_LONGEST.days}d at most")
    return length


def instant(text: str | datetime) -> datetime:
    """An instant: so long ago, as in 15m, or as ISO 8601 writes it, in UTC where it names no zone."""
    if isinstance(text, datetime):
        return text
    if text[:-1].isdecimal():
        return SYSTEM_CLOCK.now() - duration(text)
    try:
        found = datetime.fromisoformat(text)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise typer.BadParameter(
            f"{text!r} is no time: write how long ago, as in 15m or 24h, or an instant, as in 2025-11-01T20:30:00Z"
        ) from error


Since = Annotated[
    datetime | None,
    typer.Option(
        "--since",
        parser=instant,
        metavar="TIME",
        help="Only what is newer: than 90s, 15m, 24h or 7d ago, or than an instant, as in 2025-11-01T20:30:00Z.",
    ),
]


def file_to_write(path: Path) -> Path:
    """The file that a path leads to, to be replaced as a whole; refused where a device, a pipe or a folder would be."""
    if path == Path("-"):
        raise ValueRefusedError("a file is written, and not the standard output: name one instead of -")
    if path.exists() and not path.is_file():
        raise ValueRefusedError(f"{path} is a folder, a device or a pipe, and would be replaced: name a file")
    file = Path(os.path.realpath(path))  # so that a link goes on to lead there
    if not os.access(file.parent, os.W_OK):
        raise ValueRefusedError(f"{path} cannot be written: the folder {file.parent} is not there, or not writable")
    return file


def give(**flags: str | None) -> None:
    """Set flags that stand before the command, for everything that the command resolves."""
    _GIVEN.set({name: value for name, value in flags.items() if value is not None})


def resolved(**flags: Any) -> Resolved:
    """The settings in force, given the flags of a command; a flag that is None was not written."""
    written = {name: value for name, value in flags.items() if value is not None}
    return resolve({**_GIVEN.get(), **written}, os.environ, Path.cwd())


def names_store(found: Resolved) -> bool:
    """Whether a store was named with the command, before or behind it."""
    return found.sources["store"] == "--store"


def refuse_memory(settings: Settings) -> None:
    """Raise where another process is to see what is stored: one that runs jobs, or the next command."""
    if settings.server is None and settings.store.startswith("memory:"):
        raise typer.BadParameter("a store in memory is this process's alone, and ends with it: give --store file:PATH")


def is_missing(settings: Settings) -> bool:
    """Whether the settings name a store in a file that is not there."""
    return settings.server is None and settings.store.startswith("file:") and not store_file(settings.store).exists()


def _refuse_missing(settings: Settings, source: str) -> None:
    """Raise where a store in a file is not there: to make it would answer a slip of the pen with an empty store."""
    if is_missing(settings):
        named = "the default" if source == "default" else source
        raise SettingsError(
            f"there is no store at {store_file(settings.store)} ({named}): name one that is there, or make it with "
            "`jobtable up`, `jobtable jobs submit` or `jobtable tables create`"
        )


def store_settings(store: str | None, *, creates: bool = False, **flags: Any) -> Settings:
    """The settings of a command that works on a store itself: refused where only a server is named.

    A store in a file that is missing is refused too, unless the command creates it.
    """
    found = resolved(store=store, **flags)
    is_meant = found.sources["server"] == "--server" or found.sources["store"] == "default"
    if found.settings.server is not None and not names_store(found) and is_meant:
        server = without_secret(found.settings.server)
        raise typer.BadParameter(f"this needs a store itself, and not the server {server}: give --store")
    settings = found.settings.model_copy(update={"server": None})
    refuse_memory(settings)
    if not creates:
        _refuse_missing(settings, found.sources["store"])
    return settings


def open_store(store: str | None, *, creates: bool = False) -> Store:
    """The store alone that the option, the environment and the file name; to be used in a `with` statement."""
    return store_of(store_settings(store, creates=creates))


def chosen_settings(store: str | None, objects: str | None = None, *, creates: bool = False, **flags: Any) -> Settings:
    """The settings of a command that works on a store or through a server: a store that was named with it wins.

    A store in a file that is missing is refused, unless the command creates it.
    """
    found = resolved(store=store, objects=objects, **flags)
    settings = found.settings.model_copy(update={"server": None}) if names_store(found) else found.settings
    refuse_memory(settings)
    if not creates:
        _refuse_missing(settings, found.sources["store"])
    return settings


def open_services(store: str | None, objects: str | None = None, *, creates: bool = False) -> Services:
    """The services that the options, the environment and the file name; to be used in a `with` statement."""
    return services_of(chosen_settings(store, objects, creates=creates))
