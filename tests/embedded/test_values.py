"""Attribute values: what is valid, how large they are, how they compare; here and on DynamoDB Local."""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.request
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtable.embedded.values import (
    compare,
    container_depth,
    measure_item,
    measure_value,
    validate_item,
    validate_value,
)
from jobtable.embedded.wordings import MAP_OF_VALUES
from jobtable.errors import RequestRefused
from jobtable.store.backend import AttributeValue
from jobtable.store.sizes import item_size, size_change, value_size

EMPTY = "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"
SEVERAL = "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes"
INVALID = "One or more parameter values were invalid: "
TOO_DEEP = (
    "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels beyond supported limit"
)
NULL_VALUE = "The supplied Item contains a null AttributeValue"


def nested(levels: int, leaf: AttributeValue) -> AttributeValue:
    for _ in range(levels):
        leaf = {"L": [leaf]}
    return leaf


CANONICAL: list[tuple[Any, Any]] = [
    ({"S": "a"}, {"S": "a"}),
    ({"S": ""}, {"S": ""}),
    ({"N": "1.50"}, {"N": "1.5"}),
    ({"B": ""}, {"B": ""}),
    ({"B": "YQ=="}, {"B": "YQ=="}),
    ({"BOOL": False}, {"BOOL": False}),
    ({"NULL": True}, {"NULL": True}),
    ({"SS": ["b", "a"]}, {"SS": ["a", "b"]}),
    ({"SS": [""]}, {"SS": [""]}),
    ({"NS": ["10", "9", "1.0"]}, {"NS": ["1", "9", "10"]}),
    ({"BS": ["Yg==", "YQ=="]}, {"BS": ["YQ==", "Yg=="]}),
    ({"L": []}, {"L": []}),
    ({"M": {}}, {"M": {}}),
    ({"S": "a", "N": None}, {"S": "a"}),
    ({"S": "a", "Z": 1}, {"S": "a"}),
    (nested(31, {"S": "x"}), nested(31, {"S": "x"})),
]
# DynamoDB Local keeps numbers inside of lists and maps as they were spelled.
CANONICAL_INSIDE: list[tuple[Any, Any]] = [
    ({"L": [{"N": "01"}, {"S": "x"}]}, {"L": [{"N": "1"}, {"S": "x"}]}),
    ({"M": {"a": {"M": {"b": {"N": "1E2"}}}}}, {"M": {"a": {"M": {"b": {"N": "100"}}}}}),
]
REFUSED: list[tuple[Any, str]] = [
    ({}, EMPTY),
    ({"S": None}, EMPTY),
    ({"Z": "a"}, EMPTY),
    ({"S": "a", "N": "1"}, SEVERAL),
    ({"NULL": False}, INVALID + "Null attribute value types must have the value of true"),
    ({"SS": []}, INVALID + "An string set  may not be empty"),
    ({"NS": []}, INVALID + "An number set  may not be empty"),
    ({"BS": []}, INVALID + "Binary sets should not be empty"),
    ({"SS": ["a", None]}, INVALID + "An string set may not have a null string as a member"),
    ({"N": "1E126"}, "Number overflow. Attempting to store a number with magnitude larger than supported range"),
    ({"L": [{}]}, EMPTY),
    ({"L": [None]}, NULL_VALUE),
    ({"M": {"": {"S": "a"}}}, "Empty attribute name"),
    ({"M": {"a": None}}, f"{NULL_VALUE}: a is null"),
    (nested(32, {"S": "x"}), TOO_DEEP),
    (nested(31, {"L": []}), TOO_DEEP),
    (nested(31, {"M": {}}), TOO_DEEP),
]
# DynamoDB Local words these otherwise than the service does, or takes them.
REFUSED_BY_THE_SERVICE: list[tuple[Any, str, str]] = [
    ({"N": "abc"}, "ValidationException", "The parameter cannot be converted to a numeric value: abc"),
    ({"NULL": "no"}, "ValidationException", INVALID + "Null attribute value types must have the value of true"),
    ({"NS": ["1", None]}, "ValidationException", "The parameter cannot be converted to a numeric value: "),
    ({"NS": ["1", "2", "1.0"]}, "ValidationException", INVALID + "Input collection contains duplicates."),
    ({"NS": ["1", "1", "x"]}, "ValidationException", INVALID + "Input collection contains duplicates."),
    (
        {"SS": ["b", "a", "b", "0"]},
        "ValidationException",
        INVALID + 'Input collection ["a", "b", "b", "0"] contains duplicates.',
    ),
    (
        {"BS": ["/w==", "AA==", "AA=="]},
        "ValidationException",
        INVALID + 'Input collection ["AA==","/w==","AA=="]of type BS contains duplicates.',
    ),
    ({"S": 1}, "SerializationException", "NUMBER_VALUE cannot be converted to String"),
    ({"N": 1.5}, "SerializationException", "DECIMAL_VALUE cannot be converted to String"),
    ({"S": True}, "SerializationException", "TRUE_VALUE cannot be converted to String"),
    ({"S": {}}, "SerializationException", "Start of structure or map found where not expected"),
    ({"S": []}, "SerializationException", "Unrecognized collection type class java.lang.String"),
    ({"BOOL": "x"}, "SerializationException", "Unexpected token received from parser"),
    ({"B": 1}, "SerializationException", "only base-64-encoded strings are convertible to bytes"),
    (
        {"B": "YQ"},
        "SerializationException",
        "Base64 encoded length is expected a multiple of 4 bytes but found: 2",
    ),
    ({"B": "%%%%"}, "SerializationException", "Invalid Base64 character: '%'"),
    ({"B": "_-_-"}, "SerializationException", "Invalid Base64 character: '_'"),
    ({"B": "YQ==YQ=="}, "SerializationException", "Invalid Base64 character: '='"),
    ({"B": "A==="}, "SerializationException", "Invalid Base64 character: '='"),
    ({"B": "=+/="}, "SerializationException", "Invalid last non-pad Base64 character dectected"),
    ({"B": "+/+="}, "SerializationException", "Invalid last non-pad Base64 character dectected"),
    ({"BS": ["YQ==", "YR=="]}, "SerializationException", "Invalid last non-pad Base64 character dectected"),
    ({"SS": "a"}, "SerializationException", "Unexpected field type"),
    ({"L": {}}, "SerializationException", "Start of structure or map found where not expected"),
    ("abc", "SerializationException", "Unexpected value type in payload"),
    ({"BOOL": 1}, "SerializationException", "NUMBER_VALUE cannot be converted to Boolean"),
    ({"L": [1]}, "SerializationException", "Unexpected value type in payload"),
    ({"M": []}, "SerializationException", f"Unrecognized collection type {MAP_OF_VALUES}"),
]


@pytest.fixture(scope="session")
def table_url(dynamodb_local_url: str) -> str:
    schema = {
        "TableName": "values",
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    }
    assert isinstance(_local(dynamodb_local_url, "CreateTable", schema), dict)
    return dynamodb_local_url


def _local(url: str, operation: str, request: dict[str, Any]) -> dict[str, Any] | str:
    """The answer of DynamoDB Local, or its error message."""
    headers = {
        "X-Amz-Target": f"DynamoDB_20120810.{operation}",
        "Content-Type": "application/x-amz-json-1.0",
        "Authorization": "AWS4-HMAC-SHA256 Credential=t/20200101/us-east-1/dynamodb/aws4_request, Signature=0",
    }
    try:
        with urllib.request.urlopen(urllib.request.Request(url, json.dumps(request).encode(), headers)) as answer:
            body: dict[str, Any] = json.load(answer)
            return body
    except urllib.error.HTTPError as error:
        with error:
            failure = json.load(error)
            return str(failure.get("message") or failure["Message"])


@pytest.mark.parametrize(("value", "canonical"), CANONICAL + CANONICAL_INSIDE)
def test_valid_values_become_canonical(value: Any, canonical: Any) -> None:
    assert validate_value(value) == canonical
    assert validate_item({"x": value}) == {"x": canonical}
    if value == canonical:
        assert validate_value(value) is value


@pytest.mark.parametrize(("value", "canonical"), CANONICAL)
def test_valid_values_on_dynamodb_local(table_url: str, value: Any, canonical: Any) -> None:
    key = {"pk": {"S": "k"}}
    assert isinstance(_local(table_url, "PutItem", {"TableName": "values", "Item": key | {"x": value}}), dict)
    stored = _local(table_url, "GetItem", {"TableName": "values", "Key": key})
    assert isinstance(stored, dict)
    assert stored["Item"] == key | {"x": canonical}


@pytest.mark.parametrize(("value", "message"), REFUSED)
def test_refused(table_url: str, value: Any, message: str) -> None:
    with pytest.raises(RequestRefused) as caught:
        validate_item({"x": value})
    assert caught.value.message == message
    item = {"pk": {"S": "k"}, "x": value}
    assert _local(table_url, "PutItem", {"TableName": "values", "Item": item}) == message


@pytest.mark.parametrize(("value", "code", "message"), REFUSED_BY_THE_SERVICE)
def test_refused_by_the_service(value: Any, code: str, message: str) -> None:
    with pytest.raises(RequestRefused) as caught:
        validate_value(value)
    assert (caught.value.code, caught.value.message) == (code, message)


@pytest.mark.parametrize(
    ("value", "canonical"),
    [
        ({"BOOL": "Yes"}, {"BOOL": True}),
        ({"BOOL": "0"}, {"BOOL": False}),
        ({"NULL": "true"}, {"NULL": True}),
        ({"L": [{"BOOL": "no"}]}, {"L": [{"BOOL": False}]}),
    ],
)
def test_flags_may_be_in_words(value: Any, canonical: Any) -> None:
    assert validate_value(value) == canonical


def test_items() -> None:
    item = {"a": {"S": "x"}, "b": {"L": [{"N": "1"}]}, "c": {"SS": ["a", "b"]}}
    assert validate_item(item) is item
    changed = {"a": {"S": "x"}, "n": {"N": "01"}}
    assert validate_item(changed) == {"a": {"S": "x"}, "n": {"N": "1"}}
    assert changed["n"] == {"N": "01"}


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({"": {"S": "x"}}, "Empty attribute name"),
        ({"a": None}, f"{NULL_VALUE}: a is null"),
        ({"a": nested(32, {"S": "x"}), "": {"S": "x"}}, "Empty attribute name"),
        ({"a": {"M": {"": {"S": "x"}}}, "b": nested(32, {"S": "x"})}, TOO_DEEP),
        ({"a": {"M": {"": {"S": "x"}}}, "b": nested(31, {"S": "x"})}, "Empty attribute name"),
        ({"x" * 65536: {"S": "x"}}, "Attribute name is too large, must be less than 65536 bytes"),
        ([], f"Unrecognized collection type {MAP_OF_VALUES}"),
    ],
)
def test_refused_items(item: Any, message: str) -> None:
    with pytest.raises(RequestRefused) as caught:
        validate_item(item)
    assert caught.value.message == message


# Measured on DynamoDB Local: the string beside the value that just fits into one write unit.
@pytest.mark.parametrize(
    ("value", "size"),
    [
        *(({"S": ""}, 0), ({"S": "é"}, 2), ({"S": "😀"}, 4), ({"B": ""}, 0), ({"B": "YQ=="}, 1), ({"B": "YWI="}, 2)),
        *(({"B": "YWJj"}, 3), ({"BOOL": True}, 1), ({"NULL": True}, 1), ({"L": []}, 3), ({"M": {}}, 3)),
        *(({"L": [{"S": "a"}]}, 5), ({"L": [{"S": "a"}, {"N": "1"}]}, 8), ({"M": {"k": {"S": "a"}}}, 6)),
        *(({"M": {"k": {"M": {}}}}, 8), ({"SS": ["a", "bc"]}, 3), ({"NS": ["1", "123"]}, 5)),
        *(({"BS": ["YQ==", "YWI="]}, 3), ({"L": [{"L": []}]}, 7), ({"L": [{"NULL": True}]}, 5), ({"N": "123"}, 3)),
    ],
)
def test_size(value: AttributeValue, size: int) -> None:
    assert value_size(value) == measure_value(value)[1] == size
    assert item_size({"née": value}) == measure_item({"née": value})[1] == 4 + size


@given(st.binary(), st.binary())
def test_binary_values(left: bytes, right: bytes) -> None:
    here, there = ({"B": base64.b64encode(raw).decode()} for raw in (left, right))
    assert validate_value(here) is here
    assert value_size(here) == measure_value(here)[1] == len(left)
    assert compare(here, there) == (left > right) - (left < right)


@given(st.text(), st.text())
def test_strings_compare_by_their_utf8_bytes(left: str, right: str) -> None:
    here, there = (text.encode("utf-8", "surrogatepass") for text in (left, right))
    assert compare({"S": left}, {"S": right}) == (here > there) - (here < there)
    assert value_size({"S": left}) == measure_value({"S": left})[1] == len(here)


NUMBERS = st.decimals(allow_nan=False, allow_infinity=False).map(lambda number: f"{number:.38g}")


@given(st.lists(NUMBERS, min_size=1, max_size=3))
def test_numbers_are_measured_in_canonical_form_whatever_stands_in_the_request(texts: list[str]) -> None:
    try:
        measured, size = measure_item({"n": {"N": texts[0]}, "l": {"L": [{"N": text} for text in texts]}})
    except RequestRefused:
        return
    assert size == item_size(measured)
    assert measured["l"]["L"][0] == measured["n"] == measure_value({"N": texts[0]})[0]


@pytest.mark.parametrize(
    ("left", "right", "order"),
    [
        ({"N": "2"}, {"N": "10"}, -1),
        ({"N": "-1"}, {"S": "a"}, None),
        ({"BOOL": True}, {"BOOL": True}, None),
        ({"L": []}, {"L": []}, None),
    ],
)
def test_compare(left: AttributeValue, right: AttributeValue, order: int | None) -> None:
    assert compare(left, right) == order


VALUES = st.recursive(
    st.text(max_size=3).map(lambda text: {"S": text}) | st.booleans().map(lambda value: {"BOOL": value}),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda values: {"L": values})
        | st.dictionaries(st.text(min_size=1, max_size=3), inner, max_size=3).map(lambda values: {"M": values})
    ),
)
ITEMS = st.dictionaries(st.sampled_from(["a", "b", "é"]), VALUES)


@given(ITEMS, ITEMS, st.booleans())
def test_what_a_change_adds_is_the_difference_of_the_sizes(
    before: dict[str, Any], after: dict[str, Any], shares: bool
) -> None:
    if shares:
        after = {**before, **after, "m": {"M": {**before, "new": {"S": "x"}}}}
        before = {**before, "m": {"M": before}}
    assert size_change(before, after, before.keys() | after.keys()) == item_size(after) - item_size(before)
    assert size_change(before, before, before.keys()) == 0


def test_values_that_mean_the_same_become_equal() -> None:
    valid = validate_value({"L": [{"NS": ["2", "1.0"]}, {"N": "1e1"}]})
    assert valid == validate_value({"L": [{"NS": ["1", "2"]}, {"N": "10"}]})


def test_container_depth() -> None:
    assert container_depth({"S": "x"}) == 0
    assert container_depth({"M": {"a": {"L": []}, "b": {"S": "x"}}}) == 2
