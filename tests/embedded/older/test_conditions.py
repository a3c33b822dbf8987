"""Expected, QueryFilter, ScanFilter and ConditionalOperator."""

from __future__ import annotations

from typing import Any

import pytest
from tests.embedded.side_by_side import N, Pair, Request, S

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import ConditionalCheckFailed, RequestRefused

HASH: Request = {"TableName": "hash"}
ONE: Request = {**HASH, "Key": {"pk": S("1")}}
PUT: Request = {**HASH, "Item": {"pk": S("1")}}
P: Request = {
    "TableName": "main",
    "KeyConditions": {"pk": {"ComparisonOperator": "EQ", "AttributeValueList": [S("p")]}},
}
ITEM: dict[str, Any] = {
    "pk": S("1"),
    "text": S("hello"),
    "number": N(5),
    "bytes": {"B": "AQID"},
    "flag": {"BOOL": True},
    "nothing": {"NULL": True},
    "words": {"SS": ["a", "b"]},
    "numbers": {"NS": ["1", "2"]},
    "list": {"L": [S("x"), N(1), {"NULL": True}]},
    "map": {"M": {"x": N(1)}},
    "map.x": S("no path"),
}


def compared(operator: str, *values: Any) -> Request:
    return {"ComparisonOperator": operator} | ({"AttributeValueList": list(values)} if values else {})


# For each operator what passes and what does not; `missing` is an attribute that the item does not have.
PASSING: list[tuple[str, Request]] = [
    ("text", {"Value": S("hello")}),
    ("text", {"Value": S("hello"), "Exists": True}),
    ("missing", {"Exists": False}),
    ("number", {"ComparisonOperator": "GT", "Value": N("4.5")}),
    ("text", compared("EQ", S("hello"))),
    ("words", compared("EQ", {"SS": ["b", "a"]})),
    ("list", compared("EQ", {"L": [S("x"), N("1.0"), {"NULL": True}]})),
    ("map", compared("EQ", {"M": {"x": N(1)}})),
    ("map.x", compared("EQ", S("no path"))),
    ("text", compared("NE", S("other"))),
    ("text", compared("NE", N(5))),
    ("missing", compared("NE", S("hello"))),
    ("number", compared("LE", N(5))),
    ("number", compared("LT", N(10))),
    ("text", compared("GE", S("hello"))),
    ("bytes", compared("GT", {"B": "AQI="})),
    ("nothing", compared("NOT_NULL")),
    ("missing", compared("NULL")),
    ("missing", {"ComparisonOperator": "NULL", "AttributeValueList": []}),
    ("text", compared("CONTAINS", S("ell"))),
    ("bytes", compared("CONTAINS", {"B": "AgM="})),
    ("words", compared("CONTAINS", S("a"))),
    ("numbers", compared("CONTAINS", N("2.0"))),
    ("list", compared("CONTAINS", {"NULL": True})),
    ("text", compared("NOT_CONTAINS", S("xyz"))),
    ("number", compared("NOT_CONTAINS", N(5))),
    ("words", compared("NOT_CONTAINS", S("c"))),
    ("text", compared("BEGINS_WITH", S("hel"))),
    ("bytes", compared("BEGINS_WITH", {"B": "AQ=="})),
    ("number", compared("IN", N(1), N(5))),
    ("number", compared("IN", *(N(number) for number in range(150)))),
    ("text", compared("BETWEEN", S("a"), S("z"))),
]
FAILING: list[tuple[str, Request]] = [
    ("text", {"Value": S("other")}),
    ("missing", {"Value": S("hello")}),
    ("text", {"Exists": False}),
    ("number", compared("EQ", S("5"))),
    ("text", compared("NE", S("hello"))),
    *(("missing", compared(operator, S("a"))) for operator in ("EQ", "LE", "LT", "GE", "GT", "IN", "BEGINS_WITH")),
    *(("missing", compared(operator, S("a"))) for operator in ("CONTAINS", "NOT_CONTAINS")),
    ("missing", compared("BETWEEN", S("a"), S("z"))),
    ("text", compared("LT", N(5))),
    ("nothing", compared("NULL")),
    ("missing", compared("NOT_NULL")),
    ("number", compared("CONTAINS", N(5))),
    ("text", compared("CONTAINS", {"BOOL": True})),
    ("words", compared("NOT_CONTAINS", S("a"))),
    ("list", compared("NOT_CONTAINS", N(1))),
    ("number", compared("BETWEEN", N(6), N(7))),
]


@pytest.fixture
def stored(pair: Pair) -> Pair:
    """Both, with one item that has attributes of every type."""
    assert pair.both("PutItem", {**HASH, "Item": ITEM}).code is None
    return pair


def test_comparisons_hold_as_in_dynamodb(stored: Pair) -> None:
    for name, condition in PASSING:
        assert stored.both("PutItem", {**HASH, "Item": ITEM, "Expected": {name: condition}}).code is None, condition
    for name, condition in FAILING:
        answer = stored.both("PutItem", {**HASH, "Item": ITEM, "Expected": {name: condition}})
        assert answer.code == "ConditionalCheckFailedException", (name, condition)


def test_filters_are_the_same_comparisons(stored: Pair) -> None:
    key = {"pk": compared("EQ", S("1"))}
    for name, condition in (*PASSING, *FAILING):
        if "ComparisonOperator" not in condition or "Value" in condition:
            continue
        count = int((name, condition) in PASSING)
        for operation, request in (
            ("Scan", {"ScanFilter": {name: condition}}),
            ("Query", {"KeyConditions": key, "QueryFilter": {name: condition}}),
        ):
            answer = stored.both(operation, {**HASH, **request, "ReturnConsumedCapacity": "TOTAL"})
            assert (answer.body["Count"], answer.body["ScannedCount"]) == (count, 1), (name, condition)


def test_conditions_are_joined(stored: Pair) -> None:
    conditions = {"text": compared("EQ", S("hello")), "number": compared("EQ", N(6)), "missing": compared("NOT_NULL")}
    for operator, count in ((None, 0), ("AND", 0), ("OR", 1)):
        joined = {} if operator is None else {"ConditionalOperator": operator}
        assert stored.both("Scan", {**HASH, "ScanFilter": conditions, **joined}).body["Count"] == count
        answer = stored.both("PutItem", {**HASH, "Item": ITEM, "Expected": conditions, **joined})
        assert answer.code == (None if count else "ConditionalCheckFailedException")


def test_a_thousand_conditions_are_joined(backend: EmbeddedBackend) -> None:
    conditions: Request = {f"a{number}": {"Exists": False} for number in range(2000)}
    backend.execute("PutItem", {**PUT, "Expected": conditions})
    with pytest.raises(ConditionalCheckFailed):
        backend.execute("PutItem", {**PUT, "Expected": {**conditions, "pk": {"Exists": False}}})


def test_the_item_comes_with_the_failure(stored: Pair) -> None:
    request: Request = {
        **ONE,
        "Expected": {"number": {"Value": N(6)}},
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    answer = stored.both("DeleteItem", request)
    assert answer.body["Item"]["number"] == N(5)


def test_no_conditions_are_no_condition(stored: Pair) -> None:
    assert stored.both("PutItem", {**HASH, "Item": ITEM, "Expected": {}}).code is None
    assert stored.both("Scan", {**HASH, "ScanFilter": {}}).body["Count"] == 1
    assert stored.both("Query", {**P, "QueryFilter": {}}).body["Count"] == 0


EXPECTED_FAULTS: list[Request] = [
    {"a": {}},
    {"a": None},
    {"": {"Exists": False}},
    {"a": {"Exists": True}},
    {"a": {"Exists": False, "Value": S("a")}},
    {"a": {"Value": S("a"), "AttributeValueList": [S("a")]}},
    {"a": {"AttributeValueList": [S("a")]}},
    {"a": {"ComparisonOperator": "EQ", "Exists": True}},
    {"a": {"ComparisonOperator": "EQ"}},
    {"a": {"ComparisonOperator": "NULL", "Value": S("a")}},
    {"a": {"ComparisonOperator": "EQ", "AttributeValueList": []}},
    {"a": {"Value": {}}},
    {"a": {"Value": {"SS": []}}},
]
FAULTS: list[Request] = [
    *(
        {"a": compared(operator)}
        for operator in ("NE", "LE", "LT", "GE", "GT", "CONTAINS", "NOT_CONTAINS", "BEGINS_WITH", "IN", "BETWEEN")
    ),
    *({"a": compared(operator, S("a"), S("b"))} for operator in ("EQ", "NE", "LT", "BEGINS_WITH", "CONTAINS", "NULL")),
    {"a": compared("BETWEEN", S("a"), S("b"), S("c"))},
    {"a": compared("NOT_NULL", S("a"))},
    {"a": compared("BETWEEN", S("b"), S("a"))},
    {"a": compared("BETWEEN", S("b"), N(1))},
    {"a": compared("IN", S("b"), N(1))},
    *({"a": compared(operator, {"BOOL": True})} for operator in ("LE", "LT", "GE", "GT", "IN", "BEGINS_WITH")),
    *({"a": compared(operator, {"L": []})} for operator in ("CONTAINS", "NOT_CONTAINS", "IN")),
    *({"a": compared(operator, {"SS": ["a"]})} for operator in ("CONTAINS", "GT", "IN")),
    {"a": compared("BEGINS_WITH", N(1))},
    {"a": compared("BETWEEN", {"M": {}}, {"M": {}})},
    {"a": compared("EQ", {})},
    {"a": compared("EQ", None)},
    {"a": compared("EQ", {"S": "a", "N": "1"})},
    {"a": compared("EQ", {"NULL": False})},
]


@pytest.mark.parametrize("conditions", [*EXPECTED_FAULTS, *FAULTS])
def test_wrong_expectations_are_refused_as_by_dynamodb(filled_pair: Pair, conditions: Request) -> None:
    for operation, request in (("PutItem", PUT), ("UpdateItem", ONE), ("DeleteItem", ONE)):
        assert filled_pair.both(operation, {**request, "Expected": conditions}).code == "ValidationException"


@pytest.mark.parametrize("conditions", [{"": compared("NULL")}, {"a": None}, *FAULTS])
def test_wrong_filters_are_refused_as_by_dynamodb(filled_pair: Pair, conditions: Request) -> None:
    for operation, request in (
        ("Query", {**P, "QueryFilter": conditions}),
        ("Query", {"TableName": "main", "KeyConditions": conditions}),
        ("Scan", {**HASH, "ScanFilter": conditions}),
    ):
        assert filled_pair.both(operation, request).code == "ValidationException"


TWO: Request = {"a": compared("NULL"), "b": compared("NULL")}
NO_TWO: list[Request] = [{}, {"Expected": {}}, {"Expected": {"a": {"Exists": False}}}]
LONELY: list[tuple[str, Request]] = [
    *(
        (operation, {**request, "ConditionalOperator": "AND", **conditions})
        for operation, request in (("PutItem", PUT), ("UpdateItem", ONE), ("DeleteItem", ONE))
        for conditions in NO_TWO
    ),
    ("Scan", {**HASH, "ConditionalOperator": "OR"}),
    ("Scan", {**HASH, "ConditionalOperator": "OR", "ScanFilter": {"a": compared("NULL")}}),
    ("Query", {**P, "ConditionalOperator": "OR"}),
    ("Query", {**P, "ConditionalOperator": "OR", "QueryFilter": {"a": compared("NULL")}}),
    ("Query", {**P, "ConditionalOperator": "XOR", "QueryFilter": {"a": compared("NULL")}}),
    ("PutItem", {**PUT, "ConditionalOperator": "XOR", "Expected": {"a": {"Exists": False}}}),
]


@pytest.mark.parametrize(("operation", "request_"), LONELY)
def test_an_operator_without_two_conditions_is_refused(filled_pair: Pair, operation: str, request_: Request) -> None:
    assert "ConditionalOperator can" in filled_pair.both(operation, request_).message


MIXED: list[tuple[str, Request]] = [
    ("PutItem", {**PUT, "Expected": TWO, "ConditionalOperator": "OR", "ConditionExpression": "a = :a"}),
    ("UpdateItem", {**ONE, "Expected": {"a": {"Exists": False}}, "UpdateExpression": "REMOVE a"}),
    (
        "UpdateItem",
        {
            **ONE,
            "AttributeUpdates": {"a": {"Action": "DELETE"}},
            "Expected": TWO,
            "ConditionalOperator": "AND",
            "UpdateExpression": "REMOVE a",
            "ConditionExpression": "a = :a",
        },
    ),
    ("DeleteItem", {**ONE, "ConditionalOperator": "OR", "ConditionExpression": "attribute_exists(a)"}),
    ("Scan", {**HASH, "ScanFilter": TWO, "ConditionalOperator": "OR", "ProjectionExpression": "a"}),
    ("Scan", {**HASH, "AttributesToGet": ["a"], "FilterExpression": "attribute_exists(a)"}),
    ("Query", {**P, "QueryFilter": TWO, "FilterExpression": "attribute_exists(a)"}),
    ("Query", {**P, "KeyConditionExpression": "pk = :p", "AttributesToGet": ["a"], "QueryFilter": TWO}),
    ("PutItem", {**PUT, "Expected": TWO, "ExpressionAttributeNames": {"#a": "a"}}),
    ("PutItem", {**PUT, "Expected": TWO, "ExpressionAttributeValues": {":a": S("a")}}),
    ("Query", {**P, "QueryFilter": TWO, "ExpressionAttributeValues": {":a": S("a")}}),
]


@pytest.mark.parametrize(("operation", "request_"), MIXED)
def test_parameters_of_both_kinds_do_not_go_together(filled_pair: Pair, operation: str, request_: Request) -> None:
    message = filled_pair.both(operation, request_).message
    assert "expression parameters" in message or "when using expressions" in message


ONE_ERROR = "1 validation error detected: "
COMPARISONS = "[IN, NULL, BETWEEN, LT, NOT_CONTAINS, EQ, GT, NOT_NULL, NE, LE, BEGINS_WITH, GE, CONTAINS]"
NOT_IN = "failed to satisfy constraint: Member must satisfy enum value set:"
OPERATORS = "Failed to satisfy constraint: Member must satisfy enum value set: [ALL, OR]"
XOR: Request = {"ConditionalOperator": "XOR"}
SERVICE_FAULTS: list[tuple[str, Request, str]] = [
    # DynamoDB Local fails inside, or says that a comparison type does not exist.
    ("PutItem", {**PUT, "Expected": TWO, **XOR}, ONE_ERROR + OPERATORS),
    ("Query", {**P, "QueryFilter": TWO, **XOR, "Select": "BOGUS"}, OPERATORS),
    (
        "Scan",
        {**HASH, "ScanFilter": TWO, **XOR},
        f"{ONE_ERROR}Value 'XOR' at 'conditionalOperator' {NOT_IN} [OR, AND]",
    ),
    (
        "UpdateItem",
        {**HASH, "Expected": TWO, **XOR},
        f"2 validation errors detected: Value 'XOR' at 'conditionalOperator' {NOT_IN} [OR, AND]; Value null at 'key'"
        " failed to satisfy constraint: Member must not be null",
    ),
    (
        "PutItem",
        {**PUT, "Expected": {"a": compared("XX", S("a"))}},
        f"{ONE_ERROR}Value 'XX' at 'expected.a.member.comparisonOperator' {NOT_IN} {COMPARISONS}",
    ),
    (
        "Scan",
        {"TableName": "x", "ScanFilter": {"a": {}, "b": compared("")}},
        "3 validation errors detected: Value null at 'scanFilter.a.member.comparisonOperator' failed to satisfy"
        f" constraint: Member must not be null; Value '' at 'scanFilter.b.member.comparisonOperator' {NOT_IN}"
        f" {COMPARISONS}; Value 'x' at 'tableName' failed",
    ),
    (
        "Scan",
        {"TableName": "abc", "ScanFilter": {f"a{number:02}": {} for number in range(11)}},
        "10 validation errors detected: "
        + "; ".join(
            f"Value null at 'scanFilter.a{number:02}.member.comparisonOperator' failed to satisfy constraint: Member"
            " must not be null"
            for number in range(10)
        ),
    ),
    # What is wrong with a request to write one item is counted.
    (
        "PutItem",
        {**PUT, "Expected": {"a": {"Exists": True}}},
        f"{ONE_ERROR}One or more parameter values were invalid: Value must be provided when Exists is true for"
        " Attribute: a",
    ),
    (
        "DeleteItem",
        {**ONE, "Expected": {"a": {"ComparisonOperator": "EQ"}}},
        f"{ONE_ERROR}One or more parameter values were invalid: Value or AttributeValueList must be used with"
        " ComparisonOperator: EQ for Attribute: a",
    ),
    (
        "PutItem",
        {**PUT, "Expected": {"a": {"Value": N("abc")}}},
        f"{ONE_ERROR}The parameter cannot be converted to a numeric value: abc",
    ),
    # Values are worded as by the reader that the operation goes through.
    (
        "Query",
        {**P, "QueryFilter": {"a": compared("EQ", {"SS": ["b", "a", "b"]})}},
        'One or more parameter values were invalid: Input collection ["a", "b", "b"] contains duplicates.',
    ),
    (
        "Scan",
        {**HASH, "ScanFilter": {"a": compared("EQ", {"SS": ["b", "a", "b"]})}},
        "One or more parameter values were invalid: Input collection [b, a, b] contains duplicates.",
    ),
    # JSON of another type is told first.
    ("PutItem", {**PUT, "Expected": {"a": {"Exists": "maybe", "Value": S("a")}}}, "Unexpected token received"),
    ("PutItem", {**PUT, "Expected": {"a": 5}}, "Unexpected value type in payload"),
    ("Scan", {**HASH, "ScanFilter": {"a": compared("EQ", "x")}}, "Unexpected value type in payload"),
    ("Scan", {**HASH, "ScanFilter": []}, "Unrecognized collection type"),
]


@pytest.mark.parametrize(("operation", "request_", "message"), SERVICE_FAULTS)
def test_faults_in_the_words_of_the_service(
    backend: EmbeddedBackend, operation: str, request_: Request, message: str
) -> None:
    with pytest.raises(RequestRefused) as caught:
        backend.execute(operation, request_)
    assert caught.value.message.startswith(message)


def test_an_unknown_operator_of_a_deep_request_is_told_in_older_words(backend: EmbeddedBackend) -> None:
    deep: Request = S("leaf")
    for _ in range(100):
        deep = {"M": {"n": deep}}
    with pytest.raises(RequestRefused) as caught:
        backend.execute("PutItem", {**PUT, "Expected": {"a": {"Value": deep}, "b": {"Exists": False}}, **XOR})
    assert caught.value.message == f"{ONE_ERROR}Value 'XOR' at 'conditionalOperator' {NOT_IN} [OR, AND]"


def test_the_actions_of_a_transaction_have_no_such_parameters(stored: Pair) -> None:
    put: Request = {**HASH, "Item": ITEM, "Expected": {"missing": {"Value": S("never")}}}
    assert stored.both("TransactWriteItems", {"TransactItems": [{"Put": put}]}).code is None
    get: Request = {**ONE, "AttributesToGet": ["text"]}
    answer = stored.both("TransactGetItems", {"TransactItems": [{"Get": get}]})
    assert answer.body["Responses"][0]["Item"] == ITEM
