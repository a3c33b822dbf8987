"""Background work: items and backups expire, journals are trimmed, large indexes and tables are filled or removed."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from jobtable.embedded.storage import journal, statements
from jobtable.embedded.storage.table_catalogue import TableRecord, read_record_of_id
from jobtable.embedded.storage.table_changes import fill_some, step_of
from jobtable.embedded.storage.turn import Turn
from jobtable.embedded.storage.views import Transaction, View
from jobtable.errors import RequestError, StorageError

if TYPE_CHECKING:
    from jobtable.embedded.storage.database import Storage

_SECONDS_BETWEEN_ROUNDS = 15.0
_EXPIRED_AT_ONCE = 50
_OLDEST_EXPIRY = 5 * 365 * 86_400  # DynamoDB leaves alone what expired more than five years ago

_REMOVED_AT_ONCE = 1000
_BYTES_REMOVED_AT_ONCE = 4 * 1024 * 1024

_BEING_RESTORED = "SELECT id FROM restores"
# The indexes of a table that is being restored are filled when it has its items.
_BEING_FILLED = "SELECT id FROM fillings WHERE table_name NOT IN (SELECT table_name FROM restores)"
_UNFINISHED = "SELECT id FROM fillings UNION ALL SELECT id FROM restores"
_HAS_EXPIRY_OR_JOURNAL = "SELECT 1 FROM sqlite_schema WHERE name GLOB 'expiry_*' OR name GLOB 'journal_*' LIMIT 1"
# Items of deleted tables and entries of deleted indexes: their ids are no longer in the counters.
_ABANDONED = (
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND (name GLOB 'items_*' OR name GLOB 'index_*')"
    " AND CAST(substr(name, length('items_') + 1) AS INTEGER) NOT IN (SELECT id FROM counters)"
)
_EXPIRING_BACKUPS = "SELECT id FROM backups WHERE expires IS NOT NULL"
_EXPIRED_BACKUPS = "SELECT id FROM backups WHERE expires <= ?"
# Joined by the number in the name, which leads to the row; comparing names would scan all tables for each.
_TABLES_WITH_EXPIRY = (
    "SELECT t.name FROM sqlite_schema s JOIN tables t ON t.id = CAST(substr(s.name, length('expiry_') + 1) AS INTEGER)"
    " WHERE s.type = 'table' AND s.name GLOB 'expiry_*'"
)
# Also those of deleted tables, which have no record: their streams stay readable for another day.
_JOURNALS = (
    "SELECT j.id, t.record FROM (SELECT CAST(substr(name, length('journal_') + 1) AS INTEGER) AS id FROM sqlite_schema"
    " WHERE type = 'table' AND name GLOB 'journal_*') j LEFT JOIN tables t ON t.id = j.id"
)


class Upkeep:
    """A thread that runs while there is work. One process does it at a time, except for its own fillings."""

    def __init__(self, storage: Storage, turn: Turn) -> None:
        self._storage = storage
        self._turn = turn
        self._stop = threading.Event()
        self._is_called = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._fills_anyway = False

    def start_if_needed(self, *, after_own_change: bool = False) -> None:
        """Start the thread unless it runs or has nothing to do. Fillings start at once.

        After its own change a process also fills while another one does the upkeep: that may be idle or stopped, and a
        caller waits here. This never fails: the change that it follows is stored already.
        """
        with self._lock:
            if self._stop.is_set():
                return
            try:
                if self._storage.query(_UNFINISHED):
                    self._is_called.set()
                    self._fills_anyway |= after_own_change
                is_needed = self._thread is None and has_work(self._storage)
            except (RequestError, StorageError):
                is_needed = self._thread is None  # It looks again.
            if is_needed:
                self._start()

    def _start(self) -> None:
        # The waiting thread has only a weak reference: an unreferenced storage goes with its files, even if nobody has
        # closed it.
        rounds = (weakref.ref(self), self._is_called)
        thread = threading.Thread(target=_run, args=rounds, name="jobtable-upkeep", daemon=True)
        # There are too many threads, or the program ends: the next change of the catalogue tries again.
        with contextlib.suppress(RuntimeError):
            thread.start()
            self._thread = thread

    def stop(self) -> None:
        """End the thread."""
        self._stop.set()
        self._is_called.set()
        with self._lock:
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def run_round(self) -> bool:
        """Do the due work; False when the thread should end."""
        is_called = self._is_called.is_set()
        self._is_called.clear()
        if self._stop.is_set():
            return False
        try:
            if self._turn.is_mine_to_keep_up():
                work = fill_up if is_called else keep_up
                work(self._storage, self._stop.is_set)
            elif self._fills_anyway:
                fill_up(self._storage, self._stop.is_set)
            return not self._has_ended()
        except (RequestError, StorageError):
            # For example a full disk: the next writer gets the error; the next round tries again, or another process.
            self._turn.leave_upkeep()
            return True

    def _has_ended(self) -> bool:
        """Whether no work is left; then another process may do the upkeep."""
        with self._lock:
            self._fills_anyway &= bool(self._storage.query(_UNFINISHED))
            if self._is_called.is_set() or has_work(self._storage):
                return False
            self._turn.leave_upkeep()
            self._thread = None
            return True


def _run(upkeep: weakref.ref[Upkeep], is_called: threading.Event) -> None:
    """Run rounds until no work is left, or the storage is gone."""
    while True:
        is_called.wait(_SECONDS_BETWEEN_ROUNDS)
        owner = upkeep()
        if owner is None or not owner.run_round():
            return
        del owner


def has_work(storage: Storage) -> bool:
    """Whether some table has a TTL attribute, a journal or something to fill in, or leftovers to remove."""
    work = (_HAS_EXPIRY_OR_JOURNAL, _ABANDONED, _UNFINISHED, _EXPIRING_BACKUPS)
    return any(storage.query(sql) for sql in work)


def fill_up(storage: Storage, is_stopped: Callable[[], bool] = lambda: False) -> None:
    """Finish restores and fillings in small transactions."""
    for sql, do_some in ((_BEING_RESTORED, _restore_some), (_BEING_FILLED, fill_some)):
        for (id_,) in storage.query(sql):
            _repeat(storage, is_stopped, partial(do_some, id_))


def keep_up(storage: Storage, is_stopped: Callable[[], bool] = lambda: False) -> int:
    """Do all due work in small transactions; return the number of items that expired."""
    fill_up(storage, is_stopped)
    expired = 0
    for (name,) in storage.query(_TABLES_WITH_EXPIRY):
        while not is_stopped() and (removed := storage.write(partial(_expire_some, name, storage.now()))):
            expired += removed
    for (id_,) in storage.query(_EXPIRED_BACKUPS, (storage.now(),)):
        storage.write(partial(_remove_backup, id_))
    for (name,) in storage.query(_ABANDONED):
        _repeat(storage, is_stopped, partial(_remove_some, name))
    for table_id in _journals_to_trim(storage, storage.now()):
        _repeat(storage, is_stopped, partial(_trim_some, table_id, storage.now()))
    return expired


def _repeat(storage: Storage, is_stopped: Callable[[], bool], do_some: Callable[[Transaction], bool]) -> None:
    has_more = True
    while has_more and not is_stopped():
        has_more = storage.write(do_some)


def _expire_some(name: str, now: float, transaction: Transaction) -> int:
    """Delete a few expired items. Renewed ones have moved in the list, so they are not found here."""
    table = transaction.table(name)
    if table is None or table.ttl_attribute is None:
        return 0
    sql = statements.of_expiry(table.id).due
    due = transaction.connection.execute(sql, (int(now) - _OLDEST_EXPIRY, int(now), _EXPIRED_AT_ONCE)).fetchall()
    total = 0
    for count, (_, position) in enumerate(due, 1):
        old = transaction.read(table, position)
        if old.item is not None:
            transaction.delete(table, position, old, by_service=True)
        total += old.size
        if total >= _BYTES_REMOVED_AT_ONCE:
            return count
    return len(due)


def _restore_some(id_: int, transaction: Transaction) -> bool:
    from jobtable.embedded.storage.restoring import restore_some  # noqa: PLC0415 - most files have nothing to restore

    return restore_some(id_, transaction)


def _remove_backup(id_: int, transaction: Transaction) -> None:
    """Remove an expired backup. One whose items are being copied is left for a later round."""
    from jobtable.embedded.storage import restoring  # noqa: PLC0415 - most files have no backups

    backup = restoring.find_backup_by_id(transaction, id_)
    if backup is not None and not restoring.is_source(transaction, id_):
        restoring.remove_backup(transaction, backup)


def _remove_some(name: str, transaction: Transaction) -> bool:
    """Remove some entries of an abandoned table, and the table itself once it is empty; True if there are more."""
    transaction.has_written = True
    connection = transaction.connection
    if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (name,)).fetchone() is None:
        return False
    column = "size" if name.startswith("items_") else "target"  # what an entry has of bytes, beside its position
    sql = f"SELECT position, {column} FROM {name} LIMIT {_REMOVED_AT_ONCE}"  # noqa: S608 - a name that this package has made
    some = step_of(connection.execute(sql).fetchall(), _REMOVED_AT_ONCE, _BYTES_REMOVED_AT_ONCE)
    positions = [(position,) for position, _ in some]
    connection.executemany(f"DELETE FROM {name} WHERE position = ?", positions)  # noqa: S608 - as above
    is_empty = connection.execute(f"SELECT 1 FROM {name} LIMIT 1").fetchone() is None  # noqa: S608 - as above
    if is_empty:
        connection.execute(f"DROP TABLE {name}")
    return not is_empty


def _journals_to_trim(storage: Storage, now: float) -> list[int]:
    """Return the tables whose journals have changes that nobody needs any more.

    This only reads: the journals of thousands of deleted tables may wait for the end of their day, and each would take
    the turn of the writers.
    """
    with storage.read() as view:
        streams: dict[int, list[bool]] = {}
        for stream in journal.streams(view):
            streams.setdefault(stream.table_id, []).append(journal.is_over(stream, now))
        journals = view.connection.execute(_JOURNALS).fetchall()
        return [id_ for id_, stored in journals if _is_to_be_trimmed(view, id_, stored, streams.get(id_, []), now)]


def _is_to_be_trimmed(view: View, table_id: int, stored: bytes | None, are_over: list[bool], now: float) -> bool:
    record = None if stored is None else TableRecord.from_stored(stored)
    since = _needed_since(record, not all(are_over), now)
    if since is None or any(are_over):
        return True
    # The journal of a deleted table is removed as a whole, with its last stream.
    return record is not None and journal.has_older(view, table_id, since)


def _trim_some(table_id: int, now: float, transaction: Transaction) -> bool:
    """Remove a few changes that nobody needs any more; True if there are more."""
    has_streams = journal.forget_streams(transaction, table_id, now)
    since = _needed_since(read_record_of_id(transaction.connection, table_id), has_streams, now)
    return journal.trim_some(transaction, table_id, since, journal.first_needed(transaction, table_id))


def _needed_since(record: TableRecord | None, has_streams: bool, now: float) -> float | None:
    """Return the time since when changes of a table (perhaps deleted) are needed; None if none is."""
    needed = [now - journal.STREAM_SECONDS] if has_streams else []
    if record is not None and record.recovery is not None:
        needed.append(now - record.recovery.days * 86_400)
    return min(needed, default=None)
