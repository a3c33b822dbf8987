"""The rules of a Choice state in JSONPath: comparisons, and And, Or and Not of them."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from jobtable.workflows.asl.interpreter.instants import parse_instant
from jobtable.workflows.asl.machine import StateFault
from jobtable.workflows.asl.query_languages import is_present, read_path
from jobtable.workflows.asl.query_languages.scope import Scope
from jobtable.workflows.asl.run import Json

_Reader = Callable[[Json], Any]


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: Json) -> int | float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _boolean(value: Json) -> bool | None:
    return value if isinstance(value, bool) else None


def _instant(value: Json) -> datetime | None:
    return parse_instant(value)


_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "Equals": operator.eq,
    "LessThan": operator.lt,
    "LessThanEquals": operator.le,
    "GreaterThan": operator.gt,
    "GreaterThanEquals": operator.ge,
}
_READERS: dict[str, _Reader] = {"String": _text, "Numeric": _number, "Timestamp": _instant}
COMPARISONS: dict[str, tuple[_Reader, Callable[[Any, Any], bool]]] = {
    "BooleanEquals": (_boolean, operator.eq),
    **{f"{kind}{name}": (read, compare) for kind, read in _READERS.items() for name, compare in _COMPARISONS.items()},
}
"""The operators that compare with a value, or with a path if `Path` is appended to their name."""
TYPE_TESTS: dict[str, Callable[[Json], bool]] = {
    "IsNull": lambda value: value is None,
    "IsString": lambda value: isinstance(value, str),
    "IsNumeric": lambda value: _number(value) is not None,
    "IsBoolean": lambda value: isinstance(value, bool),
    "IsTimestamp": lambda value: parse_instant(value) is not None,
}
"""The operators that test the type of a value. IsPresent tests whether there is one."""


def holds(rule: Mapping[str, Any], scope: Scope) -> bool:
    """Return whether a rule, or a part of one, is true."""
    if "And" in rule:
        return all(holds(each, scope) for each in rule["And"])
    if "Or" in rule:
        return any(holds(each, scope) for each in rule["Or"])
    if "Not" in rule:
        return not holds(rule["Not"], scope)
    if "IsPresent" in rule:
        return is_present(rule["Variable"], scope) is rule["IsPresent"]
    value = _read(rule["Variable"], scope)
    for name, operand in rule.items():
        if name in TYPE_TESTS:
            return TYPE_TESTS[name](value) is operand
        if name == "StringMatches":
            return isinstance(value, str) and matches(value, operand)
        if name.removesuffix("Path") in COMPARISONS:
            expected = _read(operand, scope) if name.endswith("Path") else operand
            return _compare(name.removesuffix("Path"), value, expected)
    raise StateFault("States.Runtime", "A choice rule has no operator")


def matches(text: str, pattern: str) -> bool:
    """Return whether a text matches a pattern, in which `*` is any text and a backslash escapes `*` and itself."""
    expression = ""
    position = 0
    while position < len(pattern):
        each = pattern[position]
        if each == "\\" and pattern[position + 1 : position + 2] in {"*", "\\"}:
            position += 1
            expression += re.escape(pattern[position])
        else:
            expression += "[^\x00]*" if each == "*" else re.escape(each)
        position += 1
    return re.fullmatch(re.sub(r"(?:\[\^\x00\]\*)+", ".*", expression), text, re.DOTALL) is not None


def _compare(name: str, value: Json, expected: Json) -> bool:
    read, compare = COMPARISONS[name]
    left, right = read(value), read(expected)
    return left is not None and right is not None and compare(left, right)


def _read(path: str, scope: Scope) -> Json:
    try:
        return read_path(path, scope)
    except StateFault as fault:
        raise StateFault(
            "States.Runtime", f"Invalid path '{path}': The choice state's condition path references an invalid value."
        ) from fault
