"""Requests with junk in any place: every one of them is answered or refused, and none is changed."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from tests.embedded.side_by_side import N, Request, S

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import RequestError

ROW = {"pk": S("p"), "sk": S("1")}
VALUES = {":a": S("1")}
LOCAL_INDEX = {
    "IndexName": "loc",
    "KeySchema": [{"AttributeName": "a", "KeyType": "HASH"}, {"AttributeName": "b", "KeyType": "RANGE"}],
    "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["c"]},
}
GLOBAL_INDEX = {**LOCAL_INDEX, "ProvisionedThroughput": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}}
REQUESTS: dict[str, Request] = {
    "GetItem": {
        "TableName": "main",
        "Key": ROW,
        "ProjectionExpression": "#a",
        "ExpressionAttributeNames": {"#a": "a"},
        "ConsistentRead": True,
        "ReturnConsumedCapacity": "TOTAL",
    },
    "PutItem": {
        "TableName": "main",
        "Item": {**ROW, "g1": S("a"), "g2": N(1)},
        "ConditionExpression": "a <> :a",
        "ExpressionAttributeValues": VALUES,
        "ReturnValues": "ALL_OLD",
        "ReturnItemCollectionMetrics": "SIZE",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    },
    "UpdateItem": {
        "TableName": "main",
        "Key": ROW,
        "UpdateExpression": "SET a = :a",
        "ExpressionAttributeValues": VALUES,
        "ReturnValues": "ALL_NEW",
    },
    "DeleteItem": {"TableName": "hash", "Key": {"pk": S("1")}},
    "Query": {
        "TableName": "main",
        "KeyConditionExpression": "pk = :a",
        "ExpressionAttributeValues": VALUES,
        "FilterExpression": "a = :a",
        "IndexName": "lall",
        "Limit": 2,
        "Select": "COUNT",
        "ScanIndexForward": False,
        "ExclusiveStartKey": {"pk": S("1"), "sk": S("1"), "l1": S("a")},
    },
    "Scan": {"TableName": "main", "Limit": 2, "Segment": 0, "TotalSegments": 1, "ExclusiveStartKey": ROW},
    "BatchGetItem": {"RequestItems": {"hash": {"Keys": [{"pk": S("1")}], "ProjectionExpression": "a"}}},
    "BatchWriteItem": {
        "RequestItems": {"hash": [{"PutRequest": {"Item": {"pk": S("1")}}}, {"DeleteRequest": {"Key": {"pk": S("2")}}}]}
    },
    "TransactWriteItems": {
        "TransactItems": [
            {"Put": {"TableName": "hash", "Item": {"pk": S("1")}}},
            {"Update": {"TableName": "hash", "Key": {"pk": S("2")}, "UpdateExpression": "REMOVE a"}},
            {"ConditionCheck": {"TableName": "main", "Key": ROW, "ConditionExpression": "attribute_exists(pk)"}},
        ],
        "ClientRequestToken": "token",
    },
    "TransactGetItems": {"TransactItems": [{"Get": {"TableName": "hash", "Key": {"pk": S("1")}}}]},
    "CreateTable": {
        "TableName": "new",
        "AttributeDefinitions": [{"AttributeName": "a", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "a", "KeyType": "HASH"}],
        "BillingMode": "PROVISIONED",
        "ProvisionedThroughput": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1},
        "LocalSecondaryIndexes": [LOCAL_INDEX],
        "GlobalSecondaryIndexes": [GLOBAL_INDEX],
        "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
        "SSESpecification": {"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": "key"},
        "Tags": [{"Key": "a", "Value": "b"}],
        "TableClass": "STANDARD",
        "DeletionProtectionEnabled": False,
    },
    "UpdateTable": {
        "TableName": "hash",
        "BillingMode": "PROVISIONED",
        "ProvisionedThroughput": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1},
        "AttributeDefinitions": [{"AttributeName": "a", "AttributeType": "S"}],
        "GlobalSecondaryIndexUpdates": [{"Create": GLOBAL_INDEX}, {"Update": {"IndexName": "other"}}],
        "StreamSpecification": {"StreamEnabled": False},
        "OnDemandThroughput": {"MaxReadRequestUnits": 1},
        "WarmThroughput": {"ReadUnitsPerSecond": 1},
    },
    "UpdateTimeToLive": {"TableName": "hash", "TimeToLiveSpecification": {"Enabled": False, "AttributeName": "t"}},
    "ListTables": {"Limit": 2, "ExclusiveStartTableName": "abc"},
    "TagResource": {"ResourceArn": "arn:aws:dynamodb:a:1:table/none", "Tags": [{"Key": "a", "Value": "b"}]},
}
LONE_SURROGATE = "\ud800"
JUNK: list[Any] = [
    *(None, 5, -1, 1.5, True, 2**70, float("nan"), "", "a", "x" * 3000, LONE_SURROGATE),
    *([], [None], [5], [[]], [{}], {}),
    *({"S": 5}, {"S": "a", "N": "1"}, {"N": "x"}, {"a": None}, {"a": 5}, {"a": []}, {"": S("")}, S(LONE_SURROGATE)),
    *({LONE_SURROGATE: S("a")}, {"pk": N(1)}, {"Put": []}, {"Get": 5}, {"hash": {"Keys": [5]}}),
    {"hash": [{"PutRequest": {"Item": 5}}]},
]


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something stands in a request: in the request itself, and in everything inside."""
    pairs = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for name, inner in pairs:
        yield (*path, name)
        yield from places(inner, (*path, name))


def with_junk(request: Request, path: tuple[Any, ...], junk: Any) -> Request:
    changed: Any = copy.deepcopy(request)
    parent = changed
    for name in path[:-1]:
        parent = parent[name]
    parent[path[-1]] = copy.deepcopy(junk)
    return dict(changed)


@pytest.mark.parametrize("operation", REQUESTS)
def test_junk_is_refused_with_a_request_error_and_left_as_it_is(backend: EmbeddedBackend, operation: str) -> None:
    original, refusals = REQUESTS[operation], []
    for path in places(original):
        for junk in JUNK:
            request = with_junk(original, path, junk)
            sent = repr(request)
            try:
                backend.execute(operation, request)
            except RequestError as error:
                refusals.append(error)
            assert repr(request) == sent
    assert refusals
    assert all(refusal.message for refusal in refusals)
