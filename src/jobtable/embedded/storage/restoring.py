"""A table gets the items that another one had: those of now are copied, and then every later change is undone.

Both happen bit by bit, while others write: one transaction would keep them waiting for seconds. It does not matter
whether an item is copied before it changes or after: each change since the wanted time stands in the journal of the
source, with the item before it, until the restore has ended. They are undone backwards, from the last one that there
was when all was copied, to the first one after the wanted time; so an item that has changed is at last what it was
before its first change. Then the indexes are filled (filling.py), and the table can be used.
"""

from __future__ import annotations

from pydantic_core import from_json

from jobtable.embedded.storage import filling, journal, statements
from jobtable.embedded.storage.catalogue import TableRecord
from jobtable.embedded.storage.definitions import create_table
from jobtable.embedded.storage.transactions import Transaction, View
from jobtable.store.sizes import item_size


def begin(transaction: Transaction, source: TableRecord, target: TableRecord, first_undone: int) -> TableRecord:
    """Create a table with the items that another one, which has a journal, had before one of its changes.

    Gives what was stored: a large one is whole later, and of a small one nobody sees a part.
    """
    unfinished = target.model_copy(update={"is_creating": True})
    unfinished = filling.begun(transaction, unfinished, [index.id for index in target.indexes])
    create_table(transaction, unfinished)
    row = (target.id, target.name, source.id, first_undone)
    transaction.connection.execute("INSERT INTO restores VALUES (?, ?, ?, ?, x'', NULL)", row)
    if not _is_small(transaction, source, first_undone):
        return unfinished
    while restore_some(target.id, transaction):
        pass
    for index in target.indexes:
        while filling.fill_some(index.id, transaction):
            pass
    return target


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
    if _undo_some(transaction, id_, source_id, first_undone, next_undone):
        return True
    transaction.connection.execute("DELETE FROM restores WHERE id = ?", (id_,))
    record = transaction.record(name)
    if record is not None:
        filling.finish(transaction, record)
    return False


def targets_of(view: View, source_id: int) -> list[str]:
    """The tables for which a table, and its journal, are still needed."""
    sql = "SELECT table_name FROM restores WHERE source_id = ?"
    return [name for (name,) in view.connection.execute(sql, (source_id,))]


def first_needed(view: View, source_id: int) -> int | None:
    """The first change of a table that is still to be undone in another one; None: there is none."""
    sql = "SELECT min(first_undone) FROM restores WHERE source_id = ?"
    first: int | None = view.connection.execute(sql, (source_id,)).fetchone()[0]
    return first


def _is_small(view: View, source: TableRecord, first_undone: int) -> bool:
    changes = journal.last_sequence(view, source.id) + 1 - first_undone
    return (
        filling.is_small(*view.counters([source.id])[source.id])
        and filling.is_small(changes, 0)
        and filling.is_small(changes, journal.bytes_before(view, source.id, first_undone))
    )


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
