"""Connections for readers, as many as are in use at once and few more, and the messages for errors of SQLite.

No connection crosses a fork: all are closed before it and opened again when they are needed. A child that inherited a
connection would share locks with its parent that the kernel does not know.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING
from weakref import ref

from jobtable.errors import RequestError, StorageError, StorageLocked, TableNotFound, request_error

if TYPE_CHECKING:
    from jobtable.embedded.storage.database import Storage

_registered: weakref.WeakSet[Storage] = weakref.WeakSet()
_paused: list[Storage] = []
_lock = threading.RLock()
"""Held while a thread forks, and while one opens a storage: until that is registered, nobody would pause it."""


def held_back() -> AbstractContextManager[object]:
    """Return a lock: in `with held_back():` no other thread forks."""
    return _lock


def register(storage: Storage) -> None:
    """Call the storage around every later fork, as long as it is in use."""
    with _lock:
        _registered.add(storage)


def unregister(storage: Storage) -> None:
    """Forget a closed storage."""
    with _lock:
        _registered.discard(storage)


def _before() -> None:
    _lock.acquire()
    for storage in list(_registered):
        storage.before_fork()
        _paused.append(storage)


def _after_in_parent() -> None:
    while _paused:
        _paused.pop().after_fork_in_parent()
    _lock.release()


def _after_in_child() -> None:
    while _paused:
        _paused.pop().after_fork_in_child()
    _lock.release()


os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)


_MOST_IDLE = 16
"""More than ever read at once, except in a rush of clients. Each has open files and a cache of pages."""


class Connections:
    """A pool: `take` a connection, use it on one thread, `give` it back or `drop` it."""

    def __init__(self, path: str, connect: Callable[[], sqlite3.Connection]) -> None:
        self._path = path
        self._connect = connect
        # Taking and giving are single atomic operations on the deque; the lock is only for opening and closing.
        self._idle: deque[sqlite3.Connection] = deque()
        self._lock = threading.Lock()
        # Weak, because an interrupt may come before a connection is given back: then it goes when unreferenced.
        self._open: set[ref[sqlite3.Connection]] = set()
        self._refusal: str | None = None

    def take(self) -> sqlite3.Connection:
        """Return a connection with no transaction, for this thread alone until it is given back."""
        try:
            return self._idle.pop()
        except IndexError:
            return self._new()

    def give(self, connection: sqlite3.Connection) -> None:
        """Give back a connection that has no transaction and no unfinished statement."""
        if len(self._idle) >= _MOST_IDLE:
            self.drop(connection)
            return
        self._idle.append(connection)
        if self._refusal is not None:  # after the append: `close` may have looked at the idle ones just before
            self._close_idle()

    def drop(self, connection: sqlite3.Connection) -> None:
        """Close a connection instead of giving it back."""
        connection.close()
        with self._lock:
            self._open.discard(ref(connection))

    def close(self, refusal: str) -> None:
        """Close the idle connections now and the others when they come back; `take` raises with that reason."""
        self._refusal = refusal
        self._close_idle()

    def pause(self) -> int:
        """Close the idle connections and open none until `resume`; return how many are still in use."""
        self._lock.acquire()
        self._close_idle_locked()
        return len(self._living())

    def resume(self) -> None:
        """End a pause."""
        self._lock.release()

    def restart_in_child(self) -> None:
        """Start again in a forked process, which must not touch its parent's connections."""
        if self._living():
            self._refusal = (
                f"{self._path} was being read when this process was forked, so it cannot be used here; fork when no"
                " request is running, or start the process with 'spawn'"
            )
        self._lock = threading.Lock()
        self._idle = deque()
        self._open = set()

    def _new(self) -> sqlite3.Connection:
        with self._lock:
            if self._refusal is not None:
                raise StorageError(self._refusal)
            connection = self._connect()
            self._open = {*self._living(), ref(connection)}
            return connection

    def _close_idle(self) -> None:
        with self._lock:
            self._close_idle_locked()

    def _close_idle_locked(self) -> None:
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:
                return
            connection.close()
            self._open.discard(ref(connection))

    def _living(self) -> set[ref[sqlite3.Connection]]:
        return {known for known in self._open if known() is not None}


_ADVICE_OF_SQLITE = {
    "SQLITE_FULL": "the disk is full; free some space, then repeat the request",
    "SQLITE_READONLY": "the file or its folder is not writable; give this user write access to both",
    "SQLITE_CANTOPEN": "it cannot be opened; the folder must exist, and file and folder must be writable",
    "SQLITE_NOTADB": "it is not a Jobtable file, or it is damaged; name another file, or restore a backup",
    "SQLITE_CORRUPT": "the file is damaged; restore a backup",
    "SQLITE_BUSY": "another program has locked it; end that program, or wait",
    "SQLITE_LOCKED": "another program has locked it; end that program, or wait",
    "SQLITE_IOERR": "the disk reported an error; check the disk, then try again",
    "SQLITE_NOMEM": "there is not enough memory",
}
_ADVICE_OF_SYSTEM = {
    errno.ENOSPC: _ADVICE_OF_SQLITE["SQLITE_FULL"],
    errno.EDQUOT: _ADVICE_OF_SQLITE["SQLITE_FULL"],
    errno.EFBIG: _ADVICE_OF_SQLITE["SQLITE_FULL"],
    errno.EIO: _ADVICE_OF_SQLITE["SQLITE_IOERR"],
    errno.EACCES: _ADVICE_OF_SQLITE["SQLITE_READONLY"],
    errno.EPERM: _ADVICE_OF_SQLITE["SQLITE_READONLY"],
    errno.EROFS: _ADVICE_OF_SQLITE["SQLITE_READONLY"],
    errno.ESTALE: "it was deleted, moved or replaced while in use; put it back, or restart this program",
}

Failure = sqlite3.Error | OSError


def cannot_open(path: str, error: Failure) -> StorageError:
    """Return the error for a file that cannot be used at all."""
    kind = StorageLocked if is_locked(error) else StorageError
    return kind(f"{path} cannot be used: {_advice(error)} ({error})")


def unavailable(path: str, error: Failure) -> RequestError:
    """Return the error for one request that failed below the engine; the caller may retry."""
    told = request_error("InternalServerError", f"{path} could not be used: {_advice(error)} ({error})")
    told.has_waited = is_locked(error)
    return told


def is_locked(error: Failure) -> bool:
    """Whether another program locks the file: it may be free in a moment."""
    return _primary_name(error) in ("SQLITE_BUSY", "SQLITE_LOCKED")


def is_missing_table(error: Exception) -> bool:
    """Whether a statement named a table or index that another process has dropped."""
    return isinstance(error, sqlite3.OperationalError) and str(error).startswith("no such table")


def table_not_found() -> RequestError:
    """Return DynamoDB's answer for an item operation on a missing table."""
    return TableNotFound("Requested resource not found")


def _advice(error: Failure) -> str:
    if isinstance(error, OSError):
        return _ADVICE_OF_SYSTEM.get(error.errno or 0, "the operating system refused access")
    return _ADVICE_OF_SQLITE.get(_primary_name(error), "SQLite refused it")


def _primary_name(error: Failure) -> str:
    """Return the first two words of SQLite's error name (SQLITE_BUSY of SQLITE_BUSY_SNAPSHOT), or ""."""
    return "_".join(getattr(error, "sqlite_errorname", "").split("_")[:2])
