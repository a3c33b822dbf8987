"""Indexes in which every item is as it was some writes ago, each item for itself: DynamoDB promises no more."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from jobtable.clock import Clock
from jobtable.embedded import EmbeddedBackend
from jobtable.store.backend import Backend, Item, Request, Response
from jobtable.testing.index_lag import written_by

_WRITES = {"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"}
_Key = tuple[str, tuple[str, ...]]


class _Version(NamedTuple):
    """What stood under a key from a write on, and when that was, on the monotonic clock."""

    item: Item | None
    write: int
    at: float


class StaleIndexes:
    """Passes requests on, but answers questions to indexes from items as they were up to `most_behind` writes ago.

    An item that has just been seen changed may be seen as it was before, because any of three copies of an index may
    answer. Nothing is older than `longest_seconds`. The same seed makes the same choices.
    """

    def __init__(
        self, backend: Backend, *, seed: int, clock: Clock, most_behind: int = 40, longest_seconds: float = 20
    ) -> None:
        self.is_stale = False
        self._backend = backend
        self._random = Random(seed)
        self._clock = clock
        self._most_behind = most_behind
        self._longest_seconds = longest_seconds
        self._shown = EmbeddedBackend(None, durability="normal", clock=clock)
        self._primary: dict[str, tuple[str, ...]] = {}
        self._versions: dict[_Key, list[_Version]] = {}
        self._keys: dict[_Key, Item] = {}
        self._writes = 0

    def execute(self, operation: str, request: Request) -> Response:
        if operation == "CreateTable":
            self._primary[request["TableName"]] = tuple(part["AttributeName"] for part in request["KeySchema"])
            self._shown.execute(operation, request)
        if operation in _WRITES:
            return self._write(operation, request)
        if operation in ("Query", "Scan") and "IndexName" in request and self.is_stale:
            self._choose()
            return self._shown.execute(operation, dict(request))
        return self._backend.execute(operation, request)

    def close(self) -> None:
        self._shown.close()
        self._backend.close()

    def _write(self, operation: str, request: Request) -> Response:
        keys = [
            (table, {name: item[name] for name in self._primary[table]}) for table, item in written_by(dict(request))
        ]
        for table, key in keys:
            self._note(table, key)
        response = self._backend.execute(operation, request)
        self._writes += 1
        for table, key in keys:
            self._note(table, key)
        return response

    def _note(self, table: str, key: Item) -> None:
        named = (table, tuple(next(iter(value.values())) for value in key.values()))
        versions = self._versions.setdefault(named, [])
        item = self._backend.execute("GetItem", {"TableName": table, "Key": key, "ConsistentRead": True}).get("Item")
        if not versions or versions[-1].item != item:
            versions.append(_Version(item, self._writes, self._clock.monotonic()))
        self._keys[named] = key

    def _choose(self) -> None:
        """Show each item as it was at some time that is not too long ago."""
        oldest_write = self._writes - self._most_behind
        oldest_time = self._clock.monotonic() - self._longest_seconds
        for named, versions in list(self._versions.items()):
            # A version is over when the next one is there: that may not be too long ago.
            while len(versions) > 1 and (versions[1].write <= oldest_write or versions[1].at <= oldest_time):
                versions.pop(0)
            chosen = versions[0] if self._random.random() < 0.5 else self._random.choice(versions)
            self._show(named[0], self._keys[named], chosen.item)
            if len(versions) == 1:
                del self._versions[named]

    def _show(self, table: str, key: Item, item: Item | None) -> None:
        if item is None:
            self._shown.execute("DeleteItem", {"TableName": table, "Key": key})
        else:
            self._shown.execute("PutItem", {"TableName": table, "Item": item})
