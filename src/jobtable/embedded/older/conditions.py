"""Expected, QueryFilter and ScanFilter, whose conditions ConditionalOperator joins."""

from __future__ import annotations

from typing import Any

from jobtable.embedded.expressions import Condition
from jobtable.embedded.older.comparisons import Comparison, check_name
from jobtable.embedded.wordings import INVALID
from jobtable.errors import RequestRefused
from jobtable.store.backend import Item, Request


class OlderFilter(Condition):
    """A condition that is a QueryFilter or a ScanFilter."""

    __slots__ = ()

    parameter = "QueryFilter"


def expected(request: Request) -> Condition | None:
    """The condition of Expected, or RequestRefused; None if it has no conditions."""
    conditions: dict[str, Any] = request.get("Expected") or {}
    return _joined(Condition, request, [_expectation(name, conditions[name]) for name in conditions])


def older_filter(request: Request, parameter: str) -> Condition | None:
    """The condition of a filter, or RequestRefused; None if it has no conditions."""
    by_older_reader = parameter == "ScanFilter"  # DynamoDB's older reader reads it (see wordings.py)
    return _joined(OlderFilter, request, comparisons(request.get(parameter) or {}, may_be_deeper=by_older_reader))


def comparisons(conditions: dict[str, Any], *, may_be_deeper: bool = False) -> list[Comparison]:
    """The comparisons of a map of conditions, or RequestRefused."""
    found = []
    for name, condition in conditions.items():
        check_name(name)
        if condition is None:
            raise RequestRefused(f"The filter condition for an attribute cannot be null: {name}")
        operator, values = condition["ComparisonOperator"], condition.get("AttributeValueList")
        found.append(Comparison.of(name, operator, values, may_be_deeper=may_be_deeper))
    return found


def _expectation(name: str, condition: dict[str, Any] | None) -> Comparison:
    check_name(name)
    if condition is None:
        raise _wrong("ExpectedAttributeValue must not be null", name)
    operator, exists = condition.get("ComparisonOperator"), condition.get("Exists")
    value, values = condition.get("Value"), condition.get("AttributeValueList")
    if value is not None and values is not None:
        raise _wrong("Value and AttributeValueList cannot be used together", name)
    if operator is None:
        if values is not None:
            raise _wrong("AttributeValueList can only be used with a ComparisonOperator", name)
        return _existence(name, exists, value)
    if exists is not None:
        raise _wrong("Exists and ComparisonOperator cannot be used together", name)
    if value is None and values is None and operator not in ("NULL", "NOT_NULL"):
        raise _wrong(f"Value or AttributeValueList must be used with ComparisonOperator: {operator}", name)
    return Comparison.of(name, operator, values if value is None else [value])


def _existence(name: str, exists: bool | None, value: Any) -> Comparison:
    """What is expected without a comparison: one value, or that there is none."""
    if exists is False:
        if value is not None:
            raise _wrong("Value cannot be used when Exists is false", name)
        return Comparison.of(name, "NULL", None)
    if value is None:
        raise _wrong(f"Value must be provided when Exists is {'null' if exists is None else 'true'}", name)
    return Comparison.of(name, "EQ", [value])


def _wrong(reason: str, name: str) -> RequestRefused:
    return RequestRefused(f"{INVALID}{reason} for Attribute: {name}")


def _joined(kind: type[Condition], request: Request, found: list[Comparison]) -> Condition | None:
    if not found:
        return None
    tests = [comparison.test() for comparison in found]
    join = any if request.get("ConditionalOperator") == "OR" else all

    def test(item: Item, values: object) -> bool:
        return join(each(item, {}) for each in tests)

    return kind(test, {}, frozenset(comparison.attribute for comparison in found))
