"""Reading a consistent state, and changing it: items, indexes, expiry times and the journal in step."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import zip_longest
from typing import NamedTuple, TypeAlias

from pydantic_core import from_json, to_json

from jobtable.embedded.storage import statements
from jobtable.embedded.storage.connections import table_not_found
from jobtable.embedded.storage.table_catalogue import Cache, TableRecord, read_record
from jobtable.embedded.table_schema import IndexSchema, IndexValues, TableSchema
from jobtable.store.backend import EncodedItem, Item
from jobtable.store.sizes import item_size

_LATEST = 2**53  # beyond every date; larger numbers would not fit into SQLite's integers


def expiry_time(attribute: str | None, item: Item | None) -> int | None:
    """Return the second in which an item expires; None without a number, or beyond every date."""
    if attribute is None or item is None:
        return None
    text = item.get(attribute, {}).get("N")
    if text is None:
        return None
    seconds = float(text)
    return int(seconds) if 0 < seconds < _LATEST else None


Entry: TypeAlias = tuple[bytes, int, bytes]
"""The position, the size as DynamoDB measures it, and the whole item as JSON."""


class Sized(NamedTuple):
    """An item with its size as DynamoDB measures it; NO_ITEM where there is none."""

    item: Item | None  # all of it, or the known attributes of an EncodedItem
    size: int
    body: bytes | None = None  # the item as JSON, if known


NO_ITEM = Sized(None, 0)


IndexChange: TypeAlias = tuple[IndexSchema, IndexValues | None, IndexValues | None, int, int, bool]
"""The effect of a write on one index: the key of the item's entry before and after, None without one; its size before
and after; and whether it stays the same, with everything that the index holds of the item.
"""


class View:
    """Reads of one consistent state."""

    __slots__ = ("_cache", "connection", "cursors")

    def __init__(self, connection: sqlite3.Connection, cache: Cache) -> None:
        self.connection = connection
        self._cache = cache
        self.cursors: list[sqlite3.Cursor] = []  # ranges whose reading has begun

    def table(self, name: str) -> TableSchema | None:
        """Return the table, or None."""
        return self._cache.table(name, self.connection)

    def sized(self, table: TableSchema, position: bytes) -> tuple[bytes, int] | None:
        """Return one item as JSON and its size as DynamoDB measures it, or None."""
        sql = statements.of_table(table.id).get
        row: tuple[bytes, int] | None = self.connection.execute(sql, (position,)).fetchone()
        return row

    def read(self, table: TableSchema, position: bytes) -> Sized:
        """Return the item at a position, or NO_ITEM."""
        row = self.connection.execute(statements.of_table(table.id).get, (position,)).fetchone()
        return NO_ITEM if row is None else Sized(from_json(row[0], cache_strings="keys"), row[1], row[0])

    def read_all(self, table: TableSchema, positions: Sequence[bytes]) -> dict[bytes, Sized]:
        """Return the existing items of several positions, by these; three times as fast as reading each."""
        found: dict[bytes, Sized] = {}
        for first in range(0, len(positions), statements.MOST_AT_ONCE):
            some = positions[first : first + statements.MOST_AT_ONCE]
            rows = self.connection.execute(statements.of_several(table.id, len(some)), some).fetchall()
            for position, body, size in rows:
                found[position] = Sized(from_json(body, cache_strings="keys"), size, body)
        return found

    def range(
        self, table: TableSchema, index: IndexSchema | None, low: bytes, high: bytes | None, *, reverse: bool = False
    ) -> Iterator[tuple[int, bytes]]:
        """Iterate over size and item of every entry with low <= position < high (None: to the end), in either order.

        They are read on demand. Entries of an index have the size and the whole item of the table.
        """
        sql = statements.of_range(table.id, None if index is None else index.id, high is not None, reverse)
        cursor = self.connection.execute(sql, (low,) if high is None else (low, high))
        self.cursors.append(cursor)
        return cursor

    def entries(self, table: TableSchema, index: IndexSchema | None, after: bytes = b"") -> Iterator[Entry]:
        """Iterate over every entry after a position, with its own position, in order, read on demand."""
        sql = statements.of_entries(table.id, None if index is None else index.id)
        cursor = self.connection.execute(sql, (after,))
        self.cursors.append(cursor)
        return cursor

    def record(self, name: str) -> TableRecord | None:
        """Return everything about a table that is not an item, or None."""
        return read_record(self.connection, name)

    def table_names(self, after: str, limit: int) -> list[str]:
        """Return names of tables in order, from the first one after `after`."""
        sql = "SELECT name FROM tables WHERE name > ? ORDER BY name LIMIT ?"
        return [name for (name,) in self.connection.execute(sql, (after, limit))]

    def counters(self, ids: Iterable[int]) -> dict[int, tuple[int, int]]:
        """Return the number of entries of each table or index, and their bytes as DynamoDB measures them."""
        sql = "SELECT items, bytes FROM counters WHERE id = ?"
        return {id_: self.connection.execute(sql, (id_,)).fetchone() for id_ in ids}

    def filled_to(self, id_: int) -> bytes | None:
        """Return the last table position that an unfinished index or list of expiry times holds; None: it holds all."""
        row = self.connection.execute("SELECT position FROM fillings WHERE id = ?", (id_,)).fetchone()
        return None if row is None else row[0]

    def end_reads(self) -> None:
        """Close unfinished ranges."""
        for cursor in self.cursors:
            cursor.close()
        self.cursors.clear()


class Transaction(View):
    """A View that can change what it sees. No other writer of any process runs at the same time.

    Actions that share a commit use it one after the other. `has_written` is about the last one.
    """

    __slots__ = (
        "_counts",
        "_execute",
        "_microseconds",
        "_now",
        "_rows",
        "catalogue_changed",
        "has_remembered",
        "has_written",
    )

    def __init__(self, cursor: sqlite3.Cursor, cache: Cache, now: Callable[[], float]) -> None:
        # What View's own would set: after a wait for the disk, its call takes a microsecond.
        self.connection = cursor.connection
        self._cache = cache
        self.cursors = []
        self._execute = cursor.execute  # for statements without rows: a connection makes a cursor for each
        self._now = now
        self._microseconds = 0
        self._counts: defaultdict[int, list[int]] = defaultdict(_NO_CHANGE)
        self._rows: defaultdict[str, list[tuple[object, ...]]] | None = None
        self.has_written = False
        self.has_remembered = False
        self.catalogue_changed = False

    def read(self, table: TableSchema, position: bytes) -> Sized:
        """Read as a View does. A large table that was deleted meanwhile still has items, so that is checked first."""
        return super().read(self._current(table), position)

    def read_all(self, table: TableSchema, positions: Sequence[bytes]) -> dict[bytes, Sized]:
        """Read as a View does, after the same check."""
        return super().read_all(self._current(table), positions)

    def put(self, table: TableSchema, position: bytes, new: Sized, old: Sized) -> list[IndexChange]:
        """Store an item in place of `old`, the stored one; return the changes of the entries of each index."""
        if self._cache.tables.get(table.name) is not table:
            table = self._current(table)
            new = _seen_by(table, new)
        body = new.body or to_json(new.item)
        self._write(statements.of_table(table.id).put, (position, new.size, body))
        return self._follow(table, position, old, new, body)

    def add(self, table: TableSchema, position: bytes, new: Sized) -> list[IndexChange] | None:
        """Store an item where there is none, and return what `put` returns; None, and nothing done, if there is one."""
        if self._cache.tables.get(table.name) is not table:
            table = self._current(table)
            new = _seen_by(table, new)
        body = new.body or to_json(new.item)
        row = (position, new.size, body)
        if not self._execute(statements.of_table(table.id).add, row).rowcount:
            return None
        self.has_written = True
        return self._follow(table, position, NO_ITEM, new, body)

    def delete(self, table: TableSchema, position: bytes, old: Sized, *, by_service: bool = False) -> list[IndexChange]:
        """Delete the stored item, `old`; return the changes of its entries. `by_service`: it expired."""
        table = self._current(table)
        self._write(statements.of_table(table.id).delete, (position,))
        return self._follow(table, position, old, NO_ITEM, None, by_service=by_service)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Store what is put and deleted in this block at its end, which is faster. None of it can be read before."""
        rows: defaultdict[str, list[tuple[object, ...]]] = defaultdict(list)
        self.has_written = True  # from the beginning: a failure within must undo the counts
        self._rows = rows
        try:
            yield
        finally:
            self._rows = None
        for sql, values in rows.items():
            self.connection.executemany(sql, values)

    def token(self, token: str) -> tuple[bytes, bytes] | None:
        """Return what `remember` stored under this idempotency token in the last ten minutes: request, response."""
        row: tuple[int, bytes, bytes] | None = self.connection.execute(
            "SELECT time, request, response FROM tokens WHERE token = ?", (token,)
        ).fetchone()
        if row is None or row[0] + _TOKEN_SECONDS <= self._now():
            return None
        return row[1], row[2]

    def remember(self, token: str, request: bytes, response: bytes) -> None:
        """Keep an idempotency token, with what identifies its request and the response, for ten minutes."""
        self.has_written = self.has_remembered = True
        row = (token, int(self._now()), request, response)
        self.connection.execute("INSERT OR REPLACE INTO tokens VALUES (?, ?, ?, ?)", row)

    def forget_tokens(self) -> bool:
        """Remove some of what was remembered more than ten minutes ago; True if there is more."""
        old = "SELECT token FROM tokens WHERE time <= ? ORDER BY time LIMIT ?"
        bounds = (int(self._now()) - _TOKEN_SECONDS, _FORGOTTEN_AT_ONCE)
        sql = f"DELETE FROM tokens WHERE token IN ({old})"  # noqa: S608 - it has no foreign text
        return self.connection.execute(sql, bounds).rowcount == _FORGOTTEN_AT_ONCE

    def store_counts(self) -> None:
        """Store the changes of the counters; called once, at the end."""
        for id_, (items, size) in self._counts.items():
            if items or size:
                self._execute(_ADD_TO_COUNTERS, (items, size, id_))

    def forget_schemas(self) -> None:
        """Read the schemas of tables again from here on: an action has changed the catalogue."""
        self._cache = Cache(b"")

    def counters(self, ids: Iterable[int]) -> dict[int, tuple[int, int]]:
        """Count as a View does, with the changes of this transaction so far."""
        stored = super().counters(ids)
        for id_, (items, size) in self._counts.items():
            if id_ in stored:
                stored[id_] = (stored[id_][0] + items, stored[id_][1] + size)
        return stored

    def count(self, id_: int, items: int, size: int) -> None:
        """Note that entries came (or went, if negative) outside of put and delete."""
        counts = self._counts[id_]
        counts[0] += items
        counts[1] += size

    def uncount(self, id_: int) -> None:
        """Forget the counts of a dropped table or index."""
        self._counts.pop(id_, None)

    def _current(self, table: TableSchema) -> TableSchema:
        """Return the table as this transaction sees it: the caller may have looked it up before an index was added."""
        current = self._cache.table(table.name, self.connection)
        if current is None or current.id != table.id:
            raise table_not_found()
        return current

    def _write(self, sql: str, row: tuple[object, ...]) -> None:
        if self._rows is None:
            self.has_written = True
            self._execute(sql, row)
        else:
            self._rows[sql].append(row)

    def _follow(
        self,
        table: TableSchema,
        position: bytes,
        old: Sized,
        new: Sized,
        body: bytes | None,
        *,
        by_service: bool = False,
    ) -> list[IndexChange]:
        """Update everything that follows from a table in which one item, or none, has replaced another."""
        counts = self._counts[table.id]
        counts[0] += (new.item is not None) - (old.item is not None)
        counts[1] += new.size - old.size
        ttl = table.ttl_attribute
        if ttl is not None and (ttl in (old.item or ()) or ttl in (new.item or ())):
            self._move_expiry(table, position, old.item, new.item)
        if not (table.indexes or table.is_journaled):
            return []
        is_same = old.size == new.size and _is_same(old, new)
        if table.is_journaled and not is_same:
            self._journal(table, position, old, body, by_service=by_service)
        return self._follow_in_indexes(table, position, old, new, is_same=is_same)

    def _follow_in_indexes(
        self, table: TableSchema, position: bytes, old: Sized, new: Sized, *, is_same: bool
    ) -> list[IndexChange]:
        changes = index_changes(table, old, new, is_same=is_same)
        write = self._write
        for index, before, after, size_before, size_after, _ in changes:
            if index.is_filling and not self._is_filled(index.id, position):
                continue
            if before != after:
                sql = statements.of_index(index.id)
                if before is not None:
                    write(sql.delete, (index.position(before) + position,))
                if after is not None:
                    place = index.position(after)
                    write(sql.put, (place + position, len(place) + 1))
            counts = self._counts[index.id]
            counts[0] += (after is not None) - (before is not None)
            counts[1] += size_after - size_before
        return changes

    def _is_filled(self, id_: int, position: bytes) -> bool:
        """Whether an unfinished index or list holds this position. Later positions are filled in as they are then."""
        filled_to = self.filled_to(id_)
        return filled_to is None or position <= filled_to

    def _move_expiry(self, table: TableSchema, position: bytes, old: Item | None, new: Item | None) -> None:
        before, after = expiry_time(table.ttl_attribute, old), expiry_time(table.ttl_attribute, new)
        if before == after or (table.is_filling_expiry and not self._is_filled(table.id, position)):
            return
        sql = statements.of_expiry(table.id)
        if before is not None:
            self._write(sql.delete, (before, position))
        if after is not None:
            self._write(sql.put, (after, position))

    def _journal(self, table: TableSchema, position: bytes, old: Sized, new: bytes | None, *, by_service: bool) -> None:
        # One time for the whole commit, so that a restore never splits it.
        self._microseconds = self._microseconds or int(self._now() * 1_000_000)
        before = to_json(old.item) if old.body is None and old.item is not None else old.body
        row = (self._microseconds, position, before, new, by_service)
        self._write(statements.of_journal(table.id).add, row)


def _seen_by(table: TableSchema, new: Sized) -> Sized:
    """Return an item prepared for an older schema, with all attributes that the present one may use."""
    if type(new.item) is EncodedItem and new.item.lacks(table.looked_at):
        return new._replace(item=new.item.whole())
    return new


def _is_same(old: Sized, new: Sized) -> bool:
    """Whether two items of one size are equal, whatever the order of their attributes."""
    if type(new.item) is EncodedItem:
        return old.body == new.body or old.item == new.item.whole()
    return old.item == new.item


def index_changes(table: TableSchema, old: Sized, new: Sized, *, is_same: bool) -> list[IndexChange]:
    """Return the effects of replacing one item by another, or by the same, on the indexes that hold one of them."""
    befores = _IN_NONE if old.item is None else table.index_values(old.item)
    afters = _IN_NONE if new.item is None else table.index_values(new.item)
    old_size, new_size = old.size, new.size
    changes: list[IndexChange] = []
    for index, before, after in zip_longest(table.indexes.values(), befores, afters):
        if before is None and after is None:
            continue
        if index.projection == "ALL":
            size_before, size_after = old_size if before else 0, new_size if after else 0
            changes.append((index, before, after, size_before, size_after, is_same))
        else:
            held_before = table.projected(index, old.item) if old.item is not None and before else {}
            held_after = table.projected(index, new.item) if new.item is not None and after else {}
            sizes = item_size(held_before), item_size(held_after)
            changes.append((index, before, after, *sizes, held_before == held_after))
    return changes


_ADD_TO_COUNTERS = "UPDATE counters SET items = items + ?, bytes = bytes + ? WHERE id = ?"
_NO_CHANGE: Callable[[], list[int]] = partial(list, (0, 0))
_IN_NONE: tuple[IndexValues | None, ...] = ()
_TOKEN_SECONDS = 600
_FORGOTTEN_AT_ONCE = 1000
"""More than share one commit, so that all are removed in time however many there are."""
