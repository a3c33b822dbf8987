"""Where the registered functions are, so that every worker of a store finds them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TypeVar

from jobtable.errors import DefinitionError, kind_and_text
from jobtable.model import Attr, Entity, Key
from jobtable.store import Store
from jobtable.workflows.functions import Function, find_function, functions
from jobtable.workflows.tables import workflows

T = TypeVar("T")


class FunctionRecord(Entity, table=workflows, type="FUNCTION"):
    """The module that registers a function."""

    key = Key("FUNCTION", "FUNCTION#{name}")

    name: str
    path: Attr[str]


class FunctionRecords:
    """The functions of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def publish(self) -> list[Function]:
        """Record all functions that this process has registered, and return them."""
        known = {record.name: record.path for record in self._store.query(FunctionRecord.key())}
        changed = [each for each in functions() if known.get(each.name) != each.path]
        self._store.batch_put(FunctionRecord(name=each.name, path=each.path) for each in changed)
        return functions()

    def list_names(self) -> list[str]:
        """Return the names of all recorded functions."""
        return [record.name for record in self._store.query(FunctionRecord.key())]

    def find(self, name: str) -> Function | None:
        """Return a function, importing the module that registers it; None if nobody has registered it."""
        if (found := find_function(name)) is not None:
            return found
        record = self._store.find(FunctionRecord.key(name=name))
        if record is None:
            return None
        return import_registered("function", name, record.path, find_function)


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
