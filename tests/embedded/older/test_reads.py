"""AttributesToGet and KeyConditions."""

from __future__ import annotations

from typing import Any

import pytest
from tests.embedded.side_by_side import N, Pair, Request, S

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import RequestRefused

HASH: Request = {"TableName": "hash"}
MAIN: Request = {"TableName": "main"}
ONE: Request = {**HASH, "Key": {"pk": S("1")}}
ROW: Request = {**MAIN, "Key": {"pk": S("p"), "sk": S("1")}}


def compared(operator: str, *values: Any) -> Request:
    return {"ComparisonOperator": operator} | ({"AttributeValueList": list(values)} if values else {})


def keyed(**conditions: Request) -> Request:
    return {**MAIN, "KeyConditions": conditions}


P = keyed(pk=compared("EQ", S("p")))
GALL: Request = {**keyed(g1=compared("EQ", S("g"))), "IndexName": "gall"}
GKEYS: Request = {**GALL, "IndexName": "gkeys"}
LKEYS: Request = {**P, "IndexName": "lkeys"}
CAPACITY: Request = {"ReturnConsumedCapacity": "INDEXES"}

QUERIES: list[Request] = [
    P,
    {**P, "ScanIndexForward": False, "Limit": 2, **CAPACITY},
    {**P, "ExclusiveStartKey": {"pk": S("p"), "sk": S("2")}},
    *(
        keyed(pk=compared("EQ", S("p")), sk=condition)
        for condition in (
            *(compared(operator, S("2")) for operator in ("EQ", "LE", "LT", "GE", "GT", "BEGINS_WITH")),
            compared("BETWEEN", S("1"), S("3")),
        )
    ),
    {**P, "Select": "COUNT", "QueryFilter": {"g2": compared("GT", N(2))}},
    {**P, "FilterExpression": "g2 > :two", "ExpressionAttributeValues": {":two": N(2)}},
    {**P, "ProjectionExpression": "a, sk"},
    {**P, "AttributesToGet": ["a", "sk", "nope"], "QueryFilter": {"g2": compared("IN", N(1), N(3))}},
    {**P, "AttributesToGet": ["a"], "Select": "SPECIFIC_ATTRIBUTES"},
    {**GALL, "Limit": 2, **CAPACITY},
    {**GALL, "QueryFilter": {"pk": compared("EQ", S("p")), "a": compared("NOT_NULL")}},
    {**GALL, "KeyConditions": {"g1": compared("EQ", S("g")), "g2": compared("LT", N(3))}},
    {**LKEYS, "AttributesToGet": ["a", "pk"], **CAPACITY},
    {**LKEYS, "KeyConditions": {"pk": compared("EQ", S("p")), "g2": compared("BETWEEN", N(1), N(2))}},
]


@pytest.mark.parametrize("request_", QUERIES)
def test_queries_are_answered_as_by_dynamodb(filled_pair: Pair, request_: Request) -> None:
    assert filled_pair.both("Query", request_).code is None


BAD_QUERIES: list[Request] = [
    keyed(),
    {**MAIN, "QueryFilter": {"a": compared("NULL")}},
    keyed(sk=compared("EQ", S("1"))),
    keyed(pk=compared("LT", S("p"))),
    keyed(pk=compared("EQ", N(1))),
    keyed(pk=compared("EQ", S(""))),
    keyed(pk=compared("EQ")),
    keyed(pk=compared("EQ", S("p")), a=compared("EQ", S("A"))),
    keyed(pk=compared("EQ", S("p")), sk=compared("EQ", N(1))),
    keyed(pk=compared("EQ", S("p")), sk=compared("CONTAINS", S("1"))),
    keyed(pk=compared("EQ", S("p")), sk=compared("IN", S("1"))),
    keyed(pk=compared("EQ", S("p")), sk=compared("BETWEEN", S("2"), S("1"))),
    keyed(pk=compared("EQ", S("p")), sk=compared("EQ", S("1")), a=compared("NULL")),
    {**HASH, "KeyConditions": {"pk": compared("EQ", S("1")), "a": compared("EQ", S("A"))}},
    {**P, "TableName": "nope"},
    {**P, "QueryFilter": {"pk": compared("EQ", S("p"))}},
    {**P, "QueryFilter": {"sk": compared("NULL")}},
    {**GALL, "QueryFilter": {"g2": compared("NULL")}},
    {**GKEYS, "QueryFilter": {"a": compared("NULL")}},
    {**LKEYS, "QueryFilter": {"a": compared("NULL")}},
    {**GKEYS, "AttributesToGet": ["a"]},
    *({**P, "AttributesToGet": ["a"], "Select": wanted} for wanted in ("COUNT", "ALL_ATTRIBUTES")),
    {**P, "FilterExpression": "a = "},
    {**P, "ProjectionExpression": "a", "ExpressionAttributeNames": {"#a": "a"}},
    {**P, "ExpressionAttributeNames": {"#a": "a"}},
    {**P, "KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": {":p": S("p")}},
]


@pytest.mark.parametrize("request_", BAD_QUERIES)
def test_wrong_queries_are_refused_as_by_dynamodb(filled_pair: Pair, request_: Request) -> None:
    assert filled_pair.both("Query", request_).code is not None


@pytest.mark.parametrize("condition", [compared("NULL"), compared("NOT_NULL"), compared("NE", S("p"))])
def test_what_no_index_answers_is_refused(backend: EmbeddedBackend, condition: Request) -> None:
    # DynamoDB Local has words of its own for some, and fails inside for others.
    for request in (keyed(pk=condition), keyed(pk=compared("EQ", S("p")), sk=condition)):
        with pytest.raises(RequestRefused, match="Attempted conditional constraint is not an indexable operation"):
            backend.execute("Query", request)


READS: list[tuple[str, Request]] = [
    ("GetItem", ROW),
    ("Query", P),
    ("Scan", {**MAIN, "Limit": 3}),
]


@pytest.mark.parametrize("names", [["a"], ["sk", "a", "nope"], ["a.b"], ["nope"]])
@pytest.mark.parametrize(("operation", "request_"), READS)
def test_wanted_attributes_are_returned(filled_pair: Pair, operation: str, request_: Request, names: list[str]) -> None:
    answer = filled_pair.both(operation, {**request_, "AttributesToGet": names, **CAPACITY})
    for item in answer.body.get("Items", [answer.body.get("Item")]):
        assert {*item} <= {*names}


@pytest.mark.parametrize("names", [["a", "a"], [""], [None]])
@pytest.mark.parametrize(("operation", "request_"), READS)
def test_wrong_names_are_refused(filled_pair: Pair, operation: str, request_: Request, names: list[Any]) -> None:
    request = {**request_, "AttributesToGet": names}
    if names != ["a", "a"]:
        assert filled_pair.both(operation, request).message == "Empty attribute name"
    else:  # DynamoDB Local: Cannot have two attributes with the same name
        message = filled_pair.embedded.ask(operation, request).message
        assert message == "One or more parameter values were invalid: Duplicate value in attribute name: a"


def test_names_are_no_paths(pair: Pair) -> None:
    item: Request = {"pk": S("1"), "a": {"M": {"b": S("inside")}}, "a.b": S("beside"), "c": {"L": [N(1)]}}
    pair.both("PutItem", {**HASH, "Item": item})
    answer = pair.both("GetItem", {**ONE, "AttributesToGet": ["a.b", "c[0]"]})
    assert answer.body["Item"] == {"a.b": S("beside")}


def test_no_names_are_a_broken_constraint(backend: EmbeddedBackend) -> None:
    # DynamoDB Local returns whole items.
    rule = "failed to satisfy constraint: Member must have length greater than or equal to 1"
    for operation, request in READS:
        with pytest.raises(RequestRefused) as caught:
            backend.execute(operation, {**request, "AttributesToGet": []})
        assert caught.value.message == f"1 validation error detected: Value '[]' at 'attributesToGet' {rule}"
    with pytest.raises(RequestRefused, match=r"at 'requestItems\.hash\.member\.attributesToGet' failed"):
        backend.execute("BatchGetItem", {"RequestItems": {"hash": {"Keys": [ONE["Key"]], "AttributesToGet": []}}})


def test_each_table_of_a_batch_has_its_own_names(filled_pair: Pair) -> None:
    request: Request = {
        "RequestItems": {
            "hash": {"Keys": [ONE["Key"]], "AttributesToGet": ["a"]},
            "main": {"Keys": [ROW["Key"]], "AttributesToGet": ["sk", "c"], "ConsistentRead": True},
        },
        **CAPACITY,
    }
    responses = filled_pair.both("BatchGetItem", request).body["Responses"]
    assert responses == {"hash": [{"a": S("A")}], "main": [{"sk": S("1"), "c": S("C")}]}


@pytest.mark.parametrize(
    "part", [{"AttributesToGet": ["a", "a"]}, {"AttributesToGet": ["a"], "ProjectionExpression": "a"}]
)
def test_wrong_parts_of_a_batch_are_refused(filled_pair: Pair, part: Request) -> None:
    request: Request = {"RequestItems": {"hash": {"Keys": [ONE["Key"]], **part}}}
    assert filled_pair.both("BatchGetItem", request).code == "ValidationException"


def test_keys_that_were_left_out_come_back_with_their_names(backend: EmbeddedBackend) -> None:
    keys = [{"pk": S(str(number))} for number in range(50)]
    for key in keys:
        backend.execute("PutItem", {**HASH, "Item": {**key, "a": S("x" * 390_000)}})
    part: Request = {"Keys": keys, "AttributesToGet": ["pk"]}
    answer = backend.execute("BatchGetItem", {"RequestItems": {"hash": part}})
    left = answer["UnprocessedKeys"]["hash"]
    assert left["AttributesToGet"] == ["pk"]
    assert answer["Responses"]["hash"] + left["Keys"] == keys


def test_several_key_attributes_are_given_from_left_to_right(backend: EmbeddedBackend) -> None:
    table: Request = {
        "TableName": "orders",
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "a", "b", "c", "d")],
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "GlobalSecondaryIndexes": [
            {
                "IndexName": "four",
                "KeySchema": [
                    *({"AttributeName": name, "KeyType": "HASH"} for name in "ab"),
                    *({"AttributeName": name, "KeyType": "RANGE"} for name in "cd"),
                ],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
    }
    backend.execute("CreateTable", table)
    for number in "123":
        item = {"pk": S(number), "a": S("a"), "b": S("b"), "c": S("c"), "d": S(number)}
        backend.execute("PutItem", {"TableName": "orders", "Item": item})
    query: Request = {"TableName": "orders", "IndexName": "four", "AttributesToGet": ["pk"]}
    equal = {name: compared("EQ", S(name)) for name in "abc"}
    answer = backend.execute("Query", {**query, "KeyConditions": {**equal, "d": compared("GT", S("1"))}})
    assert answer["Items"] == [{"pk": S("2")}, {"pk": S("3")}]
    with pytest.raises(RequestRefused, match="HASH key attributes b must have equality conditions"):
        backend.execute("Query", {**query, "KeyConditions": {"a": equal["a"]}})
