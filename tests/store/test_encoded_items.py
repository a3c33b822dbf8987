"""Entities that go to the engine as JSON: it looks at what it needs, also where a table has more than is declared."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.embedded.storage.consistency import inconsistencies

from jobtable.embedded import EmbeddedBackend
from jobtable.model import Entity, Key, Table, Timestamp
from jobtable.store import Store, requests
from jobtable.store.backend import EncodedItem

runs = Table("runs", pk="PK", sk="SK", type_attribute="TYPE")
NOON = datetime(2025, 11, 1, 12, tzinfo=UTC)


class Run(Entity, table=runs, type="RUN"):
    """One run."""

    key = Key("RUN#{run_id}", "RUN")

    run_id: str
    owner: str
    created_at: Timestamp
    ends: int | None = None
    labels: list[str] = []
    notes: dict[str, str] = {}
    is_public: bool = False


@pytest.fixture
def store() -> Iterator[Store]:
    with Store(EmbeddedBackend(None)) as store:
        store.tables.create(runs)
        yield store


def add_index(store: Store, projection: dict[str, Any]) -> None:
    """An index of which the declaration knows nothing, on an attribute that is in the JSON alone."""
    index = {
        "IndexName": "by_owner",
        "KeySchema": [{"AttributeName": "owner", "KeyType": "HASH"}],
        "Projection": projection,
    }
    store.backend.execute(
        "UpdateTable",
        {
            "TableName": runs.name,
            "AttributeDefinitions": [{"AttributeName": "owner", "AttributeType": "S"}],
            "GlobalSecondaryIndexUpdates": [{"Create": index}],
        },
    )


def owned_by(store: Store, owner: str) -> list[dict[str, Any]]:
    request = {
        "TableName": runs.name,
        "IndexName": "by_owner",
        "KeyConditionExpression": "#o = :o",
        "ExpressionAttributeNames": {"#o": "owner"},
        "ExpressionAttributeValues": {":o": {"S": owner}},
    }
    items: list[dict[str, Any]] = store.backend.execute("Query", request)["Items"]
    return items


def run(**values: Any) -> Run:
    return Run(run_id="1", created_at=NOON, **{"owner": "ann", **values})


def test_what_the_engine_does_not_look_at_stays_json() -> None:
    item = requests.put(run(), None, is_encoded=True).members["Item"]
    assert type(item) is EncodedItem
    assert item == {"PK": {"S": "RUN#1"}, "SK": {"S": "RUN"}, "TYPE": {"S": "RUN"}}
    assert item.whole() == requests.put(run(), None).members["Item"] == Run.__schema__.codec.encode(run())


@pytest.mark.parametrize(
    "projection",
    [
        {"ProjectionType": "ALL"},
        {"ProjectionType": "KEYS_ONLY"},
        {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["labels"]},
    ],
    ids=lambda projection: projection["ProjectionType"],
)
@pytest.mark.parametrize("verb", ["put", "batch", "transaction"])
def test_an_index_that_is_not_declared_is_kept_in_step(store: Store, projection: dict[str, Any], verb: str) -> None:
    def put(entity: Run) -> None:
        if verb == "put":
            store.put(entity)
        elif verb == "batch":
            store.batch_put([entity])
        else:
            with store.transaction() as tx:
                tx.put(entity)

    add_index(store, projection)
    put(run(labels=["a"]))
    found = {"KEYS_ONLY": {"PK", "SK", "owner"}, "INCLUDE": {"PK", "SK", "owner", "labels"}}
    whole = set(Run.__schema__.codec.encode(run()))
    assert [set(item) for item in owned_by(store, "ann")] == [found.get(projection["ProjectionType"], whole)]
    put(run(owner="bob"))
    assert (len(owned_by(store, "ann")), len(owned_by(store, "bob"))) == (0, 1)
    assert store.get(Run.key(run_id="1")) == run(owner="bob")


@pytest.mark.parametrize("is_there", [False, True])
@pytest.mark.parametrize("verb", ["put", "transaction"])
def test_an_index_that_comes_while_an_item_is_on_its_way_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, is_there: bool
) -> None:
    with (
        Store(EmbeddedBackend(tmp_path / "one.db")) as store,
        Store(EmbeddedBackend(tmp_path / "one.db")) as elsewhere,
    ):
        store.tables.create(runs)
        if is_there:
            store.put(run(owner="eve"))
        assert isinstance(store.backend, EmbeddedBackend)
        storage = store.backend._storage
        write = storage.write

        def write_later(action: Any) -> Any:
            add_index(elsewhere, {"ProjectionType": "ALL"})
            return write(action)

        monkeypatch.setattr(storage, "write", write_later)
        if verb == "put":
            store.put(run())
        else:
            with store.transaction() as tx:
                tx.put(run())
        assert [item["owner"]["S"] for item in owned_by(store, "ann")] == ["ann"]
        assert owned_by(store, "eve") == []
        assert inconsistencies(storage) == []


def test_a_time_of_expiry_that_is_not_declared_is_heeded(store: Store) -> None:
    ttl = {"AttributeName": "ends", "Enabled": True}
    store.backend.execute("UpdateTimeToLive", {"TableName": runs.name, "TimeToLiveSpecification": ttl})
    store.put(run(ends=int(datetime.now(UTC).timestamp()) - 60))
    assert isinstance(store.backend, EmbeddedBackend)
    assert store.backend.keep_up() == 1
    assert store.find(Run.key(run_id="1")) is None


def test_a_stream_has_whole_items_and_tells_only_of_changes(store: Store) -> None:
    execute = store.backend.execute
    stream = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    described = execute("UpdateTable", {"TableName": runs.name, "StreamSpecification": stream})["TableDescription"]
    store.put(run(labels=["a"], notes={"b": "c"}))
    store.put(run(labels=["a"], notes={"b": "c"}))
    store.put(run(labels=["b"], notes={"b": "c"}))
    arn = described["LatestStreamArn"]
    shard = execute("DescribeStream", {"StreamArn": arn})["StreamDescription"]["Shards"][0]["ShardId"]
    at = {"StreamArn": arn, "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON"}
    records = execute("GetRecords", execute("GetShardIterator", at))["Records"]
    encode = Run.__schema__.codec.encode
    before, after = encode(run(labels=["a"], notes={"b": "c"})), encode(run(labels=["b"], notes={"b": "c"}))
    images = [(record["dynamodb"].get("OldImage"), record["dynamodb"]["NewImage"]) for record in records]
    assert images == [(None, before), (before, after)]


def test_texts_and_names_are_escaped_as_json_wants_it(store: Store) -> None:
    hostile = '"},"PK":{"S":"\\\n\x00\x7f\u2028é😀'
    entity = run(owner=hostile, labels=[hostile, ""], notes={hostile: hostile})
    store.put(entity)
    assert store.get(Run.key(run_id="1")) == entity


def test_a_flag_that_nobody_has_looked_at_is_told_by_its_field(store: Store) -> None:
    with pytest.raises(ValueError, match=r"Run\.is_public: 'perhaps'"):
        store.put(run().model_copy(update={"is_public": "perhaps"}))
