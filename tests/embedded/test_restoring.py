"""Tables that are too large to be restored at once: bit by bit, while others write to the one that they come from."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.embedded.large_tables import (
    ITEMS,
    TABLE,
    Change,
    Request,
    changes,
    delete,
    items,
    nothing_by_itself,
    put,
    step,
    storage_of,
    switch,
    until,
    write,
)
from tests.embedded.storage.consistency import inconsistencies

from jobtable.embedded import EmbeddedBackend
from jobtable.embedded.storage import table_changes
from jobtable.embedded.storage.upkeep import _trim_some
from jobtable.errors import RequestError, TableInUse, TableNotFound
from jobtable.testing import FakeClock

DAY = 86_400
pytestmark = pytest.mark.usefixtures("small_steps")


@pytest.fixture
def backend(clock: FakeClock) -> Iterator[EmbeddedBackend]:
    made = EmbeddedBackend(None, clock=clock)
    prepare(made)
    yield made
    made.close()


def prepare(backend: EmbeddedBackend) -> None:
    """A table with items and point-in-time recovery."""
    backend.execute("CreateTable", TABLE)
    switch(backend)
    for number in range(ITEMS):
        put(backend, number, "x")


def restore(backend: EmbeddedBackend, **others: Any) -> Request:
    wanted = others or {"UseLatestRestorableTime": True}
    request = {"SourceTableName": "tab", "TargetTableName": "restored", **wanted}
    description: Request = backend.execute("RestoreTableToPointInTime", request)["TableDescription"]
    return description


def described(backend: EmbeddedBackend, name: str = "restored") -> Request:
    description: Request = backend.execute("DescribeTable", {"TableName": name})["Table"]
    return description


def are_items_there(backend: EmbeddedBackend) -> bool:
    return not storage_of(backend).query("SELECT 1 FROM restores")


@pytest.mark.usefixtures("by_hand")
def test_a_large_restored_table_is_told_and_cannot_be_used_until_it_is_whole(backend: EmbeddedBackend) -> None:
    for description in (restore(backend), described(backend)):
        assert description["TableStatus"] == "CREATING"
        assert description["RestoreSummary"]["RestoreInProgress"] is True
        (index,) = description["GlobalSecondaryIndexes"]
        assert index.keys().isdisjoint({"IndexStatus", "Backfilling"})
    assert backend.execute("ListTables", {})["TableNames"] == ["restored", "tab"]
    refusals = 0
    while step(backend):
        assert described(backend)["TableStatus"] == "CREATING"
        check_that_it_cannot_be_used(backend)
        assert inconsistencies(storage_of(backend)) == []
        refusals += 1
    assert refusals > 3 * ITEMS // 3
    description = described(backend)
    assert (description["TableStatus"], description["ItemCount"]) == ("ACTIVE", ITEMS)
    assert "RestoreSummary" not in description
    assert description["GlobalSecondaryIndexes"][0]["IndexStatus"] == "ACTIVE"
    for source in ({}, {"IndexName": "by_group"}, {"IndexName": "local"}):
        assert items(backend, "restored", **source) == items(backend)
    put(backend, 1, "new", "restored")
    backend.execute("DeleteTable", {"TableName": "restored"})


def check_that_it_cannot_be_used(backend: EmbeddedBackend) -> None:
    """As in DynamoDB, which describes it, and knows that its name is taken, but does not find it otherwise."""
    key = {"id": {"S": "1"}, "part": {"S": "0"}}
    named: Request = {"TableName": "restored"}
    ttl = {"Enabled": True, "AttributeName": "until"}
    for operation, request in (
        ("GetItem", named | {"Key": key}),
        ("PutItem", named | {"Item": key}),
        ("DeleteItem", named | {"Key": key}),
        ("UpdateItem", named | {"Key": key}),
        ("Scan", named),
        ("BatchGetItem", {"RequestItems": {"restored": {"Keys": [key]}}}),
        ("TransactGetItems", {"TransactItems": [{"Get": named | {"Key": key}}]}),
    ):
        with pytest.raises(TableNotFound, match="Requested resource not found"):
            backend.execute(operation, request)
    for operation, request in (
        ("UpdateTable", named | {"DeletionProtectionEnabled": True}),
        ("UpdateTimeToLive", named | {"TimeToLiveSpecification": ttl}),
        ("DescribeTimeToLive", named),
    ):
        with pytest.raises(TableNotFound, match="Requested resource not found: Table: restored not found"):
            backend.execute(operation, request)
    arn = described(backend)["TableArn"]
    for operation, request in (
        ("TagResource", {"Tags": [{"Key": "a", "Value": "b"}]}),
        ("UntagResource", {"TagKeys": ["a"]}),
        ("ListTagsOfResource", {}),
    ):
        with pytest.raises(TableNotFound, match=f"Requested resource not found: ResourceArn: {arn} not found"):
            backend.execute(operation, request | {"ResourceArn": arn})
    recovery = {"PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True}}
    for operation, request in (
        ("UpdateContinuousBackups", named | recovery),
        ("DescribeContinuousBackups", named),
        ("CreateBackup", named | {"BackupName": "backup"}),
    ):
        with pytest.raises(RequestError, match="Table not found: restored") as refused:
            backend.execute(operation, request)
        assert refused.value.code == "TableNotFoundException"
    with pytest.raises(TableInUse, match="which is still in use: Table is being created: restored"):
        backend.execute("DeleteTable", named)
    with pytest.raises(TableInUse, match="which is still in use: Table is being used: restored"):
        backend.execute("CreateTable", TABLE | {"TableName": "restored"})


@pytest.mark.usefixtures("by_hand")
def test_what_it_is_restored_from_stays_as_long_as_it_is_needed(backend: EmbeddedBackend) -> None:
    restore(backend)
    while not are_items_there(backend):
        with pytest.raises(TableInUse, match="Table is being restored: tab, to restored"):
            backend.execute("DeleteTable", {"TableName": "tab"})
        with pytest.raises(RequestError, match="Backups of the table tab are being restored to: restored") as refused:
            switch(backend, enabled=False)
        assert refused.value.code == "ContinuousBackupsUnavailableException"
        switch(backend)
        assert step(backend)
    before = items(backend)
    switch(backend, enabled=False)
    backend.execute("DeleteTable", {"TableName": "tab"})
    while step(backend):
        pass
    assert items(backend, "restored", IndexName="by_group") == before


@pytest.mark.usefixtures("by_hand")
def test_changes_that_are_to_be_undone_are_not_trimmed(backend: EmbeddedBackend, clock: FakeClock) -> None:
    before = items(backend)
    moment = clock.seconds()
    clock.advance(5)
    for number in range(ITEMS):
        put(backend, number, "later")
    switch(backend, RecoveryPeriodInDays=1)
    restore(backend, RestoreDateTime=moment)
    clock.advance(5 * DAY)
    table = storage_of(backend).table("tab")
    assert table is not None
    while step(backend):
        storage_of(backend).write(partial(_trim_some, table.id, clock.seconds()))
    assert items(backend, "restored") == before
    storage_of(backend).keep_up()
    assert storage_of(backend).query(f"SELECT count(*) FROM journal_{table.id}") == [(1,)]


@pytest.mark.usefixtures("by_hand")
def test_a_table_of_few_items_with_many_changes_is_large(backend: EmbeddedBackend, clock: FakeClock) -> None:
    moment = clock.seconds()
    clock.advance(5)
    for number in range(3, ITEMS):
        delete(backend, number)
    restore(backend, TargetTableName="latest", UseLatestRestorableTime=True)
    restore(backend, RestoreDateTime=moment)
    assert (described(backend, "latest")["TableStatus"], described(backend)["TableStatus"]) == ("ACTIVE", "CREATING")
    while step(backend):
        pass
    assert (len(items(backend, "restored")), len(items(backend, "latest"))) == (ITEMS, 3)


@pytest.mark.usefixtures("by_hand")
def test_large_items_before_changes_make_a_restore_large(
    backend: EmbeddedBackend, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_changes, "FILLED_AT_ONCE", ITEMS)
    monkeypatch.setattr(table_changes, "BYTES_FILLED_AT_ONCE", 5_000)
    put(backend, 1, "x" * 1000)
    clock.advance(5)
    put(backend, 1, "x")
    restore(backend, RestoreDateTime=clock.seconds() - 5)
    restore(backend, TargetTableName="latest", UseLatestRestorableTime=True)
    assert (described(backend, "latest")["TableStatus"], described(backend)["TableStatus"]) == ("ACTIVE", "CREATING")


@given(st.lists(changes, min_size=3, max_size=3), st.lists(changes, min_size=8, max_size=8))
@settings(max_examples=60, deadline=None)
def test_it_is_what_it_was_whatever_is_written_meanwhile(
    before: list[list[Change]], meanwhile: list[list[Change]]
) -> None:
    clock = FakeClock()
    with nothing_by_itself():
        backend = EmbeddedBackend(None, clock=clock)
        prepare(backend)
        write(backend, before[0])
        wanted, moment = items(backend), clock.seconds()
        clock.advance(2)
        write(backend, before[1])
        write(backend, before[2])
        restore(backend, RestoreDateTime=moment)
        at_begin = items(backend)
        restore(backend, TargetTableName="latest", UseLatestRestorableTime=True)
        rounds = iter(meanwhile)
        while step(backend):
            write(backend, next(rounds, []))
            assert inconsistencies(storage_of(backend)) == []
        for source in ({}, {"IndexName": "by_group"}, {"IndexName": "local"}):
            assert items(backend, "restored", **source) == wanted
            assert items(backend, "latest", **source) == at_begin
        assert inconsistencies(storage_of(backend)) == []
        backend.close()


def test_it_becomes_whole_by_itself(backend: EmbeddedBackend) -> None:
    restore(backend)
    until(lambda: described(backend)["TableStatus"] == "ACTIVE")
    assert items(backend, "restored", IndexName="by_group") == items(backend)


def test_whoever_opens_the_file_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "tables.db"
    with nothing_by_itself():
        backend = EmbeddedBackend(path)
        prepare(backend)
        restore(backend)
        step(backend)
        backend.close()
    backend = EmbeddedBackend(path)
    until(lambda: described(backend)["TableStatus"] == "ACTIVE")
    assert items(backend, "restored") == items(backend)
    assert inconsistencies(storage_of(backend)) == []
    backend.close()
