"""What a table gets when it has items already, an index or a list of expiry times, is filled from them.

In a small table that happens in the transaction that makes it. In a large one every other writer would wait for seconds
meanwhile, so the upkeep does it bit by bit. What is being filled holds exactly the items up to a position, which is
stored: writers keep it in step up to there, and leave what lies behind alone. So nothing is counted twice, and whoever
finds it after a crash goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from pydantic_core import from_json

from jobtable.embedded.schema import IndexSchema, TableSchema
from jobtable.embedded.storage import statements
from jobtable.embedded.storage.catalogue import TableRecord, replace_record
from jobtable.embedded.storage.expiry_times import expiry_time
from jobtable.embedded.storage.transactions import Transaction
from jobtable.store.backend import Item
from jobtable.store.sizes import item_size

FILLED_AT_ONCE = 20_000
BYTES_FILLED_AT_ONCE = 16 * 1024 * 1024
"""The items of a table that is filled in one transaction, and their bytes, at most: it takes a fifth of a second."""
_ITEMS_A_STEP = 250
_BYTES_A_STEP = 256 * 1024

_Entry = TypeVar("_Entry", bound=Sequence[Any])


def is_small(items: int, size: int) -> bool:
    """Whether others can wait until so many items with so many bytes are filled in."""
    return items <= FILLED_AT_ONCE and size <= BYTES_FILLED_AT_ONCE


def step_of(entries: Iterator[_Entry]) -> list[_Entry]:
    """As many of the entries, whose second field is their size, as others can wait for in one transaction of many."""
    step = []
    total = 0
    for entry in entries:
        step.append(entry)
        total += entry[1]
        if len(step) == _ITEMS_A_STEP or total >= _BYTES_A_STEP:
            break
    return step


def filled_or_begun(transaction: Transaction, record: TableRecord, ids: list[int]) -> TableRecord:
    """Fill new indexes, and a list of expiry times under the id of its table, or let it begin; gives the new record."""
    if is_small(*transaction.counters([record.id])[record.id]):
        for id_ in ids:
            _fill_from(transaction, record.table_schema(), id_, _items(transaction, record))
        return record
    return begun(transaction, record, ids)


def begun(transaction: Transaction, record: TableRecord, ids: list[int]) -> TableRecord:
    """Let new indexes, and a list of expiry times under the id of its table, be filled; gives the new record."""
    for id_ in ids:
        transaction.connection.execute("INSERT INTO fillings VALUES (?, ?, x'')", (id_, record.name))
    return _marked(record, ids, is_filling=True)


def fill_some(id_: int, transaction: Transaction) -> bool:
    """Fill in the items that come next; True: there are more."""
    row = transaction.connection.execute("SELECT table_name, position FROM fillings WHERE id = ?", (id_,)).fetchone()
    record = None if row is None else transaction.record(row[0])
    if row is None or record is None:
        return False
    transaction.has_written = True
    items = _items(transaction, record, after=row[1])
    step = step_of(items)
    _fill_from(transaction, record.table_schema(), id_, step)
    if next(items, None) is None:
        forget(transaction, id_)
        finish(transaction, _marked(record, [id_], is_filling=False))
        return False
    transaction.connection.execute("UPDATE fillings SET position = ? WHERE id = ?", (step[-1][0], id_))
    return True


def finish(transaction: Transaction, record: TableRecord) -> None:
    """Store a table of which a part has become whole. One that is being restored can be used when all its parts are."""
    is_creating = record.is_creating and any(index.is_filling for index in record.indexes)
    replace_record(transaction.connection, record.model_copy(update={"is_creating": is_creating}))
    transaction.catalogue_changed = True


def forget(transaction: Transaction, id_: int) -> None:
    """What was being filled, if it was, is gone."""
    transaction.connection.execute("DELETE FROM fillings WHERE id = ?", (id_,))


def _marked(record: TableRecord, ids: list[int], *, is_filling: bool) -> TableRecord:
    mark = {"is_filling": is_filling}
    indexes = tuple(index.model_copy(update=mark) if index.id in ids else index for index in record.indexes)
    is_filling_expiry = is_filling if record.id in ids else record.is_filling_expiry
    return record.model_copy(update={"indexes": indexes, "is_filling_expiry": is_filling_expiry})


_Items = Iterable[tuple[bytes, int, Item]]
"""Positions, sizes and items."""


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
