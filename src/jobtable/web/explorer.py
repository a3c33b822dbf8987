"""The items of any table, by index, partition and prefix: as entities, and as they are stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jobtable.errors import ItemShapeError, NotFoundError, TableNotFound, ValueRefusedError
from jobtable.model import Index, Table
from jobtable.model.conditions import Placeholders
from jobtable.store import Store, Undeclared
from jobtable.store.backend import Item, Request
from jobtable.store.collections import entity_of
from jobtable.store.cursors import fingerprint, read_cursor, write_cursor
from jobtable.web.guard import Caller
from jobtable.web.withheld import refuse_withheld


@dataclass(frozen=True)
class ItemView:
    """An item: as the entity that it is, where it is one, and as it is stored."""

    entity: str | None
    values: dict[str, Any] | None
    problem: str | None
    """Why the item cannot be read as the entity that its type names."""
    item: Item


@dataclass(frozen=True)
class Asked:
    """What is looked at: a table or one of its indexes, a partition, and how the sort key begins."""

    table: Table
    index: Index | None
    partition: Sequence[str]
    sort: Sequence[str] = ()
    """Values of the sort attributes, from left to right; the last one may be the beginning of a text."""
    newest_first: bool = False

    def request(self) -> Request:
        """The Query request, without its place and size."""
        if self.index is not None:
            attributes, sort = self.index.partition, self.index.sort
        else:
            attributes, sort = self.table.primary[:1], self.table.primary[1:]
        if len(self.partition) != len(attributes):
            raise ValueRefusedError(f"the partition is {', '.join(attributes)}: give {len(attributes)} values")
        if len(self.sort) > len(sort):
            raise ValueRefusedError(
                f"the sort key is {', '.join(sort) or 'not there'}: give {len(sort)} values at most"
            )
        placeholders = Placeholders()
        texts = [
            f"{placeholders.name(name)} = {placeholders.value(self._wire(name, value))}"
            for name, value in zip(attributes, self.partition, strict=True)
        ]
        for number, (name, value) in enumerate(zip(sort, self.sort, strict=False), start=1):
            wire = self._wire(name, value)
            written = placeholders.name(name), placeholders.value(wire)
            is_beginning = number == len(self.sort) and "S" in wire
            texts.append("begins_with({}, {})".format(*written) if is_beginning else "{} = {}".format(*written))
        request: Request = {
            "KeyConditionExpression": " AND ".join(texts),
            "ScanIndexForward": not self.newest_first,
            "ReturnConsumedCapacity": "TOTAL",
        }
        if self.index is not None:
            request["IndexName"] = self.index.name
        placeholders.add_to(request)
        return request

    def _wire(self, attribute: str, text: str) -> dict[str, Any]:
        kind = self.table.key_types()[attribute]
        if kind == "B":
            raise ValueRefusedError(f"{attribute} is binary; such keys cannot be typed in")
        return {kind: text}


def index_named(table: Table, name: str | None) -> Index | None:
    """The index of that name, or NotFoundError; None stands for the table itself."""
    if name is None:
        return None
    if name not in table.indexes:
        known = ", ".join(table.indexes)
        raise NotFoundError(f"table {table.name} has no index {name}", hint=f"it has {known or 'none'}")
    return table.indexes[name]


def explore(
    store: Store, asked: Asked, caller: Caller, *, cursor: str | None, limit: int
) -> tuple[list[ItemView], str | None]:
    """A page of items, and the cursor to go on from; Refused where the caller may not read them.

    NotFoundError if the table is declared and not deployed.
    """
    refuse_withheld(asked.table, asked.partition, caller)
    request = {"TableName": store.table_name(asked.table), **asked.request()}
    bound_to = fingerprint(request)
    request["Limit"] = limit
    if cursor:
        request["ExclusiveStartKey"] = read_cursor(cursor, bound_to)
    try:
        response = store.ask("Query", request, f"{asked.table.name}.explore")
    except TableNotFound as error:
        raise NotFoundError(error.message, hint=error.hint) from error
    last = response.get("LastEvaluatedKey")
    return [_explored(asked.table, item) for item in response["Items"]], write_cursor(last, bound_to) if last else None


def _explored(table: Table, item: Item) -> ItemView:
    try:
        entity = entity_of(table, item)
    except ItemShapeError as error:
        return ItemView(None, None, str(error), item)
    if isinstance(entity, Undeclared):
        return ItemView(None, None, None, item)
    return ItemView(type(entity).__name__, entity.model_dump(mode="json"), None, item)
