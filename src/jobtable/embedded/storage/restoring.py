"""A table or a backup gets the items that a table has or had: those of now are copied, and later changes are undone.

Both happen bit by bit, while others write: one transaction would keep them waiting for seconds. It does not matter
whether an item is copied before it changes or after: each change since the wanted time stands in the journal of the
source, with the item before it, until the copy is whole. They are undone backwards, from the last one that there was
when all was copied, to the first one after the wanted time; so an item that has changed is at last what it was before
its first change. Then the indexes of a table are filled (filling.py), and it can be used.

A table whose backup is being made has a journal for that long, if it has none otherwise. It may even be deleted: its
items and its journal stay until they are copied. A backup has no later changes: a table that is restored from it is a
copy and no more.
"""

from __future__ import annotations

from pydantic_core import from_json

from jobtable.embedded.storage import backups, filling, journal, statements
from jobtable.embedded.storage.backups import BackupRecord
from jobtable.embedded.storage.catalogue import TableRecord, read_record_of_id
from jobtable.embedded.storage.definitions import change_table, create_items, create_table, drop_items
from jobtable.embedded.storage.transactions import Transaction, View
from jobtable.store.sizes import item_size

_NO_TABLE = ""
"""In place of the name of the table that gets the items, where it is a backup that does."""


def begin(transaction: Transaction, source_id: int, target: TableRecord, first_undone: int) -> TableRecord:
    """Create a table with the items that another one had before one of its changes, or with those of a backup.

    Gives what was stored: a large one is whole later, and of a small one nobody sees a part.
    """
    unfinished = target.model_copy(update={"is_creating": True})
    unfinished = filling.begun(transaction, unfinished, [index.id for index in target.indexes])
    create_table(transaction, unfinished)
    if not _is_copied(transaction, source_id, target.id, target.name, first_undone):
        return unfinished
    for index in target.indexes:
        while filling.fill_some(index.id, transaction):
            pass
    return target


def back_up(transaction: Transaction, source: TableRecord, backup: BackupRecord) -> None:
    """Store a backup with the items that its table has now. That of a large table is whole later."""
    create_items(transaction, backup.id)
    backups.save(transaction, backup.model_copy(update={"is_creating": True}))
    if not _is_copied(transaction, source.id, backup.id, _NO_TABLE, next_change(transaction, source.id)):
        change_table(transaction, source, source.model_copy(update={"is_backed_up": True}))


def next_change(view: View, source_id: int) -> int:
    """The number of the next change of a table: who undoes from there on has the items of now."""
    return journal.last_sequence(view, source_id) + 1


def restore_some(id_: int, transaction: Transaction) -> bool:
    """Copy the items that come next, or undo the changes that do; True: there are more."""
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
            filling.finish(transaction, record)
    return False


def targets_of(view: View, source_id: int) -> list[str]:
    """The tables that are being restored from a table with its journal, or from a backup."""
    sql = "SELECT table_name FROM restores WHERE source_id = ? AND table_name != ?"
    return [name for (name,) in view.connection.execute(sql, (source_id, _NO_TABLE))]


def is_source(view: View, id_: int) -> bool:
    """Whether the items of a table or of a backup are still needed for another one."""
    return view.connection.execute("SELECT 1 FROM restores WHERE source_id = ?", (id_,)).fetchone() is not None


def _is_copied(transaction: Transaction, source_id: int, id_: int, name: str, first_undone: int) -> bool:
    """Begin to copy items; True: they are few, and all is done."""
    row = (id_, name, source_id, first_undone)
    transaction.connection.execute("INSERT INTO restores VALUES (?, ?, ?, ?, x'', NULL)", row)
    if not _is_small(transaction, source_id, first_undone):
        return False
    while restore_some(id_, transaction):
        pass
    return True


def _is_small(view: View, source_id: int, first_undone: int) -> bool:
    if not filling.is_small(*view.counters([source_id])[source_id]):
        return False
    changes = next_change(view, source_id) - first_undone
    return changes == 0 or (
        filling.is_small(changes, 0) and filling.is_small(changes, journal.bytes_before(view, source_id, first_undone))
    )


def _finish_backup(transaction: Transaction, id_: int, source_id: int) -> None:
    """A backup is whole: let go of what was kept for it of its table, unless it is needed for another one."""
    backup = backups.find_id(transaction, id_)
    if backup is not None:
        backups.save(transaction, backup.model_copy(update={"is_creating": False}))
    if is_source(transaction, source_id):
        return
    source = read_record_of_id(transaction.connection, source_id)
    if source is not None and source.is_backed_up:
        change_table(transaction, source, source.model_copy(update={"is_backed_up": False}))
    elif source is None and backups.find_id(transaction, source_id) is None:
        drop_items(transaction, source_id)


def _copy_some(transaction: Transaction, id_: int, source_id: int, after: bytes) -> None:
    connection = transaction.connection
    entries = connection.execute(statements.of_entries(source_id, None), (after,))
    step = filling.step_of(entries)
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
    """Undo the last changes of these; True: there are more before them."""
    changes = journal.backwards(transaction, source_id, first, last)
    step = filling.step_of(changes)
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
