"""kill -9 while a large table is restored, beside writers to the one it comes from: it becomes what that was."""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from unittest import mock

from faults import workload
from faults.fillings import ITEMS, put_old_items
from faults.kills import kill_a_writer, problems_after
from pydantic_core import from_json

from jobtable.embedded.storage import Storage
from jobtable.embedded.storage.checks import inconsistencies
from jobtable.embedded.storage.upkeep import Upkeep, fill_up
from jobtable.embedded.tables import OPERATIONS
from jobtable.store.backend import Item

_RESTORED = "restored"
_BATCH = 500
_MORE_TRIALS = 40
"""Where nothing was interrupted: a fast machine is done with much before it is killed."""


def run(trials: int = 40, seed: int = 1) -> Iterator[dict[str, object]]:
    """Kill that many writers, one after the other, in whose processes the table is restored as well."""
    chance = random.Random(seed)
    acknowledged = begun = interrupted = 0
    wanted: dict[bytes, Item] = {}
    problems: list[str] = []
    with (
        tempfile.TemporaryDirectory(prefix="jobtable-restores-") as folder,
        mock.patch.object(Upkeep, "start_if_needed"),  # The writers restore; this process only looks.
    ):
        path = Path(folder) / "restores.db"
        with closing(Storage(path)) as storage:
            _prepare(storage, chance)
        for trial in range(trials + _MORE_TRIALS):
            if trial >= trials and interrupted:
                break
            with closing(Storage(path)) as storage:
                if not _is_unfinished(storage):
                    problems += problems_of(storage, _RESTORED, wanted)
                    wanted = _begin(storage)
                    begun += 1
            lines = kill_a_writer(path, chance)
            acknowledged += len(lines)
            problems += problems_after(path, lines)
            with closing(Storage(path)) as storage:
                interrupted += _is_unfinished(storage)
        with closing(Storage(path)) as storage:
            fill_up(storage)
            problems += [*problems_of(storage, _RESTORED, wanted), *inconsistencies(storage)]
    if not interrupted:
        problems.append("no restore was interrupted")
    for problem in problems:
        print(problem, file=sys.stderr)
    counts = {"begun": begun, "interrupted": interrupted, "acknowledged": acknowledged}
    yield {"fault": "restores", "trials": trials, "violations": len(problems), **counts, "seed": seed}


def _prepare(storage: Storage, chance: random.Random) -> None:
    workload.create_table(storage)
    recovery = {"PointInTimeRecoveryEnabled": True}
    request = {"TableName": workload.TABLE, "PointInTimeRecoverySpecification": recovery}
    OPERATIONS["UpdateContinuousBackups"](storage, request)
    for first in range(0, ITEMS, _BATCH):
        storage.write(partial(put_old_items, first, _BATCH, chance))


def _begin(storage: Storage) -> dict[bytes, Item]:
    """Let the table be restored, in place of one that was restored before; gives the items that it is to have."""
    if storage.table(_RESTORED) is not None:
        OPERATIONS["DeleteTable"](storage, {"TableName": _RESTORED})
    request = {"SourceTableName": workload.TABLE, "TargetTableName": _RESTORED, "UseLatestRestorableTime": True}
    OPERATIONS["RestoreTableToPointInTime"](storage, request)
    return items_of(storage, workload.TABLE)


def _is_unfinished(storage: Storage) -> bool:
    with storage.read() as view:
        record = view.record(_RESTORED)
    return record is not None and record.is_creating


def problems_of(storage: Storage, name: str, wanted: dict[bytes, Item]) -> list[str]:
    """What is wrong with a restored table that is to have these items."""
    found = items_of(storage, name)
    wrong = [position for position in wanted.keys() | found.keys() if wanted.get(position) != found.get(position)]
    return [f"{len(wrong)} items of {len(wanted)} are not as they were"] if wrong else []


def items_of(storage: Storage, name: str) -> dict[bytes, Item]:
    """The items of a table by their positions; none if it cannot be used."""
    with storage.read() as view:
        table = view.table(name)
        if table is None:
            return {}
        return {position: from_json(item) for position, _, item in view.entries(table, None)}
