"""Items that were stored before a key of their entity was declared get that key."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from jobtable.errors import ConditionalCheckFailed
from jobtable.model.table import Table
from jobtable.store import requests
from jobtable.store.backend import Item
from jobtable.store.collections import Undeclared, entity_of
from jobtable.store.scans import Scan

if TYPE_CHECKING:
    from jobtable.store.store import Store

_WRITERS = 16
"""How many items are written at once: one after the other, each would wait for the network, or for the disk."""
_MOST_WAITING = 100
"""Items that are read ahead: they may be large."""


def rekey(store: Store, table: Table) -> int:
    """Give the items of a table the index keys that their fields make; gives how many had others, or none."""
    request = {"TableName": store.table_name(table), "ConsistentRead": True, "ReturnConsumedCapacity": "TOTAL"}
    scan = Scan(lambda operation, request: store.ask(operation, request, "tables.rekey"), request, segments=1)
    items = iter(scan)
    rekeyed = 0
    with ThreadPoolExecutor(_WRITERS) as writers:
        while some := list(islice(items, _MOST_WAITING)):
            rekeyed += sum(writers.map(partial(_is_rekeyed, store, table), some))
    return rekeyed


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
