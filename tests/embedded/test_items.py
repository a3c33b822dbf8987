"""GetItem, PutItem, UpdateItem and DeleteItem."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from tests.embedded.differential.tables import Index, Table
from tests.embedded.side_by_side import N, Pair, Request, S

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import ConditionalCheckFailed, RequestError, RequestRefused, TableNotFound
from jobtable.store.backend import Item
from jobtable.store.sizes import item_size

HASH: Request = {"TableName": "hash"}
MAIN: Request = {"TableName": "main"}
ONE: Request = {**HASH, "Key": {"pk": S("1")}}
PUT: Request = {**HASH, "Item": {"pk": S("1"), "x": S("b")}}
ROW: Request = {**MAIN, "Key": {"pk": S("p"), "sk": S("1")}}
IN_MAIN = {"pk": S("a"), "sk": S("b")}
TOO_LARGE = S("x" * 409_600)
SUMS_301 = ",".join(f"a{i}=x+x" for i in range(301))

BAD_KEYS: list[Request] = [
    {"pk": {}},
    {"pk": {"S": "a", "N": "1"}},
    {"pk": N(1)},
    {"pk": N("x")},
    {"pk": S("")},
    {"pk": S("x" * 2049)},
    {"pk": S("a"), "x": S("b")},
    {"x": S("b")},
    {"pk": {"NULL": True}},
]
FAULTS: list[tuple[str, Request]] = [
    *(("GetItem", {"TableName": name, "Key": {"pk": S("1")}}) for name in ("", "a", "a!b", "x" * 256, "nope")),
    ("GetItem", {"Key": {"pk": S("1")}}),
    ("GetItem", HASH),
    ("GetItem", {**HASH, "Key": {}}),
    *(("GetItem", {**HASH, "Key": key}) for key in BAD_KEYS),
    *(
        ("GetItem", {**MAIN, "Key": key})
        for key in (
            {"pk": S("b")},
            {"pk": S("b"), "sk": S("")},
            {"pk": S("b"), "sk": S("é" * 513)},
            {"pk": S(""), "sk": N(1)},
        )
    ),
    ("GetItem", {"TableName": "binary", "Key": {"pk": N(1), "sk": {"B": ""}}}),
    ("GetItem", {**ONE, "ProjectionExpression": ""}),
    ("GetItem", {**ONE, "ProjectionExpression": "a,,"}),
    ("GetItem", {**ONE, "ExpressionAttributeNames": {"#a": "x"}}),
    ("GetItem", {**ONE, "ExpressionAttributeNames": {"#a": "x"}, "ProjectionExpression": "b"}),
    ("GetItem", {**ONE, "AttributesToGet": ["a"], "ProjectionExpression": "b"}),
    ("GetItem", {**HASH, "Key": {"x": S("a")}, "ProjectionExpression": "a,,"}),
    ("PutItem", HASH),
    ("PutItem", {**HASH, "Item": {}}),
    *(
        ("PutItem", {**HASH, "Item": item})
        for item in (
            {"a": S("b")},
            {"pk": N(1)},
            {"pk": S("")},
            {"pk": S("x" * 2049)},
            {"pk": S("a"), "big": TOO_LARGE},
            {"x": TOO_LARGE},
            {"pk": S("a"), "": S("b")},
        )
    ),
    *(
        ("PutItem", {**MAIN, "Item": {**IN_MAIN, **attributes}})
        for attributes in (
            {"g1": N(1)},
            {"g1": S("")},
            {"g1": S("x" * 2049)},
            {"g1": S("x" * 1025), "g2": N(1)},
            {"g1": {"NULL": True}},
            {"l1": S("x" * 1025)},
            {"l1": S("")},
            {"l1": N(1)},
        )
    ),
    *(("PutItem", {**PUT, "ReturnValues": wanted}) for wanted in ("ALL_NEW", "UPDATED_OLD", "UPDATED_NEW", "x")),
    ("PutItem", {**PUT, "ReturnValuesOnConditionCheckFailure": "x"}),
    ("PutItem", {**PUT, "ConditionExpression": ""}),
    ("PutItem", {**PUT, "ConditionExpression": "a = :b"}),
    ("PutItem", {**PUT, "ConditionExpression": "a = :b", "ExpressionAttributeValues": {":b": S("1"), ":c": S("2")}}),
    ("PutItem", {**PUT, "ExpressionAttributeValues": {":b": S("1")}}),
    ("PutItem", {**PUT, "ConditionExpression": "attribute_exists(pk)", "ExpressionAttributeValues": {}}),
    ("PutItem", {**PUT, "ConditionExpression": "attribute_exists(pk)", "Expected": {"a": {"Exists": False}}}),
    ("PutItem", {**HASH, "Item": {"x": S("b")}, "ReturnValues": "ALL_NEW"}),
    ("UpdateItem", HASH),
    ("UpdateItem", {**ONE, "UpdateExpression": ""}),
    ("UpdateItem", {**ONE, "UpdateExpression": "SET pk = :a", "ExpressionAttributeValues": {":a": S("1")}}),
    ("UpdateItem", {**HASH, "Key": {"pk": N(1)}, "UpdateExpression": "REMOVE pk"}),
    ("UpdateItem", {**ONE, "UpdateExpression": "SET x =", "ConditionExpression": "a="}),
    ("UpdateItem", {**ONE, "UpdateExpression": "REMOVE x", "ConditionExpression": "a="}),
    ("UpdateItem", {**ONE, "UpdateExpression": "REMOVE x", "AttributeUpdates": {"x": {"Action": "DELETE"}}}),
    ("UpdateItem", {**ONE, "UpdateExpression": "SET big = :a", "ExpressionAttributeValues": {":a": TOO_LARGE}}),
    ("UpdateItem", {**ONE, "UpdateExpression": "SET nope.b = :a", "ExpressionAttributeValues": {":a": N(1)}}),
    ("UpdateItem", {**ONE, "ExpressionAttributeValues": {":a": N(1)}}),
    *(
        ("UpdateItem", {**ONE, "UpdateExpression": f"SET {actions}"})
        for actions in (SUMS_301, f"b = :missing, {SUMS_301}", f"{SUMS_301}, b = :missing")
    ),
    ("UpdateItem", {**ONE, "UpdateExpression": f"SET {SUMS_301}", "ConditionExpression": "a ="}),
    *(
        ("UpdateItem", {**ROW, "UpdateExpression": "SET g1 = :a", "ExpressionAttributeValues": {":a": value}})
        for value in (N(1), S(""), S("x" * 2049))
    ),
    ("UpdateItem", {**ROW, "UpdateExpression": "SET g1.b = :a", "ExpressionAttributeValues": {":a": N(1)}}),
    (
        "UpdateItem",
        {**ROW, "UpdateExpression": "SET a = if_not_exists(sk.b, :a)", "ExpressionAttributeValues": {":a": N(1)}},
    ),
    ("GetItem", {**ROW, "ProjectionExpression": "a, l1[0]"}),
    ("DeleteItem", {**ROW, "ConditionExpression": "attribute_exists(pk.a)"}),
    ("DeleteItem", HASH),
    ("DeleteItem", {**ONE, "ReturnValues": "ALL_NEW"}),
    ("DeleteItem", {**ONE, "ConditionExpression": "a = "}),
]


@pytest.mark.parametrize(("operation", "request_"), FAULTS)
def test_faults_are_reported_as_dynamodb_does(filled_pair: Pair, operation: str, request_: Request) -> None:
    assert filled_pair.both(operation, request_).code is not None


SERVICE_FAULTS: list[tuple[str, Request, str, str]] = [
    # DynamoDB Local fails inside on JSON of the wrong type, or reads it as text.
    ("GetItem", {**HASH, "Key": 5}, "SerializationException", "Unexpected field type"),
    ("GetItem", {"TableName": 5, "Key": {}}, "SerializationException", "NUMBER_VALUE cannot be converted to String"),
    ("GetItem", {**HASH, "Key": {"pk": {"S": 5}}}, "SerializationException", "NUMBER_VALUE cannot be converted to"),
    ("GetItem", {**ONE, "ConsistentRead": "x"}, "SerializationException", "Unexpected token received from parser"),
    ("GetItem", {**ONE, "ConsistentRead": 1}, "SerializationException", "NUMBER_VALUE cannot be converted to Boolean"),
    ("GetItem", {"TableName": 1.5, "Key": {}}, "SerializationException", "DECIMAL_VALUE cannot be converted to String"),
    ("PutItem", {**PUT, "ConditionExpression": ["a"]}, "SerializationException", "Unrecognized collection type"),
    ("PutItem", {**HASH, "Item": {"pk": S("\ud800")}}, "SerializationException", "The request has text that is not"),
    # DynamoDB Local takes any text for an enumeration, and reports one fault where the service reports all.
    (
        "GetItem",
        {"TableName": "a!c", "Key": {}, "ReturnConsumedCapacity": "x"},
        "ValidationException",
        "2 validation errors detected: Value 'x' at 'returnConsumedCapacity' failed to satisfy constraint: Member must"
        " satisfy enum value set: [INDEXES, TOTAL, NONE]; Value 'a!c' at 'tableName' failed to satisfy constraint:"
        " Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+",
    ),
    (
        "PutItem",
        {**PUT, "ReturnItemCollectionMetrics": "x"},
        "ValidationException",
        "1 validation error detected: Value 'x' at 'returnItemCollectionMetrics' failed to satisfy constraint: Member"
        " must satisfy enum value set: [SIZE, NONE]",
    ),
    (
        "GetItem",
        {**ONE, "TableName": "ab"},
        "ValidationException",
        "1 validation error detected: Value 'ab' at 'tableName' failed to satisfy constraint: Member must have length"
        " greater than or equal to 3",
    ),
    (
        "GetItem",
        {**ONE, "TableName": "a;"},
        "ValidationException",
        "2 validation errors detected: Value 'a;' at 'tableName' failed to satisfy constraint: Member must have length"
        " greater than or equal to 3; Value 'a;' at 'tableName' failed to satisfy constraint: Member must satisfy"
        " regular expression pattern: [a-zA-Z0-9_.-]+",
    ),
    # DynamoDB Local looks for the table before it looks at values and expressions.
    ("GetItem", {"TableName": "nope", "Key": {"pk": N("a")}}, "ValidationException", "The parameter cannot be"),
    (
        "PutItem",
        {**PUT, "TableName": "nope", "ConditionExpression": "a ="},
        "ValidationException",
        "1 validation error detected: Invalid ConditionExpression",
    ),
    # DynamoDB Local lets an update give the key of a local index another type.
    (
        "UpdateItem",
        {**ROW, "UpdateExpression": "SET l1 = :a", "ExpressionAttributeValues": {":a": N(1)}},
        "ValidationException",
        "One or more parameter values were invalid: Type mismatch for Index Key l1 Expected: S Actual: N"
        " IndexName: lall",
    ),
    # DynamoDB Local does not say which limit a value of an index key exceeds.
    (
        "PutItem",
        {"TableName": "main", "Item": {"pk": S("p"), "sk": S("1"), "g1": S("x" * 2049)}},
        "ValidationException",
        "One or more parameter values were invalid: Size of hashkey has exceeded the maximum size limit of2048 bytes",
    ),
    (
        "UpdateItem",
        {**ROW, "UpdateExpression": "SET l1 = :a", "ExpressionAttributeValues": {":a": S("x" * 1025)}},
        "ValidationException",
        "One or more parameter values were invalid: Aggregated size of all range keys has exceeded the size limit of"
        " 1024 bytes",
    ),
    # What an update may not write, whatever the item is, comes before what it may not look into, and before conditions.
    (
        "UpdateItem",
        {**ONE, "UpdateExpression": "ADD pk.a :a", "ExpressionAttributeValues": {":a": N(1)}},
        "ValidationException",
        "One or more parameter values were invalid: Cannot update attribute pk. This attribute is part of the key",
    ),
    *(
        (
            "UpdateItem",
            {
                **ROW,
                "UpdateExpression": expression,
                "ConditionExpression": "attribute_exists(nope)",
                "ExpressionAttributeValues": {":a": N(1)},
            },
            "ValidationException",
            "One or more parameter values were invalid: Type mismatch for Index Key g1 Expected: S Actual: N",
        )
        for expression in ("SET g1 = :a", "SET g1 = g2 - :a", "ADD g1 :a SET g2.x = pk")
    ),
    (
        "UpdateItem",
        {**ROW, "UpdateExpression": "SET g2 = pk"},
        "ValidationException",
        "The update expression attempted to update the secondary index key to unsupported type",
    ),
]


@pytest.mark.parametrize(("operation", "request_", "code", "message"), SERVICE_FAULTS)
def test_faults_where_dynamodb_local_is_not_like_the_service(
    backend: EmbeddedBackend, operation: str, request_: Request, code: str, message: str
) -> None:
    with pytest.raises(RequestError) as caught:
        backend.execute(operation, request_)
    assert caught.value.code == code
    assert caught.value.message.startswith(message)


WHERE = {**ONE, "ConditionExpression": "a = :a"}
# Requests with one fault that the request alone shows, and the service's words for it.
COUNTED: list[tuple[str, Request, str]] = [
    ("PutItem", {**PUT, "ReturnValues": "ALL_NEW"}, "ReturnValues can only be ALL_OLD or NONE"),
    ("DeleteItem", {**ONE, "ReturnValues": "UPDATED_NEW"}, "ReturnValues can only be ALL_OLD or NONE"),
    ("DeleteItem", {**ONE, "ConditionExpression": ""}, "Invalid ConditionExpression: The expression can not be empty;"),
    ("UpdateItem", {**ONE, "UpdateExpression": ""}, "Invalid UpdateExpression: The expression can not be empty;"),
    ("UpdateItem", {**WHERE, "ExpressionAttributeValues": {}}, "ExpressionAttributeValues must not be empty"),
    (
        "DeleteItem",
        {**WHERE, "ExpressionAttributeValues": {":a": S("a"), ":b": S("b")}},
        "Value provided in ExpressionAttributeValues unused in expressions: keys: {:b}",
    ),
    (
        "DeleteItem",
        {**WHERE, "ExpressionAttributeValues": {":a": {"SS": []}}},
        "One or more parameter values were invalid: An string set  may not be empty",
    ),
    (
        "PutItem",
        {**PUT, "ExpressionAttributeValues": {":a": S("a")}},
        "ExpressionAttributeValues can only be specified when using expressions",
    ),
    (
        "DeleteItem",
        {**ONE, "Expected": {"a": {"Exists": False}}, "ExpressionAttributeNames": {"#a": "a"}},
        "ExpressionAttributeNames can only be specified when using expressions",
    ),
    ("DeleteItem", {**HASH, "Key": {"pk": N("a")}}, "The parameter cannot be converted to a numeric value: a"),
    (
        "PutItem",
        {**HASH, "Item": {"pk": S("1"), "a": {"NULL": False}}},
        "One or more parameter values were invalid: Null attribute value types must have the value of true",
    ),
    (
        "PutItem",
        {**PUT, "Expected": {}, "ConditionExpression": "attribute_exists(a)"},
        "Can not use both expression and non-expression parameters in the same request: Non-expression parameters:"
        " {Expected} Expression parameters: {ConditionExpression}",
    ),
]
# What only the table shows, and what is no fault of a member, is said by itself.
UNCOUNTED: list[tuple[str, Request, str]] = [
    ("DeleteItem", {**HASH, "Key": {"pk": N(1)}}, "The provided key element does not match the schema"),
    ("PutItem", {**HASH, "Item": {"pk": S("a"), "big": TOO_LARGE}}, "Item size has exceeded the maximum allowed size"),
    (
        "PutItem",
        {**HASH, "Item": {"pk": S("a"), "b": {}}},
        "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
    ),
    (
        "UpdateItem",
        {**ONE, "UpdateExpression": "REMOVE pk"},
        "One or more parameter values were invalid: Cannot update attribute pk. This attribute is part of the key",
    ),
    (
        "TransactWriteItems",
        {"TransactItems": [{"Update": {**ONE, "UpdateExpression": ""}}]},
        "Invalid UpdateExpression: The expression can not be empty;",
    ),
    (
        "TransactWriteItems",
        {"TransactItems": [{"Delete": {**WHERE, "ExpressionAttributeValues": {":a": {"SS": []}}}}]},
        "ExpressionAttributeValues contains invalid value: One or more parameter values were invalid: An string set "
        " may not be empty for key :a",
    ),
    (
        "Query",
        {**HASH, "KeyConditionExpression": "pk = :a", "ExpressionAttributeValues": {":a": {"SS": []}}},
        "One or more parameter values were invalid: An string set  may not be empty",
    ),
    ("GetItem", {**ONE, "ProjectionExpression": ""}, "Invalid ProjectionExpression: The expression can not be empty;"),
]


@pytest.mark.parametrize(
    ("operation", "request_", "message"),
    [
        *((operation, request, f"1 validation error detected: {message}") for operation, request, message in COUNTED),
        *UNCOUNTED,
    ],
)
def test_the_fault_of_a_request_to_write_one_item_is_counted(
    backend: EmbeddedBackend, operation: str, request_: Request, message: str
) -> None:
    with pytest.raises(RequestRefused) as caught:
        backend.execute(operation, request_)
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("key", "there", "expression", "largest"),
    [
        # The key and what is left alone are not counted, but 3 bytes for the update, 19 for each SET, 2 for a REMOVE.
        ("k", {}, "SET b = :a", 409_600 - 19),
        ("k", {}, "SET b = :a, c = :c", 409_600 - 38),
        ("k", {"c": S("x")}, "SET b = :a REMOVE c", 409_600 - 21),
        ("k", {"d": S("x" * 10)}, "SET b = :a", 409_600 - 8),
        ("k", {"b": {"M": {"c": S("x")}}}, "SET b.c = :a", 409_600 - 19),
        ("k", {"b": {"L": [S("x")]}}, "SET b[0] = :a", 409_600 - 20),
        # The item itself may not be larger either.
        ("k" * 100, {}, "SET b = :a", 409_600),
    ],
)
def test_an_update_is_counted_by_what_it_writes(
    backend: EmbeddedBackend, key: str, there: Request, expression: str, largest: int
) -> None:
    update: Request = {**HASH, "Key": {"pk": S(key)}, "UpdateExpression": expression}
    others = {":c": S("x")} if ":c" in expression else {}

    def sized(text: str) -> Item:
        backend.execute("PutItem", {**HASH, "Item": {"pk": S(key), **there}})
        backend.execute("UpdateItem", {**update, "ExpressionAttributeValues": {":a": S(text), **others}})
        found: Item = backend.execute("GetItem", {**HASH, "Key": {"pk": S(key)}})["Item"]
        return found

    text = "x" * (largest - item_size(sized("")))
    assert item_size(sized(text)) == largest
    with pytest.raises(RequestRefused, match="Item size to update has exceeded the maximum"):
        sized(text + "x")


@pytest.mark.parametrize(
    ("there", "actions", "values", "cost"),
    [
        # An attribute that is read costs its name and not its value.
        ({"much": S("x" * 10)}, "SET c = much", {}, 19 + 1 + 1 + 14 + 4),
        ({"b": {"M": {"c": {"M": {"d": S("x")}}}}}, "SET c = b.c.d", {}, 19 + 1 + 1 + 3 * 15),
        ({"b": {"L": [S("x")] * 11}}, "SET c = b[10]", {}, 19 + 1 + 1 + 15 + 16),
        # So does a number that is computed, and the list that another is put behind.
        ({"b": N("1" * 38)}, "SET b = b + :v", {":v": N(1)}, 19 + 1 + 34 + 16 + 2),
        ({"b": N(1)}, "SET b = b - :v", {":v": N(1)}, 19 + 1 + 37 + 16 + 2),
        ({"b": {"L": [S("x" * 10)]}}, "SET b = list_append(b, :v)", {":v": {"L": [S("xy")]}}, 19 + 1 + 37 + 16 + 6),
        # A value costs its size wherever it is used, also if it is not written.
        ({"b": S("x")}, "SET b = if_not_exists(b, :v)", {":v": S("x" * 500)}, 19 + 1 + 39 + 16 + 500),
        ({}, "SET b = if_not_exists(b, :v)", {":v": {"M": {"c": S("xy")}}}, 19 + 1 + 39 + 16 + 7),
        ({}, "SET b = :v, c = :v", {":v": S("x" * 500)}, 2 * (19 + 1 + 500)),
        ({}, "SET b = if_not_exists(b, :v) + :v", {":v": N(1)}, 19 + 1 + 34 + 39 + 16 + 2 + 2),
        ({"b": {"SS": ["x" * 10]}}, "ADD b :v", {":v": {"SS": ["xy"]}}, 19 + 1 + 2),
        ({"b": {"SS": ["x", "y" * 500]}}, "DELETE b :v", {":v": {"SS": ["y" * 500]}}, 1 + 1),
        # What is removed costs the path to it.
        ({"much": S("x")}, "REMOVE much", {}, 1 + 4),
        ({"b": {"M": {"much": S("x")}}}, "REMOVE b.much", {}, 1 + 1 + 8),
        ({"b": {"L": [S("x")] * 11}}, "REMOVE b[10]", {}, 1 + 1 + 6),
    ],
)
def test_an_update_is_counted_by_what_it_says(
    backend: EmbeddedBackend, there: Request, actions: str, values: Request, cost: int
) -> None:
    expression = f"SET a = :a, {actions[4:]}" if actions.startswith("SET") else f"SET a = :a {actions}"
    update: Request = {**HASH, "Key": {"pk": S("k")}, "UpdateExpression": expression}
    text = "x" * (409_600 - 3 - 19 - 1 - cost)

    def write(text: str) -> None:
        backend.execute("PutItem", {**HASH, "Item": {"pk": S("k"), **there}})
        backend.execute("UpdateItem", {**update, "ExpressionAttributeValues": {":a": S(text), **values}})

    write(text)
    with pytest.raises(RequestRefused, match="ValidationException: Item size to update has exceeded the maximum"):
        write(text + "x")


@pytest.mark.parametrize("condition", [{}, {"ConditionExpression": "attribute_exists(z)"}])
def test_an_update_that_says_too_much_is_refused_whatever_the_item_and_the_condition(
    backend: EmbeddedBackend, condition: Request
) -> None:
    backend.execute("PutItem", PUT)
    update = {**ONE, "UpdateExpression": "SET x = if_not_exists(x, :a)", "ExpressionAttributeValues": {":a": TOO_LARGE}}
    with pytest.raises(RequestRefused, match="Item size to update has exceeded the maximum"):
        backend.execute("UpdateItem", {**update, **condition})


def test_of_an_older_update_only_the_item_is_counted(backend: EmbeddedBackend) -> None:
    def write(length: int) -> None:
        value = {"Action": "PUT", "Value": S("x" * length)}
        backend.execute("UpdateItem", {**ONE, "AttributeUpdates": {"x": value}})

    write(409_600 - len("pk1x"))
    with pytest.raises(RequestRefused, match="Item size to update has exceeded the maximum"):
        write(409_601 - len("pk1x"))


def test_of_several_indexes_the_first_by_name_is_told_of(backend: EmbeddedBackend) -> None:
    pk, sk, key = ("pk", "S"), ("sk", "S"), ("x", "S")
    indexes = (Index("second", (pk,), (key,), is_local=True), Index("third", (key,)), Index("first", (key,)))
    backend.execute("CreateTable", Table("indexed", pk, sk, indexes).definition())
    row: Request = {"pk": S("1"), "sk": S("1")}
    target: Request = {"TableName": "indexed", "Key": row, "UpdateExpression": "SET x = :a"}
    for operation, request, message in (
        ("PutItem", {"TableName": "indexed", "Item": {**row, "x": N(1)}}, "Actual: N IndexName: first"),
        ("PutItem", {"TableName": "indexed", "Item": {**row, "x": S("")}}, "IndexName: first, IndexKey: x"),
        ("UpdateItem", {**target, "ExpressionAttributeValues": {":a": N(1)}}, "Actual: N IndexName: first"),
    ):
        with pytest.raises(RequestRefused, match=f"{message}$"):
            backend.execute(operation, request)


NO_NAME = "Value at 'TableName' failed to satisfy constraint: Member must have length greater than or equal to 1"
WAS_NO_NAME = "Value '' at 'tableName' failed to satisfy constraint: Member must have length greater than or equal to 1"
NO_KEY = "Value null at 'key' failed to satisfy constraint: Member must not be null"
CAPACITY = (
    "Value 'x' at 'returnConsumedCapacity' failed to satisfy constraint: Member must satisfy enum value set: [INDEXES,"
    " TOTAL, NONE]"
)
METRICS = (
    "Value 'x' at 'returnItemCollectionMetrics' failed to satisfy constraint: Member must satisfy enum value set:"
    " [SIZE, NONE]"
)
VALUES = (
    "Failed to satisfy constraint: Member must satisfy enum value set: [ALL_OLD, UPDATED_OLD, ALL_NEW, UPDATE_NEW,"
    " NONE]"
)
WERE_VALUES = (
    "Value 'x' at 'returnValues' failed to satisfy constraint: Member must satisfy enum value set: [ALL_NEW,"
    " UPDATED_OLD, ALL_OLD, NONE, UPDATED_NEW]"
)
WRONG = dict.fromkeys(("ReturnValues", "ReturnConsumedCapacity"), "x")


def nested(levels: int) -> Request:
    value: Request = S("leaf")
    for _ in range(levels):
        value = {"M": {"n": value}}
    return value


@pytest.mark.parametrize(
    ("operation", "request_", "message"),
    [
        *(
            (operation, {**request, "TableName": ""}, f"1 validation error detected: {NO_NAME}")
            for operation, request in (
                ("GetItem", ONE),
                ("DeleteItem", ONE),
                ("UpdateItem", {**ONE, **WRONG}),
                ("PutItem", {**PUT, **WRONG}),
            )
        ),
        ("UpdateItem", {**ONE, **WRONG}, f"1 validation error detected: {VALUES}"),
        ("DeleteItem", {**ONE, **WRONG}, f"2 validation errors detected: {CAPACITY}; {VALUES}"),
        (
            "PutItem",
            {**PUT, **WRONG, "ReturnItemCollectionMetrics": "x"},
            f"3 validation errors detected: {CAPACITY}; {VALUES}; {METRICS}",
        ),
        # Where a member is missing, or values are nested very deep, the answer is what it once was for all.
        ("UpdateItem", {"TableName": ""}, f"2 validation errors detected: {WAS_NO_NAME}; {NO_KEY}"),
        (
            "UpdateItem",
            {"TableName": "", **WRONG},
            f"4 validation errors detected: {CAPACITY}; {WAS_NO_NAME}; {WERE_VALUES}; {NO_KEY}",
        ),
        (
            "DeleteItem",
            {**WHERE, "ExpressionAttributeValues": {":a": nested(63)}, "ReturnValues": "x"},
            f"1 validation error detected: {WERE_VALUES}",
        ),
        (
            "DeleteItem",
            {**WHERE, "ExpressionAttributeValues": {":a": nested(62)}, "ReturnValues": "x"},
            f"1 validation error detected: {VALUES}",
        ),
        (
            "PutItem",
            {**PUT, "Item": {"pk": nested(63)}, "ReturnValues": "ALL_NEW"},
            "ReturnValues can only be ALL_OLD or NONE",
        ),
    ],
)
def test_members_are_told_of_as_the_service_does(
    backend: EmbeddedBackend, operation: str, request_: Request, message: str
) -> None:
    with pytest.raises(RequestRefused) as caught:
        backend.execute(operation, request_)
    assert caught.value.message == message


def update(expression: str, values: Request | None = None, **more: Any) -> tuple[str, Request]:
    given = {} if values is None else {"ExpressionAttributeValues": values}
    return "UpdateItem", {**ROW, "UpdateExpression": expression, **given, **more}


SEQUENCE: list[tuple[str, Request]] = [
    ("GetItem", ONE),
    ("PutItem", {**PUT, "ReturnValues": "ALL_OLD", "ReturnConsumedCapacity": "INDEXES"}),
    ("PutItem", {**PUT, "ReturnValues": "ALL_OLD"}),
    ("PutItem", {**PUT, "ConditionExpression": "attribute_not_exists(pk)"}),
    (
        "PutItem",
        {
            **PUT,
            "ConditionExpression": "attribute_not_exists(pk)",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        },
    ),
    (
        "DeleteItem",
        {
            **HASH,
            "Key": {"pk": S("none")},
            "ConditionExpression": "attribute_exists(pk)",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        },
    ),
    ("GetItem", {**ONE, "ConsistentRead": True, "ReturnConsumedCapacity": "TOTAL"}),
    ("GetItem", {**ONE, "ReturnConsumedCapacity": "INDEXES"}),
    ("GetItem", {**ONE, "ProjectionExpression": "x"}),
    ("GetItem", {**ONE, "ProjectionExpression": "nothing"}),
    ("UpdateItem", {**HASH, "Key": {"pk": S("made")}, "ReturnValues": "ALL_NEW"}),
    update("SET g1 = :g, g2 = :n, a = :g", {":g": S("g"), ":n": N(1)}, ReturnConsumedCapacity="INDEXES"),
    update("SET a = :a", {":a": S("x" * 3000)}, ReturnConsumedCapacity="INDEXES", ReturnValues="UPDATED_OLD"),
    update("SET c = :a", {":a": S("c")}, ReturnConsumedCapacity="INDEXES", ReturnValues="UPDATED_NEW"),
    update("SET g1 = :a", {":a": S("moved")}, ReturnConsumedCapacity="INDEXES", ReturnValues="ALL_OLD"),
    update("REMOVE g2", ReturnConsumedCapacity="INDEXES", ReturnValues="ALL_NEW"),
    update("ADD n :n", {":n": N("1.5")}, ReturnValues="UPDATED_NEW"),
    update("REMOVE nothing", ReturnValues="UPDATED_NEW"),
    ("DeleteItem", {**ROW, "ReturnConsumedCapacity": "INDEXES", "ReturnValues": "ALL_OLD"}),
    ("DeleteItem", {**ROW, "ReturnConsumedCapacity": "INDEXES"}),
    ("GetItem", ROW),
    ("PutItem", {"TableName": "binary", "Item": {"pk": N("010.0"), "sk": {"B": "AP8="}}}),
    ("GetItem", {"TableName": "binary", "Key": {"pk": N("1e1"), "sk": {"B": "AP8="}}}),
]


def test_a_sequence_of_writes_and_reads_is_answered_as_dynamodb_does(pair: Pair) -> None:
    for operation, request in SEQUENCE:
        pair.both(operation, request)


def test_updated_old_gives_the_old_value(backend: EmbeddedBackend) -> None:
    backend.execute("PutItem", PUT)
    change = {"UpdateExpression": "SET x = :a, y = :a", "ExpressionAttributeValues": {":a": S("n")}}
    response = backend.execute("UpdateItem", {**ONE, **change, "ReturnValues": "UPDATED_OLD"})
    assert response == {"Attributes": {"x": S("b")}}


@pytest.mark.parametrize("expression", ["REMOVE y", "DELETE y :s", "REMOVE y DELETE z :s", "REMOVE y.z", "REMOVE y[0]"])
def test_an_update_that_only_removes_makes_no_item(backend: EmbeddedBackend, expression: str) -> None:
    values = {"ExpressionAttributeValues": {":s": {"SS": ["a"]}}} if ":s" in expression else {}
    change = {**HASH, "Key": {"pk": S("removed")}, "UpdateExpression": expression, **values}
    counted = backend.execute("UpdateItem", {**change, "ReturnValues": "ALL_NEW", "ReturnConsumedCapacity": "TOTAL"})
    assert counted == {"ConsumedCapacity": {"TableName": "hash", "CapacityUnits": 1.0}}
    backend.execute("TransactWriteItems", {"TransactItems": [{"Update": change}]})
    assert "Item" not in backend.execute("GetItem", {**HASH, "Key": {"pk": S("removed")}})


def test_the_request_is_neither_changed_nor_kept(backend: EmbeddedBackend) -> None:
    inner: list[Any] = [S("a")]
    put: Request = {**HASH, "Item": {"pk": S("1"), "n": N("1.0"), "l": {"L": inner}}}
    before = copy.deepcopy(put)
    backend.execute("PutItem", put)
    assert put == before
    inner.append(S("b"))
    assert backend.execute("GetItem", ONE)["Item"]["l"] == {"L": [S("a")]}


@pytest.mark.parametrize("wanted", ["ALL_NEW", "UPDATED_NEW"])
def test_a_response_shares_nothing_with_the_request(backend: EmbeddedBackend, wanted: str) -> None:
    values: Request = {":a": {"L": [S("a")]}}
    change = {"UpdateExpression": "SET x = :a", "ExpressionAttributeValues": values, "ReturnValues": wanted}
    response = backend.execute("UpdateItem", {**ONE, **change})
    response["Attributes"]["x"]["L"].append(S("b"))
    assert values == {":a": {"L": [S("a")]}}


def test_a_failed_condition_changes_nothing_and_shows_the_item(backend: EmbeddedBackend) -> None:
    backend.execute("PutItem", PUT)
    refused = {"ConditionExpression": "attribute_not_exists(pk)", "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
    with pytest.raises(ConditionalCheckFailed) as caught:
        backend.execute("PutItem", {**HASH, "Item": {"pk": S("1"), "x": S("new")}, **refused})
    assert caught.value.details == {"Item": PUT["Item"]}
    assert backend.execute("GetItem", ONE) == {"Item": PUT["Item"]}


def test_an_item_of_exactly_400_kb_fits(backend: EmbeddedBackend) -> None:
    fits = {"pk": S("1"), "x": S("x" * (409_600 - 4))}
    backend.execute("PutItem", {**HASH, "Item": fits})
    assert backend.execute("GetItem", ONE)["Item"] == fits
    with pytest.raises(RequestRefused, match="Item size has exceeded"):
        backend.execute("PutItem", {**HASH, "Item": {**fits, "y": S("")}})


def test_an_update_may_leave_an_unfit_attribute_of_a_later_index_alone(backend: EmbeddedBackend) -> None:
    backend.execute("PutItem", {**HASH, "Item": {"pk": S("1"), "later": N(1)}})
    index = {
        "IndexName": "by-later",
        "KeySchema": [{"AttributeName": "later", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "ALL"},
    }
    definitions = [{"AttributeName": "later", "AttributeType": "S"}]
    change = {"AttributeDefinitions": definitions, "GlobalSecondaryIndexUpdates": [{"Create": index}]}
    backend.execute("UpdateTable", {**HASH, **change})
    values = {":a": S("a")}
    backend.execute("UpdateItem", {**ONE, "UpdateExpression": "SET x = :a", "ExpressionAttributeValues": values})
    with pytest.raises(RequestRefused, match="update the secondary index key to unsupported type"):
        backend.execute("UpdateItem", {**ONE, "UpdateExpression": "SET later = later"})


def test_a_table_may_be_named_by_its_arn(backend: EmbeddedBackend) -> None:
    backend.execute("PutItem", PUT)
    arn = backend.execute("DescribeTable", HASH)["Table"]["TableArn"]
    assert backend.execute("GetItem", {"TableName": arn, "Key": ONE["Key"]}) == {"Item": PUT["Item"]}


def test_a_deleted_table_is_not_found(backend: EmbeddedBackend) -> None:
    backend.execute("DeleteTable", HASH)
    for operation, request in (("GetItem", ONE), ("PutItem", PUT), ("DeleteItem", ONE)):
        with pytest.raises(TableNotFound, match="Requested resource not found"):
            backend.execute(operation, request)
