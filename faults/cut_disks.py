"""The folders that a power cut could leave.

What a sync has made durable is there. Of what was written later any part may be: whole writes, some of their sectors
or pages, the size without the bytes. Of names there are two kinds of disk. On one that keeps a journal, every sync
makes all names before it durable, and the later ones are there up to some moment. On the other one, which does no
more than POSIX asks for, each name is durable when its folder was synced, and otherwise as it was at any moment since.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections import defaultdict
from pathlib import Path

from faults.recordings import Entry, Node, Recording, Written

_UNITS = (512, 4096)


def write_disk(recording: Recording, cut: int, folder: Path, chance: random.Random) -> None:
    """Make the folder as a power cut could leave it that comes just before the place `cut`."""
    synced: dict[Node, int] = defaultdict(lambda: -1)
    for sync in recording.syncs:
        if sync.at < cut:
            synced[sync.node] = max(synced[sync.node], sync.begun)
    pick = chance.choice([_names_of_a_journal, _names_of_each_folder])
    names = {(entry.folder, entry.name): entry.node for entry in recording.first_entries}
    names |= pick(recording, cut, synced, chance)
    _write_folder(_Disk(recording, cut, synced, names, chance), recording.root, folder)


def write_all(recording: Recording, folder: Path) -> None:
    """Make the folder as it was at the end."""
    synced: dict[Node, int] = defaultdict(lambda: recording.length)
    names = {(entry.folder, entry.name): entry.node for entry in [*recording.first_entries, *recording.entries]}
    _write_folder(_Disk(recording, recording.length, synced, names, random.Random(0)), recording.root, folder)


_Names = dict[tuple[Node, str], Node | None]


class _Disk:
    """What is durable at a cut, and by what chance the rest is there."""

    def __init__(
        self, recording: Recording, cut: int, synced: dict[Node, int], names: _Names, chance: random.Random
    ) -> None:
        self.names = names
        self._recording = recording
        self._cut = cut
        self._synced = synced
        self._chance = chance

    def content(self, node: Node) -> bytes:
        """What a file holds."""
        content = bytearray(node.content)
        synced = self._synced[node]
        # Of some files nothing that was not synced has reached the disk, of others all of it, or some.
        share = self._chance.choice([0.0, 0.1, 0.5, 0.9, 1.0])
        for written in self._recording.written.get(node, ()):
            if written.at >= self._cut:
                break
            if written.at < synced or self._chance.random() < share:
                _apply(content, written)
            elif self._chance.random() < share:
                self._apply_partly(content, written)
        return bytes(content)

    def _apply_partly(self, content: bytearray, written: Written) -> None:
        if written.data is None:
            return
        end = written.offset + len(written.data)
        if self._chance.random() < 0.5:
            content.extend(bytes(max(0, end - len(content))))
        unit = self._chance.choice(_UNITS)
        for start in range(written.offset - written.offset % unit, end, unit):
            if self._chance.random() < 0.5:
                low, high = max(start, written.offset), min(start + unit, end)
                part = written.data[low - written.offset : high - written.offset]
                _apply(content, written._replace(offset=low, data=part))


def _apply(content: bytearray, written: Written) -> None:
    size = written.offset if written.data is None else written.offset + len(written.data)
    content.extend(bytes(max(0, size - len(content))))
    if written.data is None:
        del content[size:]
    else:
        content[written.offset : size] = written.data


def _names_of_a_journal(recording: Recording, cut: int, synced: dict[Node, int], chance: random.Random) -> _Names:
    durable = max(synced.values(), default=-1) + 1
    end = chance.choice([durable, chance.randint(durable, cut), cut])
    return {(entry.folder, entry.name): entry.node for entry in recording.entries if entry.at < end}


def _names_of_each_folder(recording: Recording, cut: int, synced: dict[Node, int], chance: random.Random) -> _Names:
    by_name: dict[tuple[Node, str], list[Entry]] = defaultdict(list)
    for entry in recording.entries:
        if entry.at < cut:
            by_name[entry.folder, entry.name].append(entry)
    names: _Names = {}
    share = chance.choice([0.0, 0.5, 1.0])
    for (folder, name), entries in by_name.items():
        durable = bisect_left(entries, synced[folder], key=lambda entry: entry.at)
        taken = chance.randint(durable, len(entries)) if chance.random() < share else durable
        if taken > 0:
            names[folder, name] = entries[taken - 1].node
    return names


def _write_folder(disk: _Disk, node: Node, path: Path) -> None:
    path.mkdir()
    for (folder, name), child in disk.names.items():
        if folder is not node or child is None:
            continue
        if child.is_folder:
            _write_folder(disk, child, path / name)
        else:
            (path / name).write_bytes(disk.content(child))
