"""Power cuts at random points: on every disk that one could leave, all that was acknowledged is there, nothing is torn.

Processes that write are recorded down to their system calls (`recorded_disk.c`). From each recording many disks are
made (`cut_disks.py`), and each is opened as on any other day (`durability.py`).
"""

from __future__ import annotations

import itertools
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from faults import workload
from faults.cut_disks import write_all, write_disk
from faults.durability import problems_of
from faults.durable_work import Durability, change, database, files_folder
from faults.preloaded import compiled
from faults.recordings import LOCK_PAGE, Recording
from tests.embedded.storage.samples import make_first_format

from jobtable.embedded.storage import Storage

_REPOSITORY = Path(__file__).parents[1]
_PROCESSES = 2
_MOST_CUTS_OF_A_RECORDING = 150
_MEMORY = Path("/dev/shm")


class _Kind(NamedTuple):
    durability: Durability
    is_old_file: bool


_KINDS = (_Kind("full", is_old_file=False), _Kind("normal", is_old_file=False), _Kind("full", is_old_file=True))


def run(trials: int = 600, seed: int = 1) -> Iterator[dict[str, object]]:
    """Cut the power that many times."""
    chance = random.Random(seed)
    problems: list[str] = []
    notes = 0
    with tempfile.TemporaryDirectory(prefix="jobtable-cuts-") as name:
        folder = Path(name).resolve()
        library = compiled("recorded_disk", folder)
        cuts = min(_MOST_CUTS_OF_A_RECORDING, math.ceil(trials / len(_KINDS)))
        for first, kind in zip(range(0, trials, cuts), itertools.cycle(_KINDS), strict=False):
            recording = _record(folder / f"recorded-{first}", library, kind)
            for _ in range(first, min(first + cuts, trials)):
                found, number = _cut_once(recording, kind.durability, chance)
                problems += [f"{kind}: {problem}" for problem in found]
                notes += number
    for problem in problems:
        print(problem, file=sys.stderr)
    yield {"fault": "power_cuts", "trials": trials, "violations": len(problems), "notes": notes, "seed": seed}


def _cut_once(recording: Recording, durability: Durability, chance: random.Random) -> tuple[list[str], int]:
    """What is wrong with one disk that a cut leaves, and how many notes there were before the cut."""
    cut = _place(recording, chance)
    notes = [note for note in recording.notes if note.at < cut]
    with tempfile.TemporaryDirectory(prefix="jobtable-cut-", dir=_MEMORY if _MEMORY.is_dir() else None) as name:
        disk = Path(name) / "disk"
        write_disk(recording, cut, disk, chance)
        found = problems_of(disk, notes, durability, chance)
    return [f"cut {cut} of {recording.length}: {problem}" for problem in found], len(notes)


def _record(folder: Path, library: Path, kind: _Kind) -> Recording:
    """Let processes write in a new folder, and record what they do."""
    files_folder(folder).mkdir(parents=True)
    if kind.is_old_file:
        _make_old_file(database(folder))
    log = folder.with_suffix(".log")
    log.write_bytes(bytes(LOCK_PAGE))
    recording = Recording(folder)
    recorded = {"LD_PRELOAD": str(library), "RECORDED_FOLDER": str(folder), "RECORDED_LOG": str(log)}
    command = [sys.executable, "-m", "faults.durable_work", str(folder)]
    writers = [
        subprocess.Popen([*command, str(number), kind.durability], env=os.environ | recorded, cwd=_REPOSITORY)
        for number in range(_PROCESSES)
    ]
    statuses = [writer.wait() for writer in writers]
    if any(statuses):
        raise RuntimeError("a recorded writer has failed: its output says why")
    recording.read(log)
    _refuse_incomplete(recording, folder)
    return recording


def _make_old_file(path: Path) -> None:
    """A database with items, as the first version would have left it."""
    storage = Storage(path)
    workload.create_table(storage)
    for number in range(20):
        storage.write(partial(change, {f"key-{number}": workload.item_of(0, number, random.Random(number))}))
    storage.close()
    make_first_format(path)


def _refuse_incomplete(recording: Recording, folder: Path) -> None:
    """The recording must lead to the files that are there; else a system call was used that is not recorded."""
    copy = folder.with_suffix(".copy")
    write_all(recording, copy)
    made, found = _files(copy), _files(folder)
    differing = [str(name) for name in made.keys() | found.keys() if made.get(name) != found.get(name)]
    shutil.rmtree(copy)
    if differing:
        raise RuntimeError(f"the recording does not lead to what is there: {', '.join(sorted(differing))}")


def _files(folder: Path) -> dict[Path, bytes]:
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _place(recording: Recording, chance: random.Random) -> int:
    """A place to cut: anywhere, just behind an acknowledgement, or at the beginning, while the files are made."""
    kind = chance.randrange(4)
    if kind == 0:
        return chance.choice(recording.notes).at + 1
    if kind == 1:
        return chance.randrange(recording.notes[0].at + 200)
    return chance.randrange(recording.length)
