"""Items as they are stored: read by partition, compared by key, added where none is."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from jobtable.errors import ConditionalCheckFailed
from jobtable.model import Condition, Selection, Table
from jobtable.model.conditions import Placeholders
from jobtable.store import Store
from jobtable.store.backend import Item
from jobtable.store.scans import pages


def list_partition(store: Store, table: Table, selection: Selection[Any]) -> Iterator[Item]:
    """Yield every item of the partition of a key, in key order."""
    request = {
        "TableName": store.table_name(table),
        "KeyConditionExpression": "PK = :pk",
        "ExpressionAttributeValues": {":pk": selection.equal["PK"]},
        "ConsistentRead": True,
        "ReturnConsumedCapacity": "TOTAL",
    }
    for page in pages(partial(store.ask, pattern="Journey.export"), "Query", request):
        yield from page["Items"]


def position(item: Item) -> tuple[bytes, bytes]:
    """Return what orders items as DynamoDB does: by partition key, then by sort key."""
    return item["PK"]["S"].encode("utf-8", "surrogatepass"), item["SK"]["S"].encode("utf-8", "surrogatepass")


def missing_from(wanted: Iterable[Item], here: Iterable[Item]) -> Iterator[Item]:
    """Yield the keys of the items that are here but not wanted; both come in key order."""
    there = ((position(item), 0, item) for item in here)
    coming = ((position(item), 1, item) for item in wanted)
    last: tuple[tuple[bytes, bytes], Item] | None = None
    for place, origin, item in heapq.merge(there, coming, key=lambda entry: entry[:2]):
        if last is not None and last[0] != place:
            yield last[1]
        last = (place, {"PK": item["PK"], "SK": item["SK"]}) if origin == 0 else None
    if last is not None:
        yield last[1]


def add_item(store: Store, table: Table, item: Item) -> bool:
    """Store an item unless its key is taken; return whether it was stored."""
    request = {"Item": item, "ConditionExpression": "attribute_not_exists(PK)"}
    try:
        _put(store, table, request)
    except ConditionalCheckFailed:
        return False
    return True


def replace_item(store: Store, table: Table, item: Item, when: Condition) -> bool:
    """Store an item in place of one that meets a condition; return whether it is there now."""
    placeholders = Placeholders()
    request: dict[str, Any] = {"Item": item, "ConditionExpression": when.write(placeholders)}
    placeholders.add_to(request)
    try:
        _put(store, table, {**request, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"})
    except ConditionalCheckFailed as error:
        return bool(error.details.get("Item") == item)  # an earlier try may have succeeded without an answer
    return True


def _put(store: Store, table: Table, request: dict[str, Any]) -> None:
    request = {"TableName": store.table_name(table), "ReturnConsumedCapacity": "TOTAL", **request}
    store.ask("PutItem", request, "Journey.import", writes=True)
