"""BatchGetItem and BatchWriteItem."""

from __future__ import annotations

from typing import Any

import pytest
from tests.embedded.side_by_side import N, Pair, Request, S

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import RequestError, RequestRefused


def key(text: str) -> Request:
    return {"pk": S(text)}


def put(text: str, **attributes: Request) -> Request:
    return {"PutRequest": {"Item": {"pk": S(text), **attributes}}}


def delete(text: str) -> Request:
    return {"DeleteRequest": {"Key": key(text)}}


def items(**requests: Any) -> Request:
    return {"RequestItems": requests}


ROW_KEY = {"pk": S("p"), "sk": S("1")}

GETS: list[Request] = [
    {},
    items(),
    items(hash={}),
    items(hash={"Keys": []}),
    items(hash={"Keys": [key(str(number)) for number in range(101)]}),
    items(
        hash={"Keys": [key(str(n)) for n in range(60)]},
        main={"Keys": [{"pk": S("p"), "sk": S(str(n))} for n in range(60)]},
    ),
    items(hash={"Keys": [key("1"), key("1")]}),
    items(**{"a!": {"Keys": [key("1")]}}),
    items(nope={"Keys": [key("1")]}),
    items(hash={"Keys": [key("1")]}, nope={"Keys": [key("1")]}),
    items(hash={"Keys": [{"x": S("1")}]}),
    items(hash={"Keys": [key("")]}),
    items(hash={"Keys": [{"pk": N(1)}]}),
    items(hash={"Keys": [key("1"), key("2"), key("none")], "ProjectionExpression": "a"}),
    items(hash={"Keys": [key("1")], "ExpressionAttributeNames": {"#a": "b"}}),
    items(hash={"Keys": [key("1")], "ProjectionExpression": "a,"}),
    # What one table may not have beside an expression, no other may.
    items(hash={"Keys": [key("1")], "ProjectionExpression": "a,"}, main={"Keys": [ROW_KEY], "AttributesToGet": ["a"]}),
    items(main={"Keys": [ROW_KEY], "AttributesToGet": ["a"]}, hash={"Keys": [key("1")], "ProjectionExpression": "a"}),
    items(hash={"Keys": [key("1")]}, main={"Keys": [ROW_KEY], "AttributesToGet": ["a"]}),
    items(hash={"Keys": [key("1"), key("2")], "ConsistentRead": True}, main={"Keys": [ROW_KEY]})
    | {"ReturnConsumedCapacity": "INDEXES"},
    items(hash={"Keys": [key("1")]}) | {"ReturnConsumedCapacity": "TOTAL"},
]


@pytest.mark.parametrize("request_", GETS)
def test_gets_are_answered_as_dynamodb_does(filled_pair: Pair, request_: Request) -> None:
    filled_pair.both("BatchGetItem", request_)


BAD_WRITES: list[Request] = [
    {},
    items(),
    items(hash=[]),
    items(hash=[{}]),
    items(hash=[{**put("1"), **delete("1")}]),
    items(hash=[put("1"), delete("1")]),
    items(hash=[put("1"), put("1")]),
    items(hash=[put(str(number)) for number in range(26)]),
    items(
        hash=[put(str(n)) for n in range(13)],
        main=[{"DeleteRequest": {"Key": {"pk": S(str(n)), "sk": S("1")}}} for n in range(13)],
    ),
    items(hash=None),
    items(nope=[put("1")]),
    items(hash=[put("1")], nope=[put("1")]),
    items(**{"a!": [put("1")]}),
    items(hash=[{"PutRequest": {}}]),
    items(hash=[{"DeleteRequest": {}}]),
    items(hash=[{"PutRequest": {"Item": {"x": S("a")}}}]),
    items(hash=[{"DeleteRequest": {"Key": {"x": S("a")}}}]),
    items(hash=[put("a", x=N("x"))]),
    items(hash=[put("")]),
    items(hash=[put("a", x=S("x" * 409_600))]),
    items(main=[{"PutRequest": {"Item": {"pk": S("q"), "sk": S("s"), "g1": N(1)}}}]),
    items(main=[{"PutRequest": {"Item": {"pk": S("q"), "sk": S("s"), "g1": S("")}}}]),
]


@pytest.mark.parametrize("request_", BAD_WRITES)
def test_faults_of_writes_are_reported_as_dynamodb_does(filled_pair: Pair, request_: Request) -> None:
    assert filled_pair.both("BatchWriteItem", request_).code is not None


NAMES = (
    "Map keys must satisfy constraint: [Member must have length less than or equal to 255, Member must have length"
    " greater than or equal to 3, Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+]"
)
COUNTS = (
    "Map value must satisfy constraint: [Member must have length less than or equal to 25, Member must have length"
    " greater than or equal to 1]"
)
CAPACITY = (
    "Value 'OTHER' at 'returnConsumedCapacity' failed to satisfy constraint: Member must satisfy enum value set:"
    " [INDEXES, TOTAL, NONE]"
)
WRONG_CAPACITY = {"ReturnConsumedCapacity": "OTHER"}


def told_to_be_null(*paths: str) -> str:
    told = "; ".join(
        f"Value null at 'requestItems.{path}' failed to satisfy constraint: Member must not be null" for path in paths
    )
    return f"{len(paths)} validation error{'' if len(paths) == 1 else 's'} detected: {told}"


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (items(), "The requestItems parameter is required for BatchWriteItem"),
        (
            items(hash=[]),
            "1 validation error detected: Value '{hash=[]}' at 'requestItems' failed to satisfy constraint: " + COUNTS,
        ),
        (
            items(hash=[put(str(number)) for number in range(26)]),
            "1 validation error detected: Value '{hash=[26 requests]}' at 'requestItems' failed to satisfy constraint:"
            f" {COUNTS}",
        ),
        (
            items(**{"a!": [put("1", l={"L": []}), delete("2")]}),
            "1 validation error detected: Value '{a!=[WriteRequest(putRequest=PutRequest(item={pk=AttributeValue(S=1),"
            " l=AttributeValue(L=...)}), deleteRequest=null), WriteRequest(putRequest=null,"
            " deleteRequest=DeleteRequest(key={pk=AttributeValue(S=2)}))]}' at 'requestItems' failed to satisfy"
            f" constraint: {NAMES}",
        ),
        (items(**{"a!": [put("1")]}) | WRONG_CAPACITY, f"1 validation error detected: {CAPACITY}"),
        (items(hash=[put("1"), {"PutRequest": {}}]), told_to_be_null("hash.member.2.member.putRequest.item")),
        (
            items(hash=[{"PutRequest": {}, "DeleteRequest": {}}], main=[{"DeleteRequest": {}}]),
            told_to_be_null(
                "hash.member.1.member.deleteRequest.key",
                "hash.member.1.member.putRequest.item",
                "main.member.1.member.deleteRequest.key",
            ),
        ),
        (
            items(hash=[{"PutRequest": {}}] * 25),
            told_to_be_null(*(f"hash.member.{number}.member.putRequest.item" for number in range(1, 11))),
        ),
    ],
)
def test_the_map_of_writes_breaks_its_constraints_as_a_whole(
    backend: EmbeddedBackend, request_: Request, message: str
) -> None:
    assert _refusal(backend, "BatchWriteItem", request_) == message


def _refusal(backend: EmbeddedBackend, operation: str, request: Request) -> str:
    with pytest.raises(RequestRefused) as caught:
        backend.execute(operation, request)
    return caught.value.message


SHORT = "failed to satisfy constraint: Member must have length greater than or equal to 1"
BAD_NAME = """Value '{"a!":{"Keys":[{"pk":{"S":"1"}}]}}' at 'requestItems' failed to satisfy constraint: """ + NAMES


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (items(), f"1 validation error detected: Value at 'RequestItems' {SHORT}"),
        (items(hash={"Keys": []}), f"1 validation error detected: Value at 'RequestItems.hash.member.Keys' {SHORT}"),
        (
            items(hash={"Keys": [key(str(number)) for number in range(101)]}),
            "1 validation error detected: Value at 'RequestItems.hash.member.Keys' failed to satisfy constraint: Member"
            " must have length less than or equal to 100",
        ),
        (items(**{"a!": {"Keys": [key("1")]}}), f"1 validation error detected: {BAD_NAME}"),
        (
            items(**{"a!": {"Keys": [key("1")]}}) | WRONG_CAPACITY,
            f"2 validation errors detected: {BAD_NAME}; {CAPACITY}",
        ),
    ],
)
def test_the_map_of_keys_is_told_of_as_the_service_does(
    backend: EmbeddedBackend, request_: Request, message: str
) -> None:
    assert _refusal(backend, "BatchGetItem", request_) == message


def test_writes_of_several_tables_are_done_and_charged_as_dynamodb_does(pair: Pair) -> None:
    row = {"PutRequest": {"Item": {**ROW_KEY, "g1": S("g"), "l1": S("l"), "a": S("x" * 2000)}}}
    moved = {"PutRequest": {"Item": {**ROW_KEY, "g1": S("h"), "g2": N(1)}}}
    gone = {"DeleteRequest": {"Key": ROW_KEY}}
    for writes in ([row], [row], [moved], [gone]):
        request = items(hash=[put("1"), put("2", a=S("b"))], main=writes)
        pair.both("BatchWriteItem", {**request, "ReturnConsumedCapacity": "INDEXES"})
        pair.both("BatchWriteItem", {**items(main=[row]), "ReturnConsumedCapacity": "TOTAL"})
        pair.both("Scan", {"TableName": "main"})
    pair.both("GetItem", {"TableName": "hash", "Key": key("2")})


def test_what_is_not_there_is_charged(backend: EmbeddedBackend) -> None:
    """As the service does; DynamoDB Local says 0 for a get and 2 for a delete."""
    get = items(hash={"Keys": [key("none")]}) | {"ReturnConsumedCapacity": "TOTAL"}
    assert backend.execute("BatchGetItem", get)["ConsumedCapacity"] == [{"TableName": "hash", "CapacityUnits": 0.5}]
    gone = items(hash=[delete("none")]) | {"ReturnConsumedCapacity": "TOTAL"}
    assert backend.execute("BatchWriteItem", gone)["ConsumedCapacity"] == [{"TableName": "hash", "CapacityUnits": 1.0}]


def test_nothing_is_written_when_one_write_is_refused(backend: EmbeddedBackend) -> None:
    with pytest.raises(RequestError):
        backend.execute("BatchWriteItem", items(hash=[put("1"), {"PutRequest": {"Item": {"x": S("a")}}}]))
    assert backend.execute("Scan", {"TableName": "hash"})["Count"] == 0


def test_a_put_with_a_wrong_key_is_reported_as_the_service_does_in_batches(backend: EmbeddedBackend) -> None:
    for item in ({"x": S("a")}, {"pk": N(1)}):
        with pytest.raises(RequestError) as caught:
            backend.execute("BatchWriteItem", items(hash=[{"PutRequest": {"Item": item}}]))
        assert caught.value.message == "The provided key element does not match the schema"


def test_keys_past_16_mb_come_back_unprocessed(backend: EmbeddedBackend) -> None:
    for number in range(45):
        backend.execute("PutItem", {"TableName": "hash", "Item": {"pk": S(f"b{number:02}"), "x": S("x" * 400_000)}})
    keys = [key(f"b{number:02}") for number in range(45)]
    options = {"ProjectionExpression": "#p", "ExpressionAttributeNames": {"#p": "pk"}, "ConsistentRead": True}
    found: list[Request] = []
    request = items(hash={"Keys": keys, **options})
    first = backend.execute("BatchGetItem", request)
    found += first["Responses"]["hash"]
    assert len(found) == 41
    assert first["UnprocessedKeys"] == {"hash": {"Keys": keys[41:], **options}}
    rest = backend.execute("BatchGetItem", {"RequestItems": first["UnprocessedKeys"]})
    assert rest["UnprocessedKeys"] == {}
    assert found + rest["Responses"]["hash"] == keys


def test_collection_sizes_are_told_once_for_each_collection(backend: EmbeddedBackend) -> None:
    rows = [{"PutRequest": {"Item": {"pk": S(pk), "sk": S(sk)}}} for pk, sk in ("pa", "pb", "qa")]
    response = backend.execute(
        "BatchWriteItem", items(main=rows, hash=[put("1")]) | {"ReturnItemCollectionMetrics": "SIZE"}
    )
    assert response["ItemCollectionMetrics"] == {
        "main": [{"ItemCollectionKey": key(pk), "SizeEstimateRangeGB": [0.0, 1.0]} for pk in "pq"]
    }


def test_the_projection_is_looked_at_before_keys_that_come_twice(backend: EmbeddedBackend) -> None:
    twice = {"Keys": [{"pk": S("1")}, {"pk": S("1")}], "ProjectionExpression": ""}
    with pytest.raises(RequestError, match="Invalid ProjectionExpression: The expression can not be empty;"):
        backend.execute("BatchGetItem", {"RequestItems": {"hash": twice}})


def test_a_table_that_is_null_in_a_batch_of_reads_is_one_without_keys(backend: EmbeddedBackend) -> None:
    empty: Request = {}
    refusals = []
    for nothing in (None, empty):
        with pytest.raises(RequestRefused) as refused:
            backend.execute("BatchGetItem", {"RequestItems": {"hash": nothing}})
        refusals.append((refused.value.code, refused.value.message))
    assert refusals[0] == refusals[1]
    assert "'requestItems.hash.member.keys'" in refusals[0][1]
