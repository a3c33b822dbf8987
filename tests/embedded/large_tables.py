"""A table that is too large for what is done to it at once, as the tests make it; it is done bit by bit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import strategies as st

from jobtable.embedded import EmbeddedBackend
from jobtable.embedded.storage import Storage
from jobtable.embedded.storage.upkeep import _UNFINISHED, Upkeep, fill_up

ITEMS = 20
Request = dict[str, Any]


def index(name: str, *keys: str) -> Request:
    schema = [{"AttributeName": key, "KeyType": kind} for key, kind in zip(keys, ("HASH", "RANGE"), strict=False)]
    return {"IndexName": name, "KeySchema": schema, "Projection": {"ProjectionType": "ALL"}}


TABLE: Request = {
    "TableName": "tab",
    "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in ("id", "part", "group")],
    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}, {"AttributeName": "part", "KeyType": "RANGE"}],
    "GlobalSecondaryIndexes": [index("by_group", "group", "id")],
    "LocalSecondaryIndexes": [index("local", "id", "group")],
    "BillingMode": "PAY_PER_REQUEST",
}


@contextmanager
def nothing_by_itself() -> Iterator[None]:
    """Nothing is done but by `step`."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Upkeep, "start_if_needed", lambda *_, **__: None)
        yield


def switch(backend: EmbeddedBackend, table: str = "tab", *, enabled: bool = True, **others: Any) -> None:
    specification = {"PointInTimeRecoveryEnabled": enabled, **others}
    backend.execute("UpdateContinuousBackups", {"TableName": table, "PointInTimeRecoverySpecification": specification})


def put(backend: EmbeddedBackend, number: int, group: str, table: str = "tab") -> None:
    item = {"id": {"S": str(number)}, "part": {"S": "0"}, "group": {"S": group}, "text": {"S": group * 30}}
    backend.execute("PutItem", {"TableName": table, "Item": item})


def delete(backend: EmbeddedBackend, number: int) -> None:
    backend.execute("DeleteItem", {"TableName": "tab", "Key": {"id": {"S": str(number)}, "part": {"S": "0"}}})


def items(backend: EmbeddedBackend, table: str = "tab", **others: Any) -> dict[str, Request]:
    found = backend.execute("Scan", {"TableName": table, **others})["Items"]
    return {item["id"]["S"]: item for item in found}


def storage_of(backend: EmbeddedBackend) -> Storage:
    return backend._storage


def step(backend: EmbeddedBackend) -> bool:
    """Do one transaction of what is unfinished; False when nothing is left to do."""
    storage = storage_of(backend)
    once = iter([False])
    fill_up(storage, lambda: next(once, True))
    return bool(storage.query(_UNFINISHED))


def until(is_so: Callable[[], bool]) -> None:
    """Wait until it is so."""
    deadline = time.monotonic() + 240
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


Change = tuple[int, str]
"""An item's number, and its new group; "gone": it is deleted."""

changes = st.lists(st.tuples(st.integers(0, ITEMS + 5), st.sampled_from(["x", "y", "gone"])), max_size=6)


def write(backend: EmbeddedBackend, written: list[Change]) -> None:
    for number, group in written:
        delete(backend, number) if group == "gone" else put(backend, number, group)
