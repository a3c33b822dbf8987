"""Decides whether the condition of a JSONPath filter holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from jobtable.workflows.asl.query_languages.bounded_patterns import Pattern
from jobtable.workflows.asl.query_languages.path_syntax import Comparison, Condition, Every, Exists, Not, Path, Some


class Missing:
    """The value of a path that finds nothing."""


MISSING: Final = Missing()


def holds(condition: Condition, value_of: Callable[[Path], Any]) -> bool:
    """Return whether a condition holds; `value_of` returns the value of a path in it, or MISSING."""
    match condition:
        case Exists(path):
            return value_of(path) is not MISSING
        case Every(conditions):
            return all(holds(each, value_of) for each in conditions)
        case Some(conditions):
            return any(holds(each, value_of) for each in conditions)
        case Not(inner):
            return not holds(inner, value_of)
        case Comparison(left, operator, right):
            return _OPERATORS[operator](_value(left, value_of), _value(right, value_of))


def _value(operand: Any, value_of: Callable[[Path], Any]) -> Any:
    return value_of(operand) if isinstance(operand, Path) else operand


def is_number(value: Any) -> bool:
    """Return whether a value is a number of JSON."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _are_equal(left: Any, right: Any) -> bool:
    """Compare as Jayway does: a number equals its text, and a truth value equals no number."""
    if left is MISSING or right is MISSING:
        return False
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, str) and is_number(right):
        left, right = right, left
    if is_number(left) and isinstance(right, str):
        try:
            return bool(left == float(right))
        except ValueError:
            return False
    return bool(left == right)


def _are_same(left: Any, right: Any) -> bool:
    return _are_equal(left, right) and (type(left) is type(right) or (is_number(left) and is_number(right)))


def _ordered(test: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def compare(left: Any, right: Any) -> bool:
        if is_number(left) and is_number(right):
            return test(left, right)
        return isinstance(left, str) and isinstance(right, str) and test(left, right)

    return compare


def _contains(whole: Any, part: Any) -> bool:
    if isinstance(whole, list):
        return any(_are_equal(each, part) for each in whole)
    return isinstance(whole, str) and isinstance(part, str) and part in whole


def _is_in(part: Any, whole: Any) -> bool:
    return isinstance(whole, list) and _contains(whole, part)


def _is_subset(part: Any, whole: Any) -> bool:
    return isinstance(part, list) and isinstance(whole, list) and all(_contains(whole, each) for each in part)


def _has_any(left: Any, right: Any) -> bool:
    return isinstance(left, list) and isinstance(right, list) and any(_contains(right, each) for each in left)


def _has_none(left: Any, right: Any) -> bool:
    return isinstance(left, list) and isinstance(right, list) and not _has_any(left, right)


def _has_size(value: Any, size: Any) -> bool:
    return isinstance(value, str | list) and is_number(size) and len(value) == size


def _is_empty(value: Any, expected: Any) -> bool:
    return isinstance(value, str | list | dict) and isinstance(expected, bool) and (len(value) == 0) is expected


def _matches(value: Any, pattern: Any) -> bool:
    if isinstance(value, Pattern):
        value, pattern = pattern, value
    if not isinstance(pattern, Pattern):
        return False
    if isinstance(value, list):
        return any(isinstance(each, str) and pattern.matches_all(each) for each in value)
    return isinstance(value, str) and pattern.matches_all(value)


_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "==": _are_equal,
    "!=": lambda left, right: not _are_equal(left, right),
    "<>": lambda left, right: not _are_equal(left, right),
    "===": _are_same,
    "!==": lambda left, right: not _are_same(left, right),
    "<": _ordered(lambda left, right: left < right),
    "<=": _ordered(lambda left, right: left <= right),
    ">": _ordered(lambda left, right: left > right),
    ">=": _ordered(lambda left, right: left >= right),
    "=~": _matches,
    "in": _is_in,
    "nin": lambda left, right: not _is_in(left, right),
    "contains": _contains,
    "all": lambda left, right: _is_subset(right, left),
    "subsetof": _is_subset,
    "anyof": _has_any,
    "noneof": _has_none,
    "size": _has_size,
    "empty": _is_empty,
}
