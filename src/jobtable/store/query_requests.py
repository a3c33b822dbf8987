"""The requests of queries: key conditions from selections and bounds, and filters where items of others are near."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jobtable.errors import ValueRefusedError
from jobtable.model.conditions import AttributeIs, Condition, Placeholders, WireForm, all_of, as_condition
from jobtable.model.expressions import refuse_swapped_ends
from jobtable.model.schema import EntitySchema, KeySchema
from jobtable.model.selection import Selection
from jobtable.store.backend import Request
from jobtable.store.requests import selected
from jobtable.store.sizes import utf8_length

_MOST_SORT_BYTES = 1024
_HIGHEST = ("", "\x7f", "\u07ff", "\uffff", "\U0010ffff")
"""The last characters of so many bytes."""
_MOST_HIGHEST = 8
"""So many of the last characters sort behind every text that a key goes on with."""


@dataclass(frozen=True)
class Bounds:
    """Which part of the selection: limits on the next field of the sort key."""

    after: Any = None
    before: Any = None
    between: tuple[Any, Any] | None = None

    @property
    def are_given(self) -> bool:
        return self.after is not None or self.before is not None or self.between is not None


def query_request(
    selection: Selection[Any],
    bounds: Bounds,
    *,
    where: Condition | bool | None,
    newest_first: bool,
    consistent: bool,
) -> Request:
    """The request of a query, without the table's name."""
    schema = selected(selection)
    if bounds.between is not None and (bounds.after is not None or bounds.before is not None):
        raise ValueRefusedError(f"{selection}: use either between, or after and before")
    placeholders = Placeholders(schema=schema)
    texts = [f"{placeholders.name(name)} = {placeholders.value(wire)}" for name, wire in selection.equal.items()]
    texts += _range_text(selection, bounds, placeholders)
    request: Request = {"KeyConditionExpression": " AND ".join(texts)}
    condition = as_condition(where)
    type_attribute = schema.table.type_attribute
    told_by_key = any(part.attribute == type_attribute for part in selection.key.parts)
    if type_attribute and not told_by_key and _is_shared(schema, selection):  # bounds stay within what is selected
        condition = all_of(AttributeIs((type_attribute,), {"S": schema.type_name}), condition)
    if condition is not None:
        request["FilterExpression"] = condition.write(placeholders)
    if newest_first:
        request["ScanIndexForward"] = False
    _add_source(request, selection, consistent)
    placeholders.add_to(request)
    return request


def collection_request(
    selection: Selection[Any], until: Selection[Any] | None, *, newest_first: bool, consistent: bool
) -> Request:
    """The request for all items of a partition, or of the range up to another selection, without the table's name."""
    placeholders = Placeholders()
    # In order, and not as a set: a cursor fits the same text in every process.
    partition = [part.attribute for part in selection.key.partition]
    texts = [f"{placeholders.name(name)} = {placeholders.value(selection.equal[name])}" for name in partition]
    if until is not None:
        texts.append(_span_text(selection, until, placeholders))
    request: Request = {"KeyConditionExpression": " AND ".join(texts), "ScanIndexForward": not newest_first}
    _add_source(request, selection, consistent)
    placeholders.add_to(request)
    return request


def _add_source(request: Request, selection: Selection[Any], consistent: bool) -> None:
    """Name the index that is read, or say how the table is: an index cannot be read consistently."""
    if selection.key.index is not None:
        request["IndexName"] = selection.key.index.name
    elif consistent:
        request["ConsistentRead"] = True


def _span_text(first: Selection[Any], last: Selection[Any], placeholders: Placeholders) -> str:
    """The condition that a sort key lies from where one selection begins to where another one ends."""
    if len(first.key.sort) != 1 or first.key.sort[0].template is None or first.key.index != last.key.index:
        raise ValueRefusedError(
            f"from {first} to {last}: a range needs selections by the same string sort key of one index"
        )
    if any(first.equal[p.attribute] != last.equal[p.attribute] for p in first.key.partition):
        raise ValueRefusedError(f"{first} and {last} are not in the same partition")
    attribute = first.key.sort[0].attribute
    low = first.equal[attribute]["S"] if first.open_part is None else first.prefix or "\x00"
    high = last.equal[attribute]["S"] if last.open_part is None else _last_behind(last.prefix)
    if low > high:
        raise ValueRefusedError(f"{first} sorts after {last}")
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
            raise ValueRefusedError(
                f"{selection} names the whole key and cannot be limited by after, before or between"
            )
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
        raise ValueRefusedError(f"{selection} has no next field for after, before or between")
    at = next(i for i, part in enumerate(template.parts) if part.field == field.name)
    form, behind = template.parts[at].form, template.parts[at + 1 :]
    # Keys with the same value go on with the literal behind it, up to the last that may follow.
    literal = behind[0].literal if behind else ""
    if form is None:
        raise ValueRefusedError(f"{selection} has no next field for after, before or between")

    def text(value: Any) -> str:
        return selection.prefix + form.render(field.accept(value)) + literal

    if bounds.between is not None:
        low, high = (text(end) for end in bounds.between)
        refuse_swapped_ends(f"{selection}: {field.name}", bounds.between, ({"S": low}, {"S": high}))
        return low, _last_behind(high) if behind else high
    low_text = selection.prefix or "\x00"
    high_text = _last_behind(selection.prefix)
    if bounds.after is not None:
        low_text = _last_behind(text(bounds.after)) if behind else text(bounds.after) + "\x00"
    if bounds.before is not None:
        high_text = _just_before(text(bounds.before))
    return low_text, max(low_text, high_text)  # nothing stands at the lower one, so the range may be empty


def _just_before(text: str) -> str:
    """A text right before `text`, with no key in between: the last character one lower, then the highest one."""
    last = ord(text[-1])
    lower = chr(0xD7FF) if last == 0xE000 else chr(last - 1)
    return _last_behind(text[:-1] + lower) if last else text[:-1]


def _last_behind(text: str) -> str:
    """A text behind all keys that begin with `text`, and no longer than a key may be."""
    room = max(_MOST_SORT_BYTES - utf8_length(text), 0)
    if room >= 4 * _MOST_HIGHEST:
        return text + _HIGHEST[4] * _MOST_HIGHEST
    return text + _HIGHEST[4] * (room // 4) + _HIGHEST[room % 4]


def _natural_range(selection: Selection[Any], bounds: Bounds, placeholders: Placeholders) -> list[str]:
    """Bounds on a key attribute that is a field itself."""
    part, field = selection.open_part, selection.next_field
    if part is None or field is None or not bounds.are_given:
        return []
    name = placeholders.name(part.attribute)

    def form(given: Any) -> WireForm:
        return field.kind.to_wire(field.accept(given))

    if bounds.between is not None:
        low, high = (form(end) for end in bounds.between)
        refuse_swapped_ends(f"{selection}: {field.name}", bounds.between, (low, high))
        return [f"{name} BETWEEN {placeholders.value(low)} AND {placeholders.value(high)}"]
    if bounds.after is not None and bounds.before is not None:
        raise ValueRefusedError(f"{selection}: use between instead of after and before")
    if bounds.after is not None:
        return [f"{name} > {placeholders.value(form(bounds.after))}"]
    return [f"{name} < {placeholders.value(form(bounds.before))}"]


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
