"""A backend that wraps another and misbehaves as DynamoDB may, by a seed."""

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
    """How often each fault happens: 0 never, 1 always."""

    throttled: float = 0.0
    """The request is refused as one too many, and has no effect."""
    unavailable: float = 0.0
    """The request does not arrive: no answer comes, and it has no effect."""
    conflict: float = 0.0
    """A transaction, or the write of one item, is refused because another transaction works on the item."""
    unprocessed: float = 0.0
    """Each entry of a batch is left undone."""
    lost_response: float = 0.0
    """A write takes effect, but its answer does not arrive."""
    index_lag: float = 0.0
    """An index does not know the writes of the last moment: new items are missing, changed and removed ones are old."""
    latency_seconds: float = 0.0
    """Every request takes up to this long."""


class FaultyBackend:
    """Passes requests on, with faults. `injected` counts them.

    An index that lags does not know the last `lagging` writes, as far as they are not older than `lagging_seconds`.
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
        """Let nothing go wrong any more."""
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
            raise TransactionConflict("injected: a transaction works on the item")
        if operation in ("TransactWriteItems", "TransactGetItems") and self._happens("conflict"):
            reasons = [{"Code": "None"} for _ in request["TransactItems"]]
            self._random.choice(reasons)["Code"] = "TransactionConflict"
            details = {"CancellationReasons": reasons}
            raise TransactionCanceled("injected: another transaction works on an item", details=details)

    def _pass_on(self, operation: str, request: Request) -> Response:
        if operation not in _WRITES:
            return self._backend.execute(operation, request)
        if self._indexes is not None:
            self._indexes.begin(request)
        response = self._backend.execute(operation, request)
        if self._indexes is not None:
            self._indexes.follow(request)
        if self._happens("lost_response"):
            raise BackendUnavailable("injected: the answer was lost after the write took effect")
        return response

    def _batch(self, operation: str, request: Request) -> Response:
        """Do a part of a batch, and leave the rest."""
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
    """Whether an answer may be out of date: a local index can be asked for one that is not."""
    return operation in ("Query", "Scan") and "IndexName" in request and not request.get("ConsistentRead")
