"""The SQL of each table and index. Their names carry ids, so a statement can never meet a later table of that name."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

MOST_AT_ONCE = 32
"""Positions in one statement. Each number of them is a statement of its own, which a connection keeps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statements:
    """The SQL of one SQLite table; empty where it has no such statement."""

    create: str
    drop: str
    get: str = ""
    add: str = ""
    put: str = ""
    delete: str = ""
    due: str = ""


# The caches are larger than the number of tables that one process uses at a time; a miss only costs time.
@lru_cache(maxsize=4096)
def of_table(table_id: int) -> Statements:
    """Items of one table: position, size as DynamoDB measures it, the item as JSON."""
    name = f"items_{table_id}"
    return Statements(
        create=f"CREATE TABLE {name} (position BLOB PRIMARY KEY, size INTEGER NOT NULL, item BLOB NOT NULL)"
        " WITHOUT ROWID",
        drop=f"DROP TABLE {name}",
        get=f"SELECT item, size FROM {name} WHERE position = ?",  # noqa: S608 - the name is made from a number
        add=f"INSERT OR IGNORE INTO {name} VALUES (?, ?, ?)",  # noqa: S608 - as above
        put=f"INSERT OR REPLACE INTO {name} VALUES (?, ?, ?)",  # noqa: S608 - as above
        delete=f"DELETE FROM {name} WHERE position = ?",  # noqa: S608 - as above
    )


@lru_cache(maxsize=4096)
def of_several(table_id: int, count: int) -> str:
    """Select position, item and size of the items at so many positions."""
    places = ", ".join("?" * count)
    return f"SELECT position, item, size FROM items_{table_id} WHERE position IN ({places})"  # noqa: S608 - made from numbers


@lru_cache(maxsize=4096)
def of_index(index_id: int) -> Statements:
    """Entries of one index: the position, and the byte of it (from 1) at which the table position begins."""
    name = f"index_{index_id}"
    return Statements(
        create=f"CREATE TABLE {name} (position BLOB PRIMARY KEY, target INTEGER NOT NULL) WITHOUT ROWID",
        drop=f"DROP TABLE {name}",
        put=f"INSERT OR REPLACE INTO {name} VALUES (?, ?)",  # noqa: S608 - the name is made from a number
        delete=f"DELETE FROM {name} WHERE position = ?",  # noqa: S608 - as above
    )


@lru_cache(maxsize=4096)
def of_range(table_id: int, index_id: int | None, is_bounded: bool, reverse: bool) -> str:
    """Select size and item of the entries from a position on, up to another one if bounded, in either order."""
    source, position = _entries(table_id, index_id)
    bounds = f"{position} >= ?" + (f" AND {position} < ?" if is_bounded else "")
    order = f"ORDER BY {position} {'DESC' if reverse else 'ASC'}"
    return f"SELECT i.size, i.item FROM {source} WHERE {bounds} {order}"  # noqa: S608 - made from numbers


def of_entries(table_id: int, index_id: int | None) -> str:
    """Select position, size and item of the entries after a position, in order."""
    source, position = _entries(table_id, index_id)
    return f"SELECT {position}, i.size, i.item FROM {source} WHERE {position} > ? ORDER BY {position}"  # noqa: S608 - made from numbers


def _entries(table_id: int, index_id: int | None) -> tuple[str, str]:
    """Return the source of the entries of a table or index with their items, `i`, and the column of their positions."""
    if index_id is None:
        return f"items_{table_id} i", "i.position"
    # CROSS JOIN keeps SQLite from starting with the table.
    joined = f"index_{index_id} a CROSS JOIN items_{table_id} i ON i.position = substr(a.position, a.target)"
    return joined, "a.position"


@lru_cache(maxsize=4096)
def of_journal(table_id: int) -> Statements:
    """Changes of one table in the order of their commits."""
    name = f"journal_{table_id}"
    return Statements(
        # SQLite gives each row the number after the largest one; no number comes twice, because the last row stays.
        create=f"CREATE TABLE IF NOT EXISTS {name} (sequence INTEGER PRIMARY KEY, time INTEGER NOT NULL,"
        " position BLOB NOT NULL, old BLOB, new BLOB, by_service INTEGER NOT NULL)",
        drop=f"DROP TABLE IF EXISTS {name}",
        add=f"INSERT INTO {name} (time, position, old, new, by_service) VALUES (?, ?, ?, ?, ?)",  # noqa: S608 - a number
    )


@lru_cache(maxsize=4096)
def of_expiry(table_id: int) -> Statements:
    """When each item of one table expires."""
    name = f"expiry_{table_id}"
    return Statements(
        create=f"CREATE TABLE {name} (time INTEGER, position BLOB, PRIMARY KEY (time, position)) WITHOUT ROWID",
        drop=f"DROP TABLE IF EXISTS {name}",
        put=f"INSERT OR REPLACE INTO {name} VALUES (?, ?)",  # noqa: S608 - the name is made from a number
        delete=f"DELETE FROM {name} WHERE time = ? AND position = ?",  # noqa: S608 - as above
        due=f"SELECT time, position FROM {name} WHERE time > ? AND time <= ? ORDER BY time LIMIT ?",  # noqa: S608 - as above
    )
