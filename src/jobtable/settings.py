"""Settings from options, environment variables and a file, each checked and with its source."""

from __future__ import annotations

import os
import pkgutil
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from jobtable.errors import SettingsError

FILE_NAME = "jobtable.toml"
FILE_VARIABLE = "JOBTABLE_CONFIG"
DEFAULT_STORE = "file:.jobtable/jobtable.db"
SECTIONS = {"assist": "jobtable.assist.assist_settings:AssistSettings.load"}
"""Tables of the file that have settings of their own, and what reads them."""
_OPTION_OF = {"queues": "--queue"}
"""Options whose names differ from their settings."""
_PROBLEMS = {
    "tuple_type": 'write a list of names, as in ["gpu", "default"]',
    "too_short": "write at least one name",
    "string_too_short": "a name must have at least one character",
}
"""Messages for problems that pydantic explains in Python's terms."""
_Name: TypeAlias = Annotated[str, Field(min_length=1)]


class Settings(BaseModel):
    """Settings of a command, a worker or a server; in the environment, a setting is called JOBTABLE_NAME."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    store: Annotated[str, Field(description="URL of the store with the tables.")] = DEFAULT_STORE
    objects: Annotated[
        str | None,
        Field(description="URL of the object store; by default next to the store's file."),
    ] = None
    server: Annotated[str | None, Field(description="Address of a server; commands use it instead of a store.")] = None
    token: Annotated[str | None, Field(description="Token for that server.")] = None
    user: Annotated[_Name, Field(description="User recorded as the owner of jobs and changes.")] = "local"
    host: Annotated[_Name, Field(description="Address that the server listens on.")] = "127.0.0.1"
    host_names: Annotated[
        tuple[_Name, ...],
        Field(description="Other host names of the server; separated by commas in a variable."),
    ] = ()
    port: Annotated[
        int, Field(ge=0, le=65535, description="Port that the server listens on; 0 selects a free one.")
    ] = 8765
    require_token: Annotated[
        bool, Field(description="Require a token on loopback too; other addresses always require one.")
    ] = False
    requests_per_minute: Annotated[
        int, Field(ge=1, description="Maximum number of requests per minute of one token or address.")
    ] = 1200
    most_request_bytes: Annotated[int, Field(ge=1024, description="Maximum size of a request in bytes.")] = 10_000_000
    most_upload_bytes: Annotated[
        int,
        Field(ge=1024, description="Maximum size of a file in bytes: a checkpoint, an artifact, an export."),
    ] = 10_000_000_000
    queues: Annotated[
        tuple[_Name, ...],
        Field(min_length=1, description="Queues that a worker serves; separated by commas in a variable."),
    ] = ("default",)
    slots: Annotated[int, Field(ge=1, le=1000, description="Number of jobs that a worker runs at once.")] = 1
    lease_seconds: Annotated[
        float,
        Field(
            ge=1,
            le=3600,
            description="Silent seconds after which a worker counts as dead and others take over its jobs.",
        ),
    ] = 30.0


@dataclass(frozen=True)
class Resolved:
    """The settings, and the source of each value."""

    settings: Settings
    sources: Mapping[str, str]


def variable(name: str) -> str:
    return f"JOBTABLE_{name.upper()}"


def without_secret(url: str) -> str:
    """Return a URL without its secret, because users paste output into tickets."""
    return re.sub(r"(://[^:/@?]*):[^?]*@", r"\1:***@", url)


def resolve(flags: Mapping[str, Any], environment: Mapping[str, str], folder: Path) -> Resolved:
    """Return the settings by precedence: flags that are not None, environment variables, the file, defaults.

    The file is `jobtable.toml` in the folder, or the one that JOBTABLE_CONFIG names. An empty variable counts as not
    set. An invalid value raises SettingsError with its source. If a store in a file comes from a later source than the
    objects, its objects are next to it: its jobs would change and delete the objects of another store.
    """
    values: dict[str, Any] = {}
    sources = dict.fromkeys(Settings.model_fields, "default")
    for place in (_of_file(environment, folder), _of_environment(environment), _of_flags(flags)):
        if "store" in place and _has_other_objects(place["store"].value, values.get("store")):
            values.pop("objects", None)
            sources["objects"] = "default"
        for name, given in place.items():
            values[name], sources[name] = given
    return Resolved(Settings.model_validate(values), sources)


def section(name: str, environment: Mapping[str, str], folder: Path) -> tuple[str, dict[str, Any]]:
    """Return where a table of the file is written, and what it has; it is empty if it is missing."""
    file = _file(environment, folder)
    found = _read(file).get(name, {}) if file else {}
    if not isinstance(found, dict):
        raise SettingsError(f"{file}, {name}: write a table, as in [{name}]")
    return f"{file or folder / FILE_NAME}, {name}", found


class _Given(NamedTuple):
    value: Any
    source: str


def _has_other_objects(store_url: str, before: str | None) -> bool:
    """Return whether objects named for an earlier store do not belong to this one."""
    return store_url != before and store_url.startswith(("file:", "memory:"))


def _of_file(environment: Mapping[str, str], folder: Path) -> dict[str, _Given]:
    file = _file(environment, folder)
    found: dict[str, _Given] = {}
    for name, value in _read(file).items() if file else ():
        if name in SECTIONS:
            pkgutil.resolve_name(SECTIONS[name])(environment, folder)  # refuses what is invalid
            continue
        if name not in Settings.model_fields:
            raise SettingsError(f"{file}: unknown setting {name!r}; settings are {', '.join(Settings.model_fields)}")
        found[name] = _Given(_checked(name, value, f"{file}, {name}", strict=True), str(file))
    return found


def _of_environment(environment: Mapping[str, str]) -> dict[str, _Given]:
    given = {name: variable(name) for name in Settings.model_fields if environment.get(variable(name))}
    return {name: _Given(_checked(name, _from_text(name, environment[key]), key), key) for name, key in given.items()}


def _of_flags(flags: Mapping[str, Any]) -> dict[str, _Given]:
    names = [name for name in Settings.model_fields if flags.get(name) is not None]
    given = {name: _OPTION_OF.get(name, f"--{name.replace('_', '-')}") for name in names}
    return {name: _Given(_checked(name, flags[name], flag), flag) for name, flag in given.items()}


def _file(environment: Mapping[str, str], folder: Path) -> Path | None:
    named = environment.get(FILE_VARIABLE)
    if named:
        return Path(named)
    usual = folder / FILE_NAME
    return usual if os.path.lexists(usual) else None  # reading a folder or a broken link raises


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"cannot read {file}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file} is not valid TOML: {error}") from error


def _from_text(name: str, text: str) -> Any:
    if name in ("queues", "host_names"):
        return tuple(part.strip() for part in text.split(","))
    return text


def _checked(name: str, value: Any, place: str, *, strict: bool = False) -> Any:
    """Return a valid value. TOML has types, so a quoted number in the file is an error."""
    if isinstance(value, list):
        value = tuple(value)
    try:
        return getattr(Settings.model_validate({name: value}, strict=strict), name)
    except ValidationError as error:
        problem = error.errors()[0]
        told = _PROBLEMS.get(problem["type"], problem["msg"].lower())
        raise SettingsError(f"{place}: invalid value {value!r}: {told}") from error
