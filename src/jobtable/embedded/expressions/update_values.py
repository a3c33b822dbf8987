"""The values that an update computes from the old item, as closures over items and values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from jobtable.embedded.expressions.operand_checks import Check
from jobtable.embedded.expressions.paths import Path, value_at
from jobtable.embedded.expressions.tokens import InvalidExpression
from jobtable.embedded.numbers import add_numbers, subtract_numbers
from jobtable.embedded.values import validate_value
from jobtable.errors import RequestRefused
from jobtable.store.backend import AttributeValue, Item

Values: TypeAlias = Mapping[str, AttributeValue]
Computed: TypeAlias = Callable[[Item, Values], AttributeValue | None]

_SETS = frozenset({"SS", "NS", "BS"})
_LONG_NAMES = {
    "S": "STRING",
    "N": "NUMBER",
    "B": "BINARY",
    "BOOL": "BOOLEAN",
    "NULL": "NULL",
    "L": "LIST",
    "M": "MAP",
}


def missing_attribute() -> RequestRefused:
    """The error for reading a path that the item does not have."""
    return RequestRefused("The provided expression refers to an attribute that does not exist in the item")


def _wrong_operand() -> RequestRefused:
    return RequestRefused("An operand in the update expression has an incorrect data type")


def NOTHING(item: Item, values: Values) -> None:  # noqa: N802  # a constant that happens to be a function
    """No value: what is there is removed."""


def value(name: str) -> Computed:
    """A value of the request."""
    return lambda item, values: values[name]


def attribute(path: Path) -> Computed:
    """The old value at a path, which must be there."""

    def computed(item: Item, values: Values) -> AttributeValue:
        found = value_at(item, path)
        if found is None:
            raise missing_attribute()
        return found

    return computed


def if_not_exists(path: Path, otherwise: Computed) -> Computed:
    """The old value at a path, or else something, which must be there in any case."""

    def computed(item: Item, values: Values) -> AttributeValue | None:
        replacement = otherwise(item, values)
        found = value_at(item, path)
        return replacement if found is None else found

    return computed


def list_append(left: Computed, right: Computed) -> Computed:
    """One list behind another."""

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
    """ADD takes a number or a set, DELETE a set."""
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
    """The old value plus a number or with the members of a set; where there is none, just those."""

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
