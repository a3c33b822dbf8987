"""Eight processes write at once: nobody waits much longer than the others.

A wait is counted in the writes of others that were served meanwhile, so a slow disk is not taken for unfairness; the
times are given too.
"""

from __future__ import annotations

import mmap
import multiprocessing
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier
from pathlib import Path

from faults import workload

from jobtable.embedded.storage import Storage, Transaction
from jobtable.store.backend import Item

_PROCESSES = 8
_LONGEST_IN_MEDIANS = 20
_DATABASE, _SERVED = "fairness.db", "served"

Wait = tuple[float, int]
"""Seconds, and how many writes of others were served."""


def run(trials: int = 2_000, seed: int = 1) -> Iterator[dict[str, object]]:
    """Write that often in each process, and compare the longest waits with the median."""
    processes = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="jobtable-fairness-") as name:
        folder = Path(name)
        storage = Storage(folder / _DATABASE)
        workload.create_table(storage)
        storage.close()
        (folder / _SERVED).write_bytes(bytes(8))
        results, start = processes.SimpleQueue(), processes.Barrier(_PROCESSES)
        arguments = [(folder, number, trials, start, results) for number in range(_PROCESSES)]
        workers = [processes.Process(target=write_often, args=one) for one in arguments]
        for worker in workers:
            worker.start()
        waits: list[Wait] = [wait for _ in workers for wait in results.get()]
        for worker in workers:
            worker.join()
    seconds, turns = [wait[0] for wait in waits], [wait[1] for wait in waits]
    median_seconds, median_turns = statistics.median(seconds), max(statistics.median(turns), 1)
    yield {
        "fault": "fairness",
        "trials": len(waits),
        "violations": sum(turn > _LONGEST_IN_MEDIANS * median_turns for turn in turns),
        "longest_wait_in_medians": round(max(turns) / median_turns, 1),
        "median_ms": round(median_seconds * 1000, 2),
        "longest_ms": round(max(seconds) * 1000, 2),
        "longest_ms_in_medians": round(max(seconds) / median_seconds, 1),
    }


def write_often(folder: Path, number: int, times: int, start: Barrier, results: SimpleQueue[list[Wait]]) -> None:
    """What each process does: it measures how long each write waits while all of them write."""
    storage = Storage(folder / _DATABASE)
    chance = random.Random(number)
    items = [workload.item_of(number, count, chance) for count in range(times)]
    waits: list[Wait] = []
    with (folder / _SERVED).open("r+b") as file, mmap.mmap(file.fileno(), 8) as served:
        start.wait()
        for item in items:
            before, asked = int.from_bytes(served[:8]), time.perf_counter()
            turn = storage.write(partial(_put, served, item))
            waits.append((time.perf_counter() - asked, turn - before))
    results.put(waits)
    storage.close()


def _put(served: mmap.mmap, item: Item, transaction: Transaction) -> int:
    """Store the item; gives how many writes were served before this one."""
    turn = int.from_bytes(served[:8])
    served[:8] = (turn + 1).to_bytes(8)
    workload.put(transaction, item)
    return turn
