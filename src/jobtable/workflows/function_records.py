"""Where the registered functions are, so that every worker of a store finds them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from importlib import import_module
from typing import TypeVar

from jobtable.errors import DefinitionError, kind_and_text
from jobtable.model import Attr, Entity, Json, Key, Timestamp, default
from jobtable.store import Store
from jobtable.store.patterns import access_pattern
from jobtable.store.queries import Query
from jobtable.workflows.functions import DurableConfig, Function, find_function, functions
from jobtable.workflows.table_and_queues import workflows

T = TypeVar("T")


class FunctionRecord(Entity, table=workflows, type="FUNCTION"):
    """The module that registers a function, and its settings."""

    key = Key("FUNCTION", "FUNCTION#{name}")

    name: str
    path: Attr[str]
    timeout_seconds: Attr[float] = default(900.0)
    memory_mb: Attr[int] = default(128)
    durable: Attr[Json] = default(None)
    """`{execution_timeout_seconds, retention_days}` of a durable function."""
    published_at: Attr[Timestamp | None] = default(None)
    """When what is recorded was recorded."""


class FunctionRecords:
    """The functions of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def publish(self) -> list[Function]:
        """Record all functions that this process has registered, and return them."""
        known = {record.name: record for record in self.query()}
        changed = [each for each in map(_record_of, functions()) if not _is_same(each, known.get(each.name))]
        now = self._store.clock.now()
        self._store.batch_put(each.model_copy(update={"published_at": now}) for each in changed)
        return functions()

    @access_pattern("List functions by name")
    def query(self) -> Query[FunctionRecord]:
        """The records of all functions, by name."""
        return self._store.query(FunctionRecord.key())

    @access_pattern("Get a function")
    def find_record(self, name: str) -> FunctionRecord | None:
        """Return the record of a function, or None; one of this process is published first."""
        if find_function(name) is not None:
            self.publish()
        return self._store.find(FunctionRecord.key(name=name))

    def list_names(self) -> list[str]:
        """Return the names of all recorded functions."""
        return [record.name for record in self.query()]

    def find(self, name: str) -> Function | None:
        """Return a function, importing its module; None if nobody has registered it, DefinitionError if it fails."""
        if (found := find_function(name)) is not None:
            return found
        record = self._store.find(FunctionRecord.key(name=name))
        return None if record is None else find_registered(name, record.path)


def _record_of(function: Function) -> FunctionRecord:
    config = function.durable or DurableConfig()
    return FunctionRecord(
        name=function.name,
        path=function.path,
        timeout_seconds=function.timeout_seconds,
        memory_mb=function.memory_mb,
        durable=asdict(config) if function.is_durable else None,
    )


def _is_same(record: FunctionRecord, known: FunctionRecord | None) -> bool:
    return known is not None and record == known.model_copy(update={"published_at": record.published_at})


def find_registered(name: str, path: str) -> Function:
    """Return the function of that name, importing the module of its path unless it is registered; DefinitionError."""
    return find_function(name) or import_registered("function", name, path, find_function)


def import_registered(kind: str, name: str, path: str, find: Callable[[str], T | None]) -> T:
    """Import the module of `module:name` and return what it registers under a name, or raise DefinitionError."""
    module = path.partition(":")[0]
    try:
        import_module(module)
    except Exception as error:  # whatever a module raises while it is imported
        raise DefinitionError(f"{kind} {name}: cannot import {module}: {kind_and_text(error)}") from error
    if (found := find(name)) is None:
        raise DefinitionError(f"{path} no longer registers the {kind} {name}; publish it again")
    return found
