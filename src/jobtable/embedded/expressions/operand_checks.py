"""What DynamoDB checks of operands and functions before it looks at any item.

A Check gets the values of the request and raises InvalidExpression.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from jobtable.embedded.expressions.grammar import Function, Operand, PathOperand, ValueOperand
from jobtable.embedded.expressions.paths import Path, shown
from jobtable.embedded.expressions.tokens import InvalidExpression
from jobtable.embedded.values import compare
from jobtable.store.backend import AttributeValue
from jobtable.store.sizes import value_size

Check: TypeAlias = Callable[[Mapping[str, AttributeValue]], None]

ORDERED_TYPES = frozenset({"S", "N", "B"})
_ARGUMENT_TYPES = {
    "begins_with": frozenset({"S", "B"}),
    "size": frozenset({"S", "B", "SS", "NS", "BS", "L", "M"}),
    "list_append": frozenset({"L"}),
}
_STRING = frozenset({"S"})
_ALL_TYPES = ("N", "BS", "L", "B", "NULL", "M", "S", "SS", "NS", "BOOL")
_ARITY = {
    "attribute_exists": 1,
    "attribute_not_exists": 1,
    "size": 1,
    "attribute_type": 2,
    "begins_with": 2,
    "contains": 2,
    "if_not_exists": 2,
    "list_append": 2,
}
_NEEDS_PATH = frozenset({"attribute_exists", "attribute_not_exists", "if_not_exists"})
_ORDERING = frozenset({"<", "<=", ">", ">=", "BETWEEN"})


def always(reason: str) -> Check:
    """A fault whatever the values are."""

    def check(values: Mapping[str, AttributeValue]) -> None:
        raise InvalidExpression(reason)

    return check


@dataclass(frozen=True, slots=True)
class Defined:
    """The request must have a value of this name."""

    name: str

    def __call__(self, values: Mapping[str, AttributeValue]) -> None:
        if self.name not in values:
            raise InvalidExpression(
                f"An expression attribute value used in expression is not defined; attribute value: {self.name}"
            )


class Checks:
    """The checks of one expression, in the order in which DynamoDB reports faults."""

    __slots__ = ("_all", "_needed", "_others")

    def __init__(self, checks: Iterable[Check]) -> None:
        self._all = tuple(checks)
        self._needed = frozenset(check.name for check in self._all if isinstance(check, Defined))
        self._others = tuple(check for check in self._all if not isinstance(check, Defined))

    def run(self, values: Mapping[str, AttributeValue]) -> None:
        """InvalidExpression for the first fault. Mostly all values are defined, which is one question."""
        for check in self._others if self._needed <= values.keys() else self._all:
            check(values)


def not_distinct(operator: str, path: Path) -> Check:
    """The fault of an operator whose first operand comes again."""
    return always(
        "The first operand must be distinct from the remaining operands for this operator or function; "
        f"operator: {operator}, first operand: {shown(path)}"
    )


def path_of(operand: Operand, names: Mapping[str, str]) -> Path | None:
    """The path of an operand that is one; a placeholder that is not defined stays."""
    if not isinstance(operand, PathOperand):
        return None
    return tuple(names.get(part, part) if isinstance(part, str) else part for part in operand.path)


def of_test(operator: str, operands: tuple[Operand, ...]) -> list[Check]:
    """IN takes up to 100 choices; only strings, numbers and binary values have an order."""
    if operator == "IN" and len(operands) > 101:
        return [always(f"The IN operator is provided with too many operands; number of operands: {len(operands) - 1}")]
    if operator not in _ORDERING:
        return []
    return [of_type(operator, operand.name, ORDERED_TYPES) for operand in operands if isinstance(operand, ValueOperand)]


def of_bounds(low: Operand, high: Operand) -> list[Check]:
    """Two bounds that are values must be of one type and in order."""
    if not (isinstance(low, ValueOperand) and isinstance(high, ValueOperand)):
        return []
    low_name, high_name = low.name, high.name

    def check(values: Mapping[str, AttributeValue]) -> None:
        lower, upper = values[low_name], values[high_name]
        order = compare(lower, upper)
        if order is None or order > 0:
            need = "same data type for lower and upper bounds"
            if order is not None:
                need = "upper bound to be greater than or equal to lower bound"
            raise InvalidExpression(
                f"The BETWEEN operator requires {need}; lower bound operand: {_shown_value(lower)}, "
                f"upper bound operand: {_shown_value(upper)}"
            )

    return [check]


def has_wrong_arity(node: Function) -> bool:
    """Whether a function has more or fewer operands than it takes."""
    return len(node.arguments) != _ARITY[node.name]


def of_function(node: Function) -> list[Check]:
    """The number and the types of a function's operands."""
    name, arguments = node.name, node.arguments
    if has_wrong_arity(node):
        return [
            always(
                "Incorrect number of operands for operator or function; "
                f"operator or function: {name}, number of operands: {len(arguments)}"
            )
        ]
    if name in _NEEDS_PATH:
        if isinstance(arguments[0], PathOperand):
            return []
        return [always(f"Operator or function requires a document path; operator or function: {name}")]
    if name == "attribute_type":
        return _of_attribute_type(arguments[1])
    if name == "contains":
        return []
    return [found for argument in arguments for found in _of_argument(name, argument, _ARGUMENT_TYPES[name])]


def _of_argument(function: str, argument: Operand, allowed: frozenset[str]) -> list[Check]:
    if isinstance(argument, ValueOperand):
        return [of_type(function, argument.name, allowed)]
    if isinstance(argument, Function) and argument.name == "size":
        return [always(_wrong_type(function, "N"))]
    return []


def _of_attribute_type(argument: Operand) -> list[Check]:
    if isinstance(argument, PathOperand):
        return [always(_wrong_type("attribute_type", "{NS,SS,L,BS,N,M,B,BOOL,NULL,S}"))]
    if isinstance(argument, Function):
        return [always(_wrong_type("attribute_type", "N"))]
    name = argument.name

    def check(values: Mapping[str, AttributeValue]) -> None:
        wanted = values[name]["S"]
        if wanted not in _ALL_TYPES:
            raise InvalidExpression(
                f"Invalid attribute type name found; type: {wanted}, valid types: {{{','.join(_ALL_TYPES)}}}"
            )

    return [of_type("attribute_type", name, _STRING), check]


def of_type(operator: str, name: str, allowed: frozenset[str]) -> Check:
    """The value of this name must be of an allowed type."""

    def check(values: Mapping[str, AttributeValue]) -> None:
        for found in values[name]:
            if found not in allowed:
                raise InvalidExpression(_wrong_type(operator, found))

    return check


def _wrong_type(operator: str, found: str) -> str:
    """The fault of an operand that an operator or function does not take."""
    return f"Incorrect operand type for operator or function; operator or function: {operator}, operand type: {found}"


def _shown_value(value: AttributeValue) -> str:
    [(kind, content)] = value.items()
    if kind == "B":  # DynamoDB shows how Java holds it
        length = value_size(value)
        content = f"java.nio.HeapByteBuffer[pos=0 lim={length} cap={length}]"
    return f"AttributeValue: {{{kind}:{content}}}"
