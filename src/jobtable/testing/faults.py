"""A backend that wraps another and fails as DynamoDB may, repeatably by a seed."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from random import Random
from typing import Any

from jobtable.clock import SYSTEM_CLOCK, Clock
from jobtable.errors import BackendUnavailable, Throttled, TransactionCanceled, TransactionConflict
from jobtable.store.backend import Backend, Request, Response
from jobtable.testing.index_lag import LaggingIndexes

_SINGLE_WRITES = ("PutItem", "UpdateItem", "DeleteItem")
_WRITES = (*_SINGLE_WRITES, "BatchWriteItem", "TransactWriteItems")
_UNPROCESSED = {"BatchWriteItem": "UnprocessedItems", "BatchGetItem": "UnprocessedKeys"}


@dataclass(frozen=True)
class Faults:
    """The probability of each fault, from 0 to 1."""

    throttled: float = 0.0
    """The request is throttled and has no effect."""
    unavailable: float = 0.0
    """The request does not arrive and has no effect."""
    conflict: float = 0.0
    """A transaction or a write of one item is refused because another transaction uses the item."""
    unprocessed: float = 0.0
    """An entry of a batch is not processed."""
    lost_response: float = 0.0
    """A write takes effect, but its response does not arrive."""
    index_lag: float = 0.0
    """An index misses the latest writes: new items are missing, changed and deleted ones are old."""
    latency_seconds: float = 0.0
    """The longest delay of a request."""


class FaultyBackend:
    """Passes requests on with faults, which `injected` counts.

    A lagging index misses the last `lagging` writes, unless they are older than `lagging_seconds`.
    """

    def __init__(
        self,
        backend: Backend,
        faults: Faults,
        *,
        seed: int,
        lagging: int = 5,
        lagging_seconds: float = math.inf,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._backend = backend
        self._faults = faults
        self._random = Random(seed)  # noqa: S311 - repeatable on purpose
        self._lock = threading.Lock()
        self._clock = clock
        self._indexes = LaggingIndexes(backend, lagging, lagging_seconds, clock) if faults.index_lag else None
        self.injected: dict[str, int] = {}

    def stop(self) -> None:
        self._faults = Faults()

    def execute(self, operation: str, request: Request) -> Response:
        if self._faults.latency_seconds:
            self._clock.sleep(self._random.uniform(0, self._faults.latency_seconds))
        self._refuse(operation, request)
        if self._indexes is not None and _asks_index(operation, request) and self._happens("index_lag"):
            return self._indexes.execute(operation, dict(request))
        if operation in _UNPROCESSED:
            return self._batch(operation, request)
        return self._pass_on(operation, dict(request))

    def close(self) -> None:
        if self._indexes is not None:
            self._indexes.close()
        self._backend.close()

    def _happens(self, fault: str) -> bool:
        with self._lock:
            rate: float = getattr(self._faults, fault)
            happens = self._random.random() < rate
            if happens:
                self.injected[fault] = self.injected.get(fault, 0) + 1
            return happens

    def _refuse(self, operation: str, request: Request) -> None:
        if self._happens("throttled"):
            raise Throttled("injected: too many requests", code="ProvisionedThroughputExceededException")
        if self._happens("unavailable"):
            raise BackendUnavailable("injected: the request did not arrive")
        if operation in _SINGLE_WRITES and self._happens("conflict"):
            raise TransactionConflict("injected: a transaction uses the item")
        if operation in ("TransactWriteItems", "TransactGetItems") and self._happens("conflict"):
            reasons = [{"Code": "None"} for _ in request["TransactItems"]]
            self._random.choice(reasons)["Code"] = "TransactionConflict"
            details = {"CancellationReasons": reasons}
            raise TransactionCanceled("injected: another transaction uses an item", details=details)

    def _pass_on(self, operation: str, request: Request) -> Response:
        if operation not in _WRITES:
            return self._backend.execute(operation, request)
        if self._indexes is not None:
            self._indexes.begin(request)
        response = self._backend.execute(operation, request)
        if self._indexes is not None:
            self._indexes.follow(request)
        if self._happens("lost_response"):
            raise BackendUnavailable("injected: the response was lost after the write took effect")
        return response

    def _batch(self, operation: str, request: Request) -> Response:
        """Process a part of a batch."""
        done: Request = {}
        left: Request = {}
        for table, entries in request["RequestItems"].items():
            keys = entries["Keys"] if operation == "BatchGetItem" else entries
            for entry in keys:
                chosen = left if self._happens("unprocessed") else done
                if operation == "BatchGetItem":
                    chosen.setdefault(table, {**entries, "Keys": []})["Keys"].append(entry)
                else:
                    chosen.setdefault(table, []).append(entry)
        response: Response = self._pass_on(operation, {**request, "RequestItems": done}) if done else {}
        rest: dict[str, Any] = response.setdefault(_UNPROCESSED[operation], {})
        for table, entries in left.items():
            if operation == "BatchGetItem" and table in rest:
                rest[table]["Keys"] += entries["Keys"]
            else:
                rest[table] = rest.get(table, []) + entries if operation == "BatchWriteItem" else entries
        return response


def _asks_index(operation: str, request: Request) -> bool:
    """Return whether a response may be out of date; reads of a local index may ask for consistency."""
    return operation in ("Query", "Scan") and "IndexName" in request and not request.get("ConsistentRead")
