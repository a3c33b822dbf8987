"""BatchExecuteStatement and ExecuteTransaction, mostly compared with DynamoDB Local."""

from __future__ import annotations

from typing import Any

import pytest
from tests.embedded.side_by_side import N, Pair, Request, S

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import IdempotencyMismatch, RequestError, RequestRefused, TransactionCanceled


def batch(*statements: str | Request, **more: Any) -> Request:
    return {"Statements": [{"Statement": one} if isinstance(one, str) else one for one in statements], **more}


def transaction(*statements: str | Request, **more: Any) -> Request:
    return {"TransactStatements": [{"Statement": one} if isinstance(one, str) else one for one in statements], **more}


def by_key(key: str) -> str:
    return f"SELECT * FROM hash WHERE pk = '{key}'"


def insert(key: str) -> str:
    return f"INSERT INTO hash VALUE {{'pk': '{key}', 'n': 1}}"


BATCHES = [
    batch(by_key("1"), "SELECT a FROM main WHERE pk = 'p' AND sk = '1'", by_key("none")),
    batch(by_key("1"), "SELECT * FROM hash", "SELECT * FROM main WHERE pk = 'p'"),
    batch(by_key("1"), "SELECT * FROM hash WHERE pk = '2' AND a = 'A'", "SELECT * FROM hash WHERE pk IN ['3']"),
    batch("SELECT * FROM main.gall WHERE g1 = 'g'", "SELECT * FROM hash WHERE pk = 1", "SELECT pk.x FROM hash"),
    batch({"Statement": "SELECT * FROM hash WHERE pk = ?", "Parameters": [S("2")], "ConsistentRead": True}),
    batch("SELECT none FROM hash WHERE pk = '1'", "SELECT a.b FROM hash WHERE pk = '2'"),
    batch(by_key("1"), insert("1")),
    batch(by_key("1"), by_key("1")),
    batch(insert("a"), "EXISTS(SELECT * FROM hash WHERE pk = '1' AND n = 1)"),
]


@pytest.mark.parametrize("request_", BATCHES)
def test_a_batch_of_reads_gives_what_dynamodb_local_gives(filled_pair: Pair, request_: Request) -> None:
    filled_pair.both("BatchExecuteStatement", request_)


def test_each_write_of_a_batch_succeeds_or_fails_by_itself(backend: EmbeddedBackend) -> None:
    for key in ("1", "2", "3", "4"):
        backend.execute("ExecuteStatement", {"Statement": insert(key)})
    answer = backend.execute(
        "BatchExecuteStatement",
        batch(
            insert("1"),
            insert("new"),
            "UPDATE hash SET n = 5 WHERE pk = '2' RETURNING MODIFIED NEW *",
            "UPDATE hash SET n = 5 WHERE pk = 'none'",
            {
                "Statement": "DELETE FROM hash WHERE pk = '3' AND n = 9",
                "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            },
            "DELETE FROM hash WHERE pk = '4'",
            "UPDATE hash SET n = pk + 1 WHERE pk = '5'",
            "DELETE FROM nope WHERE pk = '4'",
            "DELETE FROM hash",
            "FOO",
            ReturnConsumedCapacity="TOTAL",
        ),
    )
    failed = {"Code": "ConditionalCheckFailed", "Message": "The conditional request failed"}
    no_key = "Where clause does not contain a mandatory equality on all key attributes"
    no_statement = "Statement wasn't well formed, can't be processed: Expected data manipulation"
    assert answer["Responses"] == [
        {"TableName": "hash", "Error": {"Code": "DuplicateItem", "Message": "Duplicate primary key exists in table"}},
        {"TableName": "hash"},
        {"TableName": "hash", "Item": {"n": N(5)}},
        {"TableName": "hash", "Error": failed},
        {"TableName": "hash", "Error": failed | {"Item": {"pk": S("3"), "n": N(1)}}},
        {"TableName": "hash"},
        {"TableName": "hash", "Error": failed},
        {"Error": {"Code": "ResourceNotFound", "Message": "Requested resource not found"}},
        {"Error": {"Code": "ValidationError", "Message": no_key}},
        {"Error": {"Code": "ValidationError", "Message": no_statement}},
    ]
    assert answer["ConsumedCapacity"] == [{"TableName": "hash", "CapacityUnits": 1.0}] * 3
    found = backend.execute("Scan", {"TableName": "hash"})["Items"]
    assert sorted(item["pk"]["S"] + item["n"]["N"] for item in found) == ["11", "25", "31", "new1"]


def test_a_batch_with_one_item_twice_does_nothing(backend: EmbeddedBackend) -> None:
    with pytest.raises(RequestRefused, match="Provided list of item keys contains duplicates"):
        backend.execute("BatchExecuteStatement", batch(insert("1"), "DELETE FROM hash WHERE pk = '1'"))
    assert backend.execute("Scan", {"TableName": "hash"})["Count"] == 0


@pytest.mark.parametrize(
    ("operation", "request_", "message"),
    [
        ("BatchExecuteStatement", {}, "Value null at 'statements' failed"),
        ("BatchExecuteStatement", batch(), "Value '\\[\\]' at 'statements' failed .* greater than or equal to 1"),
        ("BatchExecuteStatement", batch(*[by_key("1")] * 26), "at 'statements' failed .* less than or equal to 25"),
        ("BatchExecuteStatement", batch({}), "Value null at 'statements.1.member.statement' failed"),
        ("BatchExecuteStatement", batch(insert("1"), {"Statement": 5}), "NUMBER_VALUE cannot be converted to String"),
        ("ExecuteTransaction", {}, "Value null at 'transactStatements' failed"),
        ("ExecuteTransaction", transaction(), "at 'transactStatements' failed .* greater than or equal to 1"),
        ("ExecuteTransaction", transaction(*[by_key("1")] * 101), "at 'transactStatements' failed .* equal to 100"),
        ("ExecuteTransaction", transaction(insert("1"), ClientRequestToken="x" * 37), "at 'clientRequestToken' failed"),
    ],
)
def test_members_keep_the_constraints_of_the_service(
    backend: EmbeddedBackend, operation: str, request_: Request, message: str
) -> None:
    with pytest.raises(RequestRefused, match=message):
        backend.execute(operation, request_)
    assert backend.execute("Scan", {"TableName": "hash"})["Count"] == 0


READS = [
    transaction(by_key("1"), "SELECT a FROM main WHERE pk = 'p' AND sk = '1'", by_key("none")),
    transaction("SELECT none FROM hash WHERE pk = '1'", "SELECT a.b, pk FROM hash WHERE pk = '2'"),
    transaction(by_key("1"), "SELECT * FROM hash"),
    transaction("SELECT * FROM hash WHERE pk = '1' AND a = 'A'"),
    transaction("SELECT * FROM main.gall WHERE g1 = 'g'"),
    transaction(by_key("1"), by_key("1")),
    transaction(by_key("1"), insert("a")),
    transaction(by_key("1"), "EXISTS(SELECT * FROM hash WHERE pk = '2' AND a = 'A')"),
    transaction("SELECT * FROM hash WHERE pk = ?"),
    transaction("SELECT * FROM hash WHERE pk = 1", by_key("1")),
]


@pytest.mark.parametrize("request_", READS)
def test_a_transaction_of_reads_gives_what_dynamodb_local_gives(filled_pair: Pair, request_: Request) -> None:
    filled_pair.both("ExecuteTransaction", request_)


WRITES = [
    transaction(insert("1"), insert("2"), "UPDATE main SET a = 1 WHERE pk = 'p' AND sk = '1'"),
    transaction(insert("1"), "INSERT INTO main VALUE {'pk': 'p', 'sk': '1', 'n': 5}"),
    transaction("UPDATE hash SET n = n + 1 WHERE pk = '1'", "UPDATE hash SET n = 9 WHERE pk = '2' AND n = 7"),
    transaction("UPDATE hash SET n = n + 1 WHERE pk = '1'", "DELETE FROM hash WHERE pk = '2' AND n = 1"),
    transaction("UPDATE hash SET n = 5 WHERE pk = '1'", "DELETE FROM hash WHERE pk = '1'"),
    transaction("EXISTS(SELECT * FROM hash WHERE pk = '1' AND n = 2)", insert("3")),
    transaction("EXISTS(SELECT * FROM hash WHERE pk = '1')", insert("4")),
    transaction("EXISTS(SELECT * FROM hash WHERE n = 1)", insert("4")),
    transaction("UPDATE hash SET n = 5 WHERE pk = '1' RETURNING ALL OLD *"),
    transaction("INSERT INTO hash VALUE {'pk': 1}", insert("4")),
    transaction("INSERT INTO hash VALUE {'n': 1}", insert("4")),
    transaction("UPDATE hash SET n = 'a' + 1 WHERE pk = '1'", insert("4")),
    transaction("DELETE FROM hash WHERE pk = 'none' AND n = 1", "DELETE FROM hash WHERE pk = 'none2'"),
]


def test_a_transaction_of_writes_does_what_dynamodb_local_does(pair: Pair) -> None:
    for request in WRITES:
        pair.both("ExecuteTransaction", request)
        for key in ("1", "2", "3", "4"):
            pair.both("ExecuteStatement", {"Statement": by_key(key)})


def test_one_failure_undoes_all_and_every_statement_has_its_reason(backend: EmbeddedBackend) -> None:
    backend.execute("ExecuteStatement", {"Statement": insert("1")})
    update = {
        "Statement": "UPDATE hash SET n = 9 WHERE pk = ? AND n = ?",
        "Parameters": [S("1"), N(7)],
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    with pytest.raises(TransactionCanceled) as caught:
        backend.execute(
            "ExecuteTransaction",
            transaction(insert("new"), update, "EXISTS(SELECT * FROM hash WHERE pk = 'none' AND n IS MISSING)"),
        )
    failed = {"Code": "ConditionalCheckFailed", "Message": "The conditional request failed"}
    assert caught.value.details["CancellationReasons"] == [
        {"Code": "None"},
        failed | {"Item": {"pk": S("1"), "n": N(1)}},
        failed,
    ]
    with pytest.raises(TransactionCanceled) as caught:
        backend.execute("ExecuteTransaction", transaction(insert("new"), insert("1")))
    assert caught.value.message.endswith("[None, DuplicateItem]")
    assert caught.value.details["CancellationReasons"][1]["Message"] == "Duplicate primary key exists in table"
    assert backend.execute("Scan", {"TableName": "hash"})["Items"] == [{"pk": S("1"), "n": N(1)}]


def test_a_token_makes_a_transaction_happen_once(backend: EmbeddedBackend) -> None:
    request = transaction(insert("1"), ClientRequestToken="once", ReturnConsumedCapacity="TOTAL")
    first = backend.execute("ExecuteTransaction", request)
    again = backend.execute("ExecuteTransaction", request)
    assert first == {
        "Responses": [],
        "ConsumedCapacity": [{"TableName": "hash", "CapacityUnits": 2.0, "WriteCapacityUnits": 2.0}],
    }
    assert again["ConsumedCapacity"] == [{"TableName": "hash", "CapacityUnits": 2.0, "ReadCapacityUnits": 2.0}]
    with pytest.raises(IdempotencyMismatch):
        backend.execute("ExecuteTransaction", transaction(insert("2"), ClientRequestToken="once"))


def test_a_transaction_has_four_megabytes_at_most(backend: EmbeddedBackend) -> None:
    large = [
        {"Statement": "INSERT INTO hash VALUE {'pk': ?, 'a': ?}", "Parameters": [S(str(number)), S("x" * 390_000)]}
        for number in range(12)
    ]
    with pytest.raises(RequestError, match="Transaction payload size cannot exceed 4MB"):
        backend.execute("ExecuteTransaction", transaction(*large))
    assert backend.execute("ExecuteTransaction", transaction(*large[:10])) == {"Responses": []}
    backend.execute("ExecuteStatement", large[10])
    with pytest.raises(RequestError, match="Payload in response is too large"):
        backend.execute("ExecuteTransaction", transaction(*(by_key(str(number)) for number in range(11))))


def test_a_statement_feeds_indexes_as_any_write(backend: EmbeddedBackend) -> None:
    backend.execute(
        "ExecuteTransaction",
        transaction("INSERT INTO main VALUE {'pk': 'p', 'sk': '1', 'g1': 'g', 'g2': 1}", insert("1")),
    )
    found = backend.execute("ExecuteStatement", {"Statement": "SELECT pk FROM main.gall WHERE g1 = 'g'"})
    assert found["Items"] == [{"pk": S("p")}]


def test_a_parameter_that_cannot_be_read_refuses_the_whole_batch(backend: EmbeddedBackend) -> None:
    statement = {"Statement": "DELETE FROM hash WHERE pk = ?", "Parameters": [{"N": -1}]}
    with pytest.raises(RequestRefused, match="NUMBER_VALUE cannot be converted to String") as refused:
        backend.execute("BatchExecuteStatement", {"Statements": [statement]})
    assert refused.value.code == "SerializationException"
