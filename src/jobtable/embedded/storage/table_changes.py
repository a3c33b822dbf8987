"""Changes of the catalogue and of the SQLite tables that follow from them; new indexes and expiry lists are filled.

A small table is filled in the transaction that makes the index. For a large one every other writer would wait for
seconds, so the upkeep fills it in steps. What is being filled holds exactly the items up to a stored position: writers
keep it in step up to there and ignore what lies after it. So nothing is counted twice, and a crash loses no progress.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from pydantic_core import from_json

from jobtable.embedded.storage import statements
from jobtable.embedded.storage.table_catalogue import IndexRecord, TableRecord, replace_record
from jobtable.embedded.storage.views import Transaction, expiry_time
from jobtable.embedded.table_schema import IndexSchema, TableSchema
from jobtable.store.backend import Item
from jobtable.store.sizes import item_size

FILLED_AT_ONCE = 20_000
BYTES_FILLED_AT_ONCE = 16 * 1024 * 1024
"""Most items of a table that is filled in one transaction, and their bytes: it takes a fifth of a second."""
_ITEMS_A_STEP = 250
_BYTES_A_STEP = 256 * 1024

_Entry = TypeVar("_Entry", bound=Sequence[Any])


def is_small(items: int, size: int) -> bool:
    """Whether others can wait until so many items with so many bytes are filled in."""
    return items <= FILLED_AT_ONCE and size <= BYTES_FILLED_AT_ONCE


def step_of(entries: Iterable[_Entry], most: int | None = None, most_bytes: int | None = None) -> list[_Entry]:
    """Return as many entries, whose second field is their size, as others can wait for in one transaction of many."""
    step = []
    total = 0
    for entry in entries:
        step.append(entry)
        total += entry[1]
        if len(step) == (most or _ITEMS_A_STEP) or total >= (most_bytes or _BYTES_A_STEP):
            break
    return step


def _filled_or_begun(transaction: Transaction, record: TableRecord, ids: list[int]) -> TableRecord:
    """Fill new indexes, and a list of expiry times under the id of its table, or start to; return the new record."""
    if is_small(*transaction.counters([record.id])[record.id]):
        for id_ in ids:
            _fill_from(transaction, record.table_schema(), id_, _items(transaction, record))
        return record
    return begin_filling(transaction, record, ids)


def begin_filling(transaction: Transaction, record: TableRecord, ids: list[int]) -> TableRecord:
    """Start to fill new indexes, and a list of expiry times under the id of its table; return the new record."""
    for id_ in ids:
        transaction.connection.execute("INSERT INTO fillings VALUES (?, ?, x'')", (id_, record.name))
    return _marked(record, ids, is_filling=True)


def fill_some(id_: int, transaction: Transaction) -> bool:
    """Fill in the next items; True if there are more."""
    row = transaction.connection.execute("SELECT table_name, position FROM fillings WHERE id = ?", (id_,)).fetchone()
    record = None if row is None else transaction.record(row[0])
    if row is None or record is None:
        return False
    transaction.has_written = True
    items = _items(transaction, record, after=row[1])
    step = step_of(items)
    _fill_from(transaction, record.table_schema(), id_, step)
    if next(items, None) is None:
        _forget_filling(transaction, id_)
        finish_filling(transaction, _marked(record, [id_], is_filling=False))
        return False
    transaction.connection.execute("UPDATE fillings SET position = ? WHERE id = ?", (step[-1][0], id_))
    return True


def finish_filling(transaction: Transaction, record: TableRecord) -> None:
    """Store a table of which a part is complete. One that is being restored becomes usable when all its parts are."""
    is_creating = record.is_creating and any(index.is_filling for index in record.indexes)
    replace_record(transaction.connection, record.model_copy(update={"is_creating": is_creating}))
    transaction.catalogue_changed = True


def _forget_filling(transaction: Transaction, id_: int) -> None:
    """Remove the progress of a filling, if there is one."""
    transaction.connection.execute("DELETE FROM fillings WHERE id = ?", (id_,))


def _marked(record: TableRecord, ids: list[int], *, is_filling: bool) -> TableRecord:
    mark = {"is_filling": is_filling}
    indexes = tuple(index.model_copy(update=mark) if index.id in ids else index for index in record.indexes)
    is_filling_expiry = is_filling if record.id in ids else record.is_filling_expiry
    return record.model_copy(update={"indexes": indexes, "is_filling_expiry": is_filling_expiry})


_Items = Iterable[tuple[bytes, int, Item]]  # positions, sizes and items


def _items(transaction: Transaction, record: TableRecord, after: bytes = b"") -> Iterator[tuple[bytes, int, Item]]:
    for position, size, item in transaction.entries(record.table_schema(), None, after):
        yield position, size, from_json(item)


def _fill_from(transaction: Transaction, table: TableSchema, id_: int, items: _Items) -> None:
    index = next((index for index in table.indexes.values() if index.id == id_), None)
    if index is not None:
        _fill_index(transaction, table, index, items)
        return
    times = ((expiry_time(table.ttl_attribute, item), position) for position, _, item in items)
    rows = (row for row in times if row[0] is not None)
    transaction.connection.executemany(statements.of_expiry(table.id).put, rows)


def _fill_index(transaction: Transaction, table: TableSchema, index: IndexSchema, items: _Items) -> None:
    entries = total = 0

    def rows() -> Iterator[tuple[bytes, int]]:
        nonlocal entries, total
        for position, size, item in items:
            place = table.index_position(index, item)
            if place is not None:
                entries += 1
                total += size if index.projection == "ALL" else item_size(table.projected(index, item))
                yield place, len(place) - len(position) + 1

    transaction.connection.executemany(statements.of_index(index.id).put, rows())
    transaction.count(index.id, entries, total)


_DROPPED_AT_ONCE = 20_000
_BYTES_DROPPED_AT_ONCE = 16 * 1024 * 1024


def new_id(transaction: Transaction) -> int:
    """Return a number that no table or index ever had."""
    transaction.has_written = True
    connection = transaction.connection
    connection.execute("UPDATE meta SET value = value + 1 WHERE name = 'last_id'")
    (id_,) = connection.execute("SELECT value FROM meta WHERE name = 'last_id'").fetchone()
    return int(id_)


def create_table(transaction: Transaction, record: TableRecord) -> None:
    """Store a new, empty table with its indexes."""
    _changing(transaction)
    create_items(transaction, record.id)
    for index in record.indexes:
        _create_index(transaction, index)
    row = (record.id, record.name, record.model_dump_json().encode())
    transaction.connection.execute("INSERT INTO tables VALUES (?, ?, ?)", row)
    _follow_journal(transaction, record)


def create_items(transaction: Transaction, id_: int) -> None:
    """Create the SQLite table for the items of a table or backup."""
    transaction.connection.execute(statements.of_table(id_).create)
    transaction.connection.execute("INSERT INTO counters VALUES (?, 0, 0)", (id_,))


def drop_items(transaction: Transaction, id_: int) -> None:
    """Remove the items of a table or of a backup; a large one is left to the upkeep."""
    _drop_entries(transaction, id_, statements.of_table(id_).drop)


def change_table(transaction: Transaction, before: TableRecord, after: TableRecord) -> TableRecord:
    """Store the new description of a table, and fill new indexes and a new TTL attribute from its items.

    Return the stored record: those of a large table are filled later, in steps.
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
        after = _filled_or_begun(transaction, after, to_fill)
    replace_record(transaction.connection, after)
    _follow_journal(transaction, after)
    return after


def drop_table(transaction: Transaction, record: TableRecord, *, keeps_items: bool = False) -> None:
    """Remove a table and all that belongs to it except the journal: its stream stays readable until it is trimmed.

    `keeps_items`: a backup owns them from now on, or they are still being copied to one.
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
    _forget_filling(transaction, table_id)


def _drop_entries(transaction: Transaction, id_: int, drop: str) -> None:
    """Drop the SQLite table of a table or index; the upkeep removes a large one in steps.

    Nothing leads to it any more: its id is no longer in the catalogue and the counters.
    """
    (entries, size) = transaction.counters([id_])[id_]
    if entries <= _DROPPED_AT_ONCE and size <= _BYTES_DROPPED_AT_ONCE:
        transaction.connection.execute(drop)
    transaction.connection.execute("DELETE FROM counters WHERE id = ?", (id_,))
    transaction.uncount(id_)
    _forget_filling(transaction, id_)


def _follow_journal(transaction: Transaction, record: TableRecord) -> None:
    if record.is_journaled:
        transaction.connection.execute(statements.of_journal(record.id).create)
