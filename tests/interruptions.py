"""A process that dies between two writes, as often as there are places to die at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jobtable.objects import ObjectStore
from jobtable.store import Store
from jobtable.store.backend import Backend, Request, Response

_WRITES = {"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"}


class Interrupted(BaseException):
    """The process died here."""


class _Left:
    """How many writes are left until the process dies."""

    def __init__(self, writes: int) -> None:
        self._writes = writes

    def count(self) -> None:
        if self._writes == 0:
            raise Interrupted
        self._writes -= 1


class _DyingBackend:
    def __init__(self, backend: Backend, left: _Left) -> None:
        self._backend = backend
        self._left = left

    def execute(self, operation: str, request: Request) -> Response:
        if operation in _WRITES:
            self._left.count()
        return self._backend.execute(operation, request)

    def close(self) -> None:
        """It belongs to another store."""


class _DyingObjects:
    def __init__(self, objects: ObjectStore, left: _Left) -> None:
        self._objects = objects
        self._left = left

    def __getattr__(self, name: str) -> Any:
        if name in ("put", "delete"):
            self._left.count()
        return getattr(self._objects, name)


def dies_after(store: Store, objects: ObjectStore, writes: int, act: Callable[[Store, Any], object]) -> bool:
    """Do something in a process that dies after so many writes; says whether it died before it was done."""
    left = _Left(writes)
    dying = Store(_DyingBackend(store.backend, left), clock=store.clock, prefix=store.prefix)
    try:
        act(dying, _DyingObjects(objects, left))
    except Interrupted:
        return True
    return False
