"""Versions of functions, which never change, and aliases, which name one of them.

The code of a function stays in its module: a version records the digest of the file, and runs only that code. After a
change it fails with an error that says so; `$LATEST` always runs what there is.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import asdict, replace
from random import Random
from typing import Annotated, Any

from pydantic import Field

from jobtable.errors import AlreadyExistsError, ConflictError, DefinitionError, ValueRefusedError, missing
from jobtable.model import Attr, Entity, Json, Key, Stored, Timestamp, default, unchanged
from jobtable.store import Store, TryAgain
from jobtable.store.queries import Query
from jobtable.workflows.function_records import find_registered
from jobtable.workflows.functions import LATEST, DurableConfig, Function
from jobtable.workflows.table_and_queues import workflows


class FunctionVersion(Entity, table=workflows, type="FUNCTION_VERSION"):
    """A function as it was when the version was published."""

    key = Key("FUNCTION#{function}", "VERSION#{version:08d}")

    function: str
    version: Stored[Annotated[int, Field(ge=1, le=99_999_999)]]
    path: str
    code_sha256: str
    """Of the file of its module."""
    timeout_seconds: float
    memory_mb: int
    is_inline: bool = False
    durable: Json = None
    """`{execution_timeout_seconds, retention_days}` of a durable function."""
    description: str = ""
    published_at: Timestamp


class FunctionAlias(Entity, table=workflows, type="FUNCTION_ALIAS"):
    """A name for a version, or for two of which each gets a share of the calls."""

    key = Key("FUNCTION#{function}", "ALIAS#{name}")

    function: str
    name: str
    version: Attr[str]
    weights: Attr[Json] = default(None)
    """The other version, with the share of the calls that it gets: `{"2": 0.1}`."""
    description: Attr[str] = default("")
    revision_id: Attr[str]
    """Another one after each change."""


class FunctionVersions:
    """The versions and aliases of the functions of a store."""

    def __init__(self, store: Store, random: Random | None = None) -> None:
        self._store = store
        self._random = random or Random()  # noqa: S311 - spreads calls, guards nothing

    # --- versions ---------------------------------------------------------------------------------------------------

    def publish(self, function: Function, description: str = "") -> FunctionVersion:
        """Record what a function is now, or return the latest version if that is the same."""
        if function.code_sha256 is None:
            raise ConflictError(f"the function {function.name} has no version: its module has no file")
        made = _version_of(function, description, self._store.clock.now())

        def add(last: FunctionVersion | None) -> FunctionVersion:
            if last is not None and _is_same(last, made):
                return last
            new = made.model_copy(update={"version": 1 if last is None else last.version + 1})
            try:
                self._store.add(new)
            except AlreadyExistsError as error:
                raise TryAgain("another version was published meanwhile") from error
            return new

        newest = self._store.query(FunctionVersion.key(function=function.name), newest_first=True, limit=1)
        return self._store.retrying(newest.first, add, f"publish a version of function {function.name}")

    def list(self, function: str) -> Query[FunctionVersion]:
        """The versions of a function, the oldest first."""
        return self._store.query(FunctionVersion.key(function=function))

    def find(self, function: str, version: str) -> FunctionVersion | None:
        """Return a version by its number, or None."""
        if not (version.isascii() and version.isdigit() and len(version) <= 8 and int(version)):
            return None
        return self._store.find(FunctionVersion.key(function=function, version=int(version)))

    def find_version(self, function: str, qualifier: str | None) -> str | None:
        """Return the version that a qualifier names, `$LATEST` if there is none; None for an unknown one."""
        if qualifier is None or qualifier == LATEST:
            return LATEST
        if self.find(function, qualifier) is not None:
            return str(int(qualifier))
        alias = self.find_alias(function, qualifier)
        return None if alias is None else self._choose(alias)

    def restore(self, version: FunctionVersion) -> Function:
        """Return the function of a version, importing its module; DefinitionError if that has changed."""
        function = find_registered(version.function, version.path)
        if function.path != version.path or function.code_sha256 != version.code_sha256:
            module = version.path.partition(":")[0]
            raise DefinitionError(
                f"function {version.function}:{version.version}: {module} has changed since the version was published; "
                "restore the file, or publish and use a new version"
            )
        durable = None if version.durable is None else DurableConfig(**version.durable)
        return replace(
            function,
            timeout_seconds=version.timeout_seconds,
            memory_mb=version.memory_mb,
            is_inline=version.is_inline,
            durable=durable,
            version=str(version.version),
        )

    # --- aliases ----------------------------------------------------------------------------------------------------

    def create_alias(
        self, function: str, name: str, version: str, weights: Mapping[str, float] | None = None, description: str = ""
    ) -> FunctionAlias:
        """Create an alias; AlreadyExistsError if it exists, NotFoundError for an unknown version."""
        self._check_routes(function, version, weights)
        made = FunctionAlias(
            function=function,
            name=name,
            version=version,
            weights=dict(weights) if weights else None,
            description=description,
            revision_id=str(uuid.uuid4()),
        )
        try:
            self._store.add(made)
        except AlreadyExistsError as error:
            raise AlreadyExistsError(f"function {function} already has an alias {name}") from error
        return made

    def update_alias(self, function: str, name: str, changes: Mapping[str, Any]) -> FunctionAlias:
        """Change `version`, `weights` or `description` of an alias."""

        def change(alias: FunctionAlias) -> FunctionAlias:
            after = alias.model_copy(update={**changes, "revision_id": str(uuid.uuid4())})
            self._check_routes(function, after.version, after.weights)
            self._store.put(after, when=unchanged(alias, FunctionAlias.revision_id))
            return after

        return self._store.retrying(lambda: self.get_alias(function, name), change, f"change alias {function}:{name}")

    def find_alias(self, function: str, name: str) -> FunctionAlias | None:
        """Return an alias, or None."""
        return self._store.find(FunctionAlias.key(function=function, name=name))

    def get_alias(self, function: str, name: str) -> FunctionAlias:
        """Return an alias, or raise NotFoundError."""
        found = self.find_alias(function, name)
        if found is None:
            raise missing("alias", f"{function}:{name}")
        return found

    def list_aliases(self, function: str) -> Query[FunctionAlias]:
        """The aliases of a function, by name."""
        return self._store.query(FunctionAlias.key(function=function))

    def delete_alias(self, function: str, name: str) -> None:
        """Delete an alias; a missing one is not an error."""
        self._store.delete(FunctionAlias.key(function=function, name=name))

    def _choose(self, alias: FunctionAlias) -> str:
        for version, share in (alias.weights or {}).items():
            if self._random.random() < share:
                return str(version)
        return alias.version

    def _check_routes(self, function: str, version: str, weights: Mapping[str, float] | None) -> None:
        for each in (version, *(weights or ())):
            if each != LATEST and self.find(function, each) is None:
                raise missing("function", f"{function}:{each}")
        if not weights:
            return
        if len(weights) > 1 or version in weights or LATEST in (version, *weights):
            raise ValueRefusedError("an alias divides its calls between two different numbered versions")
        if not all(isinstance(share, int | float) and 0 <= share <= 1 for share in weights.values()):
            raise ValueRefusedError("the weight of a version must be from 0.0 to 1.0")


def _version_of(function: Function, description: str, now: Any) -> FunctionVersion:
    config = function.durable or DurableConfig()
    return FunctionVersion(
        function=function.name,
        version=1,
        path=function.path,
        code_sha256=str(function.code_sha256),
        timeout_seconds=function.timeout_seconds,
        memory_mb=function.memory_mb,
        is_inline=function.is_inline,
        durable=asdict(config) if function.is_durable else None,
        description=description,
        published_at=now,
    )


def _is_same(last: FunctionVersion, made: FunctionVersion) -> bool:
    same = {"version": last.version, "published_at": last.published_at, "description": last.description}
    return last == made.model_copy(update=same)
