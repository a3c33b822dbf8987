"""The operators and functions of conditions as closures over items and values.

A missing value is None. Values are canonical, so equal values are equal dicts.
"""

from __future__ import annotations

import operator
from binascii import a2b_base64
from collections.abc import Callable
from typing import TypeAlias

from jobtable.embedded.expressions.paths import Computed, Path, Values, value_at
from jobtable.embedded.values import compare
from jobtable.store.backend import AttributeValue, Item

Predicate: TypeAlias = Callable[[Item, Values], bool]

_ORDERINGS: dict[str, Callable[[int, int], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def NEVER(item: Item, values: Values) -> bool:  # noqa: N802  # a constant that happens to be a function
    """The test of a function that a check refuses anyway."""
    return False


def value(name: str) -> Computed:
    """A value of the request."""
    return lambda item, values: values[name]


def attribute(path: Path) -> Computed:
    """The value at a path."""
    if len(path) == 1:
        name = str(path[0])
        return lambda item, values: item.get(name)
    return lambda item, values: value_at(item, path)


def size(of: Computed) -> Computed:
    """The length of a string (in UTF-16 units) or binary value, or the number of members of a set, list or map."""

    def sized(item: Item, values: Values) -> AttributeValue | None:
        found = of(item, values)
        if found is None:
            return None
        [(kind, content)] = found.items()
        if kind == "S":
            length = len(content) if content.isascii() else len(content.encode("utf-16-le", "surrogatepass")) // 2
        elif kind == "B":
            length = len(a2b_base64(content))
        elif kind in ("N", "BOOL", "NULL"):
            return None
        else:
            length = len(content)
        return {"N": str(length)}

    return sized


def negation(test: Predicate) -> Predicate:
    """NOT."""
    return lambda item, values: not test(item, values)


def conjunction(left: Predicate, right: Predicate) -> Predicate:
    """AND."""
    return lambda item, values: left(item, values) and right(item, values)


def disjunction(left: Predicate, right: Predicate) -> Predicate:
    """OR."""
    return lambda item, values: left(item, values) or right(item, values)


def comparison(comparator: str, left: Computed, right: Computed) -> Predicate:
    """One of = <> < <= > >=; a missing value equals nothing and has no order."""
    if comparator == "=":
        return lambda item, values: (here := left(item, values)) is not None and here == right(item, values)
    if comparator == "<>":
        return lambda item, values: (here := left(item, values)) is None or here != right(item, values)
    in_order = _ORDERINGS[comparator]

    def test(item: Item, values: Values) -> bool:
        here, there = left(item, values), right(item, values)
        if here is None or there is None:
            return False
        order = compare(here, there)
        return order is not None and in_order(order, 0)

    return test


def between(of: Computed, low: Computed, high: Computed) -> Predicate:
    """At least the lower bound and at most the upper one."""
    return conjunction(comparison(">=", of, low), comparison("<=", of, high))


def one_of(of: Computed, choices: tuple[Computed, ...]) -> Predicate:
    """Equal to one of the choices."""

    def test(item: Item, values: Values) -> bool:
        here = of(item, values)
        return here is not None and any(here == choice(item, values) for choice in choices)

    return test


def _attribute_exists(of: Computed) -> Predicate:
    return lambda item, values: of(item, values) is not None


def _attribute_not_exists(of: Computed) -> Predicate:
    return lambda item, values: of(item, values) is None


def _attribute_type(of: Computed, wanted: Computed) -> Predicate:
    def test(item: Item, values: Values) -> bool:
        here, name = of(item, values), wanted(item, values)
        return here is not None and name is not None and name["S"] in here

    return test


def _begins_with(of: Computed, prefix: Computed) -> Predicate:
    def test(item: Item, values: Values) -> bool:
        here, start = of(item, values), prefix(item, values)
        if here is None or start is None:
            return False
        if "S" in here and "S" in start:
            begins: bool = here["S"].startswith(start["S"])
            return begins
        return "B" in here and "B" in start and a2b_base64(here["B"]).startswith(a2b_base64(start["B"]))

    return test


_MEMBER_TYPES = {"SS": "S", "NS": "N", "BS": "B"}


def _contains(of: Computed, part: Computed) -> Predicate:
    def test(item: Item, values: Values) -> bool:
        here, wanted = of(item, values), part(item, values)
        if here is None or wanted is None:
            return False
        [(kind, content)] = here.items()
        if kind == "L":
            return wanted in content
        if kind == "S":
            return "S" in wanted and wanted["S"] in content
        if kind == "B":
            return "B" in wanted and a2b_base64(wanted["B"]) in a2b_base64(content)
        member = _MEMBER_TYPES.get(kind)
        return member is not None and member in wanted and wanted[member] in content

    return test


FUNCTIONS: dict[str, Callable[..., Predicate]] = {
    "attribute_exists": _attribute_exists,
    "attribute_not_exists": _attribute_not_exists,
    "attribute_type": _attribute_type,
    "begins_with": _begins_with,
    "contains": _contains,
}
