"""The source database, which is only read: its schema, and its rows in batches."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from jobtable.errors import missing

_ROWS_AT_ONCE = 1_000


class SourceDatabase:
    """A SQLite file, open for reading."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def tables(self) -> list[str]:
        """Return the names of the tables, in order."""
        query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
        return [name for (name,) in self._connection.execute(query)]

    def columns(self, table: str) -> list[dict[str, Any]]:
        """Return the columns of a table: name, type, nullability, and membership of the primary key."""
        return [
            {"name": name, "type": kind, "nullable": not required and not key, "primaryKey": bool(key)}
            for _, name, kind, required, _, key in self._connection.execute(f"PRAGMA table_info({quoted(table)})")
        ]

    def foreign_keys(self, table: str) -> list[dict[str, str]]:
        """Return the declared references of a table's columns."""
        rows = self._connection.execute(f"PRAGMA foreign_key_list({quoted(table)})")
        return sorted(
            ({"column": own, "table": other, "references": theirs or own} for _, _, other, own, theirs, *_ in rows),
            key=lambda reference: reference["column"],
        )

    def indexes(self, table: str) -> list[str]:
        """Return the names of the indexes of a table."""
        return sorted(name for _, name, *_ in self._connection.execute(f"PRAGMA index_list({quoted(table)})"))

    def count(self, table: str) -> int:
        """Count the rows of a table."""
        (count,) = self._connection.execute(f"SELECT count(*) FROM {quoted(table)}").fetchone()  # noqa: S608 - quoted
        return int(count)

    def profile(self, table: str, column: str) -> dict[str, Any]:
        """Return the number of NULLs and of distinct values of a column, and its extremes."""
        name = quoted(column)
        query = f"SELECT count(*) - count({name}), count(DISTINCT {name}), min({name}), max({name})"
        row = self._connection.execute(f"{query} FROM {quoted(table)}").fetchone()
        nulls, distinct, least, greatest = row
        return {"nulls": nulls, "distinct": distinct, "least": _shown(least), "greatest": _shown(greatest)}

    def is_contained(self, table: str, column: str, other: str, key: str) -> bool:
        """Return whether a column is not empty and has only values of another table's column."""
        own, theirs = quoted(column), quoted(key)
        query = f"""
            SELECT count({own}), count(CASE WHEN {own} IN (SELECT {theirs} FROM {quoted(other)}) THEN 1 END)
            FROM {quoted(table)}
        """  # noqa: S608 - quoted
        values, found = self._connection.execute(query).fetchone()
        return bool(values) and values == found

    def rows(self, table: str, columns: list[str], *, after: int, limit: int) -> tuple[list[dict[str, Any]], int]:
        """Return the next rows after a row number as JSON values, and the last row number."""
        names = ", ".join(quoted(column) for column in columns)
        query = f"SELECT rowid, {names} FROM {quoted(table)} WHERE rowid > ? ORDER BY rowid LIMIT ?"  # noqa: S608
        found = self._connection.execute(query, (after, limit)).fetchall()
        last = found[-1][0] if found else after
        return [dict(zip(columns, map(_json_value, row[1:]), strict=True)) for row in found], last

    def all_rows(self, table: str, columns: list[str]) -> Iterator[dict[str, Any]]:
        """Yield every row of a table, in bounded memory."""
        after = -(1 << 63)
        while True:
            rows, after = self.rows(table, columns, after=after, limit=_ROWS_AT_ONCE)
            if not rows:
                return
            yield from rows


@contextmanager
def open_source(path: Path) -> Iterator[SourceDatabase]:
    """Open a SQLite file for reading, or raise NotFoundError."""
    if not path.is_file():
        raise missing("source database", path)
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        yield SourceDatabase(connection)


def quoted(name: str) -> str:
    """Return the name of a table or column, quoted for SQL."""
    return '"' + name.replace('"', '""') + '"'


def _json_value(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else value


def _shown(value: Any) -> Any:
    value = _json_value(value)
    return value[:80] if isinstance(value, str) else value
