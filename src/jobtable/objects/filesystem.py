"""Objects as files in a folder.

Every object is one plain file, and its key is its path. On the way to a file name, upper-case letters are
percent-encoded too, so that two keys never meet in one file where names fold case or normalise Unicode. A put
writes to the folder `.incoming`, which no key can name, and moves the finished file to its place.

Paths are walked from folder to folder by file descriptor, and links are never followed: to this store a link is not
there. So nothing outside the root can be reached, also while somebody changes the tree.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import stat
import uuid
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote_to_bytes

from jobtable.clock import SYSTEM_CLOCK, Clock
from jobtable.errors import ObjectNotFoundError, ObjectStoreError, ObjectStoreUnavailable
from jobtable.files import sync_folders_above
from jobtable.objects.keys import content_type, key_parts, object_key
from jobtable.objects.object_store import ListedObject, ObjectInfo, Source, check_range, chunks, measured

_INCOMING = ".incoming"
_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a FIFO must not make a reader wait
_CREATE_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_UNSAFE_IN_NAME = re.compile(rb"^\.|[^a-z0-9._~=,@+-]")
_NOT_THERE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EISDIR}
_PASSING = {errno.ENOSPC, errno.EDQUOT, errno.ESTALE, errno.ETIMEDOUT}
"""The disk is full, or away in the network: the same may succeed later."""
_PLACING_ATTEMPTS = 100


class FilesystemObjectStore:
    """An ObjectStore in a folder, safe for several processes; files and folders are private to the user."""

    def __init__(self, root: Path, clock: Clock = SYSTEM_CLOCK) -> None:
        self._root = root.absolute()
        self._clock = clock
        with self._io_errors("open"):
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not (self._root / _INCOMING).is_dir():
                # Before that folder is made: whoever finds it may put objects, and be sure that the root stays.
                sync_folders_above(self._root)
            with self._folder((_INCOMING,), create=True):
                pass

    @property
    def bucket(self) -> str:
        return str(self._root)

    def put(self, key: str, source: Source) -> ObjectInfo:
        names = _names(key)
        digest = hashlib.sha256()
        size = 0
        with self._incoming_file(key) as (temporary, file):
            for chunk in chunks(source):
                digest.update(chunk)
                size += len(chunk)
                with self._io_errors(f"put {key}"):
                    file.write(chunk)
            with self._io_errors(f"put {key}"):
                self._finish(file)
                self._place(temporary, names)
        return ObjectInfo(key, size, digest.hexdigest(), content_type(key))

    def get(self, key: str) -> bytes:
        with self.open(key) as stream, self._io_errors(f"get {key}"):
            return stream.read()

    def get_range(self, key: str, start: int, length: int) -> bytes:
        check_range(start, length)
        with self.open(key) as stream, self._io_errors(f"get {key}"):
            left = os.fstat(stream.fileno()).st_size - start
            if left <= 0:
                return b""
            stream.seek(start)
            return stream.read(min(length, left))

    def open(self, key: str) -> BinaryIO:
        names = _names(key)
        with self._io_errors(f"open {key}", missing=key), self._folder(names[:-1]) as folder:
            return _opened(names[-1], folder)

    def head(self, key: str) -> ObjectInfo:
        with self.open(key) as stream, self._io_errors(f"read {key}"):
            digest, size = measured(stream)
        return ObjectInfo(key, size, digest.hex(), content_type(key))

    def describe(self, key: str) -> ListedObject:
        with self.open(key) as stream, self._io_errors(f"read {key}"):
            status = os.fstat(stream.fileno())
        return ListedObject(key, status.st_size, datetime.fromtimestamp(status.st_mtime, UTC))

    def list(self, prefix: str = "") -> Iterator[ListedObject]:
        return self._walk(key_parts(prefix) if prefix else ())

    def delete(self, key: str) -> None:
        names = _names(key)
        with self._io_errors(f"delete {key}"):
            try:
                with self._folder(names[:-1]) as folder:
                    os.unlink(names[-1], dir_fd=folder)
                    os.fsync(folder)
            except OSError as error:
                if error.errno not in _NOT_THERE:
                    raise
                return
            self._remove_empty_folders(names[:-1])

    def url(self, key: str, *, expires_in: timedelta = timedelta(hours=1)) -> str | None:
        key_parts(key)
        return None

    def remove_unfinished(self, before: datetime) -> int:
        removed = 0
        with self._io_errors("remove unfinished puts"), self._folder((_INCOMING,)) as incoming:
            for name in os.listdir(incoming):
                with contextlib.suppress(FileNotFoundError):  # its put has ended meanwhile
                    if os.stat(name, dir_fd=incoming, follow_symlinks=False).st_mtime < before.timestamp():
                        os.unlink(name, dir_fd=incoming)
                        removed += 1
        return removed

    def close(self) -> None:
        """Nothing is held between calls."""

    @contextlib.contextmanager
    def _folder(self, names: Sequence[str], *, create: bool = False) -> Iterator[int]:
        """The file descriptor of a folder under the root."""
        descriptor = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)  # the root may be a link
        try:
            for name in names:
                deeper = _subfolder(descriptor, name, create=create)
                os.close(descriptor)
                descriptor = deeper
            yield descriptor
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def _incoming_file(self, key: str) -> Iterator[tuple[str, BinaryIO]]:
        """A new file to write, and its name; it is gone afterwards unless it was moved to its place."""
        name = uuid.uuid4().hex
        with contextlib.ExitStack() as stack:
            with self._io_errors(f"put {key}"):
                incoming = stack.enter_context(self._folder((_INCOMING,), create=True))
                file = os.fdopen(os.open(name, _CREATE_FILE, 0o600, dir_fd=incoming), "wb")
            stack.callback(_unlink_if_there, name, incoming)
            stack.callback(_close_quietly, file)
            yield name, file

    def _finish(self, file: BinaryIO) -> None:
        file.flush()
        modified = int(self._clock.seconds() * 1e9)
        os.utime(file.fileno(), ns=(modified, modified))
        os.fsync(file.fileno())

    def _place(self, temporary: str, names: Sequence[str]) -> None:
        for attempt in range(_PLACING_ATTEMPTS):
            try:
                with self._folder((_INCOMING,)) as incoming, self._folder(names[:-1], create=True) as folder:
                    os.replace(temporary, names[-1], src_dir_fd=incoming, dst_dir_fd=folder)
                    os.fsync(folder)
                    return
            except FileNotFoundError:  # a delete removed the empty folder before the file was in it
                if attempt == _PLACING_ATTEMPTS - 1:
                    raise

    def _remove_empty_folders(self, names: Sequence[str]) -> None:
        for depth in range(len(names), 0, -1):
            try:
                with self._folder(names[: depth - 1]) as parent:
                    os.rmdir(names[depth - 1], dir_fd=parent)
            except OSError as error:
                if error.errno not in _NOT_THERE | {errno.ENOTEMPTY, errno.EEXIST}:
                    raise
                return

    def _walk(self, parts: tuple[str, ...]) -> Iterator[ListedObject]:
        with self._io_errors(f"list {'/'.join(parts) or 'all objects'}"), contextlib.ExitStack() as stack:
            try:
                folder = stack.enter_context(self._folder([_name(part) for part in parts]))
            except OSError as error:
                if parts and error.errno in _NOT_THERE:
                    return
                raise
            for entry in stack.enter_context(os.scandir(folder)):
                part = _part(entry.name)
                if part is None:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    yield from self._walk((*parts, part))
                elif entry.is_file(follow_symlinks=False):
                    with contextlib.suppress(FileNotFoundError):  # deleted since it was seen
                        status = entry.stat(follow_symlinks=False)
                        modified_at = datetime.fromtimestamp(status.st_mtime, UTC)
                        yield ListedObject(object_key(*parts, part), status.st_size, modified_at)

    @contextlib.contextmanager
    def _io_errors(self, action: str, missing: str | None = None) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if missing is not None and error.errno in _NOT_THERE and self._root.is_dir():
                raise ObjectNotFoundError(f"there is no object {missing!r} in {self._root}") from error
            kind = ObjectStoreUnavailable if error.errno in _PASSING else ObjectStoreError
            raise kind(f"cannot {action} in {self._root}: {error.strerror or error}") from error


def _name(part: str) -> str:
    """The file name of a part: the same on filesystems that fold case, normalise Unicode or forbid characters."""
    return _UNSAFE_IN_NAME.sub(lambda unsafe: b"%%%02x" % unsafe[0][0], part.encode()).decode()


def _names(key: str) -> list[str]:
    return [_name(part) for part in key_parts(key)]


def _subfolder(parent: int, name: str, *, create: bool) -> int:
    try:
        folder = os.open(name, _OPEN_FOLDER, dir_fd=parent)
    except FileNotFoundError:
        if not create:
            raise
        with contextlib.suppress(FileExistsError):  # another writer was faster
            os.mkdir(name, 0o700, dir_fd=parent)
        folder = os.open(name, _OPEN_FOLDER, dir_fd=parent)
    try:
        # Nothing comes into a folder before its name is durable. So one that holds something is, whoever has made it.
        if create and name != _INCOMING and _is_empty(folder):
            os.fsync(parent)
    except OSError:
        os.close(folder)
        raise
    return folder


def _is_empty(folder: int) -> bool:
    with os.scandir(folder) as entries:
        return next(entries, None) is None


def _opened(name: str, folder: int) -> BinaryIO:
    descriptor = os.open(name, _OPEN_FILE, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise FileNotFoundError(errno.ENOENT, "not a regular file")
    return os.fdopen(descriptor, "rb")


def _part(name: str) -> str | None:
    """The part that a file name stands for; None for a name that this store does not give."""
    try:
        part = unquote_to_bytes(name).decode()
        return part if part and _name(part) == name else None
    except ValueError:
        return None


def _close_quietly(file: BinaryIO) -> None:
    with contextlib.suppress(OSError):  # what is left to write is of a put that has failed, which is told already
        file.close()


def _unlink_if_there(name: str, folder: int) -> None:
    with contextlib.suppress(OSError):  # gone to its place; or it stays until remove_unfinished
        os.unlink(name, dir_fd=folder)
