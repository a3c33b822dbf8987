"""Backends that do what a cloud does on a bad day, where a test says so."""

from __future__ import annotations

from jobtable.clock import Clock
from jobtable.embedded import EmbeddedBackend
from jobtable.errors import TransactionCanceled
from jobtable.store.backend import Backend, Request, Response
from jobtable.testing import Faults, FaultyBackend


class BusyItems:
    """Cancels the next `conflicts` transactions that write, because others are at work on their items."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.conflicts = 0

    def execute(self, operation: str, request: Request) -> Response:
        if operation == "TransactWriteItems" and self.conflicts:
            self.conflicts -= 1
            reasons = [{"Code": "TransactionConflict"} for _ in request["TransactItems"]]
            raise TransactionCanceled("in the way", details={"CancellationReasons": reasons})
        return self._backend.execute(operation, request)

    def close(self) -> None:
        self._backend.close()


class LateIndexes(FaultyBackend):
    """An engine whose indexes show a write a second after it was done, or more, on the clock that is given."""

    def __init__(self, clock: Clock, *, seconds: float = 1.0) -> None:
        engine, always = EmbeddedBackend(None, clock=clock), Faults(index_lag=1)
        super().__init__(engine, always, seed=0, lagging=10_000, lagging_seconds=seconds, clock=clock)
