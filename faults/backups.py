"""kill -9 while a large table is backed up, and restored, beside writers: both become what it was at the request."""

from __future__ import annotations

from collections.abc import Iterator

from faults import workload
from faults.large_work import interrupt, items_of, problems_of

from jobtable.embedded.dispatch import handler_of
from jobtable.embedded.storage import Storage
from jobtable.embedded.storage.upkeep import fill_up
from jobtable.store.backend import Item

_RESTORED = "restored"


def run(trials: int = 40, seed: int = 1) -> Iterator[dict[str, object]]:
    """Kill that many writers, one after the other, in whose processes the copies are made as well."""
    return interrupt("backups", _Backups(), trials, seed)


class _Backups:
    """A backup is made, a table restored from it and compared with what it is to be, and both are deleted."""

    def __init__(self) -> None:
        self.begun = 0
        self._arn = ""
        self._is_restored = False
        self._wanted: dict[bytes, Item] = {}

    def prepare(self, storage: Storage) -> None:
        """Any table can be backed up."""

    def go_on(self, storage: Storage) -> list[str]:
        if not self._arn:
            request = {"TableName": workload.TABLE, "BackupName": "backup"}
            self._arn = handler_of("CreateBackup")(storage, request)["BackupDetails"]["BackupArn"]
            self._wanted = items_of(storage, workload.TABLE)
            self.begun += 1
            return []
        if not self._is_restored:
            handler_of("RestoreTableFromBackup")(storage, {"TargetTableName": _RESTORED, "BackupArn": self._arn})
            self._is_restored = True
            return []
        problems = problems_of(storage, _RESTORED, self._wanted)
        handler_of("DeleteTable")(storage, {"TableName": _RESTORED})
        handler_of("DeleteBackup")(storage, {"BackupArn": self._arn})
        self._arn, self._is_restored = "", False
        return problems

    def end(self, storage: Storage) -> list[str]:
        problems: list[str] = []
        while self._arn:
            problems += self.go_on(storage)
            fill_up(storage)
        return problems
