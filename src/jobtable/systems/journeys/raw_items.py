"""Items as they are stored: read by partition, compared by key, added where none is."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from typing import Any

from jobtable.errors import ConditionalCheckFailed
from jobtable.model import Condition, Selection, Table
from jobtable.model.conditions import Placeholders
from jobtable.store import Store
from jobtable.store.backend import Item


def list_partition(store: Store, table: Table, selection: Selection[Any]) -> Iterator[Item]:
    """Every item of the partition that a key is in, in key order."""
    request: dict[str, Any] = {
        "TableName": store.table_name(table),
        "KeyConditionExpression": "PK = :pk",
        "ExpressionAttributeValues": {":pk": selection.equal["PK"]},
        "ConsistentRead": True,
        "ReturnConsumedCapacity": "TOTAL",
    }
    while True:
        page = store.ask("Query", request, "Journey.export")
        yield from page["Items"]
        if "LastEvaluatedKey" not in page:
            return
        request["ExclusiveStartKey"] = page["LastEvaluatedKey"]


def position(item: Item) -> tuple[bytes, bytes]:
    """The place of an item in key order: by partition, and then by sort key, as DynamoDB compares them."""
    return _bytes(item["PK"]["S"]), _bytes(item["SK"]["S"])


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def missing_from(wanted: Iterable[Item], here: Iterable[Item]) -> Iterator[Item]:
    """The keys of the items that are here and not wanted; both come in key order."""
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
    """Store an item where none is; says whether it was stored."""
    request = {
        "TableName": store.table_name(table),
        "Item": item,
        "ConditionExpression": "attribute_not_exists(PK)",
        "ReturnConsumedCapacity": "TOTAL",
    }
    try:
        store.ask("PutItem", request, "Journey.import", writes=True)
    except ConditionalCheckFailed:
        return False
    return True


def replace_item(store: Store, table: Table, item: Item, when: Condition) -> bool:
    """Store an item in place of one for which this holds; says whether it is there now."""
    placeholders = Placeholders()
    request: dict[str, Any] = {
        "TableName": store.table_name(table),
        "Item": item,
        "ConditionExpression": when.write(placeholders),
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        "ReturnConsumedCapacity": "TOTAL",
    }
    placeholders.add_to(request)
    try:
        store.ask("PutItem", request, "Journey.import", writes=True)
    except ConditionalCheckFailed as error:
        return bool(error.details.get("Item") == item)  # it may have happened, and its answer been lost
    return True
