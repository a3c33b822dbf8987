"""Folders for databases that live only as long as the object that uses them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import weakref
from functools import cache
from pathlib import Path

_PREFIX = "jobtable-memory-"
_OWNER = "owner"


class TemporaryFolder:
    """A private folder that is removed on `close`, at the end of the process, or, if it was killed, by a later one."""

    def __init__(self) -> None:
        _remove_abandoned_once(tempfile.gettempdir())
        self.path = tempfile.mkdtemp(prefix=_PREFIX)
        # Whoever can lock this file knows that the process which made the folder is gone. So it is locked before
        # anybody can find it.
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
        # Those that another process uses, or removes meanwhile, are none of our business.
        with contextlib.suppress(OSError):
            # Of another user's not even the file is opened: it may lead to one of our own databases, whose locks
            # this process would lose when it closes it.
            if folder.lstat().st_uid == os.geteuid():
                with (folder / _OWNER).open("r+") as owner:
                    fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder)


_remove_abandoned_once = cache(_remove_abandoned)
"""To look at every folder takes as long as to open many databases, and what is left now the next process finds."""
