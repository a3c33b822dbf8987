"""Indexes that lag behind their table, like those of DynamoDB."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from jobtable.clock import Clock
from jobtable.embedded import EmbeddedBackend
from jobtable.store.backend import Backend, Item, Request, Response
from jobtable.store.scans import pages


class _Write(NamedTuple):
    """The item that a write left under a key, and its monotonic time."""

    table: str
    key: Item
    item: Item | None
    at: float


class LaggingIndexes:
    """Answers reads of indexes from a copy of the tables that the latest writes have not reached.

    A write reaches the copy after `most_behind` later ones, counted by items, or after `longest_seconds`. Until then
    new items are missing, and changed or deleted ones are found in their old state.
    """

    def __init__(self, backend: Backend, most_behind: int, longest_seconds: float, clock: Clock) -> None:
        self._backend = backend
        self._copy = EmbeddedBackend(None, durability="normal", clock=clock)
        self._most_behind = most_behind
        self._longest_seconds = longest_seconds
        self._clock = clock
        self._primary: dict[str, tuple[str, ...]] = {}
        self._behind: deque[_Write] = deque()
        self._lock = threading.Lock()

    def begin(self, request: Request) -> None:
        """Copy the tables that a request is about to write to, unless they are already followed."""
        with self._lock:
            for name in {table for table, _ in written_by(request)} - self._primary.keys():
                self._copy_table(name)

    def follow(self, request: Request) -> None:
        """Record a write that has taken effect."""
        for table, written in written_by(request):
            with self._lock:  # includes the read, so that the last recorded state is the stored one
                key = {name: written[name] for name in self._primary[table]}
                read = {"TableName": table, "Key": key, "ConsistentRead": True}
                item = self._backend.execute("GetItem", read).get("Item")
                self._behind.append(_Write(table, key, item, self._clock.monotonic()))

    def execute(self, operation: str, request: Request) -> Response:
        """Answer a read of an index. Tables without writes are up to date."""
        with self._lock:
            if request["TableName"] not in self._primary:
                return self._backend.execute(operation, request)
            while self._behind and self._is_due(self._behind[0]):
                self._take(self._behind.popleft())
        return self._copy.execute(operation, request)

    def close(self) -> None:
        self._copy.close()

    def _copy_table(self, name: str) -> None:
        there = self._backend.execute("DescribeTable", {"TableName": name})["Table"]
        made = {member: there[member] for member in ("TableName", "AttributeDefinitions", "KeySchema")}
        for kind in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes"):
            if indexes := there.get(kind):
                members = ("IndexName", "KeySchema", "Projection")
                made[kind] = [{member: index[member] for member in members} for index in indexes]
        self._copy.execute("CreateTable", {**made, "BillingMode": "PAY_PER_REQUEST"})
        self._primary[name] = tuple(part["AttributeName"] for part in there["KeySchema"])
        scan: Request = {"TableName": name, "ConsistentRead": True}
        for page in pages(self._backend.execute, "Scan", scan):
            for item in page["Items"]:
                self._copy.execute("PutItem", {"TableName": name, "Item": item})

    def _is_due(self, oldest: _Write) -> bool:
        is_old = oldest.at + self._longest_seconds <= self._clock.monotonic()
        return is_old or len(self._behind) > self._most_behind

    def _take(self, write: _Write) -> None:
        if write.item is None:
            self._copy.execute("DeleteItem", {"TableName": write.table, "Key": write.key})
        else:
            self._copy.execute("PutItem", {"TableName": write.table, "Item": write.item})


def written_by(request: Request) -> Iterator[tuple[str, Item]]:
    """Yield the tables that a request writes to, with the items or their keys."""
    for table, entries in request.get("RequestItems", {}).items():
        for entry in entries:
            yield table, entry["PutRequest"]["Item"] if "PutRequest" in entry else entry["DeleteRequest"]["Key"]
    for action in request.get("TransactItems", ()):
        for kind, body in action.items():
            if kind != "ConditionCheck":
                yield body["TableName"], body.get("Key") or body["Item"]
    if "Key" in request or "Item" in request:
        yield request["TableName"], request.get("Key") or request["Item"]
