"""Items that were stored before a key of their entity was declared get that key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobtable.errors import ConditionalCheckFailed
from jobtable.model.table import Table
from jobtable.store import requests
from jobtable.store.backend import Item
from jobtable.store.collections import Undeclared, entity_of
from jobtable.store.scans import Scan

if TYPE_CHECKING:
    from jobtable.store.store import Store


def rekey(store: Store, table: Table) -> int:
    """Give the items of a table the index keys that their fields make; gives how many had others, or none."""
    request = {"TableName": store.table_name(table), "ConsistentRead": True, "ReturnConsumedCapacity": "TOTAL"}
    scan = Scan(lambda operation, request: store.ask(operation, request, "tables.rekey"), request, segments=1)
    return sum(_is_rekeyed(store, table, item) for item in scan)


def _is_rekeyed(store: Store, table: Table, item: Item | None) -> bool:
    """Give one item its keys, as it is now if somebody changes it meanwhile; says whether it had others."""
    on_table = {"TableName": store.table_name(table), "ReturnConsumedCapacity": "TOTAL"}
    while item:
        entity = entity_of(table, item)
        members = None if isinstance(entity, Undeclared) else requests.rekey(entity, item)
        if members is None:
            return False
        request = {**on_table, **members, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
        try:
            store.ask("UpdateItem", request, "tables.rekey", writes=True)
        except ConditionalCheckFailed as error:
            item = error.details.get("Item")
        else:
            return True
    return False
