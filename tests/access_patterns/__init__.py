"""Every access pattern of the specification, asked of a small world of items.

A world is a set of tables, the items in them, and a question for each access pattern with the answer it must get.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from jobtable.model import Entity, Table
from jobtable.store import Store
from jobtable.store.backend import Backend, Request, Response


@dataclass(frozen=True)
class Question:
    """How an access pattern is asked, and what it answers: names of items, in order."""

    ask: Callable[[Store], Iterable[Any]]
    answer: list[Any]


@dataclass(frozen=True)
class World:
    """Some tables with items, and the questions about them by (seed, title of the access pattern)."""

    name: str
    tables: tuple[Table, ...]
    items: Callable[[], Iterable[Entity]]
    questions: dict[tuple[str, str], Question]

    def create(self, store: Store) -> None:
        """Create the tables and put the items in."""
        store.tables.create(*self.tables)
        for item in self.items():
            store.put(item)


class RecordingBackend:
    """Passes requests on and keeps the names of their operations."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.operations: list[str] = []

    def execute(self, operation: str, request: Request) -> Response:
        self.operations.append(operation)
        return self._backend.execute(operation, request)

    def close(self) -> None:
        self._backend.close()
