"""How much memory processes use, where the system says so in /proc."""

from __future__ import annotations

import os
from pathlib import Path

_PROC = Path("/proc")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_GROUP, _RESIDENT_PAGES = 2, 21
"""Places in /proc/PID/stat behind the name of the process."""


def group_memory_bytes(group: int) -> int:
    """The resident memory of all processes of a group; 0 where there is no /proc."""
    if not _PROC.is_dir():
        return 0
    return sum(_memory_in(group, entry) for entry in os.scandir(_PROC) if entry.name.isdigit())


def _memory_in(group: int, entry: os.DirEntry[str]) -> int:
    try:
        with open(f"{entry.path}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):  # it has ended in the meantime
        return 0
    return int(fields[_RESIDENT_PAGES]) * _PAGE_BYTES if int(fields[_GROUP]) == group else 0
