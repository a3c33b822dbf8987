"""Tables that are too large to be backed up at once, or restored from a backup: bit by bit, while others write."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
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
from jobtable.embedded.storage import table_changes, upkeep
from jobtable.errors import RequestError, TableInUse, TableNotFound
from jobtable.testing import FakeClock

DAY = 86_400
pytestmark = pytest.mark.usefixtures("small_steps")
EVERYWHERE: tuple[Request, ...] = ({}, {"IndexName": "by_group"}, {"IndexName": "local"})


@pytest.fixture(autouse=True)
def removed_in_small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_changes, "_DROPPED_AT_ONCE", 5)


@pytest.fixture
def backend(clock: FakeClock) -> Iterator[EmbeddedBackend]:
    made = EmbeddedBackend(None, clock=clock)
    prepare(made)
    yield made
    assert inconsistencies(storage_of(made)) == []
    made.close()


def prepare(backend: EmbeddedBackend) -> None:
    """A table with items, and without a journal."""
    backend.execute("CreateTable", TABLE)
    for number in range(ITEMS):
        put(backend, number, "x")


def back_up(backend: EmbeddedBackend) -> str:
    details = backend.execute("CreateBackup", {"TableName": "tab", "BackupName": "first"})["BackupDetails"]
    return str(details["BackupArn"])


def described(backend: EmbeddedBackend, arn: str) -> Request:
    details: Request = backend.execute("DescribeBackup", {"BackupArn": arn})["BackupDescription"]["BackupDetails"]
    return details


def status(backend: EmbeddedBackend, arn: str) -> str:
    return str(described(backend, arn)["BackupStatus"])


def restore(backend: EmbeddedBackend, arn: str, target: str = "restored") -> None:
    backend.execute("RestoreTableFromBackup", {"BackupArn": arn, "TargetTableName": target})


def table_status(backend: EmbeddedBackend, name: str = "restored") -> str:
    return str(backend.execute("DescribeTable", {"TableName": name})["Table"]["TableStatus"])


def refusal(backend: EmbeddedBackend, operation: str, **request: Any) -> tuple[str, str]:
    with pytest.raises(RequestError) as refused:
        backend.execute(operation, request)
    return refused.value.code, refused.value.message


def finish(backend: EmbeddedBackend) -> None:
    while step(backend):
        pass


def held(backend: EmbeddedBackend) -> set[str]:
    """The SQLite tables of items and journals that there are."""
    sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND (name GLOB 'items_*' OR name GLOB 'journal_*')"
    return {name for (name,) in storage_of(backend).query(sql)}


@pytest.mark.usefixtures("by_hand")
def test_a_large_backup_is_told_and_cannot_be_used_until_it_is_whole(backend: EmbeddedBackend) -> None:
    before, size = items(backend), backend.execute("DescribeTable", {"TableName": "tab"})["Table"]["TableSizeBytes"]
    arn = back_up(backend)
    steps = 0
    while steps == 0 or step(backend):
        steps += 1
        assert (status(backend, arn), described(backend, arn)["BackupSizeBytes"]) == ("CREATING", size)
        in_use = ("BackupInUseException", f"Backup is being created: {arn}")
        assert refusal(backend, "DeleteBackup", BackupArn=arn) == in_use
        assert refusal(backend, "RestoreTableFromBackup", BackupArn=arn, TargetTableName="restored") == in_use
        put(backend, steps, "meanwhile")
        assert inconsistencies(storage_of(backend)) == []
    assert steps > ITEMS // 3
    assert (status(backend, arn), described(backend, arn)["BackupSizeBytes"]) == ("AVAILABLE", size)
    restore(backend, arn)
    finish(backend)
    for source in EVERYWHERE:
        assert items(backend, "restored", **source) == before


@pytest.mark.usefixtures("by_hand")
def test_a_restore_from_a_large_backup_goes_bit_by_bit(backend: EmbeddedBackend) -> None:
    before = items(backend)
    arn = back_up(backend)
    finish(backend)
    restore(backend, arn)
    steps = 0
    while steps == 0 or step(backend):
        steps += 1
        assert table_status(backend) == "CREATING"
        if not storage_of(backend).query("SELECT 1 FROM restores"):
            continue  # The indexes are being filled: the backup is not needed any more.
        code = "BackupInUseException"
        other = {"BackupArn": arn, "TargetTableName": "other"}
        message = f"Backup is being used to restore another table: {arn}"
        assert refusal(backend, "RestoreTableFromBackup", **other) == (code, message)
        message = f"Backup is being used to restore table: {arn}"
        assert refusal(backend, "DeleteBackup", BackupArn=arn) == (code, message)
        message = f"Table: restored is already being restored from backup: {arn}"
        again = other | {"TargetTableName": "restored"}
        assert refusal(backend, "RestoreTableFromBackup", **again) == ("TableInUseException", message)
        with pytest.raises(TableNotFound):
            items(backend, "restored")
        assert refusal(backend, "CreateBackup", TableName="restored", BackupName="early") == (
            "TableNotFoundException",
            "Table not found: restored",
        )
        with pytest.raises(TableInUse):
            backend.execute("DeleteTable", {"TableName": "restored"})
    assert steps > 2 * ITEMS // 3
    for source in EVERYWHERE:
        assert items(backend, "restored", **source) == before
    backend.execute("DeleteBackup", {"BackupArn": arn})


@pytest.mark.usefixtures("by_hand")
def test_a_large_backup_is_removed_bit_by_bit(backend: EmbeddedBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "_REMOVED_AT_ONCE", 3)
    tables = held(backend)
    arn = back_up(backend)
    finish(backend)
    storage_of(backend).keep_up()
    (left,) = held(backend) - tables
    backend.execute("DeleteBackup", {"BackupArn": arn})
    assert left in held(backend)
    assert refusal(backend, "DescribeBackup", BackupArn=arn)[0] == "BackupNotFoundException"
    storage_of(backend).keep_up()
    assert held(backend) == tables


@pytest.mark.usefixtures("by_hand")
def test_a_table_has_a_journal_as_long_as_its_backup_needs_it(backend: EmbeddedBackend) -> None:
    tables = held(backend)
    first, second = back_up(backend), back_up(backend)
    is_journaled = []
    while {status(backend, first), status(backend, second)} != {"AVAILABLE"}:
        is_journaled.append(any(name.startswith("journal_") for name in held(backend)))
        put(backend, len(is_journaled), "meanwhile")
        step(backend)
    assert all(is_journaled)
    storage_of(backend).keep_up()
    assert len(held(backend) - tables) == 2, "the backups alone are left"
    schema = storage_of(backend).table("tab")
    assert schema is not None
    assert not schema.is_journaled


@pytest.mark.usefixtures("by_hand")
def test_an_empty_journal_that_a_backup_needs_is_not_trimmed(backend: EmbeddedBackend, clock: FakeClock) -> None:
    before = items(backend)
    arn = back_up(backend)
    table = storage_of(backend).table("tab")
    assert table is not None
    rounds = 0
    while step(backend):
        clock.advance(40 * DAY)
        storage_of(backend).write(partial(upkeep._trim_some, table.id, clock.seconds()))
        put(backend, rounds % 3, f"round {rounds}")
        rounds += 1
    assert rounds > 5
    restore(backend, arn)
    finish(backend)
    assert items(backend, "restored") == before


@pytest.mark.usefixtures("by_hand")
def test_a_table_can_be_deleted_while_its_backup_is_made(backend: EmbeddedBackend) -> None:
    before = items(backend)
    arn = back_up(backend)
    step(backend)
    for number in range(ITEMS):
        delete(backend, number) if number % 2 else put(backend, number, "changed")
    backend.execute("DeleteTable", {"TableName": "tab"})
    backend.execute("CreateTable", TABLE)
    put(backend, 1, "another table")
    while step(backend):
        assert inconsistencies(storage_of(backend)) == []
    assert status(backend, arn) == "AVAILABLE"
    storage_of(backend).keep_up()
    assert len(held(backend)) == 2, "the new table and the backup alone are left"
    restore(backend, arn)
    finish(backend)
    assert items(backend, "restored") == before


@pytest.mark.usefixtures("by_hand")
def test_upkeep_leaves_what_a_backup_needs_of_a_deleted_table(backend: EmbeddedBackend) -> None:
    before = items(backend)
    arn = back_up(backend)
    backend.execute("DeleteTable", {"TableName": "tab"})
    once = iter([False])
    # Removes what is abandoned and trims journals, but copies only one step.
    storage = storage_of(backend)
    upkeep.fill_up(storage, lambda: next(once, True))
    for (name,) in storage.query(upkeep._ABANDONED):
        while storage.write(partial(upkeep._remove_some, name)):
            pass
    for id_ in upkeep._journals_to_trim(storage, storage.now()):
        while storage.write(partial(upkeep._trim_some, id_, storage.now())):
            pass
    finish(backend)
    restore(backend, arn)
    finish(backend)
    assert items(backend, "restored") == before


@pytest.mark.usefixtures("by_hand")
def test_a_recoverable_table_can_be_deleted_while_its_backup_is_made(
    backend: EmbeddedBackend, clock: FakeClock
) -> None:
    before = items(backend)
    switch(backend)
    arn = back_up(backend)
    step(backend)
    put(backend, 3, "changed")
    at_end = items(backend)
    backend.execute("DeleteTable", {"TableName": "tab"})
    (summary,) = backend.execute("ListBackups", {"BackupType": "SYSTEM"})["BackupSummaries"]
    restore(backend, summary["BackupArn"], "last")
    clock.advance(40 * DAY)
    once = iter([False] * 2)
    upkeep.keep_up(storage_of(backend), lambda: next(once, True))
    assert table_status(backend, "last") == "CREATING"
    assert storage_of(backend).query("SELECT count(*) FROM backups") == [(2,)], "it is kept for the restore"
    finish(backend)
    restore(backend, arn)
    finish(backend)
    storage_of(backend).keep_up()
    assert storage_of(backend).query("SELECT count(*) FROM backups") == [(1,)]
    assert (items(backend, "restored"), items(backend, "last")) == (before, at_end)


@pytest.mark.usefixtures("by_hand")
def test_what_is_switched_on_and_off_meanwhile_does_not_matter(backend: EmbeddedBackend) -> None:
    before = items(backend)
    arn = back_up(backend)
    stream = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
    switch(backend)
    put(backend, 1, "one")
    assert step(backend)
    switch(backend, enabled=False)
    put(backend, 2, "two")
    assert step(backend)
    backend.execute("UpdateTable", {"TableName": "tab", "StreamSpecification": stream})
    put(backend, 3, "three")
    backend.execute("UpdateTable", {"TableName": "tab", "StreamSpecification": {"StreamEnabled": False}})
    put(backend, 4, "four")
    backend.execute(
        "UpdateTable", {"TableName": "tab", "GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "by_group"}}]}
    )
    put(backend, 5, "five")
    finish(backend)
    restore(backend, arn)
    finish(backend)
    assert items(backend, "restored", IndexName="by_group") == before


@given(st.lists(changes, min_size=2, max_size=2), st.lists(changes, min_size=12, max_size=12), st.booleans())
@settings(max_examples=30, deadline=None)
def test_it_is_what_it_was_whatever_is_written_meanwhile(
    before: list[list[Change]], meanwhile: list[list[Change]], is_recoverable: bool
) -> None:
    with nothing_by_itself():
        backend = EmbeddedBackend(None, clock=FakeClock())
        prepare(backend)
        if is_recoverable:
            switch(backend)
        write(backend, before[0])
        wanted = [items(backend)]
        arns = [back_up(backend)]
        write(backend, before[1])
        rounds = iter(meanwhile)
        while step(backend):
            write(backend, next(rounds, []))
            if len(arns) == 1:
                wanted.append(items(backend))
                arns.append(back_up(backend))
            assert inconsistencies(storage_of(backend)) == []
        for number, (arn, state) in enumerate(zip(arns, wanted, strict=True)):
            restore(backend, arn, f"restored-{number}")
            finish(backend)
            for source in EVERYWHERE:
                assert items(backend, f"restored-{number}", **source) == state
        assert inconsistencies(storage_of(backend)) == []
        backend.close()


class Backups(RuleBasedStateMachine):
    """Backups are made, restored and deleted in steps between other requests; each is what its table was."""

    def __init__(self) -> None:
        super().__init__()
        self.quiet = nothing_by_itself()
        self.quiet.__enter__()
        self.clock = FakeClock()
        self.backend = EmbeddedBackend(None, clock=self.clock)
        self.wanted: dict[str, dict[str, Request]] = {}
        self.restored: dict[str, dict[str, Request]] = {}
        self.number = 0
        prepare(self.backend)

    def has_table(self) -> bool:
        return "tab" in self.backend.execute("ListTables", {})["TableNames"]

    @rule(written=changes)
    @precondition(has_table)
    def write(self, written: list[Change]) -> None:
        write(self.backend, written)

    @rule(enabled=st.booleans())
    @precondition(has_table)
    def switch_recovery(self, enabled: bool) -> None:
        switch(self.backend, enabled=enabled)

    @rule()
    @precondition(has_table)
    def back_up(self) -> None:
        self.wanted[back_up(self.backend)] = items(self.backend)

    @rule()
    @precondition(has_table)
    def delete_table(self) -> None:
        self.backend.execute("DeleteTable", {"TableName": "tab"})

    @rule()
    @precondition(lambda self: not self.has_table())
    def create_table(self) -> None:
        prepare(self.backend)

    @rule(data=st.data())
    @precondition(lambda self: self.wanted)
    def restore(self, data: st.DataObject) -> None:
        arn = data.draw(st.sampled_from(sorted(self.wanted)))
        self.number += 1
        target = f"restored-{self.number}"
        try:
            restore(self.backend, arn, target)
        except RequestError as refused:
            assert refused.code == "BackupInUseException"  # noqa: PT017 - it may also be accepted
        else:
            self.restored[target] = self.wanted[arn]

    @rule(data=st.data())
    @precondition(lambda self: self.wanted)
    def delete_backup(self, data: st.DataObject) -> None:
        arn = data.draw(st.sampled_from(sorted(self.wanted)))
        try:
            self.backend.execute("DeleteBackup", {"BackupArn": arn})
        except RequestError as refused:
            assert refused.code == "BackupInUseException"  # noqa: PT017 - it may also be accepted
        else:
            del self.wanted[arn]

    @rule(steps=st.integers(1, 12))
    def do_some(self, steps: int) -> None:
        for _ in range(steps):
            step(self.backend)

    @rule(days=st.sampled_from([0, 2, 40]))
    def keep_up(self, days: int) -> None:
        self.clock.advance(days * DAY)
        storage_of(self.backend).keep_up()

    @invariant()
    def all_is_consistent(self) -> None:
        assert inconsistencies(storage_of(self.backend)) == []
        for target, state in self.restored.items():
            if table_status(self.backend, target) == "ACTIVE":
                assert items(self.backend, target) == state

    def teardown(self) -> None:
        finish(self.backend)
        for arn, state in self.wanted.items():
            restore(self.backend, arn, "last")
            finish(self.backend)
            for source in EVERYWHERE:
                assert items(self.backend, "last", **source) == state
            self.backend.execute("DeleteTable", {"TableName": "last"})
            self.backend.execute("DeleteBackup", {"BackupArn": arn})
        storage_of(self.backend).keep_up()
        self.clock.advance(40 * DAY)
        storage_of(self.backend).keep_up()
        tables = len(self.backend.execute("ListTables", {})["TableNames"])
        assert len([name for name in held(self.backend) if name.startswith("items_")]) == tables, "nothing is left"
        self.backend.close()
        self.quiet.__exit__(None, None, None)


TestBackups = Backups.TestCase
TestBackups.settings = settings(max_examples=15, stateful_step_count=25, deadline=None)


def test_it_becomes_whole_by_itself(backend: EmbeddedBackend) -> None:
    arn = back_up(backend)
    until(lambda: status(backend, arn) == "AVAILABLE")
    restore(backend, arn)
    until(lambda: table_status(backend) == "ACTIVE")
    assert items(backend, "restored", IndexName="by_group") == items(backend)


def test_whoever_opens_the_file_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "tables.db"
    with nothing_by_itself():
        backend = EmbeddedBackend(path)
        prepare(backend)
        before = items(backend)
        arn = back_up(backend)
        step(backend)
        put(backend, 1, "changed")
        backend.close()
    backend = EmbeddedBackend(path)
    until(lambda: status(backend, arn) == "AVAILABLE")
    restore(backend, arn)
    until(lambda: table_status(backend) == "ACTIVE")
    assert items(backend, "restored") == before
    assert inconsistencies(storage_of(backend)) == []
    backend.close()
