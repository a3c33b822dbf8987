"""Several processes increment one counter at once: no increment is lost."""

from __future__ import annotations

import multiprocessing
import tempfile
from collections.abc import Iterator
from pathlib import Path

from faults import workload
from pydantic_core import from_json

from jobtable.embedded.storage import Storage, Transaction

_PROCESSES = 8
_KEY = {"writer": {"S": "all"}, "key": {"S": "counter"}}


def run(trials: int = 10_000, seed: int = 1) -> Iterator[dict[str, object]]:
    """Increment that often in each process."""
    processes = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="jobtable-counter-") as folder:
        path = Path(folder) / "counter.db"
        storage = Storage(path)
        workload.create_table(storage)
        workers = [processes.Process(target=increment_often, args=(path, trials)) for _ in range(_PROCESSES)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        final = storage.write(_value)
        storage.close()
    lost = trials * _PROCESSES - final
    yield {"fault": "counter", "trials": trials * _PROCESSES, "violations": abs(lost), "final": final}


def increment_often(path: Path, times: int) -> None:
    """What each process does."""
    storage = Storage(path)
    for _ in range(times):
        storage.write(_increment)
    storage.close()


def _increment(transaction: Transaction) -> None:
    workload.put(transaction, {**_KEY, "value": {"N": str(_value(transaction) + 1)}})


def _value(transaction: Transaction) -> int:
    table = transaction.table(workload.TABLE)
    stored = None if table is None else transaction.sized(table, table.position(_KEY))
    return 0 if stored is None else int(from_json(stored[0])["value"]["N"])
