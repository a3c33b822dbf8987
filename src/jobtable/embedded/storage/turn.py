"""Whose turn it is to write: one process at a time, in the order in which they asked."""

from __future__ import annotations

import fcntl
import mmap
import os
import struct

from jobtable.embedded.storage.files import create_private

_VERSION = struct.Struct("<Q")
_UPKEEP_BYTE = 64  # the byte whose lock says who does the upkeep


class Turn:
    """A fair lock between processes, and the number of the catalogue's last change, in one small file.

    The kernel ends the turn of a process that dies. `with turn:` is for one thread of the process at a time.
    """

    def __init__(self, path: str) -> None:
        create_private(path)
        self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        if os.fstat(self._file).st_size < _VERSION.size:
            os.pwrite(self._file, _VERSION.pack(0), 0)
        self._version = mmap.mmap(self._file, _VERSION.size, prot=mmap.PROT_READ)

    def __enter__(self) -> None:
        # Linux wakes the waiters of a flock in the order in which they came; `python -m faults fairness` measures it.
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        fcntl.flock(self._file, fcntl.LOCK_UN)

    def is_mine_to_keep_up(self) -> bool:
        """Whether this process, and no other, does the upkeep; once it is, it stays so until the process ends."""
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _UPKEEP_BYTE)
        except BlockingIOError:
            return False
        return True

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
        os.pwrite(self._file, _VERSION.pack(catalogue_version), 0)

    def close(self) -> None:
        """Give back the file."""
        self._version.close()
        os.close(self._file)
