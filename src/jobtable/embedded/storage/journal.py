"""The journal of a table: every change in the order of the commits, for streams and point-in-time recovery.

Sequence numbers of one journal have no gaps, and their times rise with them (as far as the clock does), so a time is
found by binary search. The last change is never trimmed: the next number follows from it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import NamedTuple

from jobtable.embedded.storage import statements
from jobtable.embedded.storage.table_catalogue import StreamRecord
from jobtable.embedded.storage.table_changes import step_of
from jobtable.embedded.storage.views import Transaction, View

STREAM_SECONDS = 24 * 3600
_TRIMMED_AT_ONCE = 500
_BYTES_TRIMMED_AT_ONCE = 4 * 1024 * 1024


class Change(NamedTuple):
    """One change of one item; the items are JSON, None for a missing one."""

    sequence: int
    microseconds: int
    position: bytes
    old: bytes | None
    new: bytes | None
    by_service: bool


def last_sequence(view: View, table_id: int) -> int:
    """Return the number of the last change, or 0."""
    if not exists(view, table_id):
        return 0
    sql = f"SELECT max(sequence) FROM journal_{table_id}"  # noqa: S608 - the name is made from a number
    (last,) = view.connection.execute(sql).fetchone()
    return int(last or 0)


def exists(view: View, table_id: int) -> bool:
    """Whether the table has a journal."""
    # Unlike sqlite_schema, this is not searched from its beginning; there may be thousands of tables.
    return view.connection.execute(f"PRAGMA table_info(journal_{table_id})").fetchone() is not None


def _first_sequence(view: View, table_id: int) -> int:
    """Return the number of the oldest kept change, or of the next one without any."""
    sql = f"SELECT min(sequence) FROM journal_{table_id}"  # noqa: S608 - the name is made from a number
    (first,) = view.connection.execute(sql).fetchone()
    return int(first) if first is not None else last_sequence(view, table_id) + 1


def sequence_after(view: View, table_id: int, seconds: float) -> int:
    """Return the number of the first kept change after a time, or of the next one to come."""
    sql = f"SELECT time FROM journal_{table_id} WHERE sequence = ?"  # noqa: S608 - the name is made from a number
    low, high = _first_sequence(view, table_id), last_sequence(view, table_id) + 1
    while low < high:
        middle = (low + high) // 2
        (time,) = view.connection.execute(sql, (middle,)).fetchone()
        if time > seconds * 1_000_000:
            high = middle
        else:
            low = middle + 1
    return low


def changes(view: View, table_id: int, first: int, last: int | None, limit: int) -> Iterator[Change]:
    """Return changes in order, from one number up to another (None: to the end)."""
    sql = (
        "SELECT sequence, time, position, old, new, by_service"  # noqa: S608 - the name is made from a number
        f" FROM journal_{table_id} WHERE sequence >= ? AND sequence <= ? ORDER BY sequence LIMIT ?"
    )
    end = 2**62 if last is None else last
    return map(Change._make, view.connection.execute(sql, (first, end, limit)))


def backwards(view: View, table_id: int, first: int, last: int) -> sqlite3.Cursor:
    """Return changes from the last number to the first: number, size, position, and the old item (JSON, or None)."""
    sql = (
        "SELECT sequence, coalesce(length(old), 0), position, old"  # noqa: S608 - the name is made from a number
        f" FROM journal_{table_id} WHERE sequence >= ? AND sequence <= ? ORDER BY sequence DESC"
    )
    return view.connection.execute(sql, (first, last))


def first_needed(view: View, source_id: int) -> int | None:
    """Return the first change of a table that is still to be undone in another one, or None."""
    sql = "SELECT min(first_undone) FROM restores WHERE source_id = ?"
    first: int | None = view.connection.execute(sql, (source_id,)).fetchone()[0]
    return first


def bytes_before(view: View, table_id: int, first: int) -> int:
    """Return the bytes of the items before each of the changes from one number on."""
    sql = f"SELECT total(length(old)) FROM journal_{table_id} WHERE sequence >= ?"  # noqa: S608 - a number
    return int(view.connection.execute(sql, (first,)).fetchone()[0])


def streams(
    view: View, table_name: str | None = None, after: tuple[str, str] | None = None, limit: int = -1
) -> list[StreamRecord]:
    """Return readable streams of one table or of all, the newest of a table first, at most as many as the limit.

    `after` is the table and label of the stream that they follow in this order, whether it still exists or not.
    """
    after_table, after_label = after or ("", "")
    sql = (
        "SELECT record FROM streams WHERE (:table IS NULL OR table_name = :table)"
        " AND (table_name > :after_table OR (table_name = :after_table AND label < :after_label))"
        " ORDER BY table_name, label DESC LIMIT :limit"
    )
    names = {"table": table_name, "after_table": after_table, "after_label": after_label, "limit": limit}
    return [StreamRecord.from_stored(row) for (row,) in view.connection.execute(sql, names)]


def _streams_of(view: View, table_id: int) -> list[StreamRecord]:
    """Return the streams of one table, without those of deleted tables with its name."""
    rows = view.connection.execute("SELECT record FROM streams WHERE table_id = ?", (table_id,))
    return [StreamRecord.from_stored(row) for (row,) in rows]


def find_stream(view: View, table_name: str, label: str) -> StreamRecord | None:
    sql = "SELECT record FROM streams WHERE table_name = ? AND label = ?"
    row = view.connection.execute(sql, (table_name, label)).fetchone()
    return None if row is None else StreamRecord.from_stored(row[0])


def save_stream(transaction: Transaction, stream: StreamRecord) -> None:
    """Store a stream's description."""
    transaction.has_written = True
    row = (stream.label, stream.table_name, stream.table_id, stream.model_dump_json().encode())
    transaction.connection.execute("INSERT OR REPLACE INTO streams VALUES (?, ?, ?, ?)", row)


def has_older(view: View, table_id: int, seconds: float) -> bool:
    """Whether a change from before a time could be trimmed: the last one never is."""
    name = f"journal_{table_id}"
    sql = f"SELECT time FROM {name} WHERE sequence < (SELECT max(sequence) FROM {name}) ORDER BY sequence LIMIT 1"  # noqa: S608 - a number
    oldest = view.connection.execute(sql).fetchone()
    return oldest is not None and oldest[0] <= seconds * 1_000_000


def trim_some(transaction: Transaction, table_id: int, horizon: float | None, first_needed: int | None = None) -> bool:
    """Remove some of the changes from before a time (None: the whole journal); True if there are more.

    Changes from the number `first_needed` on stay in any case, and so does the journal, even if empty.
    """
    transaction.has_written = True
    connection = transaction.connection
    if not exists(transaction, table_id):
        return False
    last = last_sequence(transaction, table_id)
    end = last + 1 if horizon is None else min(last, sequence_after(transaction, table_id, horizon))
    end = end if first_needed is None else min(end, last, first_needed)
    stop = _end_of_some(transaction, table_id, end)
    connection.execute(f"DELETE FROM journal_{table_id} WHERE sequence < ?", (stop,))  # noqa: S608 - a number
    if stop > last:
        connection.execute(statements.of_journal(table_id).drop)
    return stop < end


def _end_of_some(view: View, table_id: int, end: int) -> int:
    """Return the number after as many of the oldest changes as others can wait for, or `end`."""
    sql = (
        "SELECT sequence, coalesce(length(old), 0) + coalesce(length(new), 0)"  # noqa: S608 - the name is made from a number
        f" FROM journal_{table_id} WHERE sequence < ? ORDER BY sequence LIMIT ?"
    )
    oldest = view.connection.execute(sql, (end, _TRIMMED_AT_ONCE)).fetchall()
    some = step_of(oldest, _TRIMMED_AT_ONCE, _BYTES_TRIMMED_AT_ONCE)
    return int(some[-1][0]) + 1 if len(some) == _TRIMMED_AT_ONCE or len(some) < len(oldest) else end


def forget_streams(transaction: Transaction, table_id: int, now: float) -> bool:
    """Remove the streams of a table that nobody can read any more; True if it has others."""
    streams = _streams_of(transaction, table_id)
    gone = [stream for stream in streams if is_over(stream, now)]
    for stream in gone:
        transaction.has_written = True
        key = (stream.table_name, stream.label)
        transaction.connection.execute("DELETE FROM streams WHERE table_name = ? AND label = ?", key)
    return len(gone) < len(streams)


def is_over(stream: StreamRecord, now: float) -> bool:
    """Whether a stream was closed so long ago that nobody can read it."""
    return stream.closed is not None and stream.closed <= now - STREAM_SECONDS
