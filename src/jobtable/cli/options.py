"""The options that commands share, and how a command opens what they name."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from functools import wraps
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any, get_origin

import typer

from jobtable.app import Services
from jobtable.cli.framework import COMMON, MOST_LINES
from jobtable.cli.opening import services_of, store_of
from jobtable.clock import SYSTEM_CLOCK
from jobtable.connection import store_file
from jobtable.errors import SettingsError, ValueRefusedError
from jobtable.settings import Resolved, Settings, resolve, without_secret
from jobtable.store import Store

_GIVEN: ContextVar[Mapping[str, str]] = ContextVar("options before the command", default={})  # noqa: B039 - never changed
_LONGEST = timedelta(days=365_000)  # so that now minus or plus a duration is a year of the calendar
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}

StoreUrl = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        help="Store: file:PATH, dynamodb://REGION or dynamodb+http://HOST:PORT "
        "(default: JOBTABLE_STORE, jobtable.toml, or file:.jobtable/jobtable.db)",
        rich_help_panel=COMMON,
    ),
]
ObjectsUrl = Annotated[
    str | None,
    typer.Option(
        "--objects",
        metavar="URL",
        help="Object store: file:PATH or s3://BUCKET/PREFIX "
        "(default: JOBTABLE_OBJECTS, jobtable.toml, or beside the store's file)",
        rich_help_panel=COMMON,
    ),
]
User = Annotated[
    str | None,
    typer.Option(
        "--user",
        metavar="NAME",
        help="User recorded for the change (default: JOBTABLE_USER, jobtable.toml, or local)",
        rich_help_panel=COMMON,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON", rich_help_panel=COMMON)]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=MOST_LINES, help="Maximum number to show")]


def duration(text: str | timedelta) -> timedelta:
    """Parse a duration such as 90s, 15m, 24h or 30d."""
    if isinstance(text, timedelta):
        return text
    number, unit = text[:-1], _UNITS.get(text[-1:])
    if unit is None or not number.isdecimal():
        raise typer.BadParameter(f"{text!r} is not a duration; write a number and s, m, h, d or w, as in 24h")
    try:
        length = timedelta(**{unit: int(number)})
    except (OverflowError, ValueError):  # Python does not read thousands of digits
        length = timedelta.max
    if length > _LONGEST:
        raise typer.BadParameter(f"{text!r} is too long; the maximum is {_LONGEST.days}d")
    return length


def instant(text: str | datetime) -> datetime:
    """Parse an instant: so long ago, as in 15m, or ISO 8601, in UTC if it names no zone."""
    if isinstance(text, datetime):
        return text
    if text[:-1].isdecimal():
        return SYSTEM_CLOCK.now() - duration(text)
    try:
        found = datetime.fromisoformat(text)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise typer.BadParameter(
            f"{text!r} is not a time; write how long ago, as in 15m, or an instant, as in 2025-11-01T20:30:00Z"
        ) from error


Since = Annotated[
    datetime | None,
    typer.Option(
        "--since",
        parser=instant,
        metavar="TIME",
        help="Only what is newer than this: 90s, 15m, 24h or 7d ago, or an instant such as 2025-11-01T20:30:00Z",
    ),
]


def file_to_write(path: Path) -> Path:
    """Return the regular file that a path leads to, which a whole new one may replace."""
    if path == Path("-"):
        raise ValueRefusedError("cannot write to the standard output; name a file instead of -")
    if path.exists() and not path.is_file():
        raise ValueRefusedError(f"{path} is a folder, a device or a pipe; name a regular file")
    file = Path(os.path.realpath(path))  # so that a link goes on to lead there
    if not os.access(file.parent, os.W_OK):
        raise ValueRefusedError(f"cannot write {path}: the folder {file.parent} does not exist or is not writable")
    return file


def give(**options: str | None) -> None:
    """Set the options before the command, for everything that the command resolves."""
    _GIVEN.set({name: value for name, value in options.items() if value is not None})


def resolved(**options: Any) -> Resolved:
    """Return the settings in force, given the options of a command; None means that one was not given."""
    given = {name: value for name, value in options.items() if value is not None}
    return resolve({**_GIVEN.get(), **given}, os.environ, Path.cwd())


def names_store(found: Resolved) -> bool:
    """Return whether `--store` was given, before the command or after it."""
    return found.sources["store"] == "--store"


def refuse_memory(settings: Settings) -> None:
    """Refuse a store in memory if another process must see what is stored: a worker, or the next command."""
    if settings.server is None and settings.store.startswith("memory:"):
        raise typer.BadParameter("a store in memory ends with this process; use --store file:PATH")


def is_missing(settings: Settings) -> bool:
    """Return whether the settings name a store in a file that does not exist."""
    return settings.server is None and settings.store.startswith("file:") and not store_file(settings.store).exists()


def _refuse_missing(settings: Settings, source: str) -> None:
    """Refuse a store in a file that does not exist: an empty new store would hide a typing error."""
    if is_missing(settings):
        named = "the default" if source == "default" else source
        raise SettingsError(
            f"there is no store at {store_file(settings.store)} ({named})",
            hint="name an existing one, or create it with `jobtable up`, `jobtable jobs submit` or "
            "`jobtable tables create`",
        )


def store_settings(store: str | None, *, creates: bool = False) -> Settings:
    """Return the settings of a command that needs a store itself; refuse a server in its place.

    Unless the command creates it, a store in a file must exist.
    """
    found = resolved(store=store)
    is_meant = found.sources["server"] == "--server" or found.sources["store"] == "default"
    if found.settings.server is not None and not names_store(found) and is_meant:
        server = without_secret(found.settings.server)
        raise typer.BadParameter(f"this command needs a store, not the server {server}; name one with --store")
    return _usable(found.settings.model_copy(update={"server": None}), found, creates=creates)


def open_store(store: str | None, *, creates: bool = False) -> Store:
    """Open the store alone that the option, the environment or the file names."""
    return store_of(store_settings(store, creates=creates))


def chosen_settings(
    store: str | None, objects: str | None = None, *, creates: bool = False, **options: Any
) -> Settings:
    """Return the settings of a command that works on a store or through a server; `--store` wins over a server.

    Unless the command creates it, a store in a file must exist.
    """
    found = resolved(store=store, objects=objects, **options)
    settings = found.settings.model_copy(update={"server": None}) if names_store(found) else found.settings
    return _usable(settings, found, creates=creates)


def _usable(settings: Settings, found: Resolved, *, creates: bool) -> Settings:
    refuse_memory(settings)
    if not creates:
        _refuse_missing(settings, found.sources["store"])
    return settings


def open_services(store: str | None, objects: str | None = None, *, creates: bool = False) -> Services:
    """Open the services that the options, the environment or the file name."""
    return services_of(chosen_settings(store, objects, creates=creates))


def on_services(
    command: Callable[..., None] | None = None, *, creates: bool = False, **setting_options: Any
) -> Callable[..., Any]:
    """Give a command the options `--store` and `--objects`, and open what they name while it runs.

    Its parameters that are not options are handed in by their class: `Services`, `Settings`, or a service of a system.
    `setting_options` are more options, each of which overrides the setting of its name: `user=User`.
    """
    if command is None:
        return lambda decorated: on_services(decorated, creates=creates, **setting_options)
    chosen_by = {**setting_options, "store": StoreUrl, "objects": ObjectsUrl}
    signature = inspect.signature(command, eval_str=True)
    own = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in signature.parameters.values()]
    handed_in = {each.name: each.annotation for each in own if get_origin(each.annotation) is not Annotated}

    @wraps(command)
    def run(**arguments: Any) -> None:
        settings = chosen_settings(creates=creates, **{name: arguments.pop(name) for name in chosen_by})
        with services_of(settings) as services:
            known = {Services: services, Settings: settings}
            needed = {name: known.get(kind) or services.get(kind) for name, kind in handed_in.items()}
            command(**needed, **arguments)

    added = [Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=how) for name, how in chosen_by.items()]
    last = [each for each in own if each.name == "as_json"]
    shown = [*(each for each in own if each.name not in ("as_json", *handed_in)), *added, *last]
    vars(run)["__signature__"] = signature.replace(parameters=shown)
    return run
