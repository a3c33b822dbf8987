"""kill -9 while a large table is backed up, and restored, beside writers: both become what it was at the request."""

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
from faults.restores import items_of, problems_of

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
    """Kill that many writers, one after the other, in whose processes the copies are made as well."""
    chance = random.Random(seed)
    round_ = _Round()
    acknowledged = interrupted = 0
    problems: list[str] = []
    with (
        tempfile.TemporaryDirectory(prefix="jobtable-backups-") as folder,
        mock.patch.object(Upkeep, "start_if_needed"),  # The writers copy; this process only looks.
    ):
        path = Path(folder) / "backups.db"
        with closing(Storage(path)) as storage:
            workload.create_table(storage)
            for first in range(0, ITEMS, _BATCH):
                storage.write(partial(put_old_items, first, _BATCH, chance))
        for trial in range(trials + _MORE_TRIALS):
            if trial >= trials and interrupted:
                break
            with closing(Storage(path)) as storage:
                if not _is_unfinished(storage):
                    problems += round_.go_on(storage)
            lines = kill_a_writer(path, chance)
            acknowledged += len(lines)
            problems += problems_after(path, lines)
            with closing(Storage(path)) as storage:
                interrupted += _is_unfinished(storage)
        with closing(Storage(path)) as storage:
            while round_.is_under_way:
                fill_up(storage)
                problems += round_.go_on(storage)
            problems += inconsistencies(storage)
    if not interrupted:
        problems.append("no copy was interrupted")
    for problem in problems:
        print(problem, file=sys.stderr)
    counts = {"rounds": round_.ended, "interrupted": interrupted, "acknowledged": acknowledged}
    yield {"fault": "backups", "trials": trials, "violations": len(problems), **counts, "seed": seed}


class _Round:
    """A backup is made, a table restored from it and compared with what it is to be, and both are deleted."""

    def __init__(self) -> None:
        self.ended = 0
        self._arn = ""
        self._is_restored = False
        self._wanted: dict[bytes, Item] = {}

    @property
    def is_under_way(self) -> bool:
        return bool(self._arn)

    def go_on(self, storage: Storage) -> list[str]:
        """Begin what comes next, when nothing is unfinished; gives what is wrong with what has ended."""
        if not self._arn:
            request = {"TableName": workload.TABLE, "BackupName": "backup"}
            self._arn = OPERATIONS["CreateBackup"](storage, request)["BackupDetails"]["BackupArn"]
            self._wanted = items_of(storage, workload.TABLE)
            return []
        if not self._is_restored:
            OPERATIONS["RestoreTableFromBackup"](storage, {"TargetTableName": _RESTORED, "BackupArn": self._arn})
            self._is_restored = True
            return []
        problems = problems_of(storage, _RESTORED, self._wanted)
        OPERATIONS["DeleteTable"](storage, {"TableName": _RESTORED})
        OPERATIONS["DeleteBackup"](storage, {"BackupArn": self._arn})
        self.ended += 1
        self._arn, self._is_restored = "", False
        return problems


def _is_unfinished(storage: Storage) -> bool:
    return bool(storage.query("SELECT id FROM restores UNION ALL SELECT id FROM fillings"))
