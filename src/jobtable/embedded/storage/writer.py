"""Writers share commits: the first one leads, and takes along whoever is waiting."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

from jobtable.embedded.storage.catalogue import Cache, catalogue_version
from jobtable.embedded.storage.files import Whereabouts, when_unlocked
from jobtable.embedded.storage.problems import is_locked, is_missing_table, table_not_found, unavailable
from jobtable.embedded.storage.transactions import Transaction
from jobtable.embedded.storage.turn import Turn
from jobtable.embedded.storage.wal import WalBound
from jobtable.errors import RequestError, StorageError, request_error

T = TypeVar("T")

_MOST_ACTIONS = 128
_LONGEST_BATCH = 0.01  # seconds of work before the commit, so that other processes get their turn
_SECONDS_BETWEEN_PURGES = 10.0
_LONGEST_WITHOUT_WORD = 1.0


class Home(Protocol):
    """What the writer needs of the storage that it writes for."""

    path: str

    def cache_for(self, version: int) -> Cache: ...
    def catalogue_changed(self, version: int) -> None: ...
    def now(self) -> float: ...


class _Call:
    """One caller's action, and what became of it."""

    __slots__ = ("action", "error", "is_done", "is_taken", "result", "word")

    def __init__(self, action: Callable[[Transaction], Any]) -> None:
        self.action = action
        self.result: Any = None
        self.error: BaseException | None = None
        self.is_taken = False
        """Whether a leader is at work on it, or was."""
        self.is_done = False
        self.word = threading.Lock()
        """Held while the caller waits for word: that it is done, or is to lead."""

    def tell(self) -> None:
        """Give the caller word, unless it has been given."""
        with contextlib.suppress(RuntimeError):
            self.word.release()


class _HalfDone(Exception):
    """An action failed when it had written already: all that shares its commit is undone, and done without it.

    A savepoint for each action would undo less. But nearly all actions that fail do so before they write, and those
    that do not fail would pay for it.
    """


class Writer:
    """Runs actions in transactions; `run` returns when the action's changes are durable."""

    def __init__(self, home: Home, turn: Turn, connect: Callable[[], sqlite3.Connection]) -> None:
        self._home = home
        self._turn = turn
        self._connect = connect
        self._connection: sqlite3.Connection | None = None
        self._wal = WalBound(home.path)
        self._whereabouts = Whereabouts(home.path)
        self._leading = threading.Lock()
        self._is_passed_on = False
        self._waiting: deque[_Call] = deque()
        self._next_purge = 0.0
        self._refusal: str | None = None

    def run(self, action: Callable[[Transaction], T]) -> T:
        """Run an action atomically, together with those of other threads, and give its result."""
        call = _Call(action)
        # A signal may raise KeyboardInterrupt, or something else, between any two steps. So whoever leads holds a lock
        # in `with`, which ends whatever happens. Word may get lost: then who waits for it asks for the lock.
        try:
            if self._is_led():
                self._wait(call)
            if not call.is_done:
                with self._leading:
                    self._lead(call)
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
        """Let every write that was asked for finish, then close; later ones raise with that reason."""
        with self._leading:
            while (call := self._take_next()) is not None:
                self._do(call)
                call.is_done = True
                call.tell()
            self._drop_connection()
            self._refusal = refusal

    def restart_in_child(self, turn: Turn) -> None:
        """Begin anew in a forked process."""
        self._turn = turn
        self._leading = threading.Lock()
        self._is_passed_on = False
        self._waiting = deque()

    def _is_led(self) -> bool:
        """Whether a thread leads, or was told to."""
        return self._is_passed_on or self._leading.locked()

    def _wait(self, call: _Call) -> None:
        """Wait until another thread has done the call, or this one is to lead; or too long for either."""
        call.word.acquire()
        self._waiting.append(call)
        if self._is_led():  # else the last leader may have looked for others before this one came
            call.word.acquire(timeout=_LONGEST_WITHOUT_WORD)

    def _lead(self, call: _Call) -> None:
        """Do the call, and those that wait, unless another leader has been faster."""
        self._is_passed_on = False
        self._withdraw(call)
        if call.is_done:
            return
        if call.is_taken:
            call.error = _interrupted()
        elif self._refusal is not None:
            call.error = StorageError(self._refusal)
        else:
            self._do(call)

    def _withdraw(self, call: _Call) -> None:
        """Let nobody take the call along any more."""
        if self._waiting:
            with contextlib.suppress(ValueError):  # it does not wait
                self._waiting.remove(call)

    def _wake_next(self) -> None:
        """Make the next waiting caller the leader. It waits until then, so another leader may still take it along."""
        if not self._waiting:
            self._is_passed_on = False  # It may say so of one who did not wait any more when it was told.
            return
        with contextlib.suppress(IndexError):  # the last one has left just now
            call = self._waiting[0]
            self._is_passed_on = True
            call.tell()

    def _do(self, call: _Call) -> None:
        taken, behind = [call], list(self._waiting)
        try:
            with self._turn:
                self._commit(taken)
        except (sqlite3.Error, OSError) as error:
            self._drop_connection()
            if is_locked(error):
                # They have waited as long. Each for itself, the last of many would wait for minutes.
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

    def _commit(self, taken: list[_Call]) -> None:
        connection = self._connection or self._reconnect()
        while True:
            when_unlocked(connection.execute, "BEGIN IMMEDIATE")
            try:
                new_version = self._run_actions(connection, taken)
                break
            except _HalfDone:
                connection.execute("ROLLBACK")
        if new_version is not None:
            self._turn.announce_change()
        connection.execute("COMMIT")
        # What follows is no part of the write: it is durable, and its callers are told so whatever happens here.
        if new_version is not None:
            with contextlib.suppress(OSError):  # The readers look into the file until the next writer announces it.
                self._home.catalogue_changed(new_version)
        if self._wal.is_to_be_looked_at():
            with contextlib.suppress(sqlite3.Error, OSError):
                self._wal.restart_if_long(connection)

    def _run_actions(self, connection: sqlite3.Connection, taken: list[_Call]) -> int | None:
        """Do what shares this commit; gives the number of the catalogue if that has changed."""
        first_version = version = catalogue_version(connection)
        transaction = Transaction(connection, self._home.cache_for(version), self._home.now)
        for call in self._batch(taken):
            if _perform(call, transaction) and transaction.catalogue_changed:
                version += 1
                connection.execute(f"PRAGMA user_version = {version}")
                transaction.forget_schemas()
        if transaction.has_remembered and time.monotonic() > self._next_purge and not transaction.forget_tokens():
            self._next_purge = time.monotonic() + _SECONDS_BETWEEN_PURGES
        transaction.store_counts()
        return None if version == first_version else version

    def _batch(self, taken: list[_Call]) -> Iterator[_Call]:
        """The calls that were taken and have not failed, and then those that wait, while there is time."""
        yield from [call for call in taken if call.error is None]
        now = time.monotonic()
        self._whereabouts.check(now)  # here, because the clock is read only once for a commit
        deadline = now + _LONGEST_BATCH
        while self._waiting and len(taken) < _MOST_ACTIONS and time.monotonic() < deadline:
            call = self._take_next()
            if call is not None:
                taken.append(call)
                yield call

    def _take_all(self, calls: Sequence[_Call]) -> Iterator[_Call]:
        """Those of the calls that still wait."""
        for call in calls:
            with contextlib.suppress(ValueError):  # it has been taken along, or has left
                self._waiting.remove(call)
                yield call

    def _take_next(self) -> _Call | None:
        """The call that has waited longest, or None."""
        try:
            call = self._waiting.popleft()
        except IndexError:
            return None
        call.is_taken = True
        return call

    def _reconnect(self) -> sqlite3.Connection:
        self._connection = when_unlocked(self._connect)
        return self._connection

    def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _perform(call: _Call, transaction: Transaction) -> bool:
    """Run one action; a failure of its own is told to its caller alone."""
    transaction.has_written = False
    try:
        call.result = call.action(transaction)
    except Exception as error:
        call.error = table_not_found() if is_missing_table(error) else error
        if isinstance(call.error, sqlite3.Error):
            raise
        if transaction.has_written:
            raise _HalfDone from error
    finally:
        # Also after an error: its traceback keeps what was read from, and that the lock, even of a closed connection.
        transaction.end_reads()
    return call.error is None


def _interrupted(error: BaseException | None = None) -> RequestError:
    """What a caller is told whose call was taken along by a thread that was interrupted: it may be done or not."""
    reason = "" if error is None else f": {error!r}"
    return request_error("InternalServerError", f"the write was interrupted{reason}")
