"""Random requests about tables of their own: made, described, changed and deleted, also wrongly."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from tests.embedded.differential.requests import Request, Step

MADE_TABLES = ("Made1", "Made2")
_ATTRIBUTES = ("pk", "sk", "g1", "g2", "g3")
_THROUGHPUT = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}


def table_step(rng: Random) -> Step:
    """One operation on a table that may or may not be there."""
    operation = rng.choice(_WEIGHTED)
    return operation, _WRITERS[operation](rng)


def _name(rng: Random) -> str:
    return rng.choice((*MADE_TABLES, MADE_TABLES[0]) * 8 + ("Nope", "x", "bad name"))


def _key_schema(rng: Random, partition: tuple[str, ...], sort: tuple[str, ...]) -> list[dict[str, str]]:
    schema = [{"AttributeName": rng.choice(partition), "KeyType": "HASH"}]
    if rng.random() < 0.6:
        schema.append({"AttributeName": rng.choice(sort), "KeyType": "RANGE"})
    if rng.random() < 0.03:
        schema.reverse()
    if rng.random() < 0.03:
        schema.append({"AttributeName": rng.choice(_ATTRIBUTES), "KeyType": rng.choice(("HASH", "RANGE", "OTHER"))})
    return schema


def _projection(rng: Random) -> dict[str, Any]:
    kind = rng.choice(("ALL", "ALL", "KEYS_ONLY", "INCLUDE", "INCLUDE"))
    projection: dict[str, Any] = {"ProjectionType": kind}
    if kind == "INCLUDE" or rng.random() < 0.03:
        projection["NonKeyAttributes"] = rng.sample(("a", "b", "c", "d"), rng.randint(1, 3))
    if rng.random() < 0.05:
        projection = rng.choice(({}, {"ProjectionType": "SOME"}, {"ProjectionType": "INCLUDE"}))
    return projection


def _index(rng: Random, *, is_local: bool) -> dict[str, Any]:
    name = rng.choice(("First", "Second", "Third", "Fourth") * 8 + ("x", "bad name"))
    partition = ("pk",) if is_local and rng.random() < 0.95 else ("g1", "g2", "pk", "sk")
    index: dict[str, Any] = {
        "IndexName": name,
        "KeySchema": _key_schema(rng, partition, ("g2", "g3", "sk")),
        "Projection": _projection(rng),
    }
    if is_local and len(index["KeySchema"]) == 1 and rng.random() < 0.9:
        index["KeySchema"].append({"AttributeName": rng.choice(("g1", "g2")), "KeyType": "RANGE"})
    return index


def create_table(rng: Random) -> Request:
    """CreateTable."""
    request: Request = {"TableName": _name(rng), "KeySchema": _key_schema(rng, ("pk",), ("sk", "sk", "g1"))}
    if rng.random() < 0.5:
        request["GlobalSecondaryIndexes"] = [_index(rng, is_local=False) for _ in range(rng.choice((1, 1, 2, 3)))]
    if rng.random() < 0.35:
        request["LocalSecondaryIndexes"] = [_index(rng, is_local=True) for _ in range(rng.choice((1, 1, 2)))]
    indexes = [*request.get("GlobalSecondaryIndexes", ()), *request.get("LocalSecondaryIndexes", ())]
    schemas = [request["KeySchema"], *(index["KeySchema"] for index in indexes)]
    names = {part["AttributeName"] for schema in schemas for part in schema}
    request["AttributeDefinitions"] = _definitions(rng, names)
    _billing(rng, request, indexes)
    if rng.random() < 0.2:
        request["StreamSpecification"] = _stream(rng)
    if rng.random() < 0.1:
        request["DeletionProtectionEnabled"] = rng.choice((True, False))
    return request


def _definitions(rng: Random, names: set[str]) -> list[dict[str, str]]:
    chosen = set(names)
    if rng.random() < 0.05:
        chosen.add("unused")
    if rng.random() < 0.05:
        chosen.discard(rng.choice(sorted(chosen)))
    kinds = ("S", "S", "N", "B") if rng.random() < 0.95 else ("S", "SS", "X")
    return [{"AttributeName": name, "AttributeType": rng.choice(kinds)} for name in sorted(chosen)]


def _billing(rng: Random, request: Request, indexes: list[dict[str, Any]]) -> None:
    if rng.random() < 0.6:
        request["BillingMode"] = "PAY_PER_REQUEST"
        if rng.random() < 0.05:
            request["ProvisionedThroughput"] = _THROUGHPUT
        return
    request["ProvisionedThroughput"] = dict(_THROUGHPUT)
    for index in indexes:
        is_global = index in request.get("GlobalSecondaryIndexes", [])
        if is_global and rng.random() < 0.97:
            index["ProvisionedThroughput"] = dict(_THROUGHPUT)
    if rng.random() < 0.1:
        wrong: tuple[Any, ...] = ({}, {"ReadCapacityUnits": 0, "WriteCapacityUnits": 1}, {"ReadCapacityUnits": 1}, None)
        request["ProvisionedThroughput"] = rng.choice(wrong)


def _stream(rng: Random) -> dict[str, Any]:
    views = ("NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES", "KEYS_ONLY")
    usual: dict[str, Any] = {"StreamEnabled": True, "StreamViewType": rng.choice(views)}
    unusual = (
        {"StreamEnabled": False},
        {"StreamEnabled": True},
        {"StreamEnabled": False, "StreamViewType": "NEW_IMAGE"},
    )
    return usual if rng.random() < 0.7 else dict(rng.choice(unusual))


def update_table(rng: Random) -> Request:
    """UpdateTable: an index comes or goes, the billing, the stream or the protection changes."""
    request: Request = {"TableName": _name(rng)}
    change = rng.choice(("create", "create", "delete", "billing", "throughput", "stream", "protection", "none"))
    if change == "create":
        index = _index(rng, is_local=False)
        if rng.random() < 0.3:
            index["ProvisionedThroughput"] = dict(_THROUGHPUT)
        request["GlobalSecondaryIndexUpdates"] = [{"Create": index}]
        request["AttributeDefinitions"] = _definitions(
            rng, {"pk", *(part["AttributeName"] for part in index["KeySchema"])}
        )
    elif change == "delete":
        request["GlobalSecondaryIndexUpdates"] = [{"Delete": {"IndexName": rng.choice(("First", "Second", "Nope"))}}]
    elif change == "billing":
        request["BillingMode"] = rng.choice(("PAY_PER_REQUEST", "PROVISIONED"))
    elif change == "throughput":
        request["ProvisionedThroughput"] = rng.choice(({"ReadCapacityUnits": 7, "WriteCapacityUnits": 8}, _THROUGHPUT))
    elif change == "stream":
        request["StreamSpecification"] = _stream(rng)
    elif change == "protection":
        request["DeletionProtectionEnabled"] = rng.choice((True, False))
    return request


def _named(rng: Random) -> Request:
    return {"TableName": _name(rng)}


def list_tables(rng: Random) -> Request:
    """ListTables."""
    request: Request = {}
    if rng.random() < 0.4:
        request["Limit"] = rng.choice((1, 2, 5, 100, 0, 101))
    if rng.random() < 0.4:
        request["ExclusiveStartTableName"] = rng.choice((*MADE_TABLES, "Local", "Aaa", "x"))
    return request


def update_time_to_live(rng: Random) -> Request:
    """UpdateTimeToLive."""
    specification: dict[str, Any] = {"Enabled": rng.choice((True, True, False)), "AttributeName": rng.choice("ab")}
    if rng.random() < 0.1:
        specification.pop(rng.choice(sorted(specification)))
    return {"TableName": _name(rng), "TimeToLiveSpecification": specification}


_WRITERS: dict[str, Callable[[Random], Request]] = {
    "CreateTable": create_table,
    "DescribeTable": _named,
    "UpdateTable": update_table,
    "DeleteTable": _named,
    "ListTables": list_tables,
    "UpdateTimeToLive": update_time_to_live,
    "DescribeTimeToLive": _named,
}
_WEIGHTS = {
    "CreateTable": 6,
    "DescribeTable": 2,
    "UpdateTable": 4,
    "DeleteTable": 2,
    "ListTables": 1,
    "UpdateTimeToLive": 1,
    "DescribeTimeToLive": 1,
}
_WEIGHTED = tuple(operation for operation, weight in _WEIGHTS.items() for _ in range(weight))
