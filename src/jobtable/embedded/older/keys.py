"""KeyConditions."""

from __future__ import annotations

from jobtable.embedded.expressions.key_conditions import KeyCondition, OneKey, matched
from jobtable.embedded.older.comparisons import Comparison
from jobtable.embedded.older.conditions import comparisons
from jobtable.embedded.schema import KeyAttribute
from jobtable.errors import RequestRefused
from jobtable.store.backend import AttributeValue, Request

_OPERATORS = {
    "EQ": "=",
    "LE": "<=",
    "LT": "<",
    "GE": ">=",
    "GT": ">",
    "BETWEEN": "BETWEEN",
    "BEGINS_WITH": "begins_with",
}
"""What an index can be asked for, as an expression puts it."""


class OlderKeyCondition:
    """KeyConditions, in the place of an UnmatchedKeyCondition: looked at when all expressions have been."""

    __slots__ = ("_comparisons", "_request")

    _comparisons: list[Comparison]

    def __init__(self, request: Request) -> None:
        self._request = request

    def check_form(self) -> None:
        """RequestRefused if a condition is wrong by itself, or if there is none."""
        self._comparisons = comparisons(self._request["KeyConditions"])
        if not self._comparisons:
            raise RequestRefused("Conditions must be at least length 1")

    def against(
        self, partition: tuple[KeyAttribute, ...], sort: tuple[KeyAttribute, ...], index_name: str | None = None
    ) -> KeyCondition:
        """The key condition against the key schema of a table, or of the index that is named, or RequestRefused."""
        _refuse_unindexable({one.attribute: one for one in self._comparisons}, (*partition, *sort))
        given: dict[str, OneKey] = {}
        values: dict[str, AttributeValue] = {}
        for one in self._comparisons:
            names = tuple(f":{one.attribute}:{number}" for number in range(len(one.values)))
            given[one.attribute] = OneKey(one.attribute, _OPERATORS.get(one.operator, one.operator), names)
            values.update(zip(names, one.values, strict=True))
        return matched(given, values, partition, sort, index_name)


def _refuse_unindexable(given: dict[str, Comparison], attributes: tuple[KeyAttribute, ...]) -> None:
    """RequestRefused for a comparison that no index answers, unless DynamoDB finds another fault first."""
    for attribute in attributes:
        one = given.get(attribute.name)
        if one is None:
            return
        if one.operator not in _OPERATORS:
            raise RequestRefused("Attempted conditional constraint is not an indexable operation")
        if any(attribute.type not in value for value in one.values):
            return
