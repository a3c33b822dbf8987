"""The backend as a whole."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.embedded.side_by_side import TABLES, N, Request, S

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import ConditionalCheckFailed, RequestError
from jobtable.store.backend import Backend

HASH: Request = {"TableName": "hash"}
KEY: Request = {"pk": S("1")}


def test_it_is_a_backend(backend: EmbeddedBackend) -> None:
    as_backend: Backend = backend
    assert as_backend.execute("ListTables", {}) == {"TableNames": sorted(table.name for table in TABLES)}


def test_an_unknown_operation_is_refused(backend: EmbeddedBackend) -> None:
    with pytest.raises(RequestError, match="'Nothing'") as caught:
        backend.execute("Nothing", {})
    assert caught.value.code == "UnknownOperationException"


@pytest.mark.parametrize("request_", [None, [], "text", 5])
@pytest.mark.parametrize("operation", ["GetItem", "Query", "BatchGetItem", "TransactWriteItems"])
def test_a_request_that_is_no_map_is_refused(backend: EmbeddedBackend, operation: str, request_: Request) -> None:
    with pytest.raises(RequestError) as caught:
        backend.execute(operation, request_)
    assert caught.value.code == "SerializationException"


def test_what_was_written_is_there_after_a_restart(tmp_path: Path) -> None:
    first = EmbeddedBackend(tmp_path / "data.db")
    first.execute("CreateTable", TABLES[0].definition())
    first.execute("PutItem", {**HASH, "Item": {**KEY, "n": N("1.50")}})
    first.close()
    first.close()
    second = EmbeddedBackend(tmp_path / "data.db", durability="normal")
    assert second.execute("GetItem", {**HASH, "Key": KEY}) == {"Item": {**KEY, "n": N("1.5")}}
    second.close()


def test_updates_of_several_threads_are_all_counted(backend: EmbeddedBackend) -> None:
    change = {"UpdateExpression": "ADD n :one", "ExpressionAttributeValues": {":one": N(1)}}

    def count(_: int) -> None:
        for _ in range(25):
            backend.execute("UpdateItem", {**HASH, "Key": KEY, **change})

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(count, range(8)))
    assert backend.execute("GetItem", {**HASH, "Key": KEY})["Item"]["n"] == N(200)


def test_only_one_of_many_conditional_writers_wins(backend: EmbeddedBackend) -> None:
    def claim(number: int) -> bool:
        item = {**KEY, "owner": N(number)}
        try:
            backend.execute("PutItem", {**HASH, "Item": item, "ConditionExpression": "attribute_not_exists(pk)"})
        except ConditionalCheckFailed:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(claim, range(40))) == 1
