"""kill -9 while a new index of a large table is filled, beside writers: it goes on where it was, nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator

from faults import workload
from faults.large_work import interrupt

from jobtable.embedded.dispatch import handler_of
from jobtable.embedded.storage import Storage
from jobtable.store.backend import Request

_INDEX = "later"


def run(trials: int = 40, seed: int = 1) -> Iterator[dict[str, object]]:
    """Kill that many writers, one after the other, in whose processes the index is filled as well."""
    return interrupt("fillings", _Fillings(), trials, seed)


class _Fillings:
    """The index is filled, and filled from the beginning when it is whole. That it is right is seen after each kill."""

    def __init__(self) -> None:
        self.begun = 0

    def prepare(self, storage: Storage) -> None:
        """Any table can get an index."""

    def go_on(self, storage: Storage) -> list[str]:
        if self.begun:
            _update(storage, {"Delete": {"IndexName": _INDEX}})
        key = [{"AttributeName": "text", "KeyType": "HASH"}, {"AttributeName": "key", "KeyType": "RANGE"}]
        projection = {"ProjectionType": "KEYS_ONLY"}
        _update(storage, {"Create": {"IndexName": _INDEX, "KeySchema": key, "Projection": projection}})
        self.begun += 1
        return []

    def end(self, storage: Storage) -> list[str]:
        return []


def _update(storage: Storage, change: Request) -> None:
    names = ("writer", "key", "status", "rank", "text")
    attributes = [{"AttributeName": name, "AttributeType": "S"} for name in names]
    request: Request = {"TableName": workload.TABLE, "GlobalSecondaryIndexUpdates": [change]}
    handler_of("UpdateTable")(storage, request | ({"AttributeDefinitions": attributes} if "Create" in change else {}))
