"""Backends that do what a cloud does on a bad day, where a test says so."""

from __future__ import annotations

from collections import deque

from jobtable.clock import Clock
from jobtable.embedded import EmbeddedBackend
from jobtable.errors import TransactionCanceled
from jobtable.store.backend import Backend, Request, Response

_READS = {"GetItem", "BatchGetItem", "TransactGetItems", "Query", "Scan"}


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


class LateIndexes:
    """Shows a write in the indexes `late_seconds` after it was done, on the clock that is given.

    Every write is done once more, and late, on a second engine, which answers for the indexes.
    """

    def __init__(self, clock: Clock, late_seconds: float = 1.0) -> None:
        self._table = EmbeddedBackend(None, clock=clock)
        self._indexes = EmbeddedBackend(None, clock=clock)
        self._clock = clock
        self._late_seconds = late_seconds
        self._coming: deque[tuple[float, str, Request]] = deque()

    def execute(self, operation: str, request: Request) -> Response:
        if operation == "Query" and "IndexName" in request:
            self._bring_up_to(self._clock.monotonic() - self._late_seconds)
            return self._indexes.execute(operation, request)
        response = self._table.execute(operation, dict(request))
        if operation not in _READS:
            self._coming.append((self._clock.monotonic(), operation, dict(request)))
        return response

    def _bring_up_to(self, instant: float) -> None:
        while self._coming and self._coming[0][0] <= instant:
            _, operation, request = self._coming.popleft()
            self._indexes.execute(operation, request)

    def close(self) -> None:
        self._table.close()
        self._indexes.close()
