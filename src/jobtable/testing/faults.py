"""A backend that wraps another and misbehaves as DynamoDB may, by a seed."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from random import Random
from typing import Any

from jobtable.clock import SYSTEM_CLOCK, Clock
from jobtable.errors import BackendUnavailable, Throttled
from jobtable.model.table import Table
from jobtable.store.backend import Backend, Item, Request, Response

_SINGLE_WRITES = ("PutItem", "UpdateItem", "DeleteItem")
_WRITES = (*_SINGLE_WRITES, "BatchWriteItem", "TransactWriteItems")
_UNPROCESSED = {"BatchWriteItem": "UnprocessedItems", "BatchGetItem": "UnprocessedKeys"}


@dataclass(frozen=True)
class Faults:
    """How often each fault happens: 0 never, 1 always."""

    throttled: float = 0.0
    """The request is refused as one too many, and has no effect."""
    unprocessed: float = 0.0
    """Each entry of a batch is left undone."""
    lost_response: float = 0.0
    """A write takes effect, but its answer does not arrive."""
    index_lag: float = 0.0
    """A query on an index does not see the writes of the last moment: new items are missing, changed ones are old."""
    latency_seconds: float = 0.0
    """Every request takes up to this long."""


class FaultyBackend:
    """Passes requests on, with faults. `injected` counts them; `lagging` writes are those an index may not show."""

    def __init__(
        self,
        backend: Backend,
        faults: Faults,
        *,
        seed: int,
        tables: tuple[Table, ...] = (),
        lagging: int = 5,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._backend = backend
        self._faults = faults
        self._random = Random(seed)  # noqa: S311 - repeatable on purpose
        self._lock = threading.Lock()
        self._clock = clock
        self._primary = {table.name: table.primary for table in tables}
        self._recent: OrderedDict[str, Item | None] = OrderedDict()
        self._lagging = lagging
        self.injected: dict[str, int] = {}

    def execute(self, operation: str, request: Request) -> Response:
        if self._faults.latency_seconds:
            self._clock.sleep(self._random.uniform(0, self._faults.latency_seconds))
        if self._happens("throttled"):
            raise Throttled("injected: too many requests", code="ProvisionedThroughputExceededException")
        if operation in _UNPROCESSED:
            return self._batch(operation, request)
        if self._faults.index_lag and operation in _SINGLE_WRITES:
            self._remember(request)
        response = self._backend.execute(operation, dict(request))
        if operation in _WRITES and self._happens("lost_response"):
            raise BackendUnavailable("injected: the answer was lost after the write took effect")
        if operation == "Query" and "IndexName" in request and self._happens("index_lag"):
            self._make_stale(request, response)
        return response

    def close(self) -> None:
        self._backend.close()

    def _happens(self, fault: str) -> bool:
        with self._lock:
            rate: float = getattr(self._faults, fault)
            happens = self._random.random() < rate
            if happens:
                self.injected[fault] = self.injected.get(fault, 0) + 1
            return happens

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
        response: Response = {}
        if done:
            response = self._backend.execute(operation, {**request, "RequestItems": done})
        if operation == "BatchWriteItem" and done and self._happens("lost_response"):
            raise BackendUnavailable("injected: the answer was lost after the write took effect")
        rest: dict[str, Any] = response.setdefault(_UNPROCESSED[operation], {})
        for table, entries in left.items():
            if operation == "BatchGetItem" and table in rest:
                rest[table]["Keys"] += entries["Keys"]
            else:
                rest[table] = rest.get(table, []) + entries if operation == "BatchWriteItem" else entries
        return response

    def _remember(self, request: Request) -> None:
        """Keep what is under a key before it is written, for indexes that lag behind."""
        primary = self._primary_of(request["TableName"])
        source = request.get("Key") or request["Item"]
        key = {name: source[name] for name in primary}
        read = {"TableName": request["TableName"], "Key": key, "ConsistentRead": True}
        old = self._backend.execute("GetItem", read).get("Item")
        with self._lock:
            self._recent[_name_of(request["TableName"], key, primary)] = old
            while len(self._recent) > self._lagging:
                self._recent.popitem(last=False)

    def _make_stale(self, request: Request, response: Response) -> None:
        primary = self._primary_of(request["TableName"])
        stale = []
        with self._lock:
            for item in response["Items"]:
                name = _name_of(request["TableName"], item, primary)
                if name not in self._recent:
                    stale.append(item)
                elif (old := self._recent[name]) is not None:
                    stale.append(old)
        response["Items"] = stale
        response["Count"] = len(stale)

    def _primary_of(self, table: str) -> tuple[str, ...]:
        return next(primary for name, primary in self._primary.items() if table.endswith(name))


def _name_of(table: str, item: Item, primary: tuple[str, ...]) -> str:
    return f"{table} {[item[name] for name in primary]}"
