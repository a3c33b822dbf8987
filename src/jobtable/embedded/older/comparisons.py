"""One comparison of an attribute with a list of values: what it may be, and how it is tested."""

from __future__ import annotations

from typing import Any, NamedTuple

from jobtable.embedded.expressions import condition_tests as tests
from jobtable.embedded.expressions.condition_tests import FUNCTIONS, Operand, Test
from jobtable.embedded.values import MAX_NAME_BYTES, compare, validate_deep_value, validate_value
from jobtable.embedded.wordings import INVALID
from jobtable.errors import RequestRefused
from jobtable.store.backend import AttributeValue

_ORDERED = frozenset({"S", "N", "B"})
_TYPES = {
    **dict.fromkeys(("LE", "LT", "GE", "GT", "BETWEEN", "IN"), _ORDERED),
    **dict.fromkeys(("CONTAINS", "NOT_CONTAINS"), _ORDERED | {"BOOL", "NULL"}),
    "BEGINS_WITH": frozenset({"S", "B"}),
}
"""The types of values that a comparison takes; others take all."""
_COMPARATORS = {"EQ": "=", "NE": "<>", "LE": "<=", "LT": "<", "GE": ">=", "GT": ">"}
_FUNCTIONS = {
    "NULL": "attribute_not_exists",
    "NOT_NULL": "attribute_exists",
    "CONTAINS": "contains",
    "BEGINS_WITH": "begins_with",
}


class Comparison(NamedTuple):
    """A comparison whose values are valid, and as many and of such types as it takes."""

    attribute: str
    operator: str
    values: tuple[AttributeValue, ...]

    @classmethod
    def of(cls, attribute: str, operator: str, values: list[Any] | None, *, may_be_deeper: bool = False) -> Comparison:
        """The comparison, or RequestRefused. `may_be_deeper`: its values may be a level deeper than those of items."""
        validate = validate_deep_value if may_be_deeper else validate_value
        valid = tuple(validate(value) for value in values or ())
        if not _is_right_number(operator, len(valid)):
            raise RequestRefused(f"{INVALID}Invalid number of argument(s) for the {operator} ComparisonOperator")
        types = [next(iter(value)) for value in valid]
        for found in types:
            if found not in _TYPES.get(operator, types):
                raise RequestRefused(
                    f"{INVALID}ComparisonOperator {operator} is not valid for {found} AttributeValue type"
                )
        if len(set(types)) > 1:
            raise RequestRefused(f"{INVALID}AttributeValues inside AttributeValueList must be of same type")
        if operator == "BETWEEN" and (compare(*valid) or 0) > 0:
            raise RequestRefused(
                "The BETWEEN condition was provided a range where the lower bound is greater than the upper bound"
            )
        return cls(attribute, operator, valid)

    def test(self) -> Test:
        """Whether an item passes. What is not there is unlike everything, and contains nothing nor lacks anything."""
        attribute = tests.attribute((self.attribute,))
        values = [_constant(value) for value in self.values]
        if self.operator in _COMPARATORS:
            return tests.comparison(_COMPARATORS[self.operator], attribute, *values)
        if self.operator in _FUNCTIONS:
            return FUNCTIONS[_FUNCTIONS[self.operator]](attribute, *values)
        if self.operator == "BETWEEN":
            return tests.between(attribute, *values)
        if self.operator == "IN":
            return tests.one_of(attribute, tuple(values))
        lacks = tests.negation(FUNCTIONS["contains"](attribute, *values))
        return tests.conjunction(FUNCTIONS["attribute_exists"](attribute), lacks)


def check_name(name: str) -> None:
    """RequestRefused if no attribute can have this name."""
    if not name:
        raise RequestRefused("Empty attribute name")
    if len(name) > MAX_NAME_BYTES // 4 and len(name.encode("utf-8", "surrogatepass")) > MAX_NAME_BYTES:
        raise RequestRefused("Attribute name is too large, must be less than 65536 bytes")


def _is_right_number(operator: str, count: int) -> bool:
    match operator:
        case "NULL" | "NOT_NULL":
            return count == 0
        case "BETWEEN":
            return count == 2
        case "IN":
            return count > 0
        case _:
            return count == 1


def _constant(value: AttributeValue) -> Operand:
    return lambda item, values: value
