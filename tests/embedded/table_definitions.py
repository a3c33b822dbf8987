"""Requests that make and change a table "tab", and how the messages about them begin."""

from __future__ import annotations

from typing import Any

import pytest

from jobtable.errors import RequestError
from jobtable.store import Backend

Request = dict[str, Any]

INVALID = "One or more parameter values were invalid: "
BROKEN = "1 validation error detected: Value "

ALL = {"ProjectionType": "ALL"}


def definitions(*names: str, kind: str = "S") -> list[Request]:
    return [{"AttributeName": name, "AttributeType": kind} for name in names]


def keys(partition: str, sort: str = "") -> list[Request]:
    """HASH attributes and RANGE attributes, one letter each."""
    kinds = [(name, "HASH") for name in partition] + [(name, "RANGE") for name in sort]
    return [{"AttributeName": name, "KeyType": kind} for name, kind in kinds]


def index(name: str, partition: str, sort: str = "", **others: Any) -> Request:
    return {"IndexName": name, "KeySchema": keys(partition, sort), "Projection": ALL, **others}


def table(name: str = "tab", **others: Any) -> Request:
    request = {
        "TableName": name,
        "AttributeDefinitions": definitions("a"),
        "KeySchema": keys("a"),
        "BillingMode": "PAY_PER_REQUEST",
    }
    return {key: value for key, value in (request | others).items() if value is not None}


def units(read: int, write: int) -> Request:
    return {"ReadCapacityUnits": read, "WriteCapacityUnits": write}


def include(*names: str) -> Request:
    return {"ProjectionType": "INCLUDE", "NonKeyAttributes": list(names)}


def globals_(*indexes: Request, **others: Any) -> Request:
    return table(GlobalSecondaryIndexes=list(indexes), **others)


def locals_(*indexes: Request, **others: Any) -> Request:
    own: Request = {"AttributeDefinitions": definitions("a", "b"), "KeySchema": keys("a", "b")}
    return table() | own | {"LocalSecondaryIndexes": list(indexes)} | others


def provisioned(**others: Any) -> Request:
    return table(BillingMode=None) | {"ProvisionedThroughput": units(1, 1)} | others


def update(*changes: Request, **others: Any) -> Request:
    return {"TableName": "tab", "GlobalSecondaryIndexUpdates": list(changes), **others}


CHANGES: dict[str, Request] = {
    "encryption": {"SSESpecification": {"Enabled": True}},
    "class": {"TableClass": "STANDARD_INFREQUENT_ACCESS"},
    "protection": {"DeletionProtectionEnabled": True},
    "limit": {"OnDemandThroughput": {"MaxReadRequestUnits": 100}},
    "warm": {"WarmThroughput": {"ReadUnitsPerSecond": 20_000}},
    "stream": {"StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}},
    "units": {"ProvisionedThroughput": units(5, 5)},
    "on demand": {"BillingMode": "PAY_PER_REQUEST"},
    "provisioned": {"BillingMode": "PROVISIONED", "ProvisionedThroughput": units(5, 5)},
    "new index": {
        "AttributeDefinitions": definitions("b"),
        "GlobalSecondaryIndexUpdates": [{"Create": index("new", "b")}],
    },
    "old index": {"GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "old"}}]},
    "no index": {"GlobalSecondaryIndexUpdates": []},
}


def last_refusal(backend: Backend, requests: list[Request]) -> str:
    """What the last request is refused with: the update of a table that the others create, or a creation."""
    *before, refused = requests
    for created in before:
        backend.execute("CreateTable", created)
    with pytest.raises(RequestError) as caught:
        backend.execute("UpdateTable" if before else "CreateTable", {"TableName": "tab", **refused})
    return caught.value.message
