"""Whose turn it is to write: one process at a time, in the order in which they asked."""

from __future__ import annotations

import fcntl
import mmap
import os
import struct

from jobtable.embedded.storage.files import create_private

_VERSION = struct.Struct("<Q")


class Turn:
    """A fair lock between processes, and the number of the catalogue's last change, in one small file.

    The kernel ends the turn of a process that dies. `with turn:` is for one thread of the process at a time.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        create_private(path)
        self._queue = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self._writing = os.open(path + "2", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if os.fstat(self._queue).st_size < _VERSION.size:
            os.pwrite(self._queue, _VERSION.pack(0), 0)
        self._version = mmap.mmap(self._queue, _VERSION.size, prot=mmap.PROT_READ)

    def __enter__(self) -> None:
        fcntl.flock(self._queue, fcntl.LOCK_EX)
        try:
            fcntl.flock(self._writing, fcntl.LOCK_EX)
        finally:
            fcntl.flock(self._queue, fcntl.LOCK_UN)

    def __exit__(self, *_: object) -> None:
        fcntl.flock(self._writing, fcntl.LOCK_UN)

    def catalogue_version(self) -> bytes:
        """Changes whenever any process has changed the catalogue; costs no system call."""
        return self._version[:]

    @staticmethod
    def label(catalogue_version: int) -> bytes:
        """What `catalogue_version` gives after that version was announced."""
        return _VERSION.pack(catalogue_version)

    def announce(self, catalogue_version: int) -> None:
        """Tell the readers of every process that the catalogue has changed."""
        # Written, not stored through the map: on a full disk a store would end the process.
        os.pwrite(self._queue, _VERSION.pack(catalogue_version), 0)

    def close(self) -> None:
        """Give back the file."""
        self._version.close()
        os.close(self._queue)
        os.close(self._writing)
