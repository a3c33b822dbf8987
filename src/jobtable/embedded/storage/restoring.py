"""Backups, and the tables and backups that get the items of another table as they are or were.

The items of now are copied, and later changes are undone. Both happen in steps, while others write: one transaction
would keep them waiting for seconds. It does not matter whether an item is copied before it changes or after: the
journal of the source keeps each change since the wanted time, with the item before it, until the copy is whole. The
changes are undone backwards, from the last one at the end of copying to the first one after the wanted time; so each
item ends as it was before its first change. Then the indexes of a table are filled, and it can be used.

A table has a journal while its backup is being made. If it is deleted meanwhile, its items and its journal stay until
they are copied. A backup has no later changes: a table restored from it is a plain copy.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from pydantic_core import from_json

from jobtable.embedded.storage import journal, statements, table_changes
from jobtable.embedded.storage.table_catalogue import CatalogueRecord, TableRecord, read_record_of_id
from jobtable.embedded.storage.views import Transaction, View
from jobtable.store.sizes import item_size

_DIGITS = 14
_END_OF_LABELS = 10 ** (_DIGITS - 3)  # seconds
AFTER_ALL_LABELS = "~"


class BackupRecord(CatalogueRecord):
    """One backup, and everything about its table that is not an item."""

    id: int
    """The id of its items: its own, or that of a deleted table that left them."""
    label: str
    """The milliseconds of its creation and eight more digits; with the table's name it identifies the backup."""
    name: str
    created: float
    expires: float | None = None  # when it expires, if DeleteTable made it (SYSTEM)
    is_creating: bool = False  # whether it still lacks items of its table and cannot be used
    table: TableRecord
    items: int
    size: int

    def is_expired(self, now: float) -> bool:
        """Whether it counts as deleted, though it may still exist."""
        return self.expires is not None and self.expires <= now


def label_at(moment: float) -> str:
    """Return the beginning of the labels of a millisecond; they sort as the milliseconds do."""
    if moment >= _END_OF_LABELS:
        return AFTER_ALL_LABELS
    return f"{round(moment * 1000):0{_DIGITS}d}" if moment >= 0 else ""


def is_label_taken(view: View, table_name: str, milliseconds: int) -> bool:
    """Whether a backup of a table of that name was made in that millisecond."""
    sql = "SELECT 1 FROM backups WHERE label >= ? AND label < ? AND table_name = ?"
    bounds = label_at(milliseconds / 1000), label_at((milliseconds + 1) / 1000)
    return view.connection.execute(sql, (*bounds, table_name)).fetchone() is not None


def find_backup(view: View, table_name: str, label: str) -> BackupRecord | None:
    sql = "SELECT record FROM backups WHERE label = ? AND table_name = ?"
    row = view.connection.execute(sql, (label, table_name)).fetchone()
    return None if row is None else BackupRecord.from_stored(row[0])


def find_backup_by_id(view: View, id_: int) -> BackupRecord | None:
    """Return the backup whose items have an id, or None."""
    row = view.connection.execute("SELECT record FROM backups WHERE id = ?", (id_,)).fetchone()
    return None if row is None else BackupRecord.from_stored(row[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupSelection:
    """Filters backups; without parameters it selects all."""

    table_name: str | None = None
    after_label: str = ""
    after_table: str = ""  # only those after this label, and for that label after this table
    before_label: str = AFTER_ALL_LABELS
    is_expiring: bool | None = None  # only expiring ones, or only others
    now: float = 0  # only those that have not expired then
    most: int = -1


ALL_BACKUPS = BackupSelection()


def backups_in_order(view: View, selection: BackupSelection = ALL_BACKUPS) -> list[BackupRecord]:
    """Return backups in the order of their labels, and so of their creation."""
    sql = (
        "SELECT record FROM backups WHERE (label, table_name) > (:after_label, :after_table) AND label < :before_label"
        " AND (:table_name IS NULL OR table_name = :table_name) AND (expires IS NULL OR expires > :now)"
        " AND (:is_expiring IS NULL OR (expires IS NOT NULL) = :is_expiring)"
        " ORDER BY label, table_name LIMIT :most"
    )
    return [BackupRecord.from_stored(record) for (record,) in view.connection.execute(sql, asdict(selection))]


def save_backup(transaction: Transaction, backup: BackupRecord) -> None:
    """Store a new or changed backup."""
    transaction.has_written = transaction.catalogue_changed = True
    row = (backup.id, backup.label, backup.table.name, backup.expires, backup.model_dump_json().encode())
    transaction.connection.execute("INSERT OR REPLACE INTO backups VALUES (?, ?, ?, ?, ?)", row)


def remove_backup(transaction: Transaction, backup: BackupRecord) -> None:
    """Remove a backup from which no table is being restored; the items of a large one are removed later."""
    transaction.has_written = transaction.catalogue_changed = True
    transaction.connection.execute("DELETE FROM backups WHERE id = ?", (backup.id,))
    table_changes.drop_items(transaction, backup.id)


_NO_TABLE = ""  # in place of a table's name, if a backup gets the items


def begin_restore(transaction: Transaction, source_id: int, target: TableRecord, first_undone: int) -> TableRecord:
    """Create a table with the items of another one before one of its changes, or of a backup; return its record.

    A large one is complete later, and nobody sees a part of a small one.
    """
    unfinished = target.model_copy(update={"is_creating": True})
    unfinished = table_changes.begin_filling(transaction, unfinished, [index.id for index in target.indexes])
    table_changes.create_table(transaction, unfinished)
    if not _is_copied(transaction, source_id, target.id, target.name, first_undone):
        return unfinished
    for index in target.indexes:
        while table_changes.fill_some(index.id, transaction):
            pass
    return target


def back_up(transaction: Transaction, source: TableRecord, backup: BackupRecord) -> None:
    """Store a backup of the items that its table has now. That of a large table is complete later."""
    table_changes.create_items(transaction, backup.id)
    save_backup(transaction, backup.model_copy(update={"is_creating": True}))
    if not _is_copied(transaction, source.id, backup.id, _NO_TABLE, next_change(transaction, source.id)):
        table_changes.change_table(transaction, source, source.model_copy(update={"is_backed_up": True}))


def next_change(view: View, source_id: int) -> int:
    """Return the number of the next change of a table: undoing from there on keeps its items of now."""
    return journal.last_sequence(view, source_id) + 1


def restore_some(id_: int, transaction: Transaction) -> bool:
    """Copy the next items, or undo the next changes; True if there are more."""
    sql = "SELECT table_name, source_id, first_undone, position, next_undone FROM restores WHERE id = ?"
    row = transaction.connection.execute(sql, (id_,)).fetchone()
    if row is None:
        return False
    transaction.has_written = True
    name, source_id, first_undone, position, next_undone = row
    if next_undone is None:
        _copy_some(transaction, id_, source_id, position)
        return True
    if next_undone >= first_undone and _undo_some(transaction, id_, source_id, first_undone, next_undone):
        return True
    transaction.connection.execute("DELETE FROM restores WHERE id = ?", (id_,))
    if name == _NO_TABLE:
        _finish_backup(transaction, id_, source_id)
    else:
        record = transaction.record(name)
        if record is not None:
            table_changes.finish_filling(transaction, record)
    return False


def targets_of(view: View, source_id: int) -> list[str]:
    """Return the tables that are being restored from a table with its journal, or from a backup."""
    sql = "SELECT table_name FROM restores WHERE source_id = ? AND table_name != ?"
    return [name for (name,) in view.connection.execute(sql, (source_id, _NO_TABLE))]


def is_source(view: View, id_: int) -> bool:
    """Whether another table or backup still needs the items of a table or backup."""
    return view.connection.execute("SELECT 1 FROM restores WHERE source_id = ?", (id_,)).fetchone() is not None


def _is_copied(transaction: Transaction, source_id: int, id_: int, name: str, first_undone: int) -> bool:
    """Start to copy items; True if they are few and all is done."""
    row = (id_, name, source_id, first_undone)
    transaction.connection.execute("INSERT INTO restores VALUES (?, ?, ?, ?, x'', NULL)", row)
    if not _is_small(transaction, source_id, first_undone):
        return False
    while restore_some(id_, transaction):
        pass
    return True


def _is_small(view: View, source_id: int, first_undone: int) -> bool:
    if not table_changes.is_small(*view.counters([source_id])[source_id]):
        return False
    changes = next_change(view, source_id) - first_undone
    return changes == 0 or (
        table_changes.is_small(changes, 0)
        and table_changes.is_small(changes, journal.bytes_before(view, source_id, first_undone))
    )


def _finish_backup(transaction: Transaction, id_: int, source_id: int) -> None:
    """Release what was kept of the table of a complete backup, unless another one needs it."""
    backup = find_backup_by_id(transaction, id_)
    if backup is not None:
        save_backup(transaction, backup.model_copy(update={"is_creating": False}))
    if is_source(transaction, source_id):
        return
    source = read_record_of_id(transaction.connection, source_id)
    if source is not None and source.is_backed_up:
        table_changes.change_table(transaction, source, source.model_copy(update={"is_backed_up": False}))
    elif source is None and find_backup_by_id(transaction, source_id) is None:
        table_changes.drop_items(transaction, source_id)


def _copy_some(transaction: Transaction, id_: int, source_id: int, after: bytes) -> None:
    connection = transaction.connection
    entries = connection.execute(statements.of_entries(source_id, None), (after,))
    step = table_changes.step_of(entries)
    is_last = next(entries, None) is None
    entries.close()
    connection.executemany(statements.of_table(id_).put, step)
    transaction.count(id_, len(step), sum(size for _, size, _ in step))
    if is_last:
        last = journal.last_sequence(transaction, source_id)
        connection.execute("UPDATE restores SET next_undone = ? WHERE id = ?", (last, id_))
    else:
        connection.execute("UPDATE restores SET position = ? WHERE id = ?", (step[-1][0], id_))


def _undo_some(transaction: Transaction, id_: int, source_id: int, first: int, last: int) -> bool:
    """Undo the last of these changes; True if there are more before them."""
    changes = journal.backwards(transaction, source_id, first, last)
    step = table_changes.step_of(changes)
    changes.close()
    for _, _, position, old in step:
        _undo(transaction, id_, position, old)
    next_undone = step[-1][0] - 1 if step else first - 1
    transaction.connection.execute("UPDATE restores SET next_undone = ? WHERE id = ?", (next_undone, id_))
    return next_undone >= first


def _undo(transaction: Transaction, id_: int, position: bytes, old: bytes | None) -> None:
    connection, sql = transaction.connection, statements.of_table(id_)
    there = connection.execute(sql.get, (position,)).fetchone()
    items, size = (0, 0) if there is None else (1, there[1])
    if old is not None:
        size_before = item_size(from_json(old))
        connection.execute(sql.put, (position, size_before, old))
        transaction.count(id_, 1 - items, size_before - size)
    elif there is not None:
        connection.execute(sql.delete, (position,))
        transaction.count(id_, -items, -size)
