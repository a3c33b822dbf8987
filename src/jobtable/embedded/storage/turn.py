"""Decides which process may write: one at a time, in the order of their requests."""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import struct
import time
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from operator import itemgetter

from jobtable.embedded.storage.database_files import create_private

_NUMBER = struct.Struct("<Q")
_VERSION, _ISSUED, _SERVED = 0, 8, 16  # where the three numbers stand in the file
_SIZE = 24
_NO_NUMBER = 2**64 - 1  # more than any change of the catalogue has

# Bytes beyond the end of the file, of which only the locks are used.
_TICKET_BYTE = 64
_UPKEEP_BYTE = 65

_LOCK_IF_FREE = fcntl.LOCK_EX | fcntl.LOCK_NB
_POLL_SECONDS = 0.00005
_LONGEST_POLL_SECONDS = 0.001
_LONGEST_WITHOUT_PROGRESS = 0.5


class Turn:
    """A fair lock between processes, and the number of the catalogue's last change, in one small file.

    The lock is a flock, which the kernel releases when its process dies. The kernel wakes a waiting process, but
    another one that comes just then can be faster, and under load the same one is, again and again. So with several
    waiting they take tickets: only the next in line waits for the flock itself, the others watch the tickets pass. A
    process that was killed or stopped in the line delays the others by half a second, once.

    `with turn:` is for one thread of the process at a time. Only the holder of the turn announces.
    """

    BEING_CHANGED = _NUMBER.pack(_NO_NUMBER)  # the value of `catalogue_version` after `announce_change`

    def __init__(self, path: str) -> None:
        create_private(path)
        self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self._close_file = weakref.finalize(self, os.close, self._file)  # also where nobody calls `close`
        self._close_file.atexit = False  # the upkeep goes on until the process is gone
        size = os.fstat(self._file).st_size
        if size < _SIZE:
            os.pwrite(self._file, bytes(_SIZE - size), size)
        self._numbers = mmap.mmap(self._file, _SIZE, prot=mmap.PROT_READ)
        self.catalogue_version: Callable[[], bytes] = partial(itemgetter(slice(_ISSUED)), self._numbers)
        """Changes whenever any process has changed the catalogue, or is about to; costs no system call."""
        self.announced = b""
        """The value of `catalogue_version` when the turn began; nobody else changes it until the turn ends."""

    def __enter__(self) -> None:
        numbers = self._numbers
        if numbers[_ISSUED:_SERVED] == numbers[_SERVED:]:  # nobody waits
            try:
                fcntl.flock(self._file, _LOCK_IF_FREE)
            except BlockingIOError:
                self._wait_for_turn()
        else:
            self._wait_for_turn()
        self.announced = numbers[:_ISSUED]

    def _wait_for_turn(self) -> None:
        ticket = self._take_ticket()
        self._wait_until_next(ticket)
        fcntl.flock(self._file, fcntl.LOCK_EX)
        if ticket > self._number(_SERVED):
            self._write(_SERVED, ticket)

    def __exit__(self, *_: object) -> None:
        fcntl.flock(self._file, fcntl.LOCK_UN)

    def leave(self) -> None:
        """End a turn, or a request for one, that an interrupt may have left half done; otherwise do nothing."""
        fcntl.flock(self._file, fcntl.LOCK_UN)
        fcntl.lockf(self._file, fcntl.LOCK_UN, 1, _TICKET_BYTE)

    def is_mine_to_keep_up(self) -> bool:
        """Whether this process alone does the upkeep; it stays so until it leaves that, or ends."""
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _UPKEEP_BYTE)
        except BlockingIOError:
            return False
        return True

    def leave_upkeep(self) -> None:
        """Let another process do the upkeep."""
        fcntl.lockf(self._file, fcntl.LOCK_UN, 1, _UPKEEP_BYTE)

    @staticmethod
    def label(catalogue_version: int) -> bytes:
        """Return the value of `catalogue_version` after that version is announced."""
        return _NUMBER.pack(catalogue_version)

    def announce_change(self) -> None:
        """Announce to the readers of every process, before a change of the catalogue is committed, that it is unknown.

        If this process dies, nobody knows whether it was committed, until the next holder of the turn sees what is in
        the file and announces that.
        """
        self._write(_VERSION, _NO_NUMBER)

    def announce(self, catalogue_version: int) -> None:
        """Announce the number of the catalogue's last change to the readers of every process, if it is new."""
        if self.catalogue_version() != self.label(catalogue_version):
            self._write(_VERSION, catalogue_version)

    def close(self) -> None:
        self._numbers.close()
        self._close_file()

    def _take_ticket(self) -> int:
        with self._locked(_TICKET_BYTE):
            ticket = max(self._number(_ISSUED), self._number(_SERVED)) + 1
            self._write(_ISSUED, ticket)
        return ticket

    def _wait_until_next(self, ticket: int) -> None:
        served = self._number(_SERVED)
        deadline = time.monotonic() + _LONGEST_WITHOUT_PROGRESS
        pause = _POLL_SECONDS
        while served < ticket - 1:
            time.sleep(pause)
            before, served = served, self._number(_SERVED)
            if served != before:
                deadline = time.monotonic() + _LONGEST_WITHOUT_PROGRESS
                pause = _POLL_SECONDS
            elif time.monotonic() > deadline:
                return
            else:
                # During long transactions, frequent polling would take the processor from the writer.
                pause = min(pause * 2, _LONGEST_POLL_SECONDS)

    @contextlib.contextmanager
    def _locked(self, byte: int) -> Iterator[None]:
        fcntl.lockf(self._file, fcntl.LOCK_EX, 1, byte)
        try:
            yield
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, byte)

    def _number(self, place: int) -> int:
        number: int = _NUMBER.unpack_from(self._numbers, place)[0]
        return number

    def _write(self, place: int, number: int) -> None:
        # Written, not stored through the map: on a full disk a store would kill the process.
        os.pwrite(self._file, _NUMBER.pack(number), place)
