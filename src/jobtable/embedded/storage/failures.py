"""The messages for faults of SQLite and the operating system, with advice."""

from __future__ import annotations

import errno
import sqlite3

from jobtable.errors import RequestError, StorageError, StorageLocked, TableNotFound, request_error

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
