"""Items that stay JSON on their way from the backend to the entity."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_core import from_json
from tests.samples import Line, Word, main

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import ItemShapeError
from jobtable.store import Store
from jobtable.store.backend import StoreRequest

IMAGE = "f84d63ed-3b42-448e-9a1d-3474137f4e80"
PARTITION = {"S": f"IMAGE#{IMAGE}"}
QUERY = {
    "TableName": main.name,
    "KeyConditionExpression": "PK = :p",
    "ExpressionAttributeValues": {":p": PARTITION},
    "ReturnConsumedCapacity": "INDEXES",
}


@pytest.fixture
def store() -> Store:
    store = Store(EmbeddedBackend(None))
    store.tables.create(main)
    for number in range(4):
        store.put(Line(image_id=IMAGE, line_id=number, text=f"line {number}", confidence=1))
    return store


@pytest.mark.parametrize(
    ("operation", "request_", "stays_json"),
    [
        ("GetItem", {"TableName": main.name, "Key": {"PK": PARTITION, "SK": {"S": "LINE#00001"}}}, True),
        ("GetItem", {"TableName": main.name, "Key": {"PK": PARTITION, "SK": {"S": "LINE#00009"}}}, False),
        (
            "GetItem",
            {
                "TableName": main.name,
                "Key": {"PK": PARTITION, "SK": {"S": "LINE#00001"}},
                "ProjectionExpression": "confidence",
            },
            False,
        ),
        ("Query", QUERY, True),
        ("Query", {**QUERY, "Limit": 2, "ScanIndexForward": False}, True),
        ("Query", {**QUERY, "Select": "COUNT"}, False),
        ("Query", {**QUERY, "ProjectionExpression": "confidence"}, False),
        ("Query", {**QUERY, "FilterExpression": "attribute_exists(confidence)"}, False),
    ],
)
def test_only_the_form_of_whole_items_differs(
    store: Store, operation: str, request_: dict[str, Any], stays_json: bool
) -> None:
    plain = store.backend.execute(operation, request_)
    answer = store.backend.execute(operation, StoreRequest(request_))
    bodies = answer.get("Items", [answer["Item"]] if "Item" in answer else [])
    assert any(isinstance(body, bytes) for body in bodies) == stays_json
    if stays_json and operation == "Query":
        answer["Items"] = [from_json(body) for body in bodies]
    elif stays_json:
        answer["Item"] = from_json(bodies[0])
    assert answer == plain


def test_what_an_update_gives_shares_nothing_with_a_plain_request(store: Store) -> None:
    request = {
        "TableName": main.name,
        "Key": {"PK": PARTITION, "SK": {"S": "LINE#00001"}},
        "UpdateExpression": "SET added = :v",
        "ExpressionAttributeValues": {":v": {"L": [{"S": "x"}]}},
        "ReturnValues": "ALL_NEW",
    }
    assert store.backend.execute("UpdateItem", StoreRequest(request)) == store.backend.execute("UpdateItem", request)
    store.backend.execute("UpdateItem", request)["Attributes"]["added"]["L"].clear()
    assert request["ExpressionAttributeValues"] == {":v": {"L": [{"S": "x"}]}}


def test_items_of_other_types_are_left_out_and_those_of_another_shape_are_errors(store: Store) -> None:
    for number in range(4):
        store.put(Word(image_id=IMAGE, line_id=1, word_id=number, confidence=1))
    words = store.query(Word.key(image_id=IMAGE, line_id=1))
    assert "FilterExpression" not in words._request  # with one, the engine would have looked at the items
    odd = {"PK": PARTITION, "SK": {"S": "LINE#00001#WORD#00001#ODD"}, "TYPE": {"S": "ODD"}}
    store.backend.execute("PutItem", {"TableName": main.name, "Item": odd})
    for _ in range(3):
        assert [word.word_id for word in words] == [0, 1, 2, 3]
    wrong = {"PK": PARTITION, "SK": {"S": "LINE#00001#WORD#00002"}, "TYPE": {"S": "WORD"}}
    store.backend.execute("PutItem", {"TableName": main.name, "Item": wrong})
    found = iter(words)
    assert [next(found).word_id for _ in range(2)] == [0, 1]
    with pytest.raises(ItemShapeError, match="LINE#00001#WORD#00002"):
        next(found)


def test_a_batch_is_answered_key_by_key_and_goes_on_where_there_was_no_room(store: Store) -> None:
    text = "x" * 350_000
    lines = [Line(image_id=IMAGE, line_id=number, text=text, confidence=1) for number in range(100, 160)]
    store.batch_put(lines)
    numbers = [7, *range(100, 130), 8, *range(130, 160), 9]
    keys = [{"PK": PARTITION, "SK": {"S": f"LINE#{number:05}"}} for number in numbers]
    request = {"RequestItems": {main.name: {"Keys": keys}}, "ReturnConsumedCapacity": "TOTAL"}
    plain = store.backend.execute("BatchGetItem", request)
    answer = store.backend.execute("BatchGetItem", StoreRequest(request))
    bodies = answer["Responses"].pop(main.name)
    left = len(answer["UnprocessedKeys"][main.name]["Keys"])
    assert (bodies[0], bodies[31], len(bodies)) == (None, None, len(keys) - left)
    assert [from_json(body) for body in bodies if body is not None] == plain["Responses"].pop(main.name)
    assert answer == plain
    assert left, "more than 16 MB"
    found = store.batch_get([Line.key(image_id=IMAGE, line_id=number) for number in numbers])
    assert found == [None, *lines[:30], None, *lines[30:], None]
