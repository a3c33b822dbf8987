"""Checks that everything derived from the items agrees with them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pydantic_core import from_json

from jobtable.embedded.storage.database import Storage
from jobtable.embedded.storage.restoring import BackupRecord, backups_in_order
from jobtable.embedded.storage.views import View, expiry_time
from jobtable.embedded.table_schema import IndexSchema, TableSchema
from jobtable.store.backend import Item
from jobtable.store.sizes import item_size

_MOST_NAMES = 1_000_000


def inconsistencies(storage: Storage) -> list[str]:
    """Return the faults of pages, indexes, expiry times, counters and backups, in words; empty if there are none."""
    with storage.read() as view:
        found = [row for (row,) in view.connection.execute("PRAGMA integrity_check") if row != "ok"]
        for name in view.table_names("", _MOST_NAMES):
            record = view.record(name)
            if record is not None:
                found += _of_table(view, record.table_schema())
        for backup in backups_in_order(view):
            found += _of_backup(view, backup)
        return found


def _of_table(view: View, table: TableSchema) -> Iterator[str]:
    stored = _stored(view, table)
    yield from _of_items(view, table, f"table {table.name}", stored)
    for index in table.indexes.values():
        yield from _of_index(view, table, index, [item for _, _, item in _held(view, index.id, stored)])
    if table.ttl_attribute is not None:
        held = _held(view, table.id, stored)
        times = ((expiry_time(table.ttl_attribute, item), position) for position, _, item in held)
        listed = view.connection.execute(f"SELECT time, position FROM expiry_{table.id}")
        if sorted(time for time in times if time[0] is not None) != sorted(listed.fetchall()):
            yield f"table {table.name}: the list of expiry times differs from the items"


def _of_backup(view: View, backup: BackupRecord) -> Iterator[str]:
    named = f"backup {backup.label} of table {backup.table.name}"
    table = replace(backup.table.table_schema(), id=backup.id)
    stored = _stored(view, table)
    yield from _of_items(view, table, named, stored)
    if not backup.is_creating and (len(stored), _size(stored)) != (backup.items, backup.size):
        yield f"{named}: it had {backup.items} items of {backup.size} bytes, there are {len(stored)}"


def _of_items(view: View, table: TableSchema, named: str, stored: list[tuple[bytes, int, Item]]) -> Iterator[str]:
    for position, size, item in stored:
        if position != table.position(item) or size != item_size(item):
            yield f"{named}: the item {table.key_of(item)} has a wrong position or size"
    if view.counters([table.id])[table.id] != (len(stored), _size(stored)):
        yield f"{named}: the counters say {view.counters([table.id])}, there are {len(stored)} items"


def _stored(view: View, table: TableSchema) -> list[tuple[bytes, int, Item]]:
    return [(position, size, from_json(item)) for position, size, item in view.entries(table, None)]


def _size(stored: list[tuple[bytes, int, Item]]) -> int:
    return sum(size for _, size, _ in stored)


def _held(view: View, id_: int, stored: list[tuple[bytes, int, Item]]) -> list[tuple[bytes, int, Item]]:
    """Return the items that an index, or a list of expiry times, holds so far."""
    filled_to = view.filled_to(id_)
    return stored if filled_to is None else [entry for entry in stored if entry[0] <= filled_to]


def _of_index(view: View, table: TableSchema, index: IndexSchema, items: list[Item]) -> Iterator[str]:
    rebuilt = {}
    for item in items:
        place = table.index_position(index, item)
        if place is not None:
            rebuilt[place] = item
    listed = {position: from_json(item) for position, _, item in view.entries(table, index)}
    (entries,) = view.connection.execute(f"SELECT count(*) FROM index_{index.id}").fetchone()
    if listed != rebuilt or entries != len(rebuilt):
        yield f"index {table.name}/{index.name}: {entries} entries differ from a rebuild with {len(rebuilt)}"
    size = sum(item_size(table.projected(index, item)) for item in rebuilt.values())
    if view.counters([index.id])[index.id] != (len(rebuilt), size):
        yield f"index {table.name}/{index.name}: the counters say {view.counters([index.id])[index.id]}"
