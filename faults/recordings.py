"""What programs did to the files of a folder, in order, as `recorded_disk.c` has noted it."""

from __future__ import annotations

import os
import struct
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

LOCK_PAGE = 4096
_HEAD = struct.Struct("<IIQQII")
_CREATE, _WRITE, _TRUNCATE, _RENAME, _UNLINK, _MAKE_FOLDER, _SYNC_BEGIN, _SYNC_END, _NOTE = range(1, 10)


@dataclass(eq=False)
class Node:
    """A file or a folder, whatever its name is."""

    is_folder: bool
    content: bytes = b""
    """What a file holds when the recording begins."""
    entries: dict[str, Node] = field(default_factory=dict)
    """What is in a folder, as far as the recording was read."""


class Written(NamedTuple):
    """Bytes that were written to a file, or, without any, the size that it was cut or extended to."""

    at: int
    node: Node
    offset: int
    data: bytes | None


class Entry(NamedTuple):
    """What a name in a folder stands for from then on; None: nothing."""

    at: int
    folder: Node
    name: str
    node: Node | None


class Sync(NamedTuple):
    """A sync that has returned: what was there when it was asked for is durable."""

    begun: int
    at: int
    node: Node


class Note(NamedTuple):
    """What a program noted, at its place between the others."""

    at: int
    text: str


class _Event(NamedTuple):
    kind: int
    thread: int
    inode: int
    offset: int
    first: bytes
    second: bytes


class Recording:
    """The changes of a folder. Each has a place (`at`) in the order of all; `length` is the first place behind them."""

    def __init__(self, folder: Path) -> None:
        """Look at the folder as it is; it is taken to be durable, and must not be changed before `read`."""
        self._folder = folder
        self._nodes: dict[int, Node] = {}
        self.root = self._found(folder)
        self.first_entries = [Entry(-1, *entry) for entry in _entries(self.root)]
        self.written: dict[Node, list[Written]] = defaultdict(list)
        self.entries: list[Entry] = []
        self.syncs: list[Sync] = []
        self.notes: list[Note] = []
        self.length = 0

    def read(self, log: Path) -> None:
        """Take over what was recorded since."""
        begun: dict[tuple[int, int], int] = {}
        for at, event in enumerate(_events(log.read_bytes())):
            self.length = at + 1
            if event.kind == _NOTE:
                self.notes.append(Note(at, event.first.decode()))
            elif event.kind == _SYNC_BEGIN:
                begun[event.thread, event.inode] = at
            elif event.kind == _SYNC_END:
                self.syncs.append(Sync(begun[event.thread, event.inode], at, self._nodes[event.inode]))
            elif event.kind == _WRITE:
                self._note_written(at, event, event.first)
            elif event.kind == _TRUNCATE:
                self._note_written(at, event, None)
            else:
                self._note_entries(at, event)

    def _note_written(self, at: int, event: _Event, data: bytes | None) -> None:
        node = self._nodes[event.inode]
        self.written[node].append(Written(at, node, event.offset, data))

    def _note_entries(self, at: int, event: _Event) -> None:
        folder, name = self._place(event.first)
        if event.kind in {_CREATE, _MAKE_FOLDER}:
            if name not in folder.entries:
                # The number of a file that is gone may come again.
                node = self._nodes[event.inode] = Node(event.kind == _MAKE_FOLDER)
                self._set_entry(at, folder, name, node)
        elif event.kind == _UNLINK:
            self._set_entry(at, folder, name, None)
        else:
            node = folder.entries[name]
            self._set_entry(at, folder, name, None)
            self._set_entry(at, *self._place(event.second), node)

    def _set_entry(self, at: int, folder: Node, name: str, node: Node | None) -> None:
        self.entries.append(Entry(at, folder, name, node))
        if node is None:
            del folder.entries[name]
        else:
            folder.entries[name] = node

    def _place(self, path: bytes) -> tuple[Node, str]:
        *folders, name = Path(os.fsdecode(path)).relative_to(self._folder).parts
        folder = self.root
        for part in folders:
            folder = folder.entries[part]
        return folder, name

    def _found(self, path: Path) -> Node:
        if path.is_dir():
            node = Node(is_folder=True, entries={child.name: self._found(child) for child in path.iterdir()})
        else:
            node = Node(is_folder=False, content=path.read_bytes())
        self._nodes[path.stat().st_ino] = node
        return node


def _entries(folder: Node) -> Iterator[tuple[Node, str, Node]]:
    for name, node in folder.entries.items():
        yield folder, name, node
        yield from _entries(node)


def _events(log: bytes) -> Iterator[_Event]:
    start = LOCK_PAGE
    while start < len(log):
        kind, thread, inode, offset, first_size, second_size = _HEAD.unpack_from(log, start)
        first = start + _HEAD.size
        second = first + first_size
        start = second + second_size
        yield _Event(kind, thread, inode, offset, log[first:second], log[second:start])
