"""Files that appear when they are whole, names that a power cut does not take, and how many may be open."""

from __future__ import annotations

import errno
import os
import resource
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A new file, readable by its user alone. It takes its place when the block has ended well, and is gone otherwise.

    Behind the block it is there after a power cut, too. What stood in that place is there until then, and several may
    write to one path at once: the last one stays.
    """
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}-", delete=False) as file:
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, as far as its file system does that and its user may ask for it."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except PermissionError:  # it may be written to, and not be read
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some network file systems do not know it
            raise
    finally:
        os.close(descriptor)


def sync_folders_above(path: Path) -> None:
    """Make the name of a file or folder durable, and those of all folders above it, whoever has made them."""
    device = path.parent.stat().st_dev
    for folder in path.parents:
        if folder.stat().st_dev != device:
            return  # what is mounted here was here before
        sync_folder(folder)


def allow_open_files(wanted: int) -> None:
    """Let the process have so many files open, or as many as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
