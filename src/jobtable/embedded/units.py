"""Capacity units that a request consumes, and the sizes of item collections, as DynamoDB reports them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from jobtable.embedded.storage import IndexChange, Sized, View
from jobtable.embedded.table_schema import IndexSchema, TableSchema
from jobtable.store.backend import Item, Request

EVENTUAL = 0.5
CONSISTENT = 1.0
TRANSACTIONAL = 2.0

Split: TypeAlias = Literal["ReadCapacityUnits", "WriteCapacityUnits"]

_READ_BLOCK = 4096
_WRITE_BLOCK = 1024
_LOCAL_ENTRY_BYTES = 100  # bytes of each entry of a local index besides its attributes
_GIGABYTE = 1024**3


@dataclass(slots=True)
class TableUnits:
    """Units consumed on one table and on its indexes."""

    table: float = 0.0
    local: dict[str, float] = field(default_factory=dict)
    global_: dict[str, float] = field(default_factory=dict)

    def add_to_index(self, index: IndexSchema, units: float) -> None:
        units_of = self.local if index.is_local else self.global_
        units_of[index.name] = units_of.get(index.name, 0.0) + units

    def add(self, other: TableUnits) -> None:
        """Add other units."""
        self.table += other.table
        for mine, others in ((self.local, other.local), (self.global_, other.global_)):
            for name, units in others.items():
                mine[name] = mine.get(name, 0.0) + units

    def add_write(self, old: Sized, new: Sized, changes: Iterable[IndexChange], factor: float = 1.0) -> None:
        """Count the replacement of one item by another, on the table and on the indexes that it changes."""
        self.table += _for_writing(max(old.size, new.size)) * factor
        for schema, before, after, size_before, size_after, is_same in changes:
            if is_same:
                continue
            overhead = _LOCAL_ENTRY_BYTES if schema.is_local else 0
            if before == after or before is None or after is None:
                units = _for_writing(overhead + max(size_before, size_after))
            else:  # a changed key is a removal and an insertion
                units = _for_writing(overhead + size_before) + _for_writing(overhead + size_after)
            self.add_to_index(schema, units * factor)

    def report(self, table_name: str, wanted: str, split: Split | None = None) -> dict[str, Any]:
        """Return the ConsumedCapacity member: the sum for TOTAL, also its parts for INDEXES.

        In transactions `split` says whether the units are of reads or of writes.
        """
        total = self.table + sum(self.local.values()) + sum(self.global_.values())
        report: dict[str, Any] = {"TableName": table_name, **_capacity(total, split)}
        if wanted == "INDEXES":
            report["Table"] = _capacity(self.table, split)
            if self.local:
                report["LocalSecondaryIndexes"] = _by_name(self.local, split)
            if self.global_:
                report["GlobalSecondaryIndexes"] = _by_name(self.global_, split)
        return report


def read_report(request: Request, table_name: str, size: int) -> dict[str, Any] | None:
    """Return the ConsumedCapacity of reading so many bytes of a table at once; None if it is not wanted."""
    wanted = request.get("ReturnConsumedCapacity")
    if wanted is None or wanted == "NONE":
        return None
    units = read_units(size, read_rate(request))
    if wanted == "TOTAL":
        return {"TableName": table_name, "CapacityUnits": units}
    return TableUnits(units).report(table_name, wanted)


def write_report(request: Request, old: Sized, new: Sized, changes: list[IndexChange]) -> dict[str, Any] | None:
    """Return the ConsumedCapacity of replacing one item by another; None if it is not wanted."""
    wanted = request.get("ReturnConsumedCapacity")
    if wanted is None or wanted == "NONE":
        return None
    if wanted == "TOTAL" and not changes:
        size = max(old.size, new.size)
        return {"TableName": request["TableName"], "CapacityUnits": 1.0 if size <= _WRITE_BLOCK else _for_writing(size)}
    units = TableUnits()
    units.add_write(old, new, changes)
    return units.report(request["TableName"], wanted)


def _capacity(units: float, split: Split | None) -> dict[str, float]:
    return {"CapacityUnits": units} if split is None else {"CapacityUnits": units, split: units}


def _by_name(units: dict[str, float], split: Split | None) -> dict[str, Any]:
    return {name: _capacity(value, split) for name, value in units.items()}


def wanted_capacity(request: Request) -> str | None:
    """Return TOTAL or INDEXES if the request wants its consumed capacity, else None."""
    wanted: str | None = request.get("ReturnConsumedCapacity")
    return None if wanted == "NONE" else wanted


def read_rate(request: Request) -> float:
    """Return the units for 4 KB of a read outside of a transaction."""
    return CONSISTENT if request.get("ConsistentRead") else EVENTUAL


def read_units(size: int, rate: float) -> float:
    """Return the units for reading that many bytes at once; nothing costs as much as one block."""
    return rate if size <= _READ_BLOCK else -(-size // _READ_BLOCK) * rate


def _for_writing(size: int) -> float:
    return 1.0 if size <= _WRITE_BLOCK else float(-(-size // _WRITE_BLOCK))


def wants_collection_metrics(request: Request) -> bool:
    return request.get("ReturnItemCollectionMetrics") == "SIZE"


def collection_metrics(view: View, table: TableSchema, key: Item) -> dict[str, Any] | None:
    """Return the size of the item collection of a write; None for a table without local indexes."""
    if not any(index.is_local for index in table.indexes.values()):
        return None
    partition = table.partition.name
    gigabytes = sum(_collection_sizes(view, table, key)) // _GIGABYTE
    return {
        "ItemCollectionKey": {partition: dict(key[partition])},
        "SizeEstimateRangeGB": [float(gigabytes), float(gigabytes + 1)],
    }


def _collection_sizes(view: View, table: TableSchema, key: Item) -> Iterator[int]:
    low, high = table.key_range(None, [key[table.partition.name]])
    for size, _ in view.range(table, None, low, high):
        yield size
