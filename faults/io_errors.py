"""A disk whose writes and syncs fail at random: no write is acknowledged that is not stored, and writes resume.

The failures are made by a small library that is compiled and loaded before libc, so SQLite meets them as it would
meet those of a disk. `python -m faults.io_errors PATH SEED` is one trial, inside a process that has it loaded.
"""

from __future__ import annotations

import ctypes
import os
import random
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from faults import workload
from faults.disk_full import missing, put
from faults.preloaded import compiled
from tests.embedded.storage.consistency import inconsistencies

from jobtable.embedded.storage import Storage
from jobtable.errors import BackendUnavailable
from jobtable.store.backend import Item

_REPOSITORY = Path(__file__).parents[1]
_ROUNDS = 5
_WRITES = 60
_THREADS = 3


def run(trials: int = 20, seed: int = 1) -> Iterator[dict[str, object]]:
    """Let the disk fail in that many processes."""
    problems: list[str] = []
    failures = 0
    with tempfile.TemporaryDirectory(prefix="jobtable-io-") as name:
        library = compiled("failing_disk", Path(name))
        for trial in range(trials):
            path = Path(name) / f"trial-{trial}.db"
            found, number = one_process(path, library, seed + trial)
            problems += found
            failures += number
            storage = Storage(path)
            problems += inconsistencies(storage)
            storage.close()
    for problem in problems:
        print(problem, file=sys.stderr)
    yield {"fault": "io_errors", "trials": trials, "violations": len(problems), "failed_system_calls": failures}


def one_process(path: Path, library: Path, seed: int) -> tuple[list[str], int]:
    """What one trial found wrong, and how many system calls failed in it."""
    command = [sys.executable, "-m", "faults.io_errors", str(path), str(seed)]
    environment = os.environ | {"LD_PRELOAD": str(library)}
    done = subprocess.run(command, env=environment, cwd=_REPOSITORY, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return [f"the process ended with {done.returncode}: {done.stderr[-2000:]}"], 0
    *found, number = done.stdout.splitlines()
    return found, int(number)


def main(path: Path, seed: int) -> None:
    """Write while the disk fails, then check while it works; print what is wrong, and how many calls failed."""
    disk, chance = ctypes.CDLL(None), random.Random(seed)
    storage = Storage(path)
    workload.create_table(storage)
    acknowledged: dict[str, Item] = {}
    for round_ in range(_ROUNDS):
        disk.disk_fails(chance.choice([5, 50, 300]), chance.randrange(2**31))
        writers = [
            threading.Thread(target=_write, args=(storage, writer, round_, acknowledged)) for writer in range(_THREADS)
        ]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        disk.disk_fails(0, 0)
        last = workload.item_of(99, round_, chance)
        storage.write(partial(put, last))
        acknowledged[f"last {round_}"] = last
        for problem in missing(storage, acknowledged) + inconsistencies(storage):
            print(problem)
    storage.close()
    print(disk.disk_failures())


def _write(storage: Storage, writer: int, round_: int, acknowledged: dict[str, Item]) -> None:
    chance = random.Random(writer)
    for number in range(_WRITES):
        name = f"{round_}-{writer}-{number}"
        item = {**workload.item_of(writer, 0, chance), "key": {"S": name}}
        try:
            storage.write(partial(put, item))
        except BackendUnavailable:
            continue
        acknowledged[name] = item


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
