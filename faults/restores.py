"""kill -9 while a large table is restored, beside writers to the one it comes from: it becomes what that was."""

from __future__ import annotations

from collections.abc import Iterator

from faults import workload
from faults.large_work import interrupt, items_of, problems_of

from jobtable.embedded.dispatch import handler_of
from jobtable.embedded.storage import Storage
from jobtable.store.backend import Item

_RESTORED = "restored"


def run(trials: int = 40, seed: int = 1) -> Iterator[dict[str, object]]:
    """Kill that many writers, one after the other, in whose processes the table is restored as well."""
    return interrupt("restores", _Restores(), trials, seed)


class _Restores:
    """The table is restored, and restored again when it is whole."""

    def __init__(self) -> None:
        self.begun = 0
        self._wanted: dict[bytes, Item] = {}

    def prepare(self, storage: Storage) -> None:
        recovery = {"PointInTimeRecoveryEnabled": True}
        request = {"TableName": workload.TABLE, "PointInTimeRecoverySpecification": recovery}
        handler_of("UpdateContinuousBackups")(storage, request)

    def go_on(self, storage: Storage) -> list[str]:
        problems = self.end(storage)
        if self.begun:
            handler_of("DeleteTable")(storage, {"TableName": _RESTORED})
        request = {"SourceTableName": workload.TABLE, "TargetTableName": _RESTORED, "UseLatestRestorableTime": True}
        handler_of("RestoreTableToPointInTime")(storage, request)
        self._wanted = items_of(storage, workload.TABLE)
        self.begun += 1
        return problems

    def end(self, storage: Storage) -> list[str]:
        return problems_of(storage, _RESTORED, self._wanted)
