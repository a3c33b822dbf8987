"""TransactWriteItems and TransactGetItems."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.embedded.side_by_side import TABLES, N, Pair, Request, S
from tests.embedded.storage.consistency import inconsistencies

from jobtable.embedded import EmbeddedBackend
from jobtable.embedded.storage import NO_ITEM, Sized, Transaction
from jobtable.errors import IdempotencyMismatch, RequestError, RequestRefused, TransactionCanceled


def key(text: str) -> Request:
    return {"pk": S(text)}


def put(text: str, **more: Any) -> Request:
    return {"Put": {"TableName": "hash", "Item": key(text), **more}}


def put_row(**attributes: Request) -> Request:
    return {"Put": {"TableName": "main", "Item": {"pk": S("p"), "sk": S("1"), **attributes}}}


def delete(text: str, **more: Any) -> Request:
    return {"Delete": {"TableName": "hash", "Key": key(text), **more}}


def check(text: str, condition: str | None = "attribute_exists(pk)", **more: Any) -> Request:
    return {"ConditionCheck": {"TableName": "hash", "Key": key(text), "ConditionExpression": condition, **more}}


def update(text: str, expression: str, value: Request) -> Request:
    change = {"UpdateExpression": expression, "ExpressionAttributeValues": {":a": value}}
    return {"Update": {"TableName": "hash", "Key": key(text), **change}}


def write(*actions: Request, **more: Any) -> Request:
    return {"TransactItems": list(actions), **more}


def get(text: str, **more: Any) -> Request:
    return {"Get": {"TableName": "hash", "Key": key(text), **more}}


TAKEN = put("1", ConditionExpression="attribute_not_exists(pk)")
TAKEN_SHOWN = put("1", ConditionExpression="attribute_not_exists(pk)", ReturnValuesOnConditionCheckFailure="ALL_OLD")

REFUSED: list[Request] = [
    {},
    write(),
    write({}),
    write({**put("7"), **delete("7")}),
    write(put("7"), delete("7")),
    write(*(put(str(number)) for number in range(101))),
    write(check("1", None)),
    write({"Put": {"TableName": "hash"}}),
    write({"Put": {"Item": key("1")}}),
    write({"Put": {"TableName": "nope", "Item": key("1")}}),
    # What an action shows by itself comes before what any table shows.
    write({"Put": {"TableName": "nope", "Item": key("1")}}, delete("8", ConditionExpression="a = ")),
    write({"Put": {"TableName": "nope", "Item": key("1")}}, put("8", Item={"pk": S("8"), "x": {"SS": []}})),
    write({"Put": {"TableName": "nope", "Item": key("1")}}, TAKEN),
    write(put("7"), TAKEN),
    write(put("7"), TAKEN_SHOWN),
    write(delete("none", ConditionExpression="attribute_exists(pk)"), TAKEN, put("7")),
    write(put("7"), put("")),
    write(put("7"), delete("")),
    write(put("7"), put("8", Item={"pk": S("8"), "x": N("x")})),
    write(put("7"), delete("8", ConditionExpression="a = ")),
    write(put("7"), put("8", Item={"pk": S("8"), "x": S("x" * 409_600)})),
    write(put("7"), put_row(g1=S(""))),
    write(put("8"), ClientRequestToken="t" * 37),
    write(*(put("", Item={"pk": S(str(number)), "x": S("x" * 400_000)}) for number in range(12))),
    write(*(update(f"c{number}", "SET y = :a", S("y" * 390_000)) for number in range(12))),
]


@pytest.mark.parametrize("request_", REFUSED)
def test_writes_are_refused_as_dynamodb_does(filled_pair: Pair, request_: Request) -> None:
    assert filled_pair.both("TransactWriteItems", request_).code is not None


def test_a_token_that_is_too_long_is_told_before_other_members(backend: EmbeddedBackend) -> None:
    with pytest.raises(RequestRefused) as caught:
        backend.execute(
            "TransactWriteItems", write(put("1"), ClientRequestToken="t" * 37, ReturnConsumedCapacity="OTHER")
        )
    assert caught.value.message == (
        f"2 validation errors detected: Value '{'t' * 37}' at 'clientRequestToken' failed to satisfy constraint: Member"
        " must have length less than or equal to 36; Value 'OTHER' at 'returnConsumedCapacity' failed to satisfy"
        " constraint: Member must satisfy enum value set: [INDEXES, TOTAL, NONE]"
    )


def test_an_expression_is_told_before_a_key_that_is_too_deep(backend: EmbeddedBackend) -> None:
    deep = nested(32)
    with pytest.raises(RequestRefused, match="Nesting Levels have exceeded supported limits"):
        backend.execute("TransactWriteItems", write(delete("", Key={"pk": deep})))
    with pytest.raises(RequestRefused, match="Invalid ConditionExpression: Syntax error"):
        backend.execute("TransactWriteItems", write(delete("", Key={"pk": deep}, ConditionExpression="a = = b")))


def nested(levels: int) -> Request:
    value: Request = S("leaf")
    for _ in range(levels):
        value = {"M": {"n": value}}
    return value


def test_a_value_may_be_a_level_deeper_than_an_item(backend: EmbeddedBackend) -> None:
    """As in most regions of the service, and in DynamoDB Local; the other regions refuse it."""
    by_itself: Request = {"ExpressionAttributeValues": {":a": nested(32)}}
    conditions: Request = {"ConditionExpression": "d = :a", **by_itself}
    changed = {"Update": {**update("1", "REMOVE x", {})["Update"], **conditions}}
    for action in (check("1", "d = :a", **by_itself), delete("1", **conditions), put("1", **conditions), changed):
        with pytest.raises(TransactionCanceled, match="ConditionalCheckFailed"):
            backend.execute("TransactWriteItems", write(action))
    filter_ = {"FilterExpression": "d = :a"}
    assert backend.execute("Scan", {"TableName": "hash", **filter_, **by_itself})["Count"] == 0
    too_deep: Request = {"ExpressionAttributeValues": {":a": nested(33)}}
    for operation, request in (
        ("TransactWriteItems", write(check("1", "d = :a", **too_deep))),
        ("Scan", {"TableName": "hash", **filter_, **too_deep}),
    ):
        with pytest.raises(RequestRefused, match=r"invalid value: Nesting Levels have .* limit for key :a$"):
            backend.execute(operation, request)


CANCELLED: list[tuple[Request, str]] = [
    (
        put("", Item={"pk": N(1)}),
        "One or more parameter values were invalid: Type mismatch for key pk expected: S actual: N",
    ),
    (put("", Item={"x": N(1)}), "One or more parameter values were invalid: Missing the key pk in the item"),
    (delete("", Key={"pk": N(1)}), "The provided key element does not match the schema"),
    (check("", Key={"pk": N(1)}), "The provided key element does not match the schema"),
    (
        put_row(g1=N(1)),
        "One or more parameter values were invalid: Type mismatch for Index Key g1 Expected: S Actual: N"
        " IndexName: gall",
    ),
    (
        update("1", "SET a = a + :a", N(1)),
        "The provided expression refers to an attribute that does not exist in the item",
    ),
    (update("1", "SET x.y = :a", N(1)), "The document path provided in the update expression is invalid for update"),
    (update("1", "SET big = :a", S("x" * 409_600)), "Item size to update has exceeded the maximum allowed size"),
    (update("1", "SET deep = :a", nested(32)), "Nesting Levels have exceeded supported limits"),
    (
        update("1", "SET pk = :a", S("2")),
        "One or more parameter values were invalid: Cannot update attribute pk. This attribute is part of the key",
    ),
]


@pytest.mark.parametrize(("action", "message"), CANCELLED)
def test_what_does_not_fit_the_schema_or_the_item_cancels(
    backend: EmbeddedBackend, action: Request, message: str
) -> None:
    """As the service does; DynamoDB Local refuses some of these outside of the reasons."""
    backend.execute("PutItem", {"TableName": "hash", "Item": key("1")})
    with pytest.raises(TransactionCanceled) as caught:
        backend.execute("TransactWriteItems", write(put("7"), action))
    assert caught.value.message == (
        "Transaction cancelled, please refer cancellation reasons for specific reasons [None, ValidationError]"
    )
    reasons = caught.value.details["CancellationReasons"]
    assert reasons == [{"Code": "None"}, {"Code": "ValidationError", "Message": message}]
    assert backend.execute("Scan", {"TableName": "hash"})["Count"] == 1


def test_only_the_first_action_that_does_not_fit_its_schema_is_told_of(backend: EmbeddedBackend) -> None:
    unfit = {"Put": {"TableName": "hash", "Item": {"pk": N(1)}}}
    with pytest.raises(TransactionCanceled) as caught:
        backend.execute("TransactWriteItems", write(check("nothing"), unfit, unfit))
    assert [one["Code"] for one in caught.value.details["CancellationReasons"]] == ["None", "ValidationError", "None"]


def test_a_transaction_does_all_or_nothing_as_dynamodb_does(pair: Pair) -> None:
    pair.both("TransactWriteItems", write(put("1"), put("2"), put_row(g1=S("g"))))
    pair.both("TransactWriteItems", write(delete("2"), TAKEN))
    pair.both("Scan", {"TableName": "main"})
    pair.both("GetItem", {"TableName": "hash", "Key": key("2")})
    changed = update("1", "SET x = :a", S("new"))
    pair.both("TransactWriteItems", write(check("1"), delete("2"), put("3")))
    pair.both("TransactWriteItems", write(changed, put("4")))
    pair.both("TransactGetItems", {"TransactItems": [get(text) for text in "1234"]})


GETS: list[Request] = [
    {},
    {"TransactItems": []},
    {"TransactItems": [get("1"), get("1")]},
    {"TransactItems": [get("1"), get("")]},
    {"TransactItems": [get(str(number)) for number in range(101)]},
    {"TransactItems": [get("1"), get("2", ProjectionExpression="a,")]},
    {"TransactItems": [get("1"), get("none"), get("2", ProjectionExpression="a")]},
    {"TransactItems": [get("1"), {"Get": {"TableName": "nope", "Key": key("1")}}]},
]


@pytest.mark.parametrize("request_", GETS)
def test_gets_are_answered_as_dynamodb_does(filled_pair: Pair, request_: Request) -> None:
    filled_pair.both("TransactGetItems", request_)


UNUSED: list[Request] = [
    {"ExpressionAttributeNames": {"#a": "b"}},
    {"ExpressionAttributeValues": {":a": S("b")}},
    {"ExpressionAttributeNames": {"#a": "b"}, "ExpressionAttributeValues": {":a": S("b")}},
]


@pytest.mark.parametrize("maps", UNUSED)
def test_names_and_values_that_no_expression_could_use_are_taken(backend: EmbeddedBackend, maps: Request) -> None:
    """As the service does; DynamoDB Local refuses them, as both do in a request about one item."""
    backend.execute("PutItem", {"TableName": "hash", "Item": key("2")})
    assert backend.execute("TransactWriteItems", write(put("1", **maps), delete("2", **maps))) == {}
    found = backend.execute("TransactGetItems", {"TransactItems": [get("1", **maps), get("2")]})
    assert found == {"Responses": [{"Item": {"pk": S("1")}}, {}]}


@pytest.mark.parametrize("maps", UNUSED)
def test_names_and_values_that_the_condition_does_not_use_are_refused(backend: EmbeddedBackend, maps: Request) -> None:
    with pytest.raises(RequestRefused, match=r"unused in expressions: keys: {.a}"):
        backend.execute("TransactWriteItems", write(put("1", ConditionExpression="attribute_not_exists(pk)", **maps)))


def test_more_than_4_mb_cannot_be_read(pair: Pair) -> None:
    for number in range(11):
        pair.both("PutItem", {"TableName": "hash", "Item": {**key(f"b{number:02}"), "x": S("x" * 400_000)}})
    gets = [get(f"b{number:02}") for number in range(11)]
    pair.both("TransactGetItems", {"TransactItems": gets[:10]})
    assert pair.both("TransactGetItems", {"TransactItems": gets}).code == "ValidationException"


def test_a_key_that_does_not_fit_cancels_a_read(backend: EmbeddedBackend) -> None:
    with pytest.raises(TransactionCanceled) as caught:
        backend.execute("TransactGetItems", {"TransactItems": [get("1"), get("", Key={"pk": N(1)})]})
    assert [reason["Code"] for reason in caught.value.details["CancellationReasons"]] == ["None", "ValidationError"]


def consumed(backend: EmbeddedBackend, request: Request) -> Any:
    return backend.execute("TransactWriteItems", {**request, "ReturnConsumedCapacity": "TOTAL"})["ConsumedCapacity"]


def test_a_get_of_which_the_projection_leaves_nothing_has_no_item(backend: EmbeddedBackend) -> None:
    # As documented: the ItemResponse of an item without projected attributes is an empty map.
    backend.execute("TransactWriteItems", write(put("1")))
    answer = backend.execute("TransactGetItems", write(get("1", ProjectionExpression="nothing"), get("1x"), get("2")))
    assert answer["Responses"] == [{}, {}, {}]


def test_a_token_makes_a_transaction_happen_once(backend: EmbeddedBackend) -> None:
    request = write(update("1", "ADD n :a", N(1)), put("2"), ClientRequestToken="token")
    assert consumed(backend, request) == [{"TableName": "hash", "CapacityUnits": 4.0, "WriteCapacityUnits": 4.0}]
    # Asked again, DynamoDB reads the items, and says so.
    assert consumed(backend, request) == [{"TableName": "hash", "CapacityUnits": 4.0, "ReadCapacityUnits": 4.0}]
    assert backend.execute("GetItem", {"TableName": "hash", "Key": key("1")})["Item"]["n"] == N(1)
    with pytest.raises(IdempotencyMismatch):
        backend.execute("TransactWriteItems", write(put("3"), ClientRequestToken="token"))
    backend.execute("TransactWriteItems", write(update("1", "ADD n :a", N(1)), ClientRequestToken="other"))
    assert backend.execute("GetItem", {"TableName": "hash", "Key": key("1")})["Item"]["n"] == N(2)


@pytest.mark.parametrize("other", [{"Delete": None}, {"Unknown": {}}])
def test_members_beside_an_action_say_nothing(backend: EmbeddedBackend, other: Request) -> None:
    request = write(put("1") | other)
    assert consumed(backend, request) == [{"TableName": "hash", "CapacityUnits": 2.0, "WriteCapacityUnits": 2.0}]


def test_members_that_are_null_make_no_other_transaction(backend: EmbeddedBackend) -> None:
    change = update("1", "ADD n :a", N(1))
    with_nulls = {"Put": None, "Update": {"ConditionExpression": None, **change["Update"]}}
    for action in (change, with_nulls):
        backend.execute("TransactWriteItems", write(action, ClientRequestToken="token"))
    assert backend.execute("GetItem", {"TableName": "hash", "Key": key("1")})["Item"]["n"] == N(1)


def test_a_cancelled_transaction_leaves_its_token_unused(backend: EmbeddedBackend) -> None:
    with pytest.raises(TransactionCanceled):
        backend.execute("TransactWriteItems", write(check("1"), ClientRequestToken="token"))
    backend.execute("TransactWriteItems", write(put("1"), ClientRequestToken="token"))
    assert backend.execute("Scan", {"TableName": "hash"})["Count"] == 1


def test_a_token_is_known_after_a_restart(tmp_path: Path) -> None:
    request = write(update("1", "ADD n :a", N(1)), ClientRequestToken="token")
    for _ in range(2):
        backend = EmbeddedBackend(tmp_path / "data.db")
        if not backend.execute("ListTables", {})["TableNames"]:
            backend.execute("CreateTable", TABLES[0].definition())
        backend.execute("TransactWriteItems", request)
        assert backend.execute("GetItem", {"TableName": "hash", "Key": key("1")})["Item"]["n"] == N(1)
        backend.close()


def test_an_index_key_cannot_be_emptied_in_a_transaction(backend: EmbeddedBackend) -> None:
    change = {"UpdateExpression": "SET g1 = :a", "ExpressionAttributeValues": {":a": S("")}}
    row = {"Update": {"TableName": "main", "Key": {"pk": S("p"), "sk": S("1")}, **change}}
    with pytest.raises(RequestRefused, match="attempted to update a secondary index key"):
        backend.execute("TransactWriteItems", write(put("7"), row))


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"TransactItems": {}}, "SerializationException"),
        ({"TransactItems": [5]}, "SerializationException"),
        ({"TransactItems": [{"Put": []}]}, "SerializationException"),
        ({"TransactItems": [{"Update": {"TableName": "hash", "Key": key("1")}}]}, "ValidationException"),
        ({"TransactItems": [put("1")], "ReturnConsumedCapacity": "x"}, "ValidationException"),
    ],
)
def test_malformed_transactions_are_refused(backend: EmbeddedBackend, request_: Request, code: str) -> None:
    for operation in ("TransactWriteItems", "TransactGetItems"):
        with pytest.raises(RequestError) as caught:
            backend.execute(operation, request_)
        assert caught.value.code in (code, "ValidationException")


def test_collection_sizes_are_told(backend: EmbeddedBackend) -> None:
    response = backend.execute("TransactWriteItems", write(put("1"), put_row(), ReturnItemCollectionMetrics="SIZE"))
    assert response == {
        "ItemCollectionMetrics": {"main": [{"ItemCollectionKey": key("p"), "SizeEstimateRangeGB": [0.0, 1.0]}]}
    }


def test_what_shared_a_commit_with_a_write_that_was_undone_is_told_once(backend: EmbeddedBackend) -> None:
    """It is done again without the other one, and the capacity of the first time does not count."""
    transaction = write(put("1"), put("2"), ReturnConsumedCapacity="TOTAL")
    batch = {"RequestItems": {"hash": [{"PutRequest": {"Item": key("3")}}]}, "ReturnConsumedCapacity": "TOTAL"}
    alone = backend.execute("TransactWriteItems", transaction), backend.execute("BatchWriteItem", batch)
    storage = backend._storage
    is_held, go_on = threading.Event(), threading.Event()

    def hold(_: Transaction) -> None:
        is_held.set()
        go_on.wait()

    def spoil(view: Transaction) -> None:
        table = storage.table("hash")
        assert table is not None
        view.put(table, b"spoiled", Sized(key("4"), 3), NO_ITEM)
        raise ZeroDivisionError

    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(storage.write, hold)
        is_held.wait()
        shared = []
        for call in (
            partial(backend.execute, "TransactWriteItems", transaction),
            partial(backend.execute, "BatchWriteItem", batch),
            partial(storage.write, spoil),
        ):
            shared.append(pool.submit(call))
            while len(storage._writer._waiting) < len(shared):
                time.sleep(0.001)
        go_on.set()
        first.result()
        with pytest.raises(ZeroDivisionError):
            shared[2].result()
        assert (shared[0].result(), shared[1].result()) == alone
    assert inconsistencies(storage) == []


def test_each_of_many_actions_meets_its_own_item(pair: Pair) -> None:
    """More than are read by one statement, of two tables, some of them there."""
    there = [put(f"{number}", Item={**key(f"{number}"), "n": N(str(number))}) for number in range(0, 80, 3)]
    pair.both("TransactWriteItems", write(*there))
    rows = [
        {"Put": {"TableName": "main", "Item": {"pk": S("p"), "sk": S(f"{number}"), "n": N("1")}}}
        for number in range(20)
    ]
    changes = [update(f"{number}", "SET n = if_not_exists(n, :a)", N("-1")) for number in range(80)]
    pair.both("TransactWriteItems", write(*changes[:40], *rows, *changes[40:]))
    pair.both("TransactGetItems", {"TransactItems": [get(f"{number}") for number in range(80)]})
