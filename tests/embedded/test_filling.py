"""Indexes and expiry times of tables that are too large to be filled at once: bit by bit, while others write."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.embedded.large_tables import nothing_by_itself, storage_of, until
from tests.embedded.storage.consistency import inconsistencies
from tests.embedded.table_definitions import definitions, index, table, update

from jobtable.embedded import EmbeddedBackend
from jobtable.embedded.storage import table_changes
from jobtable.errors import RequestError, RequestRefused, TableInUse, TableNotFound

pytestmark = pytest.mark.usefixtures("small_steps")
ITEMS = 20
ADDITION = update({"Create": index("new", "b", "c")}, AttributeDefinitions=definitions("a", "b", "c"))
QUERY = {
    "TableName": "tab",
    "IndexName": "new",
    "KeyConditionExpression": "b = :b",
    "ExpressionAttributeValues": {":b": {"S": "x"}},
}


@pytest.fixture
def backend() -> Iterator[EmbeddedBackend]:
    made = EmbeddedBackend(None)
    filled(made)
    yield made
    made.close()


def filled(backend: EmbeddedBackend) -> None:
    backend.execute("CreateTable", table())
    for number in range(ITEMS):
        put(backend, number, "x")


def put(backend: EmbeddedBackend, number: int, group: str | None, **others: Any) -> None:
    item = {"a": {"S": str(number)}, "c": {"S": f"{number:03}"}, **others}
    backend.execute("PutItem", {"TableName": "tab", "Item": item | ({"b": {"S": group}} if group else {})})


def step(backend: EmbeddedBackend) -> bool:
    """Fill a little; False when nothing is being filled any more."""
    storage = storage_of(backend)
    ids = [id_ for (id_,) in storage.query("SELECT id FROM fillings")]
    have_more = [storage.write(partial(table_changes.fill_some, id_)) for id_ in ids]
    return any(have_more)


def new_index(backend: EmbeddedBackend) -> dict[str, Any]:
    (described,) = backend.execute("DescribeTable", {"TableName": "tab"})["Table"]["GlobalSecondaryIndexes"]
    return dict(described)


def found(backend: EmbeddedBackend) -> list[str]:
    return [one["a"]["S"] for one in backend.execute("Query", QUERY)["Items"]]


@pytest.mark.usefixtures("by_hand")
def test_a_new_index_of_a_large_table_is_told_and_not_read_until_it_is_whole(backend: EmbeddedBackend) -> None:
    (described,) = backend.execute("UpdateTable", ADDITION)["TableDescription"]["GlobalSecondaryIndexes"]
    assert (described["IndexStatus"], described["Backfilling"], described["ItemCount"]) == ("CREATING", True, 0)
    assert step(backend)
    assert new_index(backend)["ItemCount"] == 3
    scan = {"TableName": "tab", "IndexName": "new"}
    for operation, request in (("Query", QUERY), ("Scan", scan)):
        with pytest.raises(RequestRefused, match=r"Cannot read from backfilling global secondary index: new$"):
            backend.execute(operation, request)
    while step(backend):
        pass
    described = new_index(backend)
    assert (described["IndexStatus"], described["ItemCount"]) == ("ACTIVE", ITEMS)
    assert "Backfilling" not in described
    assert found(backend) == [str(number) for number in range(ITEMS)]
    assert backend.execute("Scan", scan)["Count"] == ITEMS


def test_it_is_filled_by_itself(backend: EmbeddedBackend) -> None:
    backend.execute("UpdateTable", ADDITION)
    until(lambda: new_index(backend)["IndexStatus"] == "ACTIVE")
    assert len(found(backend)) == ITEMS


def test_a_small_table_is_filled_at_once(backend: EmbeddedBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_changes, "FILLED_AT_ONCE", ITEMS)
    (described,) = backend.execute("UpdateTable", ADDITION)["TableDescription"]["GlobalSecondaryIndexes"]
    assert (described["IndexStatus"], described["ItemCount"]) == ("ACTIVE", ITEMS)


@pytest.mark.usefixtures("by_hand")
def test_a_table_of_few_large_items_is_large(backend: EmbeddedBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_changes, "FILLED_AT_ONCE", ITEMS)
    monkeypatch.setattr(table_changes, "BYTES_FILLED_AT_ONCE", 100)
    (described,) = backend.execute("UpdateTable", ADDITION)["TableDescription"]["GlobalSecondaryIndexes"]
    assert described["IndexStatus"] == "CREATING"


Change = tuple[int, str | None]
"""An item's number, and its new group; "gone": it is deleted."""

changes = st.lists(st.tuples(st.integers(0, ITEMS + 5), st.sampled_from(["x", "y", None, "gone"])), max_size=6)


@given(st.lists(changes, min_size=8, max_size=8))
@settings(max_examples=60, deadline=None)
def test_what_is_written_meanwhile_is_in_it_once(rounds: list[list[Change]]) -> None:
    with nothing_by_itself():
        backend = EmbeddedBackend(None)
        filled(backend)
        backend.execute("UpdateTable", ADDITION)
        ttl = {"TableName": "tab", "TimeToLiveSpecification": {"Enabled": True, "AttributeName": "until"}}
        backend.execute("UpdateTimeToLive", ttl)
        for written in rounds:
            for number, group in written:
                if group == "gone":
                    backend.execute("DeleteItem", {"TableName": "tab", "Key": {"a": {"S": str(number)}}})
                else:
                    put(backend, number, group, until={"N": str(4_000_000_000 + number)})
            assert inconsistencies(storage_of(backend)) == []
            step(backend)
        while step(backend):
            pass
        assert inconsistencies(storage_of(backend)) == []
        items = backend.execute("Scan", {"TableName": "tab"})["Items"]
        expected = sorted(one["c"]["S"] for one in items if one.get("b") == {"S": "x"})
        assert [one["c"]["S"] for one in backend.execute("Query", QUERY)["Items"]] == expected
        backend.close()


@pytest.mark.usefixtures("by_hand")
def test_meanwhile_only_its_own_deletion_is_possible(backend: EmbeddedBackend) -> None:
    backend.execute("UpdateTable", ADDITION)
    step(backend)
    second = update({"Create": index("other", "c")}, AttributeDefinitions=definitions("a", "b", "c"))
    with pytest.raises(RequestError, match="Only 1 online index can be created or deleted simultaneously") as caught:
        backend.execute("UpdateTable", second)
    assert caught.value.code == "LimitExceededException"
    with pytest.raises(TableInUse, match=r"Cannot delete table while indexes are being created, updated, or deleted\."):
        backend.execute("DeleteTable", {"TableName": "tab"})
    backend.execute("UpdateTable", update({"Delete": {"IndexName": "new"}}))
    assert not step(backend)
    assert inconsistencies(storage_of(backend)) == []
    (described,) = backend.execute("UpdateTable", second)["TableDescription"]["GlobalSecondaryIndexes"]
    assert (described["IndexName"], described["IndexStatus"]) == ("other", "CREATING")


@pytest.mark.usefixtures("by_hand")
def test_expiry_times_of_a_large_table_are_filled_too(backend: EmbeddedBackend) -> None:
    for number in range(ITEMS):
        put(backend, number, "x", until={"N": "1000"})
    ttl = {"TableName": "tab", "TimeToLiveSpecification": {"Enabled": True, "AttributeName": "until"}}

    def status() -> str:
        described = backend.execute("DescribeTimeToLive", {"TableName": "tab"})["TimeToLiveDescription"]
        return str(described["TimeToLiveStatus"])

    backend.execute("UpdateTimeToLive", ttl)
    assert status() == "ENABLING"
    step(backend)
    ttl["TimeToLiveSpecification"] = {"Enabled": False, "AttributeName": "until"}
    backend.execute("UpdateTimeToLive", ttl)
    assert status() == "DISABLED"
    assert not step(backend)
    ttl["TimeToLiveSpecification"] = {"Enabled": True, "AttributeName": "until"}
    backend.execute("UpdateTimeToLive", ttl)
    while step(backend):
        assert inconsistencies(storage_of(backend)) == []
    assert status() == "ENABLED"
    assert inconsistencies(storage_of(backend)) == []


@pytest.mark.usefixtures("by_hand")
def test_a_table_is_restored_with_whole_indexes_from_one_whose_index_is_not(
    backend: EmbeddedBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    recovery = {"PointInTimeRecoveryEnabled": True}
    backend.execute("UpdateContinuousBackups", {"TableName": "tab", "PointInTimeRecoverySpecification": recovery})
    backend.execute("UpdateTable", ADDITION)
    monkeypatch.setattr(table_changes, "FILLED_AT_ONCE", ITEMS)
    restore = {"SourceTableName": "tab", "TargetTableName": "copy", "UseLatestRestorableTime": True}
    backend.execute("RestoreTableToPointInTime", restore)
    (described,) = backend.execute("DescribeTable", {"TableName": "copy"})["Table"]["GlobalSecondaryIndexes"]
    assert (described["IndexStatus"], described["ItemCount"]) == ("ACTIVE", ITEMS)
    assert backend.execute("Query", QUERY | {"TableName": "copy"})["Count"] == ITEMS


def test_whoever_opens_the_file_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "tables.db"
    with nothing_by_itself():
        backend = EmbeddedBackend(path)
        filled(backend)
        backend.execute("UpdateTable", ADDITION)
        step(backend)
        backend.close()
    backend = EmbeddedBackend(path)
    until(lambda: new_index(backend)["IndexStatus"] == "ACTIVE")
    assert len(found(backend)) == ITEMS
    assert inconsistencies(storage_of(backend)) == []
    backend.close()


def test_a_process_without_anything_to_do_leaves_the_upkeep_to_others(tmp_path: Path) -> None:
    path = tmp_path / "tables.db"
    first = EmbeddedBackend(path)
    filled(first)
    first.execute("UpdateTable", ADDITION)
    until(lambda: storage_of(first)._upkeep._thread is None)
    asked = "import sys; from jobtable.embedded.storage.turn import Turn; print(Turn(sys.argv[1]).is_mine_to_keep_up())"
    answer = subprocess.run([sys.executable, "-c", asked, f"{path}-lock"], capture_output=True, text=True, check=True)
    assert answer.stdout == "True\n"
    first.close()


def test_who_begins_a_filling_does_it_also_beside_a_process_that_keeps_up_and_is_stopped(tmp_path: Path) -> None:
    path = tmp_path / "tables.db"
    backend = EmbeddedBackend(path)
    filled(backend)
    keep = (
        "import sys; from jobtable.embedded.storage.turn import Turn; turn = Turn(sys.argv[1]);"
        " print(turn.is_mine_to_keep_up(), flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", keep, f"{path}-lock"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "True\n"
        backend.execute("UpdateTable", ADDITION)
        until(lambda: new_index(backend)["IndexStatus"] == "ACTIVE")
        other.communicate()
    assert len(found(backend)) == ITEMS
    until(lambda: storage_of(backend)._upkeep._thread is None)
    backend.close()


@pytest.mark.usefixtures("by_hand")
def test_a_deleted_table_leaves_nothing_to_be_filled(backend: EmbeddedBackend) -> None:
    ttl = {"TableName": "tab", "TimeToLiveSpecification": {"Enabled": True, "AttributeName": "until"}}
    backend.execute("UpdateTimeToLive", ttl)
    backend.execute("DeleteTable", {"TableName": "tab"})
    assert not step(backend)
    assert storage_of(backend).query("SELECT count(*) FROM fillings") == [(0,)]
    with pytest.raises(TableNotFound):
        backend.execute("DescribeTable", {"TableName": "tab"})
