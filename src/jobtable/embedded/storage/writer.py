"""Writers share commits: the first one leads and takes the waiting ones along. The log stays short.

SQLite copies the log into the database by itself every few megabytes, and starts the log again from its beginning when
nobody reads from it at that moment. With overlapping readers that moment never comes. So above a certain size the
writer makes it come: while it holds new commits back, new readers find everything in the database and need no log, and
the readers that need it end soon.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from jobtable.embedded.storage.connections import is_locked, is_missing_table, table_not_found, unavailable
from jobtable.embedded.storage.database_files import Whereabouts, when_unlocked
from jobtable.embedded.storage.table_catalogue import READ_VERSION, Cache
from jobtable.embedded.storage.turn import Turn
from jobtable.embedded.storage.views import Transaction
from jobtable.errors import RequestError, StorageError, request_error

_LARGEST_WAL = 32 * 1024 * 1024
_WAL_STEP = 16 * 1024 * 1024
_SECONDS_BETWEEN_WAL_LOOKS = 0.05
_LONGEST_WAIT_MS = 100


class WalBound:
    """Checks the log after commits, and restarts it when it is too long."""

    def __init__(
        self,
        path: str,
        largest: int = _LARGEST_WAL,
        step: int = _WAL_STEP,
        look_seconds: float = _SECONDS_BETWEEN_WAL_LOOKS,
    ) -> None:
        self._path = path + "-wal"
        self._largest = self._next_attempt = largest
        self._step = step
        self._look_seconds = look_seconds
        self.next_look = 0.0  # the time of the next check, by the clock of `restart_if_long`

    def restart_if_long(self, connection: sqlite3.Connection, now: float) -> None:
        """Restart the log if it is too long; wait at most a tenth of a second, and try again when it has grown."""
        self.next_look = now + self._look_seconds
        size = os.stat(self._path).st_size
        if size >= self._next_attempt:
            self._restart(connection, size)

    def _restart(self, connection: sqlite3.Connection, size: int) -> None:
        (before,) = connection.execute("PRAGMA busy_timeout").fetchone()
        connection.execute(f"PRAGMA busy_timeout = {_LONGEST_WAIT_MS}")
        try:
            (is_busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        finally:
            connection.execute(f"PRAGMA busy_timeout = {before}")
        self._next_attempt = size + self._step if is_busy else self._largest


if TYPE_CHECKING:
    from jobtable.embedded.storage.database import Storage

T = TypeVar("T")

_BEGIN = "BEGIN IMMEDIATE"

_MOST_ACTIONS = 128
_LONGEST_BATCH = 0.01  # seconds of work before the commit, so that other processes get their turn
_SECONDS_BETWEEN_PURGES = 10.0
_LONGEST_WITHOUT_WORD = 1.0


class _Call:
    """One caller's action and its outcome. The initial values are class attributes, which cost a call nothing."""

    action: Callable[[Transaction], Any]
    result: Any = None
    error: BaseException | None = None
    is_taken = False  # whether a leader has started it
    is_done = False
    word: threading.Lock | None = None
    """Held while the caller waits for a signal that the call is done, or should lead."""

    def tell(self) -> None:
        """Signal the caller, unless that was done."""
        if self.word is not None:
            with contextlib.suppress(RuntimeError):
                self.word.release()


class Writer:
    """Runs actions in transactions; `run` returns when the action's changes are durable."""

    def __init__(self, home: Storage, turn: Turn, connect: Callable[[], sqlite3.Connection]) -> None:
        self._home = home
        self._turn = turn
        self._connect = connect
        self._cursor: sqlite3.Cursor | None = None
        self._cache, self._version = Cache(b""), -1
        self._wal = WalBound(home.path)
        self._whereabouts = Whereabouts(home.path)
        self._leading = threading.Lock()
        self._is_passed_on = False
        self._waiting: deque[_Call] = deque()
        self._next_purge = 0.0
        self._refusal: str | None = None

    def run(self, action: Callable[[Transaction], T]) -> T:
        """Run an action atomically, together with those of other threads, and return its result."""
        call = _Call()
        call.action = action
        # A signal may raise KeyboardInterrupt, or something else, between any two steps. So the leader holds a lock in
        # `with`, which always ends. A signal to a waiting caller may get lost: then that one asks for the lock.
        try:
            if self._is_passed_on or self._leading.locked():
                self._wait(call)
            if not call.is_done:
                with self._leading:
                    self._is_passed_on = False
                    if call.word is None or self._is_left(call):
                        self._do(call)
                if self._waiting or self._is_passed_on:
                    self._wake_next()
        except BaseException:
            self._withdraw(call)
            self._wake_next()
            raise
        if call.error is not None:
            raise call.error
        result: T = call.result
        return result

    def pause(self) -> None:
        """Wait until nobody writes, close the connection, and let nobody write until `resume`."""
        self._leading.acquire()
        self._drop_connection()

    def resume(self) -> None:
        """End a pause."""
        self._leading.release()
        self._wake_next()

    def close(self, refusal: str) -> None:
        """Let every requested write finish, then close; later ones raise with that reason."""
        with self._leading:
            while (call := self._take_next()) is not None:
                self._do(call)
                call.is_done = True
                call.tell()
            self._drop_connection()
            self._refusal = refusal

    def restart_in_child(self, turn: Turn) -> None:
        """Start again in a forked process."""
        self._turn = turn
        self._leading = threading.Lock()
        self._is_passed_on = False
        self._waiting = deque()
        self._cache, self._version = Cache(b""), -1

    def _wait(self, call: _Call) -> None:
        """Wait until another thread has done the call, or this one should lead; or too long for either."""
        call.word = word = threading.Lock()
        word.acquire()
        self._waiting.append(call)
        # Without a leader, the last one may have looked for others before this one came.
        if self._is_passed_on or self._leading.locked():
            word.acquire(timeout=_LONGEST_WITHOUT_WORD)

    def _is_left(self, call: _Call) -> bool:
        """Whether a call that has waited is still to be done, now that its caller leads."""
        self._withdraw(call)
        if call.is_done:
            return False  # Another leader was faster.
        if call.is_taken:
            call.error = _interrupted()
            return False
        return True

    def _withdraw(self, call: _Call) -> None:
        """Remove the call from those that a leader may take along."""
        with contextlib.suppress(ValueError):  # it does not wait
            self._waiting.remove(call)

    def _wake_next(self) -> None:
        """Make the next waiting caller the leader. It waits until then, so another leader may still take it along."""
        if not self._waiting:
            self._is_passed_on = False  # It may be about a caller who had stopped waiting.
            return
        with contextlib.suppress(IndexError):  # the last one has just left
            call = self._waiting[0]
            self._is_passed_on = True
            call.tell()

    def _do(self, call: _Call) -> None:
        """Do the call and the waiting ones in one commit."""
        if self._refusal is not None:
            call.error = StorageError(self._refusal)
            return
        taken, behind = [call], list(self._waiting)
        try:
            with self._turn:
                while not self._commit(taken):
                    pass
        except (sqlite3.Error, OSError) as error:
            self._drop_connection()
            if is_locked(error):
                # They have waited as long. One after the other, the last of many would wait for minutes.
                taken += self._take_all(behind)
            for one in taken:
                one.error = unavailable(self._home.path, error)
        except BaseException as error:
            self._turn.leave()
            self._drop_connection()
            for one in taken[1:]:
                one.error = _interrupted(error)
            raise
        finally:
            for done in taken[1:]:
                done.is_done = True
                done.tell()

    def _commit(self, taken: list[_Call]) -> bool:
        """Do the calls that have not failed, and those that arrive meanwhile; False, and nothing done: try again.

        Nearly every write passes through here alone. After a wait for the disk each function call costs it a
        microsecond, so the checks are inlined.
        """
        if self._cursor is None:
            self._cursor = when_unlocked(self._connect).cursor()
        cursor = self._cursor
        execute = cursor.execute
        try:
            execute(_BEGIN)
        except sqlite3.OperationalError:
            when_unlocked(execute, _BEGIN)
        now = time.monotonic()
        if now >= self._whereabouts.next_look:
            self._whereabouts.check(now)
        (version,) = execute(READ_VERSION).fetchone()
        if version != self._version or self._cache.version != self._turn.announced:
            self._cache, self._version = self._home.cache_for(version), version
        transaction = Transaction(cursor, self._cache, self._home.now)
        if not self._run_actions(transaction, taken, now + _LONGEST_BATCH):
            execute("ROLLBACK")
            return False
        if transaction.has_remembered and now > self._next_purge and not transaction.forget_tokens():
            self._next_purge = now + _SECONDS_BETWEEN_PURGES
        transaction.store_counts()
        if transaction.catalogue_changed:
            self._commit_catalogue(cursor, version + 1)
        else:
            execute("COMMIT")
        # The write is durable now, and its callers learn that whatever happens here.
        if now >= self._wal.next_look:
            with contextlib.suppress(sqlite3.Error, OSError):
                self._wal.restart_if_long(cursor.connection, now)
        return True

    def _run_actions(self, transaction: Transaction, taken: list[_Call], deadline: float) -> bool:
        """Run the actions of a commit; False: one failed after it had written, and all must be undone.

        They are then done again without it. A savepoint for each action would undo less, but nearly all failing actions
        fail before they write, and the others would pay for it.
        """
        for call in taken:  # to which waiting calls are added meanwhile
            if call.error is None:
                transaction.has_written = False
                try:
                    call.result = call.action(transaction)
                except Exception as error:
                    _fail(call, error)
                    if transaction.has_written:
                        return False
                finally:
                    # Also after an error: its traceback keeps the cursors, and they the lock of the connection.
                    if transaction.cursors:
                        transaction.end_reads()
                if transaction.catalogue_changed:
                    transaction.forget_schemas()
            if self._waiting and call is taken[-1] and len(taken) < _MOST_ACTIONS and time.monotonic() < deadline:
                waiting = self._take_next()
                if waiting is not None:
                    taken.append(waiting)
        return True

    def _commit_catalogue(self, cursor: sqlite3.Cursor, version: int) -> None:
        """Commit a change of the catalogue, which gets this number."""
        cursor.execute(f"PRAGMA user_version = {version}")
        self._turn.announce_change()
        cursor.execute("COMMIT")
        with contextlib.suppress(OSError):  # Readers look into the file until the next writer announces it.
            self._home.catalogue_changed(version)

    def _take_all(self, calls: Sequence[_Call]) -> Iterator[_Call]:
        """Yield those of the calls that still wait."""
        for call in calls:
            with contextlib.suppress(ValueError):  # it has been taken along, or has left
                self._waiting.remove(call)
                yield call

    def _take_next(self) -> _Call | None:
        """Take the call that has waited longest, or None."""
        try:
            call = self._waiting.popleft()
        except IndexError:
            return None
        call.is_taken = True
        return call

    def _drop_connection(self) -> None:
        cursor, self._cursor = self._cursor, None
        if cursor is not None:
            cursor.connection.close()


def _fail(call: _Call, error: Exception) -> None:
    """Report an action's failure to its caller alone; one of SQLite or the disk concerns all, and is raised."""
    call.error = table_not_found() if is_missing_table(error) else error
    if isinstance(call.error, sqlite3.Error):
        raise call.error


def _interrupted(error: BaseException | None = None) -> RequestError:
    """Return the error for a caller whose call was taken along by an interrupted thread: it may be done or not."""
    reason = "" if error is None else f": {error!r}"
    return request_error("InternalServerError", f"the write was interrupted{reason}")
