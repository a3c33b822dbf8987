"""Backends that do what a cloud does on a bad day, where a test says so."""

from __future__ import annotations

from jobtable.errors import TransactionCanceled
from jobtable.store.backend import Backend, Request, Response


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
