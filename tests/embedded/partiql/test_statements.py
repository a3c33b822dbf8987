"""INSERT, UPDATE and DELETE, mostly compared with DynamoDB Local."""

from __future__ import annotations

from typing import Any

import pytest
from tests.embedded.side_by_side import N, Pair, Request, S

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import ConditionalCheckFailed, DuplicateItem, RequestRefused
from jobtable.store.sizes import item_size

ITEM = (
    "{'pk': 'p', 'sk': '1', 'n': 1, 't': 'it''s', 'f': false, 'z': null, 'l': [1, {'x': 'y'}], 'm': {'x': {'y': 1}},"
    " 'ss': <<'a', 'b'>>, 'ns': <<1, 2.5>>}"
)
KEY = "WHERE pk = 'p' AND sk = '1'"


def run(backend: EmbeddedBackend, text: str, *parameters: Request, **more: Any) -> list[Request]:
    request = {"Statement": text, **({"Parameters": list(parameters)} if parameters else {}), **more}
    items: list[Request] = backend.execute("ExecuteStatement", request)["Items"]
    return items


def stored(backend: EmbeddedBackend) -> Request:
    item: Request = backend.execute("GetItem", {"TableName": "main", "Key": {"pk": S("p"), "sk": S("1")}})["Item"]
    return item


@pytest.fixture
def one(backend: EmbeddedBackend) -> EmbeddedBackend:
    """The table with one item."""
    run(backend, f"INSERT INTO main VALUE {ITEM}")
    return backend


def test_an_insert_stores_every_type_that_can_be_written(one: EmbeddedBackend) -> None:
    assert stored(one) == {
        "pk": S("p"),
        "sk": S("1"),
        "n": N(1),
        "t": S("it's"),
        "f": {"BOOL": False},
        "z": {"NULL": True},
        "l": {"L": [N(1), {"M": {"x": S("y")}}]},
        "m": {"M": {"x": {"M": {"y": N(1)}}}},
        "ss": {"SS": ["a", "b"]},
        "ns": {"NS": ["1", "2.5"]},
    }


def test_an_insert_of_what_is_there_is_refused_and_changes_nothing(one: EmbeddedBackend) -> None:
    before = stored(one)
    with pytest.raises(DuplicateItem, match="Duplicate primary key exists in table") as caught:
        run(one, "INSERT INTO main VALUE {'pk': ?, 'sk': ?}", S("p"), S("1"))
    assert caught.value.code == "DuplicateItemException"
    assert stored(one) == before


def test_parameters_may_have_types_that_cannot_be_written(backend: EmbeddedBackend) -> None:
    run(backend, "INSERT INTO binary VALUE {'pk': 1, 'sk': ?, 'b': ?}", {"B": "AQI="}, {"BS": ["AA=="]})
    found = run(backend, "SELECT * FROM binary WHERE pk = 1 AND sk = ?", {"B": "AQI="})
    assert found == [{"pk": N(1), "sk": {"B": "AQI="}, "b": {"BS": ["AA=="]}}]


CHANGES = [
    "SET t = 'x' SET n = 5",
    "SET t = 'x', n = n + 1",
    "SET n = n - (2 + n) - -1",
    "SET n = 7 REMOVE t REMOVE none",
    "SET l = list_append(l, [2]) SET ss = set_add(ss, <<'c'>>) SET ns = SET_DELETE(ns, <<1>>)",
    "SET ss = set_delete(ss, <<'a', 'b'>>)",
    "SET fresh = set_add(fresh, <<1>>)",
    "SET l[0] = 'x' SET l[9] = 'y' REMOVE l[1]",
    "SET m.x.y = {'z': [1, <<2>>]} SET m['new'] = null",
    "SET m.other.y = 1",
    "SET t = none",
    "SET n = t + 1",
    "SET t = n, n = t",
    "SET pk = 'x'",
    "SET g1 = ''",
    "SET t = 1 SET t = 2",
    "SET t = list_append(t, 1)",
    "SET t = set_add(n, <<1>>)",
    "SET t = other(n)",
    "SET t = size(n)",
    "SET t = n * 2",
    "SET t = MISSING",
    "SET t = {'x': n}",
    "SET t = <<>>",
    "SET t = <<1, 'a'>>",
    "SET t = <<[1]>>",
]


def start_again(pair: Pair) -> None:
    """One and the same item on both sides."""
    for text in (f"DELETE FROM main {KEY}", f"INSERT INTO main VALUE {ITEM}"):
        pair.both("ExecuteStatement", {"Statement": text})


def test_an_update_leaves_the_item_that_dynamodb_local_leaves(pair: Pair) -> None:
    for change in CHANGES:
        start_again(pair)
        pair.both("ExecuteStatement", {"Statement": f"UPDATE main {change} {KEY}"})
        pair.both("ExecuteStatement", {"Statement": "SELECT * FROM main"})


WRITES = [
    "UPDATE main SET a = 1 WHERE pk = 'p'",
    "UPDATE main SET a = 1",
    "UPDATE main SET a = 1 WHERE pk = 'p' AND sk = '1' OR n = 1",
    "UPDATE main SET a = 1 WHERE pk = 'p' AND sk IN ['1']",
    "UPDATE main SET a = 1 WHERE pk = 'p' AND sk = '1' AND sk = '2'",
    "UPDATE main SET a = 1 WHERE pk = 'p' AND sk = true",
    "UPDATE main SET a = 1 WHERE pk = 'p' AND sk = 1",
    "UPDATE main SET a = 1 WHERE pk = 'p' AND sk = 'none'",
    "UPDATE main SET a = 1 WHERE pk = 'p' AND sk = 'none' AND a IS MISSING",
    "UPDATE main SET a = 1 WHERE (pk = 'p' AND n = 2) AND sk = '1'",
    "UPDATE main SET a = 1 WHERE '1' = sk AND n = 1 AND (pk = 'p')",
    "UPDATE main.gall SET a = 1 WHERE pk = 'p' AND sk = '1'",
    "DELETE FROM main WHERE pk = 'p' AND sk = '1' AND n = 2",
    "DELETE FROM main WHERE pk = 'p' AND sk = 'none' AND n = 2",
    "DELETE FROM main WHERE pk = 'p' AND sk = 'none'",
    "DELETE FROM main WHERE pk = 'p' AND sk = '1' AND n = 1 RETURNING ALL OLD *",
    "DELETE FROM main WHERE pk = 'p' AND sk = '1' RETURNING ALL NEW *",
    "DELETE FROM main WHERE pk = 'p'",
    "DELETE FROM main.gall WHERE pk = 'p' AND sk = '1'",
    "INSERT INTO main VALUE {'pk': 'p'}",
    "INSERT INTO main VALUE {'pk': 'p', 'sk': 1}",
    "INSERT INTO main VALUE {'pk': 'p', 'sk': ''}",
    "INSERT INTO main VALUE {pk: 'p'}",
    "INSERT INTO main VALUE {'pk': 'p', '': 1}",
    "INSERT INTO main VALUE 'p'",
    "INSERT INTO main VALUE {'pk': 'p', 'sk': '2'} RETURNING ALL NEW *",
    "INSERT INTO main.gall VALUE {'pk': 'p', 'sk': '2'}",
]


def test_a_write_does_what_dynamodb_local_does(pair: Pair) -> None:
    for text in WRITES:
        start_again(pair)
        pair.both("ExecuteStatement", {"Statement": text, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"})
        pair.both("ExecuteStatement", {"Statement": "SELECT * FROM main"})


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        ("ALL OLD *", None),
        ("MODIFIED OLD *", {"n": N(1), "m": {"M": {"x": {"M": {"y": N(1)}}}}}),
        ("MODIFIED NEW *", {"n": N(2), "m": {"M": {"x": {"M": {"y": S("z")}}}}}),
    ],
)
def test_an_update_returns_what_is_asked_for(one: EmbeddedBackend, returned: str, expected: Request | None) -> None:
    before = stored(one)
    text = f"UPDATE main SET n = 2 SET m.x.y = 'z' REMOVE none {KEY} RETURNING {returned}"
    assert run(one, text) == [before if expected is None else expected]
    assert run(one, f"UPDATE main SET n = 3 {KEY} RETURNING ALL NEW *") == [stored(one)]
    assert run(one, f"UPDATE main SET n = 3 {KEY}") == []


@pytest.mark.parametrize("operation", ["ExecuteStatement", "BatchExecuteStatement"])
def test_an_update_is_as_large_as_the_item_that_it_leaves(backend: EmbeddedBackend, operation: str) -> None:
    """Of UpdateItem the actions count too, and keys do not: with a short key it leaves smaller items only."""

    def updated(text: str) -> Any:
        statement = {"Statement": "UPDATE hash SET x = ? WHERE pk = '1'", "Parameters": [S(text)]}
        request = statement if operation == "ExecuteStatement" else {"Statements": [statement]}
        return backend.execute(operation, request)

    backend.execute("PutItem", {"TableName": "hash", "Item": {"pk": S("1")}})
    updated("y" * (409_600 - len("pk1x")))
    found = backend.execute("GetItem", {"TableName": "hash", "Key": {"pk": S("1")}})["Item"]
    assert item_size(found) == 409_600
    if operation == "ExecuteStatement":
        with pytest.raises(RequestRefused, match="Item size to update has exceeded the maximum allowed size"):
            updated("y" * (409_601 - len("pk1x")))


def test_a_write_says_what_it_consumed(one: EmbeddedBackend) -> None:
    answer = one.execute(
        "ExecuteStatement",
        {"Statement": f"UPDATE main SET g1 = 'g' SET g2 = 1 {KEY}", "ReturnConsumedCapacity": "INDEXES"},
    )
    assert answer == {
        "Items": [],
        "ConsumedCapacity": {
            "TableName": "main",
            "CapacityUnits": 5.0,
            "Table": {"CapacityUnits": 1.0},
            "GlobalSecondaryIndexes": {name: {"CapacityUnits": 1.0} for name in ("gall", "gkeys", "ginc")},
            "LocalSecondaryIndexes": {"lkeys": {"CapacityUnits": 1.0}},
        },
    }


def test_the_item_comes_with_the_failure_where_it_is_wanted(one: EmbeddedBackend) -> None:
    with pytest.raises(ConditionalCheckFailed) as caught:
        run(one, f"UPDATE main SET n = 2 {KEY} AND n = 9", ReturnValuesOnConditionCheckFailure="ALL_OLD")
    assert caught.value.details == {"Item": stored(one)}


MALFORMED = [
    ("FOO", "Expected data manipulation"),
    ("CREATE TABLE x (pk)", "Unexpected token after expression"),
    ("SELECT * FROM main LIMIT 1 OFFSET 1", "Unexpected token after expression"),
    ("UPDATE my-table SET a = 1 WHERE pk = 'p'", "Expected data manipulation"),
    ("INSERT INTO main (pk) VALUES ('p')", "Unexpected token after expression"),
    ("INSERT INTO main VALUES {'pk': 'p'}", "Unexpected keyword"),
    ("SELECT size FROM main", "Unexpected keyword"),
    ("SELECT *\nFROM main\nWHERE pk == 'p'", "Unexpected operator"),
    ("SELECT * FROM main WHERE pk = 'p", ""),
    ("SELECT * FROM main WHERE pk = 1_0", "Unexpected token after expression"),
    ("UPDATE main REMOVE a, b WHERE pk = 'p'", "Unexpected token after expression"),
    ("SELECT * FROM main; SELECT * FROM main", "Unexpected token after semicolon. (Only one query is allowed.)"),
    ("DELETE FROM main WHERE pk = 'p' RETURNING ALL", "Unexpected end of the statement"),
    ("DELETE FROM main WHERE pk = 'p' RETURNING\nNONE", "Unexpected token 'NONE' at 2:1:4"),
    ("SELECT * FROM main WHERE pk BETWEEN 1 OR 2", "Unexpected keyword OR at 1:39:2"),
]


@pytest.mark.parametrize(("text", "reason"), MALFORMED)
def test_a_text_that_is_no_statement_is_refused(backend: EmbeddedBackend, text: str, reason: str) -> None:
    with pytest.raises(RequestRefused) as caught:
        run(backend, text)
    assert caught.value.message == f"Statement wasn't well formed, can't be processed: {reason}"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"Statement": ""}, "Value '' at 'statement' failed to satisfy constraint: Member must have length greater"),
        ({"Statement": "x" * 8193}, "at 'statement' failed to satisfy constraint: Member must have length less than"),
        ({"Statement": None}, "Value null at 'statement' failed to satisfy constraint: Member must not be null"),
        ({"Parameters": []}, "Value '\\[\\]' at 'parameters' failed to satisfy constraint"),
        ({"Limit": 0}, "Value '0' at 'limit' failed to satisfy constraint"),
        ({"Parameters": [{"N": "x"}]}, "The parameter cannot be converted to a numeric value"),
        ({"Parameters": [5]}, "Unexpected value type in payload"),
        ({"Limit": "5"}, "STRING_VALUE cannot be converted to Integer"),
    ],
)
def test_members_keep_the_constraints_of_the_service(backend: EmbeddedBackend, more: Request, message: str) -> None:
    with pytest.raises(RequestRefused, match=message):
        backend.execute("ExecuteStatement", {"Statement": "SELECT * FROM main", **more})
