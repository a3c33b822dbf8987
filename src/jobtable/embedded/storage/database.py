"""The storage of one database: its readers, its writer, and their knowledge of the tables."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Literal, TypeVar

from jobtable.clock import SYSTEM_CLOCK, Clock
from jobtable.embedded.storage import connections as forks
from jobtable.embedded.storage import database_files, statements
from jobtable.embedded.storage.connections import (
    Connections,
    cannot_open,
    is_missing_table,
    table_not_found,
    unavailable,
)
from jobtable.embedded.storage.database_files import TemporaryFolder
from jobtable.embedded.storage.table_catalogue import Cache
from jobtable.embedded.storage.turn import Turn
from jobtable.embedded.storage.upkeep import Upkeep, keep_up
from jobtable.embedded.storage.views import Transaction, View
from jobtable.embedded.storage.writer import Writer
from jobtable.embedded.table_schema import TableSchema
from jobtable.errors import JobtableError, StorageError

T = TypeVar("T")

_LONGEST_WAIT_BEFORE_FORK = 1.0
_IN_DOUBT = b"?"  # no version of the catalogue has such a label


class Storage:
    """Tables of items in one SQLite file, for any number of threads and processes.

    With `durability="full"` a write that has returned survives a crash of the process and a power cut. "normal" is
    faster, and survives a crash of the process; a power cut may undo the last writes (never a part of one). Without a
    path the database is private to this object and deleted when it is closed.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        *,
        durability: Literal["full", "normal"] = "full",
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.clock = clock
        self._folder = TemporaryFolder() if path is None else None
        self._durability: database_files.Durability = "off" if path is None else durability
        self.path = os.path.join(self._folder.path, "memory.db") if self._folder else os.path.abspath(path or "")
        with forks.held_back():
            database_files.inspect(self.path)
            self._turn = self._open_turn()
            try:
                with self._turn:
                    # The announced number may be ahead of a file restored from a copy, or after a power cut: after as
                    # many new changes it would mean another one.
                    self._turn.announce(database_files.upgrade(self.path, self._durability))
            except StorageError:
                self._turn.close()
                raise
            self._cache = Cache(b"")
            self.connections = Connections(self.path, self._connect_reader)
            self._writer = Writer(self, self._turn, self._connect_writer)
            self._take, self._give = self.connections.take, self.connections.give
            self._upkeep = Upkeep(self, self._turn)
            self._refusal = f"{self.path} has been closed"
            self._is_closed = False
            forks.register(self)
        self._upkeep.start_if_needed()

    def table(self, name: str) -> TableSchema | None:
        """Return the table as of the last committed change of any process, or None."""
        cache = self._cache
        if self._is_closed or cache.version != self._turn.catalogue_version():
            cache = self._fresh_cache()
        try:
            return cache.tables[name]
        except KeyError:
            with self.read() as snapshot:
                return cache.table(name, snapshot.connection)

    def sized(self, table: TableSchema, position: bytes) -> tuple[bytes, int] | None:
        """Return one item as JSON and its size as DynamoDB measures it, in the last committed state; or None."""
        connection = self._take()
        try:
            sql = statements.of_table(table.id).get
            row: tuple[bytes, int] | None = connection.execute(sql, (position,)).fetchone()
        except sqlite3.Error as error:
            self.connections.drop(connection)
            raise self.explained(error) from error
        self._give(connection)
        return row

    def read(self) -> Snapshot:
        """Open a consistent view for several reads: `with storage.read() as snapshot`. Keep it short."""
        return Snapshot(self, self._fresh_cache())

    def write(self, action: Callable[[Transaction], T]) -> T:
        """Run `action(transaction)` atomically and durably, and return its result.

        Concurrent callers share one commit. An exception that the action raises undoes its writes, and nothing else.
        The action may run on any thread, and again after it was undone: only the outcome of its last run counts. It
        must use the storage only through the transaction.
        """
        return self._writer.run(action)

    def close(self) -> None:
        """Wait for the requested writes, and release the files. Closing twice is harmless."""
        if self._is_closed:
            return
        self._is_closed = True
        self._release()

    def _release(self) -> None:
        self._upkeep.stop()
        self._writer.close(self._refusal)
        self.connections.close(self._refusal)
        forks.unregister(self)
        self._turn.close()
        if self._folder:
            self._folder.close()

    def keep_up(self) -> int:
        """Delete expired items and trim the journals now, not in the next round; return how many items expired."""
        return keep_up(self)

    def now(self) -> float:
        """Seconds since 1970 on the storage's clock."""
        return self.clock.seconds()

    def explained(self, error: sqlite3.Error) -> JobtableError:
        """Return the error for a caller for one of SQLite's."""
        return table_not_found() if is_missing_table(error) else unavailable(self.path, error)

    def query(self, sql: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of one statement in the last committed state."""
        return self._rows(sql, values)[1]

    def change_mark(self) -> object:
        """Return another value whenever any process has committed something; it may change without that."""
        connection, [(version,)] = self._rows("PRAGMA data_version")
        return id(connection), version  # each connection counts for itself

    def _rows(self, sql: str, values: tuple[object, ...] = ()) -> tuple[sqlite3.Connection, list[tuple[Any, ...]]]:
        """Return the rows of one statement, and the connection that ran it."""
        connection = self._take()
        try:
            rows = connection.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            self.connections.drop(connection)
            raise self.explained(error) from error
        self._give(connection)
        return connection, rows

    def cache_for(self, version: int) -> Cache:
        """Return the schemas as of a version of the catalogue that a write transaction sees."""
        label = self._turn.label(version)
        if self._cache.version == label == self._turn.catalogue_version():
            return self._cache
        self._turn.announce(version)  # A process may have died in the midst of a change of the catalogue.
        return self._renewed_cache(label)

    def catalogue_changed(self, version: int) -> None:
        """Announce a committed change of the catalogue."""
        self._turn.announce(version)
        self._upkeep.start_if_needed(after_own_change=True)

    def before_fork(self) -> None:
        """Wait until no write is running, and close every idle connection."""
        self._writer.pause()
        deadline = time.monotonic() + _LONGEST_WAIT_BEFORE_FORK
        while self.connections.pause() and time.monotonic() < deadline:
            self.connections.resume()
            time.sleep(0.001)

    def after_fork_in_parent(self) -> None:
        """Continue."""
        self.connections.resume()
        self._writer.resume()

    def after_fork_in_child(self) -> None:
        """Start again with locks and connections of this process."""
        # A copy of the parent's lock file would keep its lock after the parent has ended.
        self._turn.close()
        self._turn = self._open_turn()
        self.connections.restart_in_child()
        self._writer.restart_in_child(self._turn)
        self._upkeep = Upkeep(self, self._turn)
        self._cache = Cache(b"")
        if self._is_closed:  # by a thread that does not exist here
            self._release()

    def _connect_writer(self) -> sqlite3.Connection:
        return database_files.connect_to_write(self.path, self._durability)

    def _connect_reader(self) -> sqlite3.Connection:
        try:
            return database_files.connect(self.path, self._durability)
        except sqlite3.Error as error:
            raise unavailable(self.path, error) from error

    def _open_turn(self) -> Turn:
        try:
            return Turn(self.path + "-lock")
        except OSError as error:
            raise cannot_open(self.path, error) from error

    def _fresh_cache(self) -> Cache:
        if self._is_closed:
            raise StorageError(self._refusal)
        cache = self._cache
        version = self._turn.catalogue_version()
        if version == cache.version:
            return cache
        return self._cache_in_doubt() if version == Turn.BEING_CHANGED else self._renewed_cache(version)

    def _renewed_cache(self, version: bytes) -> Cache:
        with Snapshot(self, self._cache) as view:
            database_files.refuse_newer_file(self.path, view.connection)
        cache = self._cache = Cache(version)
        self._upkeep.start_if_needed()
        return cache

    def _cache_in_doubt(self) -> Cache:
        """Return a cache for this reader alone, filled from the file: nobody knows which version it has."""
        cache = Cache(_IN_DOUBT)
        before, self._cache = self._cache, cache
        if before.version != _IN_DOUBT:
            self._upkeep.start_if_needed()  # The fillings write, and that ends the doubt.
        return cache


class Snapshot(View):
    """One consistent state of the database, inside `with`."""

    __slots__ = ("_storage",)

    def __init__(self, storage: Storage, cache: Cache) -> None:
        super().__init__(storage.connections.take(), cache)
        self._storage = storage

    def __enter__(self) -> Snapshot:
        try:
            self.connection.execute("BEGIN")
        except sqlite3.Error as error:
            self._storage.connections.drop(self.connection)
            raise self._storage.explained(error) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end_reads()
        if not isinstance(error, sqlite3.Error):
            self.connection.execute("COMMIT")
            self._storage.connections.give(self.connection)
            return
        self._storage.connections.drop(self.connection)
        raise self._storage.explained(error) from error
