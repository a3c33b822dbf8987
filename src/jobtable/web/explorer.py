"""The items of any table, by index, partition and prefix: as entities, and as stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from jobtable.access.entities import AccessToken, AnsweredRequest, Role
from jobtable.errors import ItemShapeError, NotFoundError, TableNotFound, ValueRefusedError
from jobtable.model import Entity, Index, Table
from jobtable.model.conditions import Placeholders
from jobtable.store import Store, Undeclared
from jobtable.store.backend import Item, Request
from jobtable.store.collections import entity_of
from jobtable.store.cursors import fingerprint, read_cursor, write_cursor
from jobtable.web.guard import Caller
from jobtable.web.problems import Refusal
from jobtable.workflows.asl.entities import ActivityTask
from jobtable.workflows.durable.entities import DurableKey

_WITHHELD: tuple[type[Entity], ...] = (AccessToken, AnsweredRequest, ActivityTask, DurableKey)
"""Items that only the role full may read: tokens, what makes them, and stored responses to other callers."""


@dataclass(frozen=True)
class ItemView:
    """An item as its entity, if it has one, and as stored."""

    entity: str | None
    values: dict[str, Any] | None
    problem: str | None
    """Why the item cannot be decoded as the entity that its type names."""
    item: Item


@dataclass(frozen=True)
class Asked:
    """The items to show: a table or one of its indexes, a partition, and a prefix of the sort key."""

    table: Table
    index: Index | None
    partition: Sequence[str]
    sort: Sequence[str] = ()
    """Values of the sort attributes, from left to right; the last one may be a prefix."""
    newest_first: bool = False

    def request(self) -> Request:
        """Return the Query request without its table, start and limit."""
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
            raise ValueRefusedError(f"key {attribute} is binary, which is not supported here")
        return {kind: text}


def index_named(table: Table, name: str | None) -> Index | None:
    """Return the index of that name, or raise NotFoundError; None means the table itself."""
    if name is None:
        return None
    if name not in table.indexes:
        known = ", ".join(table.indexes)
        raise NotFoundError(f"table {table.name} has no index {name}", hint=f"it has {known or 'none'}")
    return table.indexes[name]


def explore(
    store: Store, asked: Asked, caller: Caller, *, cursor: str | None, limit: int
) -> tuple[list[ItemView], str | None]:
    """Return a page of items, and the cursor of the next page.

    Raises Refusal if the caller may not read the items, and NotFoundError if the table is not deployed.
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


def is_withheld(entity: str, caller: Caller) -> bool:
    """Return whether the caller may not read the items of an entity."""
    return caller.role is not Role.FULL and any(entity == each.__schema__.name for each in _WITHHELD)


def refuse_withheld(table: Table, partition: Iterable[str], caller: Caller) -> None:
    """Raise Refusal with 403 if a key names a partition of such items, in the table or an index.

    Such items have partitions of their own, so reads of other partitions need no filter.
    """
    if caller.role is Role.FULL:
        return
    for text in partition:
        for name, beginning in _beginnings(table):
            if text.startswith(beginning):
                raise Refusal(403, f"{text[:100]!r} holds items of {name}, which only the role full may read")


def texts_in(request: Any) -> Iterator[str]:
    """Yield every text value in a request of DynamoDB's API, because any of them may be compared with a key.

    A text with another purpose that starts like such a partition is refused too, which is harmless.
    """
    if isinstance(request, dict):
        for name, value in request.items():
            if name == "S" and isinstance(value, str):
                yield value
            else:
                yield from texts_in(value)
    elif isinstance(request, list):
        for value in request:
            yield from texts_in(value)


def _beginnings(table: Table) -> Iterator[tuple[str, str]]:
    """Yield the prefixes of the partitions of such items, each with the name of its entity."""
    for entity in _WITHHELD:
        schema = entity.__schema__
        if schema.table is table:
            for key in schema.keys:
                part = key.partition[0]
                yield schema.name, part.constant or (part.template.prefix_of({}) if part.template else "")
