"""The values that an update computes from the old item, and writing at document paths without changing the old item."""

from __future__ import annotations

from typing import Any

from jobtable.embedded.decimals import add_numbers, subtract_numbers
from jobtable.embedded.expressions.checks import Check
from jobtable.embedded.expressions.paths import Computed, InvalidExpression, Path, Values, value_at
from jobtable.embedded.values import BECOMES_TOO_DEEP, MAX_CONTAINER_DEPTH, container_depth, validate_value
from jobtable.errors import RequestRefused
from jobtable.store.backend import AttributeValue, Item


def check_writable(item: Item, path: Path) -> None:
    """Raise RequestRefused if the item has no map or list for the end of a nested path."""
    parent = value_at(item, path[:-1])
    if parent is None or ("M" if isinstance(path[-1], str) else "L") not in parent:
        raise RequestRefused("The document path provided in the update expression is invalid for update")


def written(item: Item, writes: list[tuple[Path, AttributeValue | None]]) -> Item:
    """Return a new item with these values at these paths, which do not overlap; None removes a value.

    Every index refers to the old lists: values beyond the end of a list are appended in the order of their indexes, and
    removed elements leave no gap.
    """
    new = dict(item)
    appended: list[tuple[Path, AttributeValue]] = []
    removed: list[Path] = []
    for path, value in writes:
        if value is None:
            removed.append(path)
            continue
        if ("L" in value or "M" in value) and len(path) - 1 + container_depth(value) > MAX_CONTAINER_DEPTH:
            raise RequestRefused(BECOMES_TOO_DEEP)
        container: Any = new if len(path) == 1 else _own_container(new, path)
        if isinstance(path[-1], int) and value_at(item, path) is None:
            appended.append((path, value))
        else:
            container[path[-1]] = value
    for path, value in sorted(appended, key=lambda write: write[0]):
        _own_container(new, path).append(value)
    # From the end, so that remaining indexes stay valid.
    for path in sorted(removed, reverse=True):
        if value_at(item, path) is not None:
            del _own_container(new, path)[path[-1]]
    return new


def _own_container(item: Item, path: Path) -> Any:
    """Return the dict or list in which the path ends, as a copy that only this item has."""
    container: Any = item
    for part in path[:-1]:
        [(kind, content)] = container[part].items()
        copied = content.copy()
        container[part] = {kind: copied}
        container = copied
    return container


_SETS = frozenset({"SS", "NS", "BS"})
_LONG_NAMES = {"S": "STRING", "N": "NUMBER", "B": "BINARY", "BOOL": "BOOLEAN", "NULL": "NULL", "L": "LIST", "M": "MAP"}


def _missing_attribute() -> RequestRefused:
    """Return the error for reading a path that the item lacks."""
    return RequestRefused("The provided expression refers to an attribute that does not exist in the item")


def _wrong_operand() -> RequestRefused:
    return RequestRefused("An operand in the update expression has an incorrect data type")


def NOTHING(item: Item, values: Values) -> None:  # noqa: N802  # a constant that happens to be a function
    """No value: the old one is removed."""


def value(name: str) -> Computed:
    """A value of the request."""
    return lambda item, values: values[name]


def attribute(path: Path) -> Computed:
    """The old value at a path, which must exist."""

    def computed(item: Item, values: Values) -> AttributeValue:
        found = value_at(item, path)
        if found is None:
            raise _missing_attribute()
        return found

    return computed


def if_not_exists(path: Path, otherwise: Computed) -> Computed:
    """The old value at a path, or else another value, which must exist in any case."""

    def computed(item: Item, values: Values) -> AttributeValue | None:
        replacement = otherwise(item, values)
        found = value_at(item, path)
        return replacement if found is None else found

    return computed


def list_append(left: Computed, right: Computed) -> Computed:
    """One list after another."""

    def computed(item: Item, values: Values) -> AttributeValue:
        first, second = left(item, values), right(item, values)
        if first is None or second is None or "L" not in first or "L" not in second:
            raise _wrong_operand()
        return {"L": first["L"] + second["L"]}

    return computed


def total(operator: str, left: Computed, right: Computed) -> Computed:
    """A sum or a difference of numbers."""
    combined = add_numbers if operator == "+" else subtract_numbers

    def computed(item: Item, values: Values) -> AttributeValue:
        first = _number(left(item, values))
        return {"N": combined(first, _number(right(item, values)))}

    return computed


def _number(found: AttributeValue | None) -> str:
    if found is None or "N" not in found:
        raise _wrong_operand()
    number: str = found["N"]
    return number


def set_or_number_check(section: str, name: str) -> Check:
    """Check that ADD has a number or a set, and DELETE a set."""
    allowed = _SETS | {"N"} if section == "ADD" else _SETS

    def check(values: Values) -> None:
        for kind in values[name]:
            if kind not in allowed:
                raise InvalidExpression(
                    f"Incorrect operand type for operator or function; operator: {section}, "
                    f"operand type: {_LONG_NAMES[kind]}, typeSet: ALLOWED_FOR_{section}_OPERAND"
                )

    return check


def added(path: Path, name: str) -> Computed:
    """The old value plus a number or the members of a set; without an old value, just those."""

    def computed(item: Item, values: Values) -> AttributeValue:
        old, operand = value_at(item, path), values[name]
        if old is None:
            return operand
        [(kind, content)] = operand.items()
        if kind not in old:
            raise _wrong_operand()
        if kind == "N":
            return {"N": add_numbers(old["N"], content)}
        members = set(old[kind])
        return validate_value({kind: old[kind] + [member for member in content if member not in members]})

    return computed


def deleted(path: Path, name: str) -> Computed:
    """The old set without the members of another; None if nothing is left."""

    def computed(item: Item, values: Values) -> AttributeValue | None:
        old, operand = value_at(item, path), values[name]
        if old is None:
            return None
        [(kind, content)] = operand.items()
        if kind not in old:
            raise _wrong_operand()
        removed = set(content)
        kept = [member for member in old[kind] if member not in removed]
        return {kind: kept} if kept else None

    return computed
