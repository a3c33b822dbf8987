"""TTL: what has expired goes, everywhere, and nothing else does."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from tests.embedded.storage.consistency import inconsistencies

from jobtable.embedded import EmbeddedBackend
from jobtable.embedded.storage import Sized, Storage, Transaction, upkeep
from jobtable.errors import BackendUnavailable, RequestRefused
from jobtable.store import Store
from jobtable.testing import FakeClock, Faults, FaultyBackend, let_expire

DAY = 86_400

TABLE = {
    "TableName": "tab",
    "AttributeDefinitions": [
        {"AttributeName": "id", "AttributeType": "S"},
        {"AttributeName": "group", "AttributeType": "S"},
    ],
    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "by_group",
            "KeySchema": [{"AttributeName": "group", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
    "BillingMode": "PAY_PER_REQUEST",
    "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "OLD_IMAGE"},
}


@pytest.fixture
def backend(clock: FakeClock) -> Iterator[EmbeddedBackend]:
    made = EmbeddedBackend(None, clock=clock)
    made.execute("CreateTable", TABLE)
    yield made
    made.close()


def storage_of(backend: EmbeddedBackend) -> Storage:
    return backend._storage


def switch(backend: EmbeddedBackend, *, enabled: bool = True) -> None:
    specification = {"Enabled": enabled, "AttributeName": "expires_at"}
    backend.execute("UpdateTimeToLive", {"TableName": "tab", "TimeToLiveSpecification": specification})


def put(backend: EmbeddedBackend, name: str, ttl: Any) -> None:
    item: dict[str, Any] = {"id": {"S": name}, "group": {"S": "all"}}
    if ttl is not None:
        item["expires_at"] = ttl if isinstance(ttl, dict) else {"N": str(ttl)}
    backend.execute("PutItem", {"TableName": "tab", "Item": item})


def left(backend: EmbeddedBackend) -> set[str]:
    return {item["id"]["S"] for item in backend.execute("Scan", {"TableName": "tab"})["Items"]}


@pytest.mark.parametrize("enabled_first", [True, False])
def test_what_has_expired_goes_and_nothing_else(
    backend: EmbeddedBackend, clock: FakeClock, enabled_first: bool
) -> None:
    now = int(clock.seconds())
    if enabled_first:
        switch(backend)
    put(backend, "expired", now - 1)
    put(backend, "expired with a fraction", f"{now - 10}.75")
    put(backend, "now", now)
    put(backend, "later", now + 3600)
    put(backend, "long ago", now - 6 * 365 * DAY)
    put(backend, "never", None)
    put(backend, "text", {"S": str(now - 1)})
    put(backend, "negative", -5)
    put(backend, "beyond every date", "1E+100")
    if not enabled_first:
        switch(backend)
    assert storage_of(backend).keep_up() == 3
    stay = {"later", "long ago", "never", "text", "negative", "beyond every date"}
    assert left(backend) == stay
    clock.advance(3601)
    assert storage_of(backend).keep_up() == 1
    assert left(backend) == stay - {"later"}
    assert inconsistencies(storage_of(backend)) == []
    query = {
        "TableName": "tab",
        "IndexName": "by_group",
        "KeyConditionExpression": "#g = :g",
        "ExpressionAttributeNames": {"#g": "group"},
        "ExpressionAttributeValues": {":g": {"S": "all"}},
    }
    assert backend.execute("Query", query)["Count"] == len(stay) - 1


def test_an_item_that_is_renewed_survives(backend: EmbeddedBackend, clock: FakeClock) -> None:
    now = int(clock.seconds())
    switch(backend)
    put(backend, "renewed", now - 5)
    put(backend, "renewed", now + 5)
    put(backend, "no longer bound", now - 5)
    update = {"Key": {"id": {"S": "no longer bound"}}, "UpdateExpression": "REMOVE expires_at"}
    backend.execute("UpdateItem", {"TableName": "tab", **update})
    assert storage_of(backend).keep_up() == 0
    assert left(backend) == {"renewed", "no longer bound"}


def test_a_switched_off_attribute_means_nothing(backend: EmbeddedBackend, clock: FakeClock) -> None:
    switch(backend)
    put(backend, "old", int(clock.seconds()) - 5)
    switch(backend, enabled=False)
    put(backend, "old too", int(clock.seconds()) - 5)
    assert storage_of(backend).keep_up() == 0
    assert left(backend) == {"old", "old too"}
    switch(backend)
    assert storage_of(backend).keep_up() == 2


@pytest.mark.parametrize(
    ("attribute", "enabled", "message"),
    [
        ("expires_at", True, "TimeToLive is already enabled"),
        *(
            ("other", enabled, "TimeToLive is active on a different AttributeName: current AttributeName is expires_at")
            for enabled in (True, False)
        ),
    ],
)
def test_only_the_attribute_that_is_on_is_switched_off(
    backend: EmbeddedBackend, attribute: str, enabled: bool, message: str
) -> None:
    switch(backend)
    specification = {"Enabled": enabled, "AttributeName": attribute}
    with pytest.raises(RequestRefused) as caught:
        backend.execute("UpdateTimeToLive", {"TableName": "tab", "TimeToLiveSpecification": specification})
    assert caught.value.message == message


@pytest.mark.parametrize("bound", ["_EXPIRED_AT_ONCE", "_BYTES_REMOVED_AT_ONCE"])
def test_many_or_large_ones_go_in_small_transactions(
    backend: EmbeddedBackend, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    monkeypatch.setattr(upkeep, bound, 10)
    switch(backend)
    for number in range(35):
        put(backend, str(number), int(clock.seconds()) - 5)
    writes = []
    write = Storage.write

    def counting(storage: Storage, action: Any) -> Any:
        writes.append(action)
        return write(storage, action)

    monkeypatch.setattr(Storage, "write", counting)
    assert storage_of(backend).keep_up() == 35
    assert len(writes) >= 4
    assert left(backend) == set()


def test_the_stream_says_that_the_service_deleted_it(backend: EmbeddedBackend, clock: FakeClock) -> None:
    switch(backend)
    put(backend, "expired", int(clock.seconds()) - 5)
    put(backend, "deleted", None)
    storage_of(backend).keep_up()
    backend.execute("DeleteItem", {"TableName": "tab", "Key": {"id": {"S": "deleted"}}})
    (stream,) = backend.execute("ListStreams", {})["Streams"]
    described = backend.execute("DescribeStream", {"StreamArn": stream["StreamArn"]})["StreamDescription"]
    request = {
        "StreamArn": stream["StreamArn"],
        "ShardId": described["Shards"][0]["ShardId"],
        "ShardIteratorType": "TRIM_HORIZON",
    }
    iterator = backend.execute("GetShardIterator", request)["ShardIterator"]
    records = backend.execute("GetRecords", {"ShardIterator": iterator})["Records"]
    expired, deleted = [record for record in records if record["eventName"] == "REMOVE"]
    assert expired["userIdentity"] == {"Type": "Service", "PrincipalId": "dynamodb.amazonaws.com"}
    assert expired["dynamodb"]["OldImage"]["id"] == {"S": "expired"}
    assert "userIdentity" not in deleted


def test_it_happens_by_itself_in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "_SECONDS_BETWEEN_ROUNDS", 0.01)
    backend = EmbeddedBackend(None)
    backend.execute("CreateTable", TABLE)
    switch(backend)
    put(backend, "expired", int(time.time()) - 1)
    put(backend, "stays", int(time.time()) + 1000)
    deadline = time.monotonic() + 240
    while left(backend) != {"stays"} and time.monotonic() < deadline:
        time.sleep(0.01)
    assert left(backend) == {"stays"}
    backend.close()


def test_the_thread_runs_only_while_there_is_something_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "_SECONDS_BETWEEN_ROUNDS", 0.01)
    backend = EmbeddedBackend(None)

    def thread() -> threading.Thread | None:
        return storage_of(backend)._upkeep._thread

    backend.execute("CreateTable", {key: value for key, value in TABLE.items() if key != "StreamSpecification"})
    assert thread() is None
    switch(backend)
    first = thread()
    assert first is not None
    switch(backend, enabled=False)
    first.join()
    switch(backend)
    second = thread()
    assert second is not None
    backend.close()
    assert not second.is_alive()


def test_a_failing_disk_does_not_end_the_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "_SECONDS_BETWEEN_ROUNDS", 0.01)
    backend = EmbeddedBackend(None)
    backend.execute("CreateTable", TABLE)
    storage = storage_of(backend)
    real = storage._writer.run
    failures: list[Any] = []

    def failing(action: Any) -> Any:
        if isinstance(action, partial) and len(failures) < 3:
            failures.append(action)
            raise BackendUnavailable("the disk is full")
        return real(action)

    monkeypatch.setattr(storage._writer, "run", failing)
    switch(backend)
    put(backend, "expired", int(time.time()) - 1)
    deadline = time.monotonic() + 240
    while left(backend) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert left(backend) == set()
    assert len(failures) == 3
    backend.close()


def test_an_expired_item_is_only_deleted_by_a_transaction_that_finds_it_expired(
    backend: EmbeddedBackend, clock: FakeClock
) -> None:
    """The list of expiry times is read inside the transaction that deletes."""
    switch(backend)
    put(backend, "renewed", int(clock.seconds()) - 5)

    def renew_then_expire(transaction: Transaction) -> int:
        table = transaction.table("tab")
        assert table is not None
        old = {"id": {"S": "renewed"}, "group": {"S": "all"}, "expires_at": {"N": str(int(clock.seconds()) - 5)}}
        new = old | {"expires_at": {"N": str(int(clock.seconds()) + 60)}}
        transaction.put(table, table.position(old), Sized(new, 10), Sized(old, 10))
        return upkeep._expire_some("tab", clock.seconds(), transaction)

    assert storage_of(backend).write(renew_then_expire) == 0


def test_only_an_embedded_store_is_told_to_let_items_expire(backend: EmbeddedBackend, clock: FakeClock) -> None:
    switch(backend)
    put(backend, "expired", int(clock.seconds()) - 5)
    assert let_expire(Store(backend)) == 1
    assert left(backend) == set()
    with pytest.raises(TypeError, match="only the embedded engine"):
        let_expire(Store(FaultyBackend(backend, Faults(), seed=1)))
