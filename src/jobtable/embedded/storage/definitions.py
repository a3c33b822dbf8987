"""Changes of the catalogue, and of the SQLite tables that follow from them."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic_core import from_json

from jobtable.embedded.schema import TableSchema
from jobtable.embedded.storage import statements
from jobtable.embedded.storage.catalogue import IndexRecord, TableRecord
from jobtable.embedded.storage.expiry_times import expiry_time
from jobtable.embedded.storage.transactions import Transaction
from jobtable.store.backend import Item
from jobtable.store.sizes import item_size

_DROPPED_AT_ONCE = 20_000


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
    connection = transaction.connection
    connection.execute(statements.of_table(record.id).create)
    connection.execute("INSERT INTO counters VALUES (?, 0, 0)", (record.id,))
    for index in record.indexes:
        _create_index(transaction, index)
    row = (record.id, record.name, record.model_dump_json().encode())
    connection.execute("INSERT INTO tables VALUES (?, ?, ?)", row)
    _follow_journal(transaction, record)


def change_table(transaction: Transaction, before: TableRecord, after: TableRecord) -> None:
    """Store the new description of a table; new indexes and a new TTL attribute are filled from its items."""
    _changing(transaction)
    connection = transaction.connection
    row = (after.model_dump_json().encode(), after.id)
    connection.execute("UPDATE tables SET record = ? WHERE id = ?", row)
    kept = {index.id for index in after.indexes}
    for index in before.indexes:
        if index.id not in kept:
            _drop_index(transaction, index)
    had = {index.id for index in before.indexes}
    for index in after.indexes:
        if index.id not in had:
            _create_index(transaction, index)
            _fill_index(transaction, after.table_schema(), index)
    if before.ttl_attribute != after.ttl_attribute:
        connection.execute(statements.of_expiry(after.id).drop)
        if after.ttl_attribute is not None:
            connection.execute(statements.of_expiry(after.id).create)
            _fill_expiry(transaction, after.table_schema())
    _follow_journal(transaction, after)


def fill_indexes(transaction: Transaction, record: TableRecord) -> None:
    """Fill the indexes of a new table from items that were stored without them."""
    for index in record.indexes:
        _fill_index(transaction, record.table_schema(), index)


def drop_table(transaction: Transaction, record: TableRecord) -> None:
    """Remove a table with all that belongs to it but the journal: its stream can be read on until it is trimmed."""
    _changing(transaction)
    connection = transaction.connection
    for index in record.indexes:
        _drop_index(transaction, index)
    connection.execute(statements.of_expiry(record.id).drop)
    _drop_entries(transaction, record.id, statements.of_table(record.id).drop)
    connection.execute("DELETE FROM tables WHERE id = ?", (record.id,))


def _changing(transaction: Transaction) -> None:
    transaction.has_written = True
    transaction.catalogue_changed = True


def _create_index(transaction: Transaction, index: IndexRecord) -> None:
    transaction.connection.execute(statements.of_index(index.id).create)
    transaction.connection.execute("INSERT INTO counters VALUES (?, 0, 0)", (index.id,))


def _drop_index(transaction: Transaction, index: IndexRecord) -> None:
    _drop_entries(transaction, index.id, statements.of_index(index.id).drop)


def _drop_entries(transaction: Transaction, id_: int, drop: str) -> None:
    """Drop the SQLite table of a table or index; a large one is left to the upkeep, which removes it bit by bit.

    Nothing leads to it any more: its id is gone from the catalogue and from the counters.
    """
    (entries, _) = transaction.counters([id_])[id_]
    if entries <= _DROPPED_AT_ONCE:
        transaction.connection.execute(drop)
    transaction.connection.execute("DELETE FROM counters WHERE id = ?", (id_,))
    transaction.uncount(id_)


def _follow_journal(transaction: Transaction, record: TableRecord) -> None:
    if record.stream is not None or record.recovery is not None:
        transaction.connection.execute(statements.of_journal(record.id).create)


def _fill_index(transaction: Transaction, table: TableSchema, record: IndexRecord) -> None:
    index = table.indexes[record.name]
    entries = total = 0

    def rows() -> Iterator[tuple[bytes, int]]:
        nonlocal entries, total
        for position, size, item in _items(transaction, table):
            place = table.index_position(index, item)
            if place is not None:
                entries += 1
                total += size if index.projection == "ALL" else item_size(table.projected(index, item))
                yield place, len(place) - len(position) + 1

    transaction.connection.executemany(statements.of_index(index.id).put, rows())
    transaction.count(index.id, entries, total)


def _fill_expiry(transaction: Transaction, table: TableSchema) -> None:
    times = ((expiry_time(table.ttl_attribute, item), position) for position, _, item in _items(transaction, table))
    rows = (row for row in times if row[0] is not None)
    transaction.connection.executemany(statements.of_expiry(table.id).put, rows)


def _items(transaction: Transaction, table: TableSchema) -> Iterator[tuple[bytes, int, Item]]:
    for position, size, item in transaction.entries(table, None):
        yield position, size, from_json(item)
