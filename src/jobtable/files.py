"""Files that appear only when complete, names that survive a power cut, and the limit of open files."""

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
    """Write a new file, readable by its user alone, which appears at its path when the block ends without an error.

    It then survives a power cut. Until then an older file keeps its place. If several write to one path at once, the
    last one wins.
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
    """Make the names in a folder durable, as far as the file system and the user's rights allow."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except PermissionError:  # it may be writable but not readable
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some network file systems do not support it
            raise
    finally:
        os.close(descriptor)


def sync_folders_above(path: Path) -> None:
    """Make the names of a file or folder and of all folders above it durable."""
    device = path.parent.stat().st_dev
    for folder in path.parents:
        if folder.stat().st_dev != device:
            return  # a mount point existed before
        sync_folder(folder)


def allow_open_files(wanted: int) -> None:
    """Raise the limit of open files to `wanted`, or to what the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
