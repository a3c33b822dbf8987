"""Consumed capacity and item collection metrics."""

from __future__ import annotations

import pytest
from tests.embedded.side_by_side import N, Pair, Request, S

from jobtable.embedded import EmbeddedBackend
from jobtable.embedded.storage import NO_ITEM, Sized
from jobtable.embedded.table_schema import IndexSchema, KeyAttribute
from jobtable.embedded.units import CONSISTENT, EVENTUAL, TRANSACTIONAL, TableUnits, read_units

MAIN: Request = {"TableName": "main"}
KEY: Request = {"pk": S("p"), "sk": S("1")}
INDEXES: Request = {"ReturnConsumedCapacity": "INDEXES"}


@pytest.mark.parametrize(
    ("size", "rate", "units"),
    [
        (0, EVENTUAL, 0.5),
        (0, CONSISTENT, 1.0),
        (1, EVENTUAL, 0.5),
        (4096, EVENTUAL, 0.5),
        (4097, EVENTUAL, 1.0),
        (4097, CONSISTENT, 2.0),
        (8192, TRANSACTIONAL, 4.0),
    ],
)
def test_reads_are_charged_by_4_kb(size: int, rate: float, units: float) -> None:
    assert read_units(size, rate) == units


def index(name: str, *, is_local: bool) -> IndexSchema:
    return IndexSchema(2, name, is_local, (KeyAttribute("k", "S"),), (), "ALL", frozenset())


def test_units_add_up_by_table_and_index() -> None:
    local, other_local, global_ = index("l", is_local=True), index("m", is_local=True), index("g", is_local=False)
    total = TableUnits(1.0, {"l": 1.0}, {"g": 2.0})
    changes = [
        (local, None, ("k",), 0, 900, False),
        (other_local, ("k",), ("l",), 1024, 900, False),
        (global_, ("k",), ("k",), 1000, 1200, True),
    ]
    total.add_write(NO_ITEM, Sized({}, 2000), changes, 2.0)
    assert total == TableUnits(5.0, {"l": 3.0, "m": 6.0}, {"g": 2.0})
    assert total.report("t", "TOTAL") == {"TableName": "t", "CapacityUnits": 16.0}
    assert total.report("t", "INDEXES") == {
        "TableName": "t",
        "CapacityUnits": 16.0,
        "Table": {"CapacityUnits": 5.0},
        "LocalSecondaryIndexes": {"l": {"CapacityUnits": 3.0}, "m": {"CapacityUnits": 6.0}},
        "GlobalSecondaryIndexes": {"g": {"CapacityUnits": 2.0}},
    }
    assert TableUnits(1.0).report("t", "TOTAL", "ReadCapacityUnits") == {
        "TableName": "t",
        "CapacityUnits": 1.0,
        "ReadCapacityUnits": 1.0,
    }


@pytest.mark.parametrize(("is_local", "most"), [(True, 924), (False, 1024)])
def test_an_entry_of_an_index_is_charged_by_1_kb(is_local: bool, most: int) -> None:
    schema = index("i", is_local=is_local)

    def units(before: str | None, after: str | None, size: int) -> float:
        total = TableUnits()
        keys = [None if key is None else (key,) for key in (before, after)]
        sizes = [0 if key is None else size for key in keys]
        total.add_write(NO_ITEM, NO_ITEM, [(schema, keys[0], keys[1], sizes[0], sizes[1], False)])
        return (total.local if is_local else total.global_)["i"]

    for size, once in ((1, 1.0), (most, 1.0), (most + 1, 2.0), (most + 1024, 2.0), (most + 1025, 3.0)):
        moves = {(None, "a"): once, ("a", None): once, ("a", "a"): once, ("a", "b"): 2 * once}
        assert {(before, after): units(before, after, size) for before, after in moves} == moves


def sized(size: int, **attributes: Request) -> Request:
    """An item of that many bytes that is in every index."""
    item = {**KEY, "g1": S("g"), "g2": N(1), "l1": S("l"), **attributes}
    return {**item, "a": S("x" * (size - 17))}


@pytest.mark.parametrize("size", [100, 924, 925, 1024, 1025, 2048, 2049, 5000])
def test_writes_are_charged_as_dynamodb_does(pair: Pair, size: int) -> None:
    for item in (sized(size), sized(size), sized(100), sized(size, g1=S("h")), sized(size, c=S("c")), KEY, KEY):
        pair.both("PutItem", {**MAIN, "Item": item, **INDEXES})
        pair.both("GetItem", {**MAIN, "Key": KEY, **INDEXES})
    pair.both("PutItem", {**MAIN, "Item": sized(size)})
    pair.both("DeleteItem", {**MAIN, "Key": KEY, **INDEXES})
    pair.both("DeleteItem", {**MAIN, "Key": KEY, **INDEXES})


@pytest.mark.parametrize("size", [4096, 4097])
def test_queries_are_charged_as_dynamodb_does(pair: Pair, size: int) -> None:
    pair.both("PutItem", {**MAIN, "Item": sized(size)})
    pair.both("PutItem", {**MAIN, "Item": {**sized(size), "sk": S("2"), "g2": N(2), "l1": S("m")}})
    by_partition = {"KeyConditionExpression": "pk = :v", "ExpressionAttributeValues": {":v": S("p")}}
    for index in (
        {},
        {"IndexName": "lall"},
        {"IndexName": "lkeys"},
        {"IndexName": "lkeys", "Select": "ALL_ATTRIBUTES"},
    ):
        pair.both("Query", {**MAIN, **by_partition, **index, **INDEXES})
    by_g1 = {"KeyConditionExpression": "g1 = :v", "ExpressionAttributeValues": {":v": S("g")}}
    pair.both("Query", {**MAIN, **by_g1, "IndexName": "gall", **INDEXES})
    pair.both("Scan", {**MAIN, "ReturnConsumedCapacity": "TOTAL"})


def test_a_transaction_costs_twice_as_much(backend: EmbeddedBackend) -> None:
    put = {"Put": {**MAIN, "Item": sized(1025)}}
    response = backend.execute("TransactWriteItems", {"TransactItems": [put], **INDEXES})
    [consumed] = response["ConsumedCapacity"]
    assert consumed["Table"] == {"CapacityUnits": 4.0, "WriteCapacityUnits": 4.0}
    assert consumed["CapacityUnits"] == consumed["WriteCapacityUnits"] == 18.0
    get = {"Get": {**MAIN, "Key": KEY}}
    response = backend.execute("TransactGetItems", {"TransactItems": [get], "ReturnConsumedCapacity": "TOTAL"})
    assert response["ConsumedCapacity"] == [{"TableName": "main", "CapacityUnits": 2.0, "ReadCapacityUnits": 2.0}]


def test_every_action_of_a_transaction_is_charged(backend: EmbeddedBackend) -> None:
    """DynamoDB Local charges one action for each table."""
    hash_: Request = {"TableName": "hash"}
    actions = [
        {"Put": {**hash_, "Item": {"pk": S("1")}}},
        {"Delete": {**hash_, "Key": {"pk": S("2")}}},
        {"Update": {**hash_, "Key": {"pk": S("3")}, "UpdateExpression": "REMOVE x"}},
        {"ConditionCheck": {**hash_, "Key": {"pk": S("4")}, "ConditionExpression": "attribute_not_exists(pk)"}},
    ]
    response = backend.execute("TransactWriteItems", {"TransactItems": actions, "ReturnConsumedCapacity": "TOTAL"})
    assert response["ConsumedCapacity"] == [{"TableName": "hash", "CapacityUnits": 8.0, "WriteCapacityUnits": 8.0}]


@pytest.mark.parametrize("operation", ["PutItem", "UpdateItem", "DeleteItem"])
def test_the_size_of_a_collection_is_told_for_tables_with_local_indexes(
    backend: EmbeddedBackend, operation: str
) -> None:
    wanted = {"ReturnItemCollectionMetrics": "SIZE"}
    named = "Item" if operation == "PutItem" else "Key"
    response = backend.execute(operation, {**MAIN, named: KEY, **wanted})
    assert response == {
        "ItemCollectionMetrics": {"ItemCollectionKey": {"pk": S("p")}, "SizeEstimateRangeGB": [0.0, 1.0]}
    }
    assert backend.execute(operation, {"TableName": "hash", named: {"pk": S("p")}, **wanted}) == {}
