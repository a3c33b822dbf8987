"""What operations say of values that are none: some in DynamoDB's newer words, some in its older ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.embedded.side_by_side import Request, S

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import RequestRefused

INVALID = "One or more parameter values were invalid: Input collection"
NO_NUMBER = "The parameter cannot be converted to a numeric value"
OVERFLOW = "Number overflow. Attempting to store a number with magnitude larger than supported range"
UNDERFLOW = "Number underflow. Attempting to store a number with magnitude smaller than supported range"

# A value, what is said of it in the new words, and in the older ones.
FAULTS: list[tuple[Request, str, str]] = [
    ({"N": "abc"}, f"{NO_NUMBER}: abc", f"{NO_NUMBER}: abc"),
    ({"N": ""}, f"{NO_NUMBER}: ", NO_NUMBER),
    ({"N": "1e126"}, OVERFLOW, OVERFLOW),
    ({"N": "1e-131"}, UNDERFLOW, UNDERFLOW),
    ({"N": "1e2147483646"}, OVERFLOW, OVERFLOW),
    ({"N": "1e2147483647"}, OVERFLOW, UNDERFLOW),
    ({"N": "1e2147483648"}, OVERFLOW, f"{NO_NUMBER}: 1e2147483648"),
    ({"N": "1e-2147483648"}, UNDERFLOW, f"{NO_NUMBER}: 1e-2147483648"),
    (
        {"SS": ["b", "a", "b"]},
        f'{INVALID} ["a", "b", "b"] contains duplicates.',
        f"{INVALID} [b, a, b] contains duplicates.",
    ),
    (
        {"BS": ["/w==", "AA==", "AA=="]},
        f'{INVALID} ["AA==","/w==","AA=="]of type BS contains duplicates.',
        f"{INVALID} [/w==, AA==, AA==]of type BS contains duplicates.",
    ),
    ({"NS": ["2", "1", "2"]}, f"{INVALID} contains duplicates.", "Input collection contains duplicates"),
]


def at(**members: object) -> Request:
    return {"TableName": "hash", "Key": {"pk": S("1")}, **members}


def where(value: Request) -> Request:
    return {"ConditionExpression": "a = :a", "ExpressionAttributeValues": {":a": value}}


NEWER: list[tuple[str, Callable[[Request], Request], str]] = [
    ("GetItem", lambda value: at(Key={"pk": value}), "{}"),
    ("BatchGetItem", lambda value: {"RequestItems": {"hash": {"Keys": [{"pk": value}]}}}, "{}"),
    (
        "Query",
        lambda value: {
            "TableName": "hash",
            "KeyConditionExpression": "pk = :a",
            "ExpressionAttributeValues": {":a": value},
        },
        "{}",
    ),
    ("DeleteItem", lambda value: at(**where(value)), "1 validation error detected: {}"),
]
KEYED = "ExpressionAttributeValues contains invalid value: {} for key :a"
OLDER: list[tuple[str, Callable[[Request], Request], str]] = [
    ("BatchWriteItem", lambda value: {"RequestItems": {"hash": [{"PutRequest": {"Item": {"x": value}}}]}}, "{}"),
    ("BatchWriteItem", lambda value: {"RequestItems": {"hash": [{"DeleteRequest": {"Key": {"pk": value}}}]}}, "{}"),
    ("TransactGetItems", lambda value: {"TransactItems": [{"Get": at(Key={"pk": value})}]}, "{}"),
    ("TransactWriteItems", lambda value: {"TransactItems": [{"Delete": at(Key={"pk": value})}]}, "{}"),
    ("TransactWriteItems", lambda value: {"TransactItems": [{"Delete": at(**where(value))}]}, KEYED),
    (
        "Scan",
        lambda value: {
            "TableName": "hash",
            "FilterExpression": "x = :a",
            "ExpressionAttributeValues": {":a": value},
        },
        KEYED,
    ),
]


CASES = [
    (operation, request(value), said.format(words))
    for value, newer, older in FAULTS
    for operations, words in ((NEWER, newer), (OLDER, older))
    for operation, request, said in operations
]


@pytest.mark.parametrize(("operation", "request_", "message"), CASES)
def test_every_operation_has_its_own_words(
    backend: EmbeddedBackend, operation: str, request_: Request, message: str
) -> None:
    with pytest.raises(RequestRefused) as caught:
        backend.execute(operation, request_)
    assert caught.value.message == message
