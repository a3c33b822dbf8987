"""Many items in few requests, each item on its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from jobtable.errors import IncompleteBatchError, ValueRefusedError
from jobtable.model.entity import Entity
from jobtable.model.plain_values import decimal_text
from jobtable.model.selection import Selection
from jobtable.model.table import Table
from jobtable.store import requests
from jobtable.store.backend import Item, Request, Response, StoreRequest
from jobtable.store.collections import own_entity
from jobtable.store.requests import Target

if TYPE_CHECKING:
    from jobtable.store.store import Store

T = TypeVar("T")
E = TypeVar("E", bound=Entity)

_Name: TypeAlias = tuple[str, ...]
"""What tells one key from another: its table, and the values of its attributes."""

_MOST_WRITES = 25
_MOST_GETS = 100


class Batches:
    """The batch verbs of a store. What the backend leaves unprocessed is sent again with growing pauses."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, selections: Sequence[Selection[E]], *, consistent: bool) -> list[E | None]:
        """The entities under the keys, in their order."""
        schemas = [requests.selected(selection) for selection in selections]
        keys = [
            (self._store.table_name(schema.table), requests.key_of(selection))
            for schema, selection in zip(schemas, selections, strict=True)
        ]
        names = [_name_of(table, key) for table, key in keys]
        found: dict[_Name, Item | bytes] = {}
        for chunk in _chunks(dict(zip(names, keys, strict=True)).items(), _MOST_GETS):
            found.update(self._get_chunk(dict(chunk), consistent))
        items = [found.get(name) for name in names]
        return [None if item is None else own_entity(schema, item) for schema, item in zip(schemas, items, strict=True)]

    def put(self, entities: Iterable[Entity]) -> int:
        """Store the entities."""
        return self._write(self._put_request(entity) for entity in entities)

    def delete(self, targets: Iterable[Target]) -> int:
        """Take the items out."""
        return self._write(self._delete_request(target) for target in targets)

    def put_items(self, table: Table, items: Iterable[Item]) -> int:
        """Store items of a table as they are, whatever their kinds."""
        name = self._store.table_name(table)
        return self._write((name, _key_of(table, item), {"PutRequest": {"Item": item}}) for item in items)

    def delete_items(self, table: Table, items: Iterable[Item]) -> int:
        """Take items of a table out, by their keys alone."""
        name = self._store.table_name(table)
        keys = (_key_of(table, item) for item in items)
        return self._write((name, key, {"DeleteRequest": {"Key": key}}) for key in keys)

    def _put_request(self, entity: Entity) -> tuple[str, Item, Request]:
        write = requests.put(entity, None, is_encoded=self._store.takes_encoded_items)
        if "ConditionExpression" in write.members:
            raise ValueRefusedError(f"{write.describe()}: it shares its keys with another entity; put it on its own")
        return self._store.table_name(write.schema.table), write.key, {"PutRequest": {"Item": write.members["Item"]}}

    def _delete_request(self, target: Target) -> tuple[str, Item, Request]:
        schema, key = requests.schema_of(target), requests.key_of(target)
        # An entity was read, so the item under its key is its own.
        if schema.shares_keys_with and isinstance(target, Selection):
            raise ValueRefusedError(f"{target}: it shares its keys with another entity; delete it on its own")
        return self._store.table_name(schema.table), key, {"DeleteRequest": {"Key": key}}

    def _get_chunk(self, keys: dict[_Name, tuple[str, Item]], consistent: bool) -> Iterator[tuple[_Name, Item | bytes]]:
        tables: Request = {}
        names: dict[str, list[_Name]] = {}
        for name, (table, key) in keys.items():
            tables.setdefault(table, {"Keys": [], "ConsistentRead": consistent})["Keys"].append(key)
            names.setdefault(table, []).append(name)
        send = self._sender("BatchGetItem", "UnprocessedKeys", writes=False)
        for response in send(tables):
            for table, items in response.get("Responses", {}).items():
                if items and type(items[0]) is not dict:
                    # As StoreRequest says: an answer for each key, up to those that were not processed.
                    yield from zip(names[table], items, strict=False)
                    del names[table][: len(items)]
                else:
                    primary = keys[names[table][0]][1]
                    yield from ((_name_of(table, {part: item[part] for part in primary}), item) for item in items)

    def _write(self, writes: Iterable[tuple[str, Item, Request]]) -> int:
        """Send writes in requests of 25. The last of several writes to one key wins, as one after the other."""
        count = 0
        send = self._sender("BatchWriteItem", "UnprocessedItems", writes=True)
        for chunk in _chunks(writes, _MOST_WRITES):
            distinct = {_name_of(table, key): (table, request) for table, key, request in chunk}
            tables: dict[str, list[Request]] = {}
            for table, request in distinct.values():
                tables.setdefault(table, []).append(request)
            for _ in send(tables):
                pass
            count += len(chunk)
        return count

    def _sender(self, operation: str, unprocessed: str, *, writes: bool) -> Callable[[Any], Iterator[Response]]:
        def send(tables: Any) -> Iterator[Response]:
            left = tables
            pauses = self._store.backoff.pauses()
            while left:
                request = {"RequestItems": left, "ReturnConsumedCapacity": "TOTAL"}
                if not writes:  # what is written may be items as somebody gave them, of which nothing is known
                    request = StoreRequest(request)
                response = self._store.ask(operation, request, f"batch.{operation}", writes=writes)
                yield response
                progress = response.get(unprocessed) != left
                left = response.get(unprocessed) or {}
                if progress:
                    pauses = self._store.backoff.pauses()
                if left and next(pauses, self) is self:
                    raise IncompleteBatchError(
                        f"{operation}: the backend left items of {' and '.join(left)} unprocessed repeatedly, and "
                        "did not receive the items after them; repeat all of it later",
                        tuple(left.items()),
                    )

        return send


def _key_of(table: Table, item: Item) -> Item:
    """The key of an item, in which equal numbers are equal texts."""
    key = {name: item[name] for name in table.primary}
    return {name: {"N": decimal_text(Decimal(value["N"]))} if "N" in value else value for name, value in key.items()}


def _name_of(table: str, key: Item) -> _Name:
    # All keys of a table have the same attributes, in the same order, each always of one type.
    return table, *[content for value in key.values() for content in value.values()]


def _chunks(values: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(values)
    while chunk := list(islice(iterator, size)):
        yield chunk
