"""Indexes that are behind their table, as those of DynamoDB are."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from jobtable.clock import Clock
from jobtable.embedded import EmbeddedBackend
from jobtable.store.backend import Backend, Item, Request, Response


class _Write(NamedTuple):
    """What a write left under a key, and when, on the monotonic clock."""

    table: str
    key: Item
    item: Item | None
    at: float


class LaggingIndexes:
    """Answers what indexes are asked from a copy of the tables that the last writes have not reached.

    A write reaches the copy when `most_behind` others have followed it, each item of a transaction or a batch for
    itself, or when `longest_seconds` have passed. So new items are missing, and what has changed or is gone is found
    where it was.
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
        """Copy the tables that a request will write to, unless they are followed already."""
        with self._lock:
            for name in {table for table, _ in written_by(request)} - self._primary.keys():
                self._copy_table(name)

    def follow(self, request: Request) -> None:
        """Take note of a write that has taken effect."""
        for table, written in written_by(request):
            with self._lock:  # also while it is read: what is noted last has to be what is there
                key = {name: written[name] for name in self._primary[table]}
                read = {"TableName": table, "Key": key, "ConsistentRead": True}
                item = self._backend.execute("GetItem", read).get("Item")
                self._behind.append(_Write(table, key, item, self._clock.monotonic()))

    def execute(self, operation: str, request: Request) -> Response:
        """What the indexes answer. What nobody has written to since the copy was made is up to date."""
        with self._lock:
            if request["TableName"] not in self._primary:
                return self._backend.execute(operation, request)
            while self._behind and self._is_due(self._behind[0]):
                self._take(self._behind.popleft())
        return self._copy.execute(operation, request)

    def close(self) -> None:
        """Remove the copy."""
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
        scan = {"TableName": name, "ConsistentRead": True}
        while True:
            page = self._backend.execute("Scan", scan)
            for item in page["Items"]:
                self._copy.execute("PutItem", {"TableName": name, "Item": item})
            if "LastEvaluatedKey" not in page:
                return
            scan = {**scan, "ExclusiveStartKey": page["LastEvaluatedKey"]}

    def _is_due(self, oldest: _Write) -> bool:
        is_old = oldest.at + self._longest_seconds <= self._clock.monotonic()
        return is_old or len(self._behind) > self._most_behind

    def _take(self, write: _Write) -> None:
        if write.item is None:
            self._copy.execute("DeleteItem", {"TableName": write.table, "Key": write.key})
        else:
            self._copy.execute("PutItem", {"TableName": write.table, "Item": write.item})


def written_by(request: Request) -> Iterator[tuple[str, Item]]:
    """The tables that a request writes to, and the items or their keys."""
    for table, entries in request.get("RequestItems", {}).items():
        for entry in entries:
            yield table, entry["PutRequest"]["Item"] if "PutRequest" in entry else entry["DeleteRequest"]["Key"]
    for action in request.get("TransactItems", ()):
        for kind, body in action.items():
            if kind != "ConditionCheck":
                yield body["TableName"], body.get("Key") or body["Item"]
    if "Key" in request or "Item" in request:
        yield request["TableName"], request.get("Key") or request["Item"]
