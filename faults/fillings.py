"""kill -9 while a new index of a large table is filled, beside writers: it goes on where it was, nothing is lost."""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from unittest import mock

from faults import workload
from faults.kills import kill_a_writer, problems_after

from jobtable.embedded.storage import Storage, Transaction
from jobtable.embedded.storage.filling import FILLED_AT_ONCE
from jobtable.embedded.storage.upkeep import Upkeep
from jobtable.embedded.tables import OPERATIONS
from jobtable.store.backend import Request

_INDEX = "later"
ITEMS = FILLED_AT_ONCE + 5_000
_BATCH = 500


def run(trials: int = 40, seed: int = 1) -> Iterator[dict[str, object]]:
    """Kill that many writers, one after the other, in whose processes the index is filled as well."""
    chance = random.Random(seed)
    acknowledged = begun = interrupted = 0
    problems: list[str] = []
    with (
        tempfile.TemporaryDirectory(prefix="jobtable-fillings-") as folder,
        mock.patch.object(Upkeep, "start_if_needed"),  # The writers fill; this process only looks.
    ):
        path = Path(folder) / "fillings.db"
        storage = Storage(path)
        workload.create_table(storage)
        for first in range(0, ITEMS, _BATCH):
            storage.write(partial(put_old_items, first, _BATCH, chance))
        storage.close()
        for _ in range(trials):
            begun += _begin(path)
            lines = kill_a_writer(path, chance)
            acknowledged += len(lines)
            interrupted += not _is_whole(path)
            problems += problems_after(path, lines)
    if not interrupted:
        problems.append("no filling was interrupted")
    for problem in problems:
        print(problem, file=sys.stderr)
    counts = {"begun": begun, "interrupted": interrupted, "acknowledged": acknowledged}
    yield {"fault": "fillings", "trials": trials, "violations": len(problems), **counts, "seed": seed}


def put_old_items(first: int, count: int, chance: random.Random, transaction: Transaction) -> None:
    """Store some of the items that are there before anything is filled."""
    for number in range(first, first + count):
        item = workload.item_of(0, number, chance)
        workload.put(transaction, item | {"writer": {"S": f"old-{number}"}, "text": {"S": "x"}})


def _begin(path: Path) -> bool:
    """Let the index be filled from the beginning if it is whole, or not there; says whether it is."""
    if not _is_whole(path):
        return False
    storage = Storage(path)
    key = [{"AttributeName": "text", "KeyType": "HASH"}, {"AttributeName": "key", "KeyType": "RANGE"}]
    projection = {"ProjectionType": "KEYS_ONLY"}
    new = {"Create": {"IndexName": _INDEX, "KeySchema": key, "Projection": projection}}
    table = storage.table(workload.TABLE)
    try:
        if table is not None and _INDEX in table.indexes:
            _update(storage, {"Delete": {"IndexName": _INDEX}})
        _update(storage, new)
    finally:
        storage.close()
    return True


def _update(storage: Storage, change: Request) -> None:
    names = ("writer", "key", "status", "rank", "text")
    attributes = [{"AttributeName": name, "AttributeType": "S"} for name in names]
    request: Request = {"TableName": workload.TABLE, "GlobalSecondaryIndexUpdates": [change]}
    OPERATIONS["UpdateTable"](storage, request | ({"AttributeDefinitions": attributes} if "Create" in change else {}))


def _is_whole(path: Path) -> bool:
    """Whether the index is not being filled."""
    storage = Storage(path)
    try:
        table = storage.table(workload.TABLE)
        return table is None or _INDEX not in table.indexes or not table.indexes[_INDEX].is_filling
    finally:
        storage.close()
