"""A disk that runs full under a writer: no write is acknowledged that is not stored, reads go on, writes resume.

The disk is a small memory file system; where none can be mounted the experiment says so and is left out.
"""

from __future__ import annotations

import contextlib
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from faults import workload
from pydantic_core import from_json
from tests.embedded.storage.consistency import inconsistencies

from jobtable.embedded.storage import Storage, Transaction
from jobtable.errors import BackendUnavailable
from jobtable.store.backend import Item

_DISK_MEGABYTES = 4


def run(trials: int = 10, seed: int = 1) -> Iterator[dict[str, object]]:
    """Fill the disk that many times."""
    problems: list[str] = []
    refused = 0
    for trial in range(trials):
        try:
            with small_disk() as folder:
                found, number = fill_and_free(folder, random.Random(seed + trial))
        except PermissionError as error:
            yield {"fault": "disk_full", "trials": 0, "violations": 0, "not_run": str(error)}
            return
        problems += found
        refused += number
    for problem in problems:
        print(problem, file=sys.stderr)
    yield {"fault": "disk_full", "trials": trials, "violations": len(problems), "refused_writes": refused}


@contextlib.contextmanager
def small_disk() -> Iterator[Path]:
    """A folder on a disk of a few megabytes; PermissionError where none can be mounted."""
    with tempfile.TemporaryDirectory(prefix="jobtable-disk-") as name:
        options = ["-t", "tmpfs", "-o", f"size={_DISK_MEGABYTES}m", "tmpfs", name]
        done = subprocess.run(["mount", *options], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise PermissionError(f"a small disk cannot be mounted: {done.stderr.strip()}")
        try:
            yield Path(name)
        finally:
            subprocess.run(["umount", name], check=True)


def fill_and_free(folder: Path, chance: random.Random) -> tuple[list[str], int]:
    """Write until the disk is full, and further; free some space, and write again. Gives what went wrong."""
    ballast = folder / "ballast"
    ballast.write_bytes(bytes(chance.randrange(500_000, 1_500_000)))
    storage = Storage(folder / "full.db")
    try:
        workload.create_table(storage)
        acknowledged, refused = _write_until_full(storage, chance)
        problems = missing(storage, acknowledged)
        ballast.unlink()
        # Nothing but room is needed: the same object goes on.
        item = workload.item_of(2, 1, chance)
        storage.write(partial(put, item))
        return problems + missing(storage, {**acknowledged, "last": item}) + inconsistencies(storage), refused
    finally:
        storage.close()


def _write_until_full(storage: Storage, chance: random.Random) -> tuple[dict[str, Item], int]:
    acknowledged: dict[str, Item] = {}
    refused = number = 0
    while refused < 20:
        number += 1
        item = {**workload.item_of(1, 0, chance), "key": {"S": f"key-{number}"}, "ballast": {"S": "x" * 5_000}}
        try:
            storage.write(partial(put, item))
            acknowledged[item["key"]["S"]] = item
        except BackendUnavailable:
            refused += 1
    return acknowledged, refused


def put(item: Item, transaction: Transaction) -> None:
    """Store an item, as an action with a bound item."""
    workload.put(transaction, item)


def missing(storage: Storage, acknowledged: dict[str, Item]) -> list[str]:
    """Which of these items are not stored as they were acknowledged, in words."""
    table = storage.table(workload.TABLE)
    if table is None:
        return ["the table is gone"]
    found = {key: storage.sized(table, table.position(item)) for key, item in acknowledged.items()}
    return [
        f"{key} was acknowledged and is not stored"
        for key, stored in found.items()
        if stored is None or from_json(stored[0]) != acknowledged[key]
    ]
