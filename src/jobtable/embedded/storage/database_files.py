"""The files of a database: private to the user, opened with the right settings, upgraded, or temporary."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import sqlite3
import tempfile
import time
import weakref
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Literal, ParamSpec, TypeVar
from urllib.parse import quote

from jobtable.embedded.storage.connections import cannot_open, is_locked
from jobtable.embedded.storage.table_catalogue import catalogue_version
from jobtable.errors import StorageError
from jobtable.files import sync_folders_above

P = ParamSpec("P")
T = TypeVar("T")
Durability = Literal["full", "normal", "off"]

APPLICATION_ID = 0x4A54424C  # "JTBL", so that `file` and other programs can tell whose file it is
_BUSY_SECONDS = 10.0  # how long to wait for a file that another program locks
_BUSY_SECONDS_AT_ONCE = 0.2
"""How long a writer waits inside of SQLite, where no signal is handled: Ctrl-C is delayed as long."""
_PAUSE_SECONDS = 0.02
"""Between two attempts. SQLite refuses some at once: to log ahead in a file that another program writes without that.
"""
_CACHE_KIB = 16 * 1024
_CHECKPOINT_PAGES = 1000
_LARGEST_IDLE_WAL = 64 * 1024 * 1024
_SECONDS_BETWEEN_LOOKS = 1.0


def create_private(path: str) -> None:
    """Create the file, readable by its user alone, unless it exists. SQLite gives its side files the same mode."""
    Path(path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # An existing file must not even be opened here: closing it would drop the locks that SQLite holds in this process.
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


class Connection(sqlite3.Connection):
    """A connection that weak references can point to, and that is closed when unreferenced, as after an interrupt."""

    def __del__(self) -> None:
        # Newer versions of Python would warn. One that could not be opened cannot be closed either.
        with contextlib.suppress(sqlite3.ProgrammingError):
            self.close()


def connect(path: str, durability: Durability) -> sqlite3.Connection:
    """Open a connection in autocommit mode that any thread may use, one at a time."""
    return _connect(path, durability, _BUSY_SECONDS)


def connect_to_write(path: str, durability: Durability) -> sqlite3.Connection:
    """Open a connection for a writer: it waits only a moment for a locked file, so use `when_unlocked`."""
    return _connect(path, durability, min(_BUSY_SECONDS_AT_ONCE, _BUSY_SECONDS))


def when_unlocked(attempt: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """Run an attempt again for a while, as long as another program locks the file, and return its result.

    SQLite waits in each attempt, but only for a moment, so that signals are handled in between.
    """
    give_up_at = None
    while True:
        try:
            return attempt(*args, **options)
        except sqlite3.OperationalError as error:
            if not is_locked(error):
                raise
            now = time.monotonic()
            if give_up_at is None:
                give_up_at = now + _BUSY_SECONDS - _BUSY_SECONDS_AT_ONCE
            if now >= give_up_at:
                raise
            time.sleep(_PAUSE_SECONDS)


def _connect(path: str, durability: Durability, busy_seconds: float) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"file:{quote(path)}?mode=rw",
        uri=True,
        timeout=busy_seconds,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=512,
        factory=Connection,
    )
    try:
        # NORMAL and OFF keep the file whole after a crash of the process; a power cut may undo the last commits.
        connection.execute(f"PRAGMA synchronous = {durability}")
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
        connection.execute(f"PRAGMA journal_size_limit = {_LARGEST_IDLE_WAL}")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute("PRAGMA trusted_schema = OFF")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def inspect(path: str) -> None:
    """Create a missing file; StorageError if it is not a database, of another program, or of a newer version."""
    # Checked before SQLite, which would leave a journal beside a device.
    if os.path.exists(path) and not os.path.isfile(path):
        told = "a folder; name a file in it" if os.path.isdir(path) else "a device or a pipe; name a file"
        raise StorageError(f"{path} cannot be used: it is {told}")
    _with_connection(path, "full", _inspect)


def upgrade(path: str, durability: Durability) -> int:
    """Upgrade the database while no other process writes, and return the number of the catalogue's last change.

    Raise StorageError if it cannot be written.
    """
    return _with_connection(path, durability, _upgrade)


class Whereabouts:
    """Detects that the file at a path is not the opened one any more.

    SQLite keeps writing into a deleted or replaced file, and all of it is lost with the process.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._opened = _identity(path)
        self.next_look = 0.0  # the time of the next check, by the clock of `check`

    def check(self, now: float) -> None:
        """Raise OSError if the file is missing or another one."""
        if _identity(self._path) != self._opened:
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        self.next_look = now + _SECONDS_BETWEEN_LOOKS


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _with_connection(
    path: str, durability: Durability, action: Callable[[str, Durability, sqlite3.Connection], T]
) -> T:
    """Return the action's result on a file that is created if missing. If it is locked, the action starts again."""

    def attempt() -> T:
        with contextlib.closing(connect_to_write(path, durability)) as connection:
            return action(path, durability, connection)

    try:
        create_private(path)
        return when_unlocked(attempt)
    except (sqlite3.Error, OSError) as error:
        raise cannot_open(path, error) from error


def _inspect(path: str, _: Durability, connection: sqlite3.Connection) -> None:
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if tables and application_id != APPLICATION_ID:
        raise StorageError(f"{path} is an SQLite database of another program; name another file")
    refuse_newer_file(path, connection)


def refuse_newer_file(path: str, connection: sqlite3.Connection) -> None:
    """Raise StorageError if the file has a newer version, perhaps upgraded while this process has it open."""
    version = _format_of(connection)
    if version > FORMAT:
        raise StorageError(
            f"{path} has format {version}, and this version of Jobtable knows formats up to {FORMAT}; "
            "upgrade Jobtable and start this program again, or open a copy made by this version"
        )


def _upgrade(path: str, durability: Durability, connection: sqlite3.Connection) -> int:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("BEGIN IMMEDIATE")
    version = _format_of(connection)
    if version == 0 and durability != "off":
        # Before the commit: another process that finds a database with a format relies on its durability.
        sync_folders_above(Path(path))
    for step in MIGRATIONS[version:]:
        step(connection)
    if version < FORMAT:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("INSERT OR REPLACE INTO meta VALUES ('format', ?)", (FORMAT,))
    if 0 < version < FORMAT:
        # As a change of the catalogue, which processes of the older version notice that have the file open.
        connection.execute(f"PRAGMA user_version = {catalogue_version(connection) + 1}")
    connection.execute("COMMIT")
    return catalogue_version(connection)


def _format_of(connection: sqlite3.Connection) -> int:
    if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'meta'").fetchone() is None:
        return 0
    (version,) = connection.execute("SELECT value FROM meta WHERE name = 'format'").fetchone()
    return int(version)


def _create_catalogue(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID")
    connection.execute("INSERT INTO meta VALUES ('last_id', 0)")
    connection.execute("CREATE TABLE tables (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, record BLOB NOT NULL)")
    connection.execute("CREATE TABLE counters (id INTEGER PRIMARY KEY, items INTEGER NOT NULL, bytes INTEGER NOT NULL)")
    connection.execute(
        "CREATE TABLE streams (label TEXT NOT NULL, table_name TEXT NOT NULL, table_id INTEGER NOT NULL,"
        " record BLOB NOT NULL, PRIMARY KEY (table_name, label)) WITHOUT ROWID"
    )


def _add_idempotency_tokens(connection: sqlite3.Connection) -> None:
    connection.execute(
        "CREATE TABLE tokens (token TEXT PRIMARY KEY, time INTEGER NOT NULL, request BLOB NOT NULL,"
        " response BLOB NOT NULL) WITHOUT ROWID"
    )
    connection.execute("CREATE INDEX tokens_by_time ON tokens (time)")


def _keep_last_changes(_: sqlite3.Connection) -> None:
    """Only a mark: a journal made from now on is numbered by its last row, which must not be trimmed."""


def _add_fillings(connection: sqlite3.Connection) -> None:
    connection.execute(
        "CREATE TABLE fillings (id INTEGER PRIMARY KEY, table_name TEXT NOT NULL, position BLOB NOT NULL)"
    )


def _add_restores(connection: sqlite3.Connection) -> None:
    connection.execute(
        "CREATE TABLE restores (id INTEGER PRIMARY KEY, table_name TEXT NOT NULL, source_id INTEGER NOT NULL,"
        " first_undone INTEGER NOT NULL, position BLOB NOT NULL, next_undone INTEGER)"
    )


def _add_backups(connection: sqlite3.Connection) -> None:
    connection.execute(
        "CREATE TABLE backups (id INTEGER PRIMARY KEY, label TEXT NOT NULL, table_name TEXT NOT NULL, expires REAL,"
        " record BLOB NOT NULL)"
    )
    connection.execute("CREATE UNIQUE INDEX backups_by_label ON backups (label, table_name)")


MIGRATIONS: tuple[Callable[[sqlite3.Connection], None], ...] = (
    _create_catalogue,
    _add_idempotency_tokens,
    _keep_last_changes,
    _add_fillings,
    _add_restores,
    _add_backups,
)
"""Step n turns a file of format n into one of format n + 1; format 0 is an empty file."""

FORMAT = len(MIGRATIONS)


_PREFIX = "jobtable-memory-"
_OWNER = "owner"


class TemporaryFolder:
    """A private folder, removed on `close`, at the end of the process, or, if that was killed, by a later process."""

    def __init__(self) -> None:
        _remove_abandoned_once(tempfile.gettempdir())
        self.path = tempfile.mkdtemp(prefix=_PREFIX)
        # A process that can lock this file knows that the folder's owner has ended. So it is locked before others
        # can find it.
        new = os.path.join(self.path, f"{_OWNER}-new")
        owner = os.open(new, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(owner, fcntl.LOCK_EX)
        os.rename(new, os.path.join(self.path, _OWNER))
        self._remove = weakref.finalize(self, _remove, self.path, owner, os.getpid())

    def close(self) -> None:
        """Remove the folder; doing so twice is harmless."""
        self._remove()


def _remove(path: str, owner: int, maker: int) -> None:
    if os.getpid() == maker:
        shutil.rmtree(path, ignore_errors=True)
        os.close(owner)


def _remove_abandoned(shared: str) -> None:
    for folder in Path(shared).glob(f"{_PREFIX}*"):
        # Skip those that another process uses, or removes meanwhile.
        with contextlib.suppress(OSError):
            # Another user's file is not even opened: it may be a link to one of our own databases, whose locks this
            # process would lose when it closes it.
            if folder.lstat().st_uid == os.geteuid():
                with (folder / _OWNER).open("r+") as owner:
                    fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder)


_remove_abandoned_once = cache(_remove_abandoned)
"""Checking every folder takes as long as opening many databases, and the next process finds what is left now."""
