"""Changes of the catalogue, and of the SQLite tables that follow from them."""

from __future__ import annotations

from jobtable.embedded.storage import filling, statements
from jobtable.embedded.storage.catalogue import IndexRecord, TableRecord, replace_record
from jobtable.embedded.storage.transactions import Transaction

_DROPPED_AT_ONCE = 20_000
_BYTES_DROPPED_AT_ONCE = 16 * 1024 * 1024


def new_id(transaction: Transaction) -> int:
    """A number that no table and no index ever had."""
    transaction.has_written = True
    connection = transaction.connection
    connection.execute("UPDATE meta SET value = value + 1 WHERE name = 'last_id'")
    (id_,) = connection.execute("SELECT value FROM meta WHERE name = 'last_id'").fetchone()
    return int(id_)


def create_table(transaction: Transaction, record: TableRecord) -> None:
    """Store a new table, with its indexes, empty."""
    _changing(transaction)
    create_items(transaction, record.id)
    for index in record.indexes:
        _create_index(transaction, index)
    row = (record.id, record.name, record.model_dump_json().encode())
    transaction.connection.execute("INSERT INTO tables VALUES (?, ?, ?)", row)
    _follow_journal(transaction, record)


def create_items(transaction: Transaction, id_: int) -> None:
    """Make room for the items of a table or of a backup."""
    transaction.connection.execute(statements.of_table(id_).create)
    transaction.connection.execute("INSERT INTO counters VALUES (?, 0, 0)", (id_,))


def drop_items(transaction: Transaction, id_: int) -> None:
    """Remove the items of a table or of a backup; a large one is left to the upkeep."""
    _drop_entries(transaction, id_, statements.of_table(id_).drop)


def change_table(transaction: Transaction, before: TableRecord, after: TableRecord) -> TableRecord:
    """Store the new description of a table; new indexes and a new TTL attribute are filled from its items.

    Gives what was stored: of a large table they are filled later, bit by bit.
    """
    _changing(transaction)
    had, kept = {index.id for index in before.indexes}, {index.id for index in after.indexes}
    for index in before.indexes:
        if index.id not in kept:
            _drop_index(transaction, index)
    new = [index for index in after.indexes if index.id not in had]
    for index in new:
        _create_index(transaction, index)
    to_fill = [index.id for index in new]
    if before.ttl_attribute != after.ttl_attribute:
        _drop_expiry(transaction, after.id)
        after = after.model_copy(update={"is_filling_expiry": False})
        if after.ttl_attribute is not None:
            transaction.connection.execute(statements.of_expiry(after.id).create)
            to_fill.append(after.id)
    if to_fill:
        after = filling.filled_or_begun(transaction, after, to_fill)
    replace_record(transaction.connection, after)
    _follow_journal(transaction, after)
    return after


def drop_table(transaction: Transaction, record: TableRecord, *, keeps_items: bool = False) -> None:
    """Remove a table with all that belongs to it but the journal: its stream can be read on until it is trimmed.

    `keeps_items`: they are those of a backup from now on, or are still being copied to one.
    """
    _changing(transaction)
    for index in record.indexes:
        _drop_index(transaction, index)
    _drop_expiry(transaction, record.id)
    if not keeps_items:
        drop_items(transaction, record.id)
    transaction.connection.execute("DELETE FROM tables WHERE id = ?", (record.id,))


def _changing(transaction: Transaction) -> None:
    transaction.has_written = True
    transaction.catalogue_changed = True


def _create_index(transaction: Transaction, index: IndexRecord) -> None:
    transaction.connection.execute(statements.of_index(index.id).create)
    transaction.connection.execute("INSERT INTO counters VALUES (?, 0, 0)", (index.id,))


def _drop_index(transaction: Transaction, index: IndexRecord) -> None:
    _drop_entries(transaction, index.id, statements.of_index(index.id).drop)


def _drop_expiry(transaction: Transaction, table_id: int) -> None:
    transaction.connection.execute(statements.of_expiry(table_id).drop)
    filling.forget(transaction, table_id)


def _drop_entries(transaction: Transaction, id_: int, drop: str) -> None:
    """Drop the SQLite table of a table or index; a large one is left to the upkeep, which removes it bit by bit.

    Nothing leads to it any more: its id is gone from the catalogue and from the counters.
    """
    (entries, size) = transaction.counters([id_])[id_]
    if entries <= _DROPPED_AT_ONCE and size <= _BYTES_DROPPED_AT_ONCE:
        transaction.connection.execute(drop)
    transaction.connection.execute("DELETE FROM counters WHERE id = ?", (id_,))
    transaction.uncount(id_)
    filling.forget(transaction, id_)


def _follow_journal(transaction: Transaction, record: TableRecord) -> None:
    if record.is_journaled:
        transaction.connection.execute(statements.of_journal(record.id).create)
