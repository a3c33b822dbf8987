"""Queries: lazy, typed, fetching their pages themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar

from pydantic_core import from_json

from jobtable.errors import ItemShapeError, ValueRefusedError
from jobtable.model.schema import EntitySchema, KeySchema
from jobtable.store.backend import Item, Request, Response, StoreRequest
from jobtable.store.cursors import fingerprint, made_up, read_cursor, write_cursor

T = TypeVar("T")
_LEAST_READ_AHEAD = 100
"""How many items are evaluated at once, at least, where a filter may leave some out."""
_MOST_READ_AHEAD = 2000
"""And how many at most: each request evaluates twice as many as the one before."""

_LARGEST_LIMIT = 2**31 - 1
"""What DynamoDB can count to; a page has 1 MB at most."""


@dataclass(frozen=True)
class Page(Generic[T]):
    """Some results, and the cursor of the next page; None after the last one."""

    items: list[T]
    cursor: str | None


class Paged(Protocol[T]):
    """Results that are read when they are iterated over, or in pages."""

    def __iter__(self) -> Iterator[T]: ...

    def page(self, cursor: str | None = None, size: int = 50, *, most_examined: int | None = None) -> Page[T]:
        """Return `size` results after the cursor; fewer only on the last page. CursorError for a foreign cursor."""
        ...


class Query(Generic[T]):
    """The result of a query. Iterating sends its requests, page by page; each iteration sends them again."""

    def __init__(
        self,
        ask: Callable[[str, Request], Response],
        request: Request,
        read: Callable[[Item], T],
        *,
        read_all_json: Callable[[list[bytes]], list[T]] | None = None,
        key: KeySchema,
        schema: EntitySchema,
        limit: int | None = None,
        only_type: str | None = None,
    ) -> None:
        if limit is not None and limit < 1:
            raise ValueRefusedError(f"limit must be at least 1, not {limit}")
        self._ask = ask
        self._request = request
        self._read = read
        self._read_all_json = read_all_json
        self._key = key
        self._schema = schema
        self._limit = limit
        self._only_type = only_type

    def __iter__(self) -> Iterator[T]:
        return self._results(self._limit)

    def __bool__(self) -> bool:
        raise TypeError("a query has no truth value; use .first(), which returns None if nothing matches")

    def first(self) -> T | None:
        """Return the first result, or None."""
        return next(self._results(1), None)

    def take(self, count: int) -> Iterator[T]:
        """Yield at most this many results and read no more, while iterating reads whole pages ahead."""
        if count < 1:
            raise ValueRefusedError(f"count must be at least 1, not {count}")
        return self._results(count if self._limit is None else min(count, self._limit))

    def _results(self, left: int | None) -> Iterator[T]:
        request = self._request if self._read_all_json is None else StoreRequest(self._request)
        for response in self._raw(request, None, left):
            for result in self._read_all(response["Items"]):
                yield result
                if left is not None:
                    left -= 1
                    if left == 0:
                        return

    def _read_all(self, items: list[Any]) -> Iterable[T]:
        if self._read_all_json is None or not items or type(items[0]) is not bytes:
            return map(self._read, self._own(items))
        try:
            return self._read_all_json(items)
        except ItemShapeError:
            # One of them is of another type, or of another shape, which is an error when its turn comes.
            return map(self._read, self._own([from_json(body) for body in items]))

    def page(self, cursor: str | None = None, size: int = 50, *, most_examined: int | None = None) -> Page[T]:
        """Return `size` results after the cursor; fewer only on the last page.

        The limit of the query applies to all its pages together. With `most_examined` a page ends, full or not, after
        that many items were examined: a filter may exclude most of a table.
        """
        if size < 1:
            raise ValueRefusedError(f"the size of a page must be at least 1, not {size}")
        start, left = self._read_cursor(cursor) if cursor else (None, self._limit)
        most = size if left is None else min(size, left)
        found: list[Item] = []
        behind: Item | None = None
        examined = 0
        for response in self._raw(self._request, start, most + 1):
            found += self._own(response["Items"])
            examined += response["ScannedCount"]
            if len(found) > most:
                behind = found[most - 1]
                break
            if most_examined is not None and examined >= most_examined:
                behind = response.get("LastEvaluatedKey")
                break
        items = [self._read(item) for item in found[:most]]
        if behind is None or left == len(items):
            return Page(items, None)
        return Page(items, self._write_cursor(behind, None if left is None else left - len(items)))

    def count(self) -> int:
        """Return the number of results, up to the limit; reads them without transferring them."""
        total = 0
        for response in self._raw(self._count_request(), None, self._limit):
            total += response["Count"]
            if self._limit is not None and total >= self._limit:
                return self._limit
        return total

    def _count_request(self) -> Request:
        """The request without the items, which also leaves out those that reading would: see _own."""
        request = {**self._request, "Select": "COUNT"}
        type_attribute = self._schema.table.type_attribute
        told_by_key = any(part.attribute == type_attribute for part in self._key.parts)
        index = self._key.index
        if self._only_type is None or type_attribute is None or told_by_key:
            return request
        if index is not None and not index.holds(type_attribute):
            return request
        is_own = "(attribute_not_exists(#type) OR #type = :type)"
        others = request.get("FilterExpression")
        request["FilterExpression"] = f"({others}) AND {is_own}" if others else is_own
        request["ExpressionAttributeNames"] = {**request["ExpressionAttributeNames"], "#type": type_attribute}
        request["ExpressionAttributeValues"] = {
            **request["ExpressionAttributeValues"],
            ":type": {"S": self._only_type},
        }
        return request

    def _own(self, items: list[Item]) -> list[Item]:
        """The items without those of another type."""
        type_attribute = self._schema.table.type_attribute
        if self._only_type is None or type_attribute is None:
            return items
        own = {"S": self._only_type}
        # An item without the attribute has the entity's key all the same: whether it is one, decoding tells.
        return [item for item in items if item.get(type_attribute, own) == own]

    def _raw(self, request: Request, start: Item | None, wanted: int | None) -> Iterator[Response]:
        request = type(request)(request)
        if wanted is not None:
            least = _LEAST_READ_AHEAD if "FilterExpression" in request else 1
            request["Limit"] = min(max(wanted, least), _LARGEST_LIMIT)
        while True:
            if start is not None:
                request["ExclusiveStartKey"] = start
            response = self._ask("Query", request)
            yield response
            start = response.get("LastEvaluatedKey")
            if start is None:
                return
            if wanted is not None:  # some were left out, so more may be
                request["Limit"] = max(request["Limit"], min(2 * request["Limit"], _MOST_READ_AHEAD))

    def _read_cursor(self, cursor: str) -> tuple[Item, int | None]:
        """The position behind which to go on, and how many results the limit leaves."""
        place = read_cursor(cursor, self._fingerprint)
        if self._limit is None:
            return place, None
        behind, left = place.get("behind"), place.get("left")
        if not isinstance(behind, dict) or not isinstance(left, int) or left < 1:
            raise made_up()
        return behind, left

    def _write_cursor(self, last: Item, left: int | None) -> str:
        position = {name: last[name] for name in self._position_attributes}
        return write_cursor(position if left is None else {"behind": position, "left": left}, self._fingerprint)

    @cached_property
    def _fingerprint(self) -> bytes:
        return fingerprint(self._request if self._limit is None else {**self._request, "limit": self._limit})

    @cached_property
    def _position_attributes(self) -> tuple[str, ...]:
        index = self._key.index.attributes if self._key.index else ()
        return tuple(dict.fromkeys((*self._schema.table.primary, *index)))
