"""The settings: from flags, environment variables and a file, each checked, each knowing where it comes from."""

from __future__ import annotations

import os
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
_OPTION_OF = {"queues": "--queue"}
"""The options of commands that are called otherwise than their settings."""
_WORDS_OF_PROBLEM = {
    "tuple_type": 'write a list of names, as in ["gpu", "default"]',
    "too_short": "write one name at least",
    "string_too_short": "a name has one character at least",
}
"""By pydantic's name of a problem, what is told where its own words are those of Python."""
_Name: TypeAlias = Annotated[str, Field(min_length=1)]


class Settings(BaseModel):
    """What a command, a worker or a server is told. The same names in the file, and as JOBTABLE_NAME outside it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    store: Annotated[str, Field(description="Where the tables are: a store's URL.")] = DEFAULT_STORE
    objects: Annotated[
        str | None,
        Field(description="Where the objects are: an object store's URL. Not set: beside the store's file."),
    ] = None
    server: Annotated[
        str | None, Field(description="A server's address: commands work through it instead of on a store.")
    ] = None
    token: Annotated[str | None, Field(description="The token by which that server knows its caller.")] = None
    user: Annotated[_Name, Field(description="In whose name jobs are submitted and changed.")] = "local"
    host: Annotated[_Name, Field(description="The address that the server listens on.")] = "127.0.0.1"
    host_names: Annotated[
        tuple[_Name, ...],
        Field(description="Other names by which browsers may reach the server; commas separate them in a variable."),
    ] = ()
    port: Annotated[
        int, Field(ge=0, le=65535, description="The port that the server listens on; 0 takes a free one.")
    ] = 8765
    require_token: Annotated[
        bool, Field(description="Demand a token on loopback as well. On any other address one is always demanded.")
    ] = False
    requests_per_minute: Annotated[
        int, Field(ge=1, description="How many requests a minute the server answers to one token or address.")
    ] = 1200
    most_request_bytes: Annotated[int, Field(ge=1024, description="The largest request that the server takes.")] = (
        10_000_000
    )
    most_upload_bytes: Annotated[
        int,
        Field(ge=1024, description="The largest file that the server takes: a checkpoint, an artifact, an export."),
    ] = 10_000_000_000
    queues: Annotated[
        tuple[_Name, ...],
        Field(min_length=1, description="The queues that a worker serves; commas separate them in a variable."),
    ] = ("default",)
    slots: Annotated[int, Field(ge=1, le=1000, description="How many jobs a worker runs at once.")] = 1
    lease_seconds: Annotated[
        float,
        Field(ge=1, le=3600, description="After how many silent seconds a worker counts as dead, and its jobs go on."),
    ] = 30.0


@dataclass(frozen=True)
class Resolved:
    """The settings in force, and where each value comes from."""

    settings: Settings
    sources: Mapping[str, str]


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return f"JOBTABLE_{name.upper()}"


def without_secret(url: str) -> str:
    """A URL as it may be shown: what is printed is copied into tickets."""
    return re.sub(r"(://[^:/@?]*):[^?]*@", r"\1:***@", url)


def resolve(flags: Mapping[str, Any], environment: Mapping[str, str], folder: Path) -> Resolved:
    """The settings by precedence: flags that are not None, environment variables, the file, defaults.

    The file is `jobtable.toml` in the folder, or the one that JOBTABLE_CONFIG names. An empty variable counts as not
    set. What cannot be used is a SettingsError that says where it stands. A store in a file that is named nearer than
    the objects has its objects beside it: those of another store would be changed and deleted with its jobs.
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


class _Given(NamedTuple):
    value: Any
    source: str


def _has_other_objects(store_url: str, before: str | None) -> bool:
    """Whether objects that were named with the store before are not meant for this one."""
    return store_url != before and store_url.startswith(("file:", "memory:"))


def _of_file(environment: Mapping[str, str], folder: Path) -> dict[str, _Given]:
    file = _file(environment, folder)
    found: dict[str, _Given] = {}
    for name, value in _read(file).items() if file else ():
        if name not in Settings.model_fields:
            raise SettingsError(f"{file}: there is no setting {name!r}; there are {', '.join(Settings.model_fields)}")
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
    return usual if os.path.lexists(usual) else None  # a folder, or a link to nowhere, is told when it is read


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"cannot read {file}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file} is no TOML: {error}") from error


def _from_text(name: str, text: str) -> Any:
    if name in ("queues", "host_names"):
        return tuple(part.strip() for part in text.split(","))
    return text


def _checked(name: str, value: Any, place: str, *, strict: bool = False) -> Any:
    """The value as the setting wants it. TOML knows types of its own, so a quoted number in the file is a mistake."""
    if isinstance(value, list):
        value = tuple(value)
    try:
        return getattr(Settings.model_validate({name: value}, strict=strict), name)
    except ValidationError as error:
        problem = error.errors()[0]
        told = _WORDS_OF_PROBLEM.get(problem["type"], problem["msg"].lower())
        raise SettingsError(f"{place}: {value!r} cannot be used: {told}") from error
