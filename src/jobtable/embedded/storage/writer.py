"""Writers share commits: the first one leads, and takes along whoever is waiting."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar

from jobtable.embedded.storage.catalogue import Cache, catalogue_version
from jobtable.embedded.storage.files import Whereabouts
from jobtable.embedded.storage.problems import is_missing_table, table_not_found, unavailable
from jobtable.embedded.storage.transactions import Transaction
from jobtable.embedded.storage.turn import Turn
from jobtable.embedded.storage.wal import WalBound
from jobtable.errors import StorageError, request_error

T = TypeVar("T")

_MOST_ACTIONS = 128
_LONGEST_BATCH = 0.01  # seconds of work before the commit, so that other processes get their turn
_SECONDS_BETWEEN_PURGES = 10.0


class Home(Protocol):
    """What the writer needs of the storage that it writes for."""

    path: str

    def cache_for(self, version: int) -> Cache: ...
    def catalogue_changed(self, version: int) -> None: ...
    def now(self) -> float: ...


class _Call:
    """One caller's action, and what became of it."""

    __slots__ = ("action", "error", "is_done", "ready", "result")

    def __init__(self, action: Callable[[Transaction], Any]) -> None:
        self.action = action
        self.result: Any = None
        self.error: BaseException | None = None
        self.is_done = False
        self.ready = threading.Lock()


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
        self._mutex = threading.Lock()
        self._waiting: deque[_Call] = deque()
        self._is_led = False
        self._next_purge = 0.0
        self._refusal: str | None = None

    def run(self, action: Callable[[Transaction], T]) -> T:
        """Run an action atomically, together with those of other threads, and give its result."""
        if self._refusal is not None:
            raise StorageError(self._refusal)
        call = _Call(action)
        if self._lead_or_wait(call):
            self._lead(call)
        if call.error is not None:
            raise call.error
        result: T = call.result
        return result

    def pause(self) -> None:
        """Wait until nobody writes, close the connection, and let nobody write until `resume`."""
        self._lead_or_wait(_Call(_nothing), is_urgent=True)
        self._drop_connection()

    def resume(self) -> None:
        """End a pause."""
        self._pass_on()

    def close(self, refusal: str) -> None:
        """Let every write that was asked for finish, then close; later ones raise with that reason."""
        self._lead_or_wait(_Call(_nothing))
        self._drop_connection()
        self._refusal = refusal
        self._pass_on()

    def restart_in_child(self, turn: Turn) -> None:
        """Begin anew in a forked process."""
        self._turn = turn
        self._mutex = threading.Lock()
        self._waiting = deque()
        self._is_led = False

    def _lead_or_wait(self, call: _Call, *, is_urgent: bool = False) -> bool:
        """True: this thread leads now. False: another thread has done the call. An urgent call is the next to lead."""
        with self._mutex:
            if not self._is_led:
                self._is_led = True
                return True
            call.ready.acquire()
            if is_urgent:
                self._waiting.appendleft(call)
            else:
                self._waiting.append(call)
        try:
            call.ready.acquire()
        except BaseException:
            self._abandon(call)
            raise
        return not call.is_done

    def _abandon(self, call: _Call) -> None:
        """Forget a call whose thread was interrupted while it waited, unless a leader is at work on it."""
        with self._mutex:
            if call in self._waiting:
                self._waiting.remove(call)
                return
            is_leader = call.ready.acquire(blocking=False) and not call.is_done
        if is_leader:
            self._pass_on()

    def _pass_on(self) -> None:
        """Make the next waiting caller the leader."""
        with self._mutex:
            if self._waiting:
                self._waiting.popleft().ready.release()
            else:
                self._is_led = False

    def _lead(self, call: _Call) -> None:
        taken = [call]
        try:
            if self._refusal is None:
                with self._turn:
                    self._commit(taken)
            else:
                call.error = StorageError(self._refusal)
        except (sqlite3.Error, OSError) as error:
            self._drop_connection()
            for one in taken:
                one.error = unavailable(self._home.path, error)
        except BaseException as error:
            self._drop_connection()
            for one in taken[1:]:
                one.error = request_error("InternalServerError", f"the write was interrupted: {error!r}")
            raise
        finally:
            self._pass_on()
            for done in taken[1:]:
                done.is_done = True
                done.ready.release()

    def _commit(self, taken: list[_Call]) -> None:
        connection = self._connection or self._reconnect()
        while True:
            connection.execute("BEGIN IMMEDIATE")
            try:
                new_version = self._run_actions(connection, taken)
                break
            except _HalfDone:
                connection.execute("ROLLBACK")
        connection.execute("COMMIT")
        # What follows is no part of the write: it is durable, and its callers are told so whatever happens here.
        if self._wal.is_to_be_looked_at():
            with contextlib.suppress(sqlite3.Error, OSError):
                self._wal.restart_if_long(connection)
        if new_version is not None:
            self._home.catalogue_changed(new_version)

    def _run_actions(self, connection: sqlite3.Connection, taken: list[_Call]) -> int | None:
        """Do what shares this commit; gives the number of the catalogue if that has changed."""
        version = catalogue_version(connection)
        cache = self._home.cache_for(version)
        counts: dict[int, list[int]] = {}
        catalogue_changed = False
        for call in self._batch(taken):
            transaction = Transaction(connection, cache, self._home.now)
            if not _perform(call, transaction):
                continue
            for id_, (items, size) in transaction.counts().items():
                total = counts.setdefault(id_, [0, 0])
                total[0] += items
                total[1] += size
            if transaction.has_remembered and time.monotonic() > self._next_purge and not transaction.forget_tokens():
                self._next_purge = time.monotonic() + _SECONDS_BETWEEN_PURGES
            if transaction.catalogue_changed:
                catalogue_changed = True
                version += 1
                connection.execute(f"PRAGMA user_version = {version}")
                cache = Cache(b"")
        rows = [(items, size, id_) for id_, (items, size) in counts.items() if items or size]
        if rows:
            connection.executemany("UPDATE counters SET items = items + ?, bytes = bytes + ? WHERE id = ?", rows)
        return version if catalogue_changed else None

    def _batch(self, taken: list[_Call]) -> Iterator[_Call]:
        """The calls that were taken and have not failed, and then those that wait, while there is time."""
        yield from [call for call in taken if call.error is None]
        now = time.monotonic()
        self._whereabouts.check(now)  # here, because the clock is read only once for a commit
        deadline = now + _LONGEST_BATCH
        while self._waiting and len(taken) < _MOST_ACTIONS and time.monotonic() < deadline:
            with self._mutex:
                if not self._waiting or self._waiting[0].action is _nothing:
                    return
                call = self._waiting.popleft()
            taken.append(call)
            yield call

    def _reconnect(self) -> sqlite3.Connection:
        self._connection = self._connect()
        return self._connection

    def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _perform(call: _Call, transaction: Transaction) -> bool:
    """Run one action; a failure of its own is told to its caller alone."""
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


def _nothing(_: Transaction) -> None:
    """The action of a caller that only wants to lead."""
