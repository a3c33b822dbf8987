"""kill -9 of writers in whose processes something is done bit by bit to their table, which is large."""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Protocol
from unittest import mock

from faults import workload
from faults.kills import kill_a_writer, problems_after
from pydantic_core import from_json
from tests.embedded.storage.consistency import inconsistencies

from jobtable.embedded.storage import Storage, Transaction
from jobtable.embedded.storage.table_changes import FILLED_AT_ONCE
from jobtable.embedded.storage.upkeep import Upkeep, fill_up
from jobtable.store.backend import Item

_ITEMS = FILLED_AT_ONCE + 5_000
_BATCH = 500
_MORE_TRIALS = 40
"""Where nothing was interrupted: a fast machine is done with much before it is killed."""


class LargeWork(Protocol):
    """What is done to the table, again and again."""

    begun: int
    """How often it was."""

    def prepare(self, storage: Storage) -> None:
        """Make the table, which is still empty, ready for it."""
        ...

    def go_on(self, storage: Storage) -> list[str]:
        """Begin what comes next, because nothing is unfinished; gives what is wrong with what has ended."""
        ...

    def end(self, storage: Storage) -> list[str]:
        """Begin nothing anew, because nothing is unfinished; gives what is wrong with what has ended."""
        ...


def interrupt(fault: str, work: LargeWork, trials: int, seed: int) -> Iterator[dict[str, object]]:
    """Kill that many writers, one after the other, while the work is under way."""
    chance = random.Random(seed)
    acknowledged = interrupted = 0
    problems: list[str] = []
    with (
        tempfile.TemporaryDirectory(prefix=f"jobtable-{fault}-") as folder,
        mock.patch.object(Upkeep, "start_if_needed"),  # The writers work; this process only looks.
    ):
        path = Path(folder) / f"{fault}.db"
        with closing(Storage(path)) as storage:
            workload.create_table(storage)
            work.prepare(storage)
            for first in range(0, _ITEMS, _BATCH):
                storage.write(partial(_put_old_items, first, _BATCH, chance))
        for trial in range(trials + _MORE_TRIALS):
            if trial >= trials and interrupted:
                break
            with closing(Storage(path)) as storage:
                if not _is_unfinished(storage):
                    problems += work.go_on(storage)
            lines = kill_a_writer(path, chance)
            acknowledged += len(lines)
            problems += problems_after(path, lines)
            with closing(Storage(path)) as storage:
                interrupted += _is_unfinished(storage)
        with closing(Storage(path)) as storage:
            fill_up(storage)
            problems += [*work.end(storage), *inconsistencies(storage)]
    if not interrupted:
        problems.append("nothing was interrupted")
    for problem in problems:
        print(problem, file=sys.stderr)
    counts = {"begun": work.begun, "interrupted": interrupted, "acknowledged": acknowledged}
    yield {"fault": fault, "trials": trials, "violations": len(problems), **counts, "seed": seed}


def _put_old_items(first: int, count: int, chance: random.Random, transaction: Transaction) -> None:
    """Store some of the items that are there before anything is done."""
    for number in range(first, first + count):
        item = workload.item_of(0, number, chance)
        workload.put(transaction, item | {"writer": {"S": f"old-{number}"}, "text": {"S": "x"}})


def _is_unfinished(storage: Storage) -> bool:
    return bool(storage.query("SELECT id FROM restores UNION ALL SELECT id FROM fillings"))


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
