"""AttributeUpdates."""

from __future__ import annotations

from typing import Any

import pytest
from tests.embedded.side_by_side import N, Pair, Request, S

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import RequestRefused

HASH: Request = {"TableName": "hash"}
ONE: Request = {**HASH, "Key": {"pk": S("1")}}
ROW: Request = {"TableName": "main", "Key": {"pk": S("p"), "sk": S("1")}}
ITEM: dict[str, Any] = {
    "pk": S("1"),
    "text": S("A"),
    "number": N(5),
    "words": {"SS": ["a", "b"]},
    "list": {"L": [N(1)]},
    "map": {"M": {"x": N(1)}},
}


def put(value: Any) -> Request:
    return {"Action": "PUT", "Value": value}


def add(value: Any) -> Request:
    return {"Action": "ADD", "Value": value}


def delete(value: Any = None) -> Request:
    return {"Action": "DELETE"} | ({} if value is None else {"Value": value})


UPDATES: list[tuple[Request, Request]] = [
    ({"text": put(N(1)), "new": put({"M": {}})}, {"text": N(1), "new": {"M": {}}}),
    ({"map.x": put(S("no path")), "list[0]": put(S("no path"))}, {"map.x": S("no path"), "list[0]": S("no path")}),
    ({"number": add(N("-7.5"))}, {"number": N("-2.5")}),
    ({"missing": add(N(2))}, {"missing": N(2)}),
    ({"words": add({"SS": ["b", "c"]})}, {"words": {"SS": ["a", "b", "c"]}}),
    ({"missing": add({"NS": ["1"]})}, {"missing": {"NS": ["1"]}}),
    ({"list": add({"L": [S("x"), S("y")]})}, {"list": {"L": [N(1), S("x"), S("y")]}}),
    ({"missing": add({"L": [S("x")]})}, {"missing": {"L": [S("x")]}}),
    ({"words": delete({"SS": ["a", "z"]})}, {"words": {"SS": ["b"]}}),
    ({"words": delete({"SS": ["a", "b"]})}, {"words": None}),
    ({"missing": delete({"SS": ["a"]})}, {}),
    ({"text": delete(), "missing": delete()}, {"text": None}),
    ({"text": put(S("B")), "number": add(N(1)), "list": delete()}, {"text": S("B"), "number": N(6), "list": None}),
    ({}, {}),
]


def test_updates_do_what_dynamodb_does(pair: Pair) -> None:
    for updates, changed in UPDATES:
        pair.both("PutItem", {**HASH, "Item": ITEM})
        new = {name: value for name, value in {**ITEM, **changed}.items() if value is not None}
        request: Request = {**ONE, "AttributeUpdates": updates, "ReturnConsumedCapacity": "TOTAL"}
        assert pair.both("UpdateItem", {**request, "ReturnValues": "ALL_NEW"}).body["Attributes"] == new
        assert pair.both("GetItem", ONE).body["Item"] == new


def test_the_changed_attributes_are_returned(pair: Pair) -> None:
    updates = {"text": put(S("B")), "number": add(N(1)), "missing": delete(), "words": delete()}
    for wanted, returned in (
        ("UPDATED_OLD", {name: ITEM[name] for name in ("text", "number", "words")}),
        ("UPDATED_NEW", {"text": S("B"), "number": N(6)}),
        ("ALL_OLD", ITEM),
    ):
        pair.both("PutItem", {**HASH, "Item": ITEM})
        answer = pair.both("UpdateItem", {**ONE, "AttributeUpdates": updates, "ReturnValues": wanted})
        assert answer.body["Attributes"] == returned


def test_the_action_is_put_unless_another_is_named(backend: EmbeddedBackend) -> None:
    # DynamoDB Local does nothing then.
    backend.execute("UpdateItem", {**ONE, "AttributeUpdates": {"a": {"Value": S("x")}, "b": None}})
    assert backend.execute("GetItem", ONE)["Item"] == {"pk": S("1"), "a": S("x")}


def test_an_item_is_made_of_what_is_put_or_added(pair: Pair) -> None:
    for number, update in enumerate((put(S("x")), add(N(1)), add({"SS": ["a"]}), add({"L": []}))):
        key = {"pk": S(str(number))}
        pair.both("UpdateItem", {**HASH, "Key": key, "AttributeUpdates": {"a": update}})
        assert pair.both("GetItem", {**HASH, "Key": key}).body["Item"] == {**key, "a": update["Value"]}


def test_nothing_is_made_of_what_is_deleted(backend: EmbeddedBackend) -> None:
    # DynamoDB Local makes an item, with no more than its key.
    backend.execute("UpdateItem", {**ONE, "AttributeUpdates": {"a": delete(), "b": delete({"SS": ["a"]})}})
    assert "Item" not in backend.execute("GetItem", ONE)


def test_updates_move_items_in_indexes(pair: Pair) -> None:
    pair.both("UpdateItem", {**ROW, "AttributeUpdates": {"g1": put(S("g")), "g2": add(N(3))}})
    by_index: Request = {
        "TableName": "main",
        "IndexName": "gall",
        "KeyConditions": {
            "g1": {"ComparisonOperator": "EQ", "AttributeValueList": [S("g")]},
            "g2": {"ComparisonOperator": "GE", "AttributeValueList": [N(3)]},
        },
    }
    assert pair.both("Query", by_index).body["Count"] == 1
    pair.both("UpdateItem", {**ROW, "AttributeUpdates": {"g2": delete()}})
    assert pair.both("Query", by_index).body["Count"] == 0


def test_an_update_waits_for_what_it_expects(pair: Pair) -> None:
    pair.both("PutItem", {**HASH, "Item": ITEM})
    counted: Request = {**ONE, "AttributeUpdates": {"number": add(N(1))}, "Expected": {"number": {"Value": N(5)}}}
    assert pair.both("UpdateItem", counted).code is None
    assert pair.both("UpdateItem", counted).code == "ConditionalCheckFailedException"


FAULTS: list[Request] = [
    {"a": {}},
    {"a": {"Action": "PUT"}},
    {"a": {"Action": "ADD"}},
    {"a": put({})},
    {"a": put({"NULL": False})},
    {"": delete()},
    {"pk": put(S("1"))},
    {"pk": delete()},
    {"words": add({"NS": ["1"]})},
    {"text": add(N(1))},
    {"text": add({"L": []})},
    {"list": add(N(1))},
    {"text": delete({"SS": ["a"]})},
    {"words": delete({"NS": ["1"]})},
]


def test_wrong_updates_are_refused_as_by_dynamodb(pair: Pair) -> None:
    pair.both("PutItem", {**HASH, "Item": ITEM})
    for updates in FAULTS:
        assert pair.both("UpdateItem", {**ONE, "AttributeUpdates": updates}).code == "ValidationException", updates
    assert pair.both("GetItem", ONE).body["Item"] == ITEM


INVALID = "One or more parameter values were invalid: "
SERVICE_FAULTS: list[tuple[Request, str]] = [
    # DynamoDB Local has other words for the types.
    *(
        ({"a": add(value)}, f"ADD action is not supported for the type {kind}")
        for kind, value in (
            ("S", S("a")),
            ("B", {"B": "AA=="}),
            ("BOOL", {"BOOL": True}),
            ("NULL", {"NULL": True}),
            ("M", {"M": {}}),
        )
    ),
    *(
        ({"a": delete(value)}, f"DELETE action with value is not supported for the type {kind}")
        for kind, value in (("S", S("a")), ("N", N(1)), ("L", {"L": []}), ("M", {"M": {}}))
    ),
]


@pytest.mark.parametrize(("updates", "message"), SERVICE_FAULTS)
def test_types_that_an_action_does_not_take(backend: EmbeddedBackend, updates: Request, message: str) -> None:
    with pytest.raises(RequestRefused) as caught:
        backend.execute("UpdateItem", {**ONE, "AttributeUpdates": updates})
    assert caught.value.message == f"1 validation error detected: {INVALID}{message}"


def test_an_unknown_action_is_a_broken_constraint(backend: EmbeddedBackend) -> None:
    with pytest.raises(RequestRefused) as caught:
        backend.execute("UpdateItem", {**ONE, "AttributeUpdates": {"a": {"Action": "SET", "Value": S("a")}}})
    assert caught.value.message == (
        "1 validation error detected: Value 'SET' at 'attributeUpdates.a.member.action' failed to satisfy constraint:"
        " Member must satisfy enum value set: [ADD, PUT, DELETE]"
    )


@pytest.mark.parametrize("update", [put(N(1)), add(N(1)), delete({"NS": ["1"]})])
def test_index_keys_keep_their_type(backend: EmbeddedBackend, update: Request) -> None:
    with pytest.raises(RequestRefused, match="Type mismatch for Index Key g1 Expected: S Actual: N"):
        backend.execute("UpdateItem", {**ROW, "AttributeUpdates": {"g1": update}})
