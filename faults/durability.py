"""Whether a disk after a power cut holds what the notes of `durable_work.py` say that it must hold."""

from __future__ import annotations

import hashlib
import json
import random
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from faults import workload
from faults.durable_work import HISTORY, ITEMS, Durability, change, database, files_folder, objects_folder
from faults.recordings import Note
from pydantic_core import from_json
from tests.embedded.storage.consistency import inconsistencies

from jobtable.embedded.storage import Storage, View
from jobtable.objects.filesystem import FilesystemObjectStore
from jobtable.store.backend import Item


class _Known(NamedTuple):
    """What the notes before a cut tell of each name."""

    done: dict[str, str | None]
    """The last value that it has got."""
    begun: dict[str, list[str | None]]
    """The values that it was getting."""

    def allowed(self, name: str) -> list[str | None]:
        """The values that it may have."""
        return [self.done.get(name), *self.begun[name]]


def _known(notes: list[Note]) -> _Known:
    known = _Known({}, defaultdict(list))
    for note in notes:
        name, value, is_done = json.loads(note.text)
        if not is_done:
            known.begun[name].append(value)
        elif name == "change":
            known.done[name] = str(max(int(value), int(known.done.get(name) or 0)))
        else:
            known.done[name] = value
            known.begun[name].clear()
    return known


def problems_of(disk: Path, notes: list[Note], durability: Durability, chance: random.Random) -> list[str]:
    """What is wrong with a disk after a cut that came behind these notes."""
    known = _known(notes)
    if database(disk).parent.is_dir() and chance.random() < 0.5:
        # The wal-index is not recorded: it may be anything.
        Path(f"{database(disk)}-shm").write_bytes(chance.randbytes(32_768))
    try:
        with closing(Storage(database(disk))) as storage:
            found = inconsistencies(storage)
            with storage.read() as view:
                found += _of_tables(view, known.done if durability == "full" else {})
                found += _of_items(view, int(known.done.get("change") or 0) if durability == "full" else 0)
                found += _of_objects(disk, view, known, durability)
            if storage.table(workload.TABLE) is not None:
                storage.write(partial(change, {"after": None}))
    except Exception as error:  # a torn disk may break anything
        return [repr(error)]
    return found + list(_of_files(disk, known))


def _of_tables(view: View, done: dict[str, str | None]) -> Iterator[str]:
    for name in done:
        kind, _, about = name.partition(" ")
        if kind not in {"table", "index", "expired"}:
            continue
        table = view.table(about)
        if table is None:
            yield f"the {kind} of {about} was acknowledged, and the table is not there"
        elif kind == "index" and not table.indexes:
            yield f"the index of {about} was acknowledged, and is not there"
        elif kind == "expired" and list(view.entries(table, None)):
            yield f"items of {about} have come back after they expired"


def _of_items(view: View, acknowledged: int) -> Iterator[str]:
    """Every change up to the last one is there as a whole, and the last one is not before the acknowledged one."""
    history, items, last = {}, {}, 0
    for item in _items(view):
        if item["writer"]["S"] == HISTORY:
            history[int(item["key"]["S"])] = json.loads(item["changes"]["S"])
        elif item["writer"]["S"] == ITEMS:
            items[item["key"]["S"]] = int(item["version"]["N"])
        else:
            last = int(item["version"]["N"])
    if sorted(history) != list(range(1, last + 1)):
        gaps = [number for number, following in pairwise(sorted(history)) if following != number + 1]
        yield f"the last change has number {last}, but there are {len(history)} in the history; gaps after {gaps}"
    if last < acknowledged:
        yield f"change {acknowledged} was acknowledged, and {last} is the last that is there"
    expected: dict[str, int] = {}
    for number in sorted(history):
        for key, is_put in history[number].items():
            expected.pop(key, None)
            if is_put:
                expected[key] = number
    if items != expected:
        yield f"the items are not what the history leads to: {items} instead of {expected}"


def _of_objects(disk: Path, view: View, known: _Known, durability: Durability) -> Iterator[str]:
    objects = FilesystemObjectStore(objects_folder(disk))
    there = {f"object {listed.key}": objects.head(listed.key).sha256 for listed in objects.list()}
    names = {name for name in known.done.keys() | known.begun.keys() | there.keys() if name.startswith("object ")}
    yield from _unexpected({name: there.get(name) for name in names}, known)
    for item in _items(view):
        name = item["key"]["S"]
        if "sha256" not in item or there.get(name) == item["sha256"]["S"]:
            continue
        # The cut may have undone that the record was deleted, but not that its object was.
        if durability == "full" or None not in known.allowed(name):
            yield f"{name}: there is a record of it, but the object is {there.get(name)}"


def _of_files(disk: Path, known: _Known) -> Iterator[str]:
    paths = {name: files_folder(disk) / name.removeprefix("file ") for name in known.begun if name.startswith("file ")}
    there = {name: path.read_bytes() if path.exists() else None for name, path in paths.items()}
    digests = {name: None if data is None else hashlib.sha256(data).hexdigest() for name, data in there.items()}
    return _unexpected(digests, known)


def _unexpected(found: dict[str, str | None], known: _Known) -> Iterator[str]:
    for name, value in found.items():
        if value not in known.allowed(name):
            yield f"{name}: it is {value}, and may be {known.allowed(name)}"


def _items(view: View) -> Iterator[Item]:
    table = view.table(workload.TABLE)
    return iter(()) if table is None else (from_json(item) for _, _, item in view.entries(table, None))
