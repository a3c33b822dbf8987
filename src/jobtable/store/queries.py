"""Queries: lazy, typed, paging by themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Generic, TypeVar

from pydantic_core import from_json

from jobtable.errors import ItemShapeError, ValueRefusedError
from jobtable.model.conditions import AttributeIs, Condition, Placeholders, all_of, as_condition
from jobtable.model.schema import EntitySchema, KeySchema
from jobtable.model.selection import Selection
from jobtable.store.backend import Item, Request, Response, StoreRequest
from jobtable.store.cursors import fingerprint, read_cursor, write_cursor

T = TypeVar("T")
_HIGHEST = "\U0010ffff" * 8
"""Sorts behind every text that a key goes on with."""
_LEAST_READ_AHEAD = 100
"""How many items are evaluated at once, at least, where a filter may leave some out."""


@dataclass(frozen=True)
class Page(Generic[T]):
    """Some results, and the cursor to go on from; None behind the last one."""

    items: list[T]
    cursor: str | None


@dataclass(frozen=True)
class Bounds:
    """Which part of the selection: limits on the next field of the sort key."""

    after: Any = None
    before: Any = None
    between: tuple[Any, Any] | None = None

    @property
    def are_given(self) -> bool:
        return self.after is not None or self.before is not None or self.between is not None


class Query(Generic[T]):
    """What a query will find. Iterating asks, page by page; each iteration asks anew."""

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
            raise ValueRefusedError(f"limit is {limit}; it is at least 1")
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

    def first(self) -> T | None:
        """The first result, or None."""
        return next(self._results(1), None)

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
        """Up to `size` results behind the cursor: as many, unless it is the last page.

        The limit of the query holds for all its pages together. With `most_examined` a page ends, full or not, when
        that many items were looked at: a filter may leave out most of a table.
        """
        if size < 1:
            raise ValueRefusedError(f"a page of {size}; it has at least 1")
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
        """How many there are, up to the limit; reads them, but sends none."""
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
            request["Limit"] = max(wanted, _LEAST_READ_AHEAD) if "FilterExpression" in request else wanted
        while True:
            if start is not None:
                request["ExclusiveStartKey"] = start
            response = self._ask("Query", request)
            yield response
            start = response.get("LastEvaluatedKey")
            if start is None:
                return

    def _read_cursor(self, cursor: str) -> tuple[Item, int | None]:
        """The position behind which to go on, and how many results the limit leaves."""
        place = read_cursor(cursor, self._fingerprint)
        return (place, None) if self._limit is None else (place["behind"], place["left"])

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


def query_request(
    selection: Selection[Any],
    bounds: Bounds,
    *,
    where: Condition | bool | None,
    newest_first: bool,
    consistent: bool,
) -> Request:
    """The request of a query, without the table's name."""
    if bounds.between is not None and (bounds.after is not None or bounds.before is not None):
        raise ValueRefusedError(f"{selection}: give either between, or after and before")
    schema = selection.entity.__schema__
    placeholders = Placeholders()
    texts = [f"{placeholders.name(name)} = {placeholders.value(wire)}" for name, wire in selection.equal.items()]
    texts += _range_text(selection, bounds, placeholders)
    request: Request = {"KeyConditionExpression": " AND ".join(texts)}
    condition = as_condition(where)
    type_attribute = schema.table.type_attribute
    told_by_key = any(part.attribute == type_attribute for part in selection.key.parts)
    if type_attribute and not told_by_key and (bounds.are_given or _is_shared(schema, selection)):
        condition = all_of(AttributeIs((type_attribute,), {"S": schema.type_name}), condition)
    if condition is not None:
        request["FilterExpression"] = condition.write(placeholders)
    if newest_first:
        request["ScanIndexForward"] = False
    if selection.key.index is not None:
        request["IndexName"] = selection.key.index.name
    elif consistent:
        request["ConsistentRead"] = True
    placeholders.add_to(request)
    return request


def span_text(first: Selection[Any], last: Selection[Any], placeholders: Placeholders) -> str:
    """The condition that a sort key lies from where one selection begins to where another one ends."""
    if len(first.key.sort) != 1 or first.key.sort[0].template is None or first.key.index != last.key.index:
        raise ValueRefusedError(
            f"from {first} to {last}: only selections by one text sort key of one index span a range"
        )
    if any(first.equal[p.attribute] != last.equal[p.attribute] for p in first.key.partition):
        raise ValueRefusedError(f"{first} and {last} are not of the same partition")
    attribute = first.key.sort[0].attribute
    low = first.equal[attribute]["S"] if first.open_part is None else first.prefix or "\x00"
    high = last.equal[attribute]["S"] if last.open_part is None else last.prefix + _HIGHEST
    if low > high:
        raise ValueRefusedError(f"{first} sorts behind {last}")
    low_value, high_value = placeholders.value({"S": low}), placeholders.value({"S": high})
    return f"{placeholders.name(attribute)} BETWEEN {low_value} AND {high_value}"


def _is_shared(schema: EntitySchema, selection: Selection[Any]) -> bool:
    sort_inputs = [name for part in selection.key.sort for name in part.inputs]
    given = sum(name in selection.values for name in sort_inputs)
    return _shares_range(schema, selection.key, given, len(schema.table.entities))


def _range_text(selection: Selection[Any], bounds: Bounds, placeholders: Placeholders) -> list[str]:
    part = selection.open_part
    if part is None:
        if bounds.are_given:
            raise ValueRefusedError(f"{selection} names the whole key; there is nothing to be before or after")
        return []
    if part.natural is not None:
        return _natural_range(selection, bounds, placeholders)
    if not bounds.are_given and not selection.prefix:
        return []
    name = placeholders.name(part.attribute)
    if not bounds.are_given:
        return [f"begins_with({name}, {placeholders.value({'S': selection.prefix})})"]
    low, high = _text_range(selection, bounds)
    return [f"{name} BETWEEN {placeholders.value({'S': low})} AND {placeholders.value({'S': high})}"]


def _text_range(selection: Selection[Any], bounds: Bounds) -> tuple[str, str]:
    """The lowest and the highest key text within the bounds on the next field of a template."""
    template = selection.open_part.template if selection.open_part else None
    field = selection.next_field
    if template is None or field is None:
        raise ValueRefusedError(f"{selection} has no next field to compare")
    at = next(i for i, part in enumerate(template.parts) if part.field == field.name)
    form, behind = template.parts[at].form, template.parts[at + 1 :]
    # Keys with the same value go on with the literal behind it, up to the last that may follow.
    literal = behind[0].literal if behind else ""
    if form is None:
        raise ValueRefusedError(f"{selection} has no next field to compare")

    def text(value: Any) -> str:
        return selection.prefix + form.render(field.accept(value)) + literal

    if bounds.between is not None:
        low, high = bounds.between
        return text(low), text(high) + (_HIGHEST if behind else "")
    low_text = selection.prefix or "\x00"
    high_text = selection.prefix + _HIGHEST
    if bounds.after is not None:
        low_text = text(bounds.after) + (_HIGHEST if behind else "\x00")
    if bounds.before is not None:
        high_text = _just_before(text(bounds.before))
    return low_text, high_text


def _just_before(text: str) -> str:
    """A text with nothing that a key can be between it and `text`: the last character one lower, then the highest."""
    last = ord(text[-1])
    lower = chr(0xD7FF) if last == 0xE000 else chr(last - 1)
    return text[:-1] + lower + _HIGHEST if last else text[:-1]


def _natural_range(selection: Selection[Any], bounds: Bounds, placeholders: Placeholders) -> list[str]:
    """Bounds on a key attribute that is a field itself."""
    part, field = selection.open_part, selection.next_field
    if part is None or field is None or not bounds.are_given:
        return []
    name = placeholders.name(part.attribute)

    def value(given: Any) -> str:
        return placeholders.value(field.kind.to_wire(field.accept(given)))

    if bounds.between is not None:
        low, high = bounds.between
        return [f"{name} BETWEEN {value(low)} AND {value(high)}"]
    if bounds.after is not None and bounds.before is not None:
        raise ValueRefusedError(f"{selection}: give between instead of after and before")
    if bounds.after is not None:
        return [f"{name} > {value(bounds.after)}"]
    return [f"{name} < {value(bounds.before)}"]


@lru_cache(maxsize=4096)
def _shares_range(schema: EntitySchema, key: KeySchema, given: int, entities: int) -> bool:
    """Whether items of another entity can stand among those that a key selects with that many sort fields.

    `entities`, how many the table has, makes an answer invalid when another one is declared.
    """
    for other in schema.table.entities.values():
        if other is schema:
            continue
        for theirs in other.keys:
            if theirs.index == key.index and _can_meet(key, theirs, given):
                return True
    return False


def _can_meet(key: KeySchema, theirs: KeySchema, given: int) -> bool:
    if not all(mine.may_equal(other) for mine, other in zip(key.partition, theirs.partition, strict=True)):
        return False
    for mine, other in zip(key.sort, theirs.sort, strict=True):
        if mine.template and other.template:
            inputs = len(mine.inputs)
            if not mine.template.may_begin(other.template, min(given, inputs)):
                return False
            given -= inputs
            if given < 0:
                return True
        elif not mine.may_equal(other):
            return False
    return True
