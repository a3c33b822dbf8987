"""ExpressionAttributeNames and ExpressionAttributeValues."""

from __future__ import annotations

from typing import Any

import pytest

from jobtable.embedded.expressions import Placeholders, compile_condition
from jobtable.errors import RequestRefused

S = {"S": "a"}

# names, values, and the message for the condition "a = :s" with them
REFUSED: list[tuple[Any, Any, str]] = [
    ({}, None, "ExpressionAttributeNames must not be empty"),
    (None, {}, "ExpressionAttributeValues must not be empty"),
    ({}, {}, "ExpressionAttributeNames must not be empty"),
    ({"a": "b"}, {"s": S}, 'ExpressionAttributeNames contains invalid key: Syntax error; key: "a"'),
    ({"#": "b"}, None, 'ExpressionAttributeNames contains invalid key: Syntax error; key: "#"'),
    ({"#é": "b"}, None, 'ExpressionAttributeNames contains invalid key: Syntax error; key: "#é"'),
    ({"#a.b": "b"}, None, 'ExpressionAttributeNames contains invalid key: Syntax error; key: "#a.b"'),
    ({"#a": ""}, None, "ExpressionAttributeNames contains invalid value: Empty attribute name for key #a"),
    ({"#a": None}, None, "ExpressionAttributeNames contains invalid value: null for key #a"),
    (
        {"#a": "x" * 65536},
        None,
        "ExpressionAttributeNames contains invalid value: "
        "Attribute name is too large, must be less than 65536 bytes for key #a",
    ),
    (
        {"#" + "x" * 255: "a"},
        None,
        "ExpressionAttributeNames contains invalid key: "
        "The expression attribute map contains a key that is too long; size of key: 256",
    ),
    (
        None,
        {":" + "x" * 255: S},
        "ExpressionAttributeValues contains invalid key: The expression attribute map contains a key that is too long;",
    ),
    (None, {"s": S}, 'ExpressionAttributeValues contains invalid key: Syntax error; key: "s"'),
    (None, {":": S}, 'ExpressionAttributeValues contains invalid key: Syntax error; key: ":"'),
    (None, {":s-t": S}, 'ExpressionAttributeValues contains invalid key: Syntax error; key: ":s-t"'),
    (
        None,
        {":s": {}},
        "ExpressionAttributeValues contains invalid value: Supplied AttributeValue is empty, "
        "must contain exactly one of the supported datatypes for key :s",
    ),
    (
        None,
        {":s": None},
        "ExpressionAttributeValues contains invalid value: The supplied Item contains a null AttributeValue for key :s",
    ),
    (
        None,
        {":s": {"SS": []}},
        "ExpressionAttributeValues contains invalid value: "
        "One or more parameter values were invalid: An string set  may not be empty for key :s",
    ),
    (
        None,
        {":s": {"M": {"": S}}},
        "ExpressionAttributeValues contains invalid value: Empty attribute name for key :s",
    ),
    (None, {":s": {"S": "x" * 2097152}}, "ExpressionAttributeValues exceeds max size"),
    (
        {"#x": "y", "#z": "y"},
        {":s": S, ":t": S},
        "Value provided in ExpressionAttributeNames unused in expressions: keys: {#x, #z}",
    ),
    (
        None,
        {":s": S, ":t": S, ":u": S},
        "Value provided in ExpressionAttributeValues unused in expressions: keys: {:t, :u}",
    ),
    (
        {"#x": "y"},
        {":t": S},
        "Invalid ConditionExpression: An expression attribute value used in expression is not defined; "
        "attribute value: :s",
    ),
]


@pytest.mark.parametrize(("names", "values", "message"), REFUSED)
def test_embedded(names: Any, values: Any, message: str) -> None:
    with pytest.raises(RequestRefused) as caught:
        _used_in_a_condition(Placeholders(names, values))
    assert caught.value.message == message


def _used_in_a_condition(placeholders: Placeholders) -> None:
    compile_condition("a = :s", placeholders)
    placeholders.finish()


@pytest.mark.parametrize(("names", "values", "message"), REFUSED)
def test_dynamodb_local(local: Any, names: Any, values: Any, message: str) -> None:
    with pytest.raises(RequestRefused) as caught:
        local.holds("a = :s", names, values)
    assert caught.value.message == message


@pytest.mark.parametrize("expressions", [(), ("ConditionExpression",), ("UpdateExpression", "ConditionExpression")])
def test_maps_that_no_expression_could_use_are_left_out(expressions: tuple[str, ...]) -> None:
    alone = Placeholders.of({"ExpressionAttributeNames": {"bad": "b"}, "ExpressionAttributeValues": {}}, *expressions)
    assert (alone.names, alone.values) == ({}, {})
    alone.finish()


def test_a_projection_uses_names_only() -> None:
    maps = {"ExpressionAttributeNames": {"#a": "b"}, "ExpressionAttributeValues": {":a": S}}
    of_projection = Placeholders.of({"ProjectionExpression": "#a", **maps}, "FilterExpression")
    assert (of_projection.names, of_projection.values) == ({"#a": "b"}, {})
    with pytest.raises(RequestRefused, match="ExpressionAttributeNames must not be empty"):
        Placeholders.of({"ProjectionExpression": "a", "ExpressionAttributeNames": {}}, "FilterExpression")


def test_all_keys_are_looked_at_before_any_value() -> None:
    with pytest.raises(RequestRefused) as caught:
        Placeholders(None, {":a": {}, "b": S})
    assert caught.value.message == 'ExpressionAttributeValues contains invalid key: Syntax error; key: "b"'


def test_values_are_canonical() -> None:
    assert Placeholders(None, {":n": {"N": "1.50"}}).values == {":n": {"N": "1.5"}}


@pytest.mark.parametrize(("names", "values"), [([], None), ("x", None), ({"#a": 1}, None), (None, [])])
def test_other_json_types_are_refused(names: Any, values: Any) -> None:
    with pytest.raises(RequestRefused) as caught:
        Placeholders(names, values)
    assert caught.value.code == "SerializationException"
