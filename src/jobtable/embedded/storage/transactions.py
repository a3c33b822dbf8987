"""Reading a consistent state, and changing it: items, indexes, expiry times and the journal in step."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from pydantic_core import to_json

from jobtable.embedded.schema import IndexSchema, TableSchema, has_same_index_key, index_key, is_in_index
from jobtable.embedded.storage import statements
from jobtable.embedded.storage.catalogue import Cache, TableRecord, read_record
from jobtable.embedded.storage.expiry_times import expiry_time
from jobtable.embedded.storage.problems import table_not_found
from jobtable.store.backend import Item
from jobtable.store.sizes import item_size

Entry: TypeAlias = tuple[bytes, int, bytes]
"""The position, the size as DynamoDB measures it, and the whole item as JSON."""

_State: TypeAlias = tuple[Item | None, int]
"""The item of a position, or None, and its size."""


class View:
    """Reads of one consistent state."""

    __slots__ = ("_cache", "_cursors", "connection")

    def __init__(self, connection: sqlite3.Connection, cache: Cache) -> None:
        self.connection = connection
        self._cache = cache
        self._cursors: list[sqlite3.Cursor] = []

    def table(self, name: str) -> TableSchema | None:
        """The table, or None."""
        return self._cache.table(name, self.connection)

    def get(self, table: TableSchema, position: bytes) -> bytes | None:
        """One item as JSON, or None."""
        row = self.sized(table, position)
        return None if row is None else row[0]

    def sized(self, table: TableSchema, position: bytes) -> tuple[bytes, int] | None:
        """One item as JSON, and its size as DynamoDB measures it; or None."""
        row: tuple[bytes, int] | None = self.connection.execute(
            statements.of_table(table.id).get, (position,)
        ).fetchone()
        return row

    def range(
        self, table: TableSchema, index: IndexSchema | None, low: bytes, high: bytes | None, *, reverse: bool = False
    ) -> Iterator[Entry]:
        """Every entry with low <= position < high (None: to the end), in order or backwards, read as it is asked for.

        An entry of an index has the position in the index, and the size and the whole item of the table.
        """
        sql = statements.of_range(table.id, None if index is None else index.id, high is not None, reverse)
        cursor = self.connection.execute(sql, (low,) if high is None else (low, high))
        self._cursors.append(cursor)
        return cursor

    def record(self, name: str) -> TableRecord | None:
        """Everything about a table that is not an item, or None."""
        return read_record(self.connection, name)

    def table_names(self, after: str, limit: int) -> list[str]:
        """Names of tables in order, from the first one after `after`."""
        sql = "SELECT name FROM tables WHERE name > ? ORDER BY name LIMIT ?"
        return [name for (name,) in self.connection.execute(sql, (after, limit))]

    def counters(self, ids: Iterable[int]) -> dict[int, tuple[int, int]]:
        """For each id of a table or index: how many entries it has, and their bytes as DynamoDB measures them."""
        sql = "SELECT items, bytes FROM counters WHERE id = ?"
        return {id_: self.connection.execute(sql, (id_,)).fetchone() for id_ in ids}

    def end_reads(self) -> None:
        """Let go of what unfinished ranges hold."""
        for cursor in self._cursors:
            cursor.close()


class Transaction(View):
    """A View that can change what it sees. It is alone: no other writer of any process is at work meanwhile."""

    __slots__ = ("_counts", "_microseconds", "_now", "catalogue_changed", "has_written")

    def __init__(self, connection: sqlite3.Connection, cache: Cache, now: Callable[[], float]) -> None:
        super().__init__(connection, cache)
        self._now = now
        self._microseconds = 0
        self._counts: dict[int, list[int]] = {}
        self.has_written = False
        self.catalogue_changed = False

    def put(
        self, table: TableSchema, position: bytes, item: Item, size: int, *, old: Item | None, old_size: int
    ) -> None:
        """Store an item; `old` is the one that is there now, with its size, or None and 0."""
        self.has_written = True
        table = self._current(table)
        connection, sql = self.connection, statements.of_table(table.id)
        body = to_json(item)
        self._count(table.id, int(old is None), size - old_size)
        connection.execute(sql.put, (position, size, body))
        self._keep_in_step(table, position, (old, old_size), (item, size))
        if table.is_journaled and old != item:
            self._journal(table, position, None if old is None else to_json(old), body)

    def delete(
        self, table: TableSchema, position: bytes, *, old: Item, old_size: int, by_service: bool = False
    ) -> None:
        """Remove an item; `old` is the one that is there now, with its size. `by_service`: it expired."""
        self.has_written = True
        table = self._current(table)
        connection, sql = self.connection, statements.of_table(table.id)
        self._count(table.id, -1, -old_size)
        connection.execute(sql.delete, (position,))
        self._keep_in_step(table, position, (old, old_size), (None, 0))
        if table.is_journaled:
            self._journal(table, position, to_json(old), None, by_service=by_service)

    def token(self, token: str) -> tuple[bytes, bytes] | None:
        """What `remember` stored under this idempotency token in the last ten minutes: request, response."""
        row: tuple[int, bytes, bytes] | None = self.connection.execute(
            "SELECT time, request, response FROM tokens WHERE token = ?", (token,)
        ).fetchone()
        if row is None or row[0] + _TOKEN_SECONDS <= self._now():
            return None
        return row[1], row[2]

    def remember(self, token: str, request: bytes, response: bytes) -> None:
        """Keep an idempotency token, with what identifies its request and the response, for ten minutes."""
        self.has_written = True
        now = int(self._now())
        self.connection.execute("DELETE FROM tokens WHERE time <= ?", (now - _TOKEN_SECONDS,))
        self.connection.execute("INSERT OR REPLACE INTO tokens VALUES (?, ?, ?, ?)", (token, now, request, response))

    def counts(self) -> dict[int, list[int]]:
        """How the number of entries and their bytes changed, for each id of a table or index."""
        return self._counts

    def counters(self, ids: Iterable[int]) -> dict[int, tuple[int, int]]:
        """As of a View, with what this transaction has changed so far."""
        stored = super().counters(ids)
        for id_, (items, size) in self._counts.items():
            if id_ in stored:
                stored[id_] = (stored[id_][0] + items, stored[id_][1] + size)
        return stored

    def count(self, id_: int, items: int, size: int) -> None:
        """Note that entries came (or went, if negative) outside of put and delete."""
        self._count(id_, items, size)

    def uncount(self, id_: int) -> None:
        """Forget what was noted of a table or index that is gone."""
        self._counts.pop(id_, None)

    def _current(self, table: TableSchema) -> TableSchema:
        """The table as this transaction sees it: the caller may have looked it up before an index was added."""
        current = self._cache.table(table.name, self.connection)
        if current is None or current.id != table.id:
            raise table_not_found()
        return current

    def _count(self, id_: int, items: int, size: int) -> None:
        if items or size:
            counts = self._counts.setdefault(id_, [0, 0])
            counts[0] += items
            counts[1] += size

    def _keep_in_step(self, table: TableSchema, position: bytes, before: _State, after: _State) -> None:
        (old, old_size), (new, new_size) = before, after
        for index in table.indexes.values():
            was_in, is_in = old is not None and is_in_index(index, old), new is not None and is_in_index(index, new)
            if old is None or new is None or not has_same_index_key(index, old, new):
                old_key = index_key(index, old) if old is not None and was_in else None
                new_key = index_key(index, new) if new is not None and is_in else None
                self._move_in_index(index, position, old_key, new_key)
            before_bytes = _entry_size(table, index, old, old_size) if was_in else 0
            after_bytes = _entry_size(table, index, new, new_size) if is_in else 0
            self._count(index.id, is_in - was_in, after_bytes - before_bytes)
        if table.ttl_attribute is not None:
            self._move_expiry(table, position, old, new)

    def _move_in_index(self, index: IndexSchema, position: bytes, before: bytes | None, after: bytes | None) -> None:
        sql = statements.of_index(index.id)
        if before is not None:
            self.connection.execute(sql.delete, (before + position,))
        if after is not None:
            self.connection.execute(sql.put, (after + position, len(after) + 1))

    def _move_expiry(self, table: TableSchema, position: bytes, old: Item | None, new: Item | None) -> None:
        sql = statements.of_expiry(table.id)
        before, after = expiry_time(table.ttl_attribute, old), expiry_time(table.ttl_attribute, new)
        if before == after:
            return
        if before is not None:
            self.connection.execute(sql.delete, (before, position))
        if after is not None:
            self.connection.execute(sql.put, (after, position))

    def _journal(
        self, table: TableSchema, position: bytes, old: bytes | None, new: bytes | None, *, by_service: bool = False
    ) -> None:
        # One time for the whole transaction: what was written together is restored together.
        self._microseconds = self._microseconds or int(self._now() * 1_000_000)
        row = (self._microseconds, position, old, new, by_service)
        self.connection.execute(statements.of_journal(table.id).add, row)


def _entry_size(table: TableSchema, index: IndexSchema, item: Item | None, size: int) -> int:
    """The bytes of an item that an index holds."""
    return size if item is None or index.projection == "ALL" else item_size(table.projected(index, item))


_TOKEN_SECONDS = 600
