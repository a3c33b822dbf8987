"""Checks beyond the grammar: of an expression's text alone, and of its operands and functions with a request's values.

None of them looks at an item. A Check gets the values of the request and raises InvalidExpression.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from jobtable.embedded.expressions import grammar
from jobtable.embedded.expressions.paths import MAX_INDEX, InvalidExpression, Path, shown
from jobtable.embedded.expressions.placeholders import MOST_TREES
from jobtable.embedded.values import compare
from jobtable.store.backend import AttributeValue
from jobtable.store.sizes import value_size

RESERVED_WORDS = frozenset(pathlib.Path(__file__).with_name("reserved_words.txt").read_text().split())
"""All 573 of them, in upper case; DynamoDB compares without regard to case."""

CONDITION_FUNCTIONS = frozenset(
    {"attribute_exists", "attribute_not_exists", "attribute_type", "begins_with", "contains"}
)
UPDATE_FUNCTIONS = frozenset({"if_not_exists", "list_append"})
MAX_OPERATORS = 300
_ALL_FUNCTIONS = CONDITION_FUNCTIONS | UPDATE_FUNCTIONS | {"size"}
# DynamoDB stops counting at the first one that is too many.
TOO_MANY = f"The expression contains too many operators; operator count: {MAX_OPERATORS + 1}"

ConditionPart: TypeAlias = grammar.ConditionNode | grammar.Operand


class TooManyOperators(InvalidExpression):
    """A condition has too many operators.

    DynamoDB counts each operator after checking it and its operands, so a fault of the operators up to the limit is
    reported instead. `counted` has those operators, in that order.
    """

    def __init__(self, counted: list[ConditionPart]) -> None:
        super().__init__(TOO_MANY)
        self.counted = counted


@lru_cache(maxsize=MOST_TREES)
def checked_condition(text: str) -> grammar.ConditionNode:
    """Return the tree of a condition whose names, functions and indexes are allowed where they are."""
    parser = grammar.Parser(text, is_condition=True)
    node = parser.finished(parser.condition())
    check_condition(node)
    return node


def check_condition(node: grammar.ConditionNode) -> None:
    """Raise InvalidExpression for a misplaced name, function or index, or TooManyOperators."""
    if _operators_of_condition(node) > MAX_OPERATORS:
        raise TooManyOperators(_counted(node))


@lru_cache(maxsize=MOST_TREES)
def checked_update(text: str) -> grammar.UpdateNode:
    """Return the tree of an update whose names, functions, indexes and sections are allowed where they are.

    It may have too many operators, which is reported among the faults of its operands.
    """
    parser = grammar.Parser(text)
    node = parser.finished(parser.update())
    _operators_of_update(node)
    return node


def check_update(node: grammar.UpdateNode) -> None:
    """Raise InvalidExpression for a misplaced name, function, index or section, or too many operators."""
    if _operators_of_update(node) > MAX_OPERATORS:
        raise InvalidExpression(TOO_MANY)


@lru_cache(maxsize=MOST_TREES)
def checked_projection(text: str) -> tuple[Path, ...]:
    """Return the paths of a projection, whose names and indexes are allowed."""
    parser = grammar.Parser(text)
    paths = parser.finished(tuple(parser.separated(parser.path)))
    for path in paths:
        _check_path(path)
    return paths


def _check_path(path: Path) -> None:
    for part in path:
        if isinstance(part, int):
            if part > MAX_INDEX:
                raise InvalidExpression(f"List index is not within the allowable range; index: [{part}]")
        elif part.upper() in RESERVED_WORDS:
            raise InvalidExpression(f"Attribute name is a reserved keyword; reserved keyword: {part}")


def _operators_of_condition(node: grammar.ConditionNode) -> int:
    """Count the operators and functions of a condition, and check that all are allowed where they are."""
    operators = 0
    waiting: list[tuple[ConditionPart, bool]] = [(node, False)]
    while waiting:  # no recursion: only what is counted here is known not to be nested too deeply for it
        part, is_operand = waiting.pop()
        if isinstance(part, grammar.PathOperand):
            _check_path(part.path)
        elif isinstance(part, grammar.Function):
            _check_function_name(part.name, UPDATE_FUNCTIONS, "a condition")
            if is_operand != (part.name == "size"):
                raise _misplaced(part)
        waiting += ((inner, not isinstance(part, grammar.Junction)) for inner in reversed(_inside(part)))
        operators += _is_operator(part)
    return operators


def _counted(node: grammar.ConditionNode) -> list[ConditionPart]:
    """Return the parts of a condition up to the first operator over the limit, each as large as possible."""
    operators = _operators_inside(node)
    counted: list[ConditionPart] = []
    left = MAX_OPERATORS + 1
    next_parts: tuple[ConditionPart, ...] = (node,)
    while left:
        for part in next_parts:
            if operators[id(part)] > left:
                next_parts = _inside(part)
                break
            counted.append(part)
            left -= operators[id(part)]
            if not left:
                break
    return counted


def _operators_inside(node: grammar.ConditionNode) -> dict[int, int]:
    """Count the operators in each part of a condition, including itself, by its id()."""
    parts: list[ConditionPart] = [node]
    for part in parts:  # which grows meanwhile: what has too many operators may be nested too deeply for recursion
        parts += _inside(part)
    operators: dict[int, int] = {}
    for part in reversed(parts):
        operators[id(part)] = _is_operator(part) + sum(operators[id(inner)] for inner in _inside(part))
    return operators


def _inside(part: ConditionPart) -> tuple[ConditionPart, ...]:
    if isinstance(part, grammar.Function):
        return part.arguments
    if isinstance(part, grammar.Test):
        return part.operands
    return part.conditions if isinstance(part, grammar.Junction) else ()


def _is_operator(part: ConditionPart) -> bool:
    return isinstance(part, (grammar.Function, grammar.Test, grammar.Junction))


def _operators_of_update(node: grammar.UpdateNode) -> int:
    operators = 0
    for action in node.actions:
        _check_path(action.path)
        if action.value is not None:
            operators += _operators_of_value(action.value)
    if node.repeated is not None:
        raise InvalidExpression(f'The "{node.repeated}" section can only be used once in an update expression;')
    return operators


def _operators_of_value(node: grammar.Operand | grammar.Sum) -> int:
    """Count and check the operators of an update's value: list_append is not allowed in a sum or function."""
    operators = 0
    waiting: list[tuple[grammar.Operand | grammar.Sum, bool]] = [(node, False)]
    while waiting:
        part, is_inside = waiting.pop()
        if isinstance(part, grammar.PathOperand):
            _check_path(part.path)
        elif isinstance(part, grammar.Function):
            _check_function_name(part.name, CONDITION_FUNCTIONS | {"size"}, "an update")
            if is_inside and part.name == "list_append":
                raise _misplaced(part)
            waiting += ((argument, True) for argument in reversed(part.arguments))
        elif isinstance(part, grammar.Sum):
            waiting += ((operand, True) for operand in reversed(part.operands))
        operators += isinstance(part, (grammar.Function, grammar.Sum))
    return operators


def _check_function_name(name: str, forbidden: frozenset[str], place: str) -> None:
    if name not in _ALL_FUNCTIONS:
        raise InvalidExpression(f"Invalid function name; function: {name}")
    if name in forbidden:
        raise InvalidExpression(f"The function is not allowed in {place} expression; function: {name}")


def _misplaced(node: grammar.Function) -> InvalidExpression:
    return InvalidExpression(f"The function is not allowed to be used this way in an expression; function: {node.name}")


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
    """A check that always fails."""

    def check(values: Mapping[str, AttributeValue]) -> None:
        raise InvalidExpression(reason)

    return check


@dataclass(frozen=True, slots=True)
class Defined:
    """Checks that the request has a value of this name."""

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
        """Raise InvalidExpression for the first fault. Usually all values are defined, which is one comparison."""
        for check in self._others if self._needed <= values.keys() else self._all:
            check(values)


def not_distinct(operator: str, path: Path) -> Check:
    """The check for an operator whose first operand is repeated."""
    return always(
        "The first operand must be distinct from the remaining operands for this operator or function; "
        f"operator: {operator}, first operand: {shown(path)}"
    )


def path_of(operand: grammar.Operand, names: Mapping[str, str]) -> Path | None:
    """Return the path of an operand that is one; an undefined placeholder stays."""
    if not isinstance(operand, grammar.PathOperand):
        return None
    return tuple(names.get(part, part) if isinstance(part, str) else part for part in operand.path)


def of_test(operator: str, operands: tuple[grammar.Operand, ...]) -> list[Check]:
    """Check the number of choices of IN, and that ordered operands are strings, numbers or binary values."""
    if operator == "IN" and len(operands) > 101:
        return [always(f"The IN operator is provided with too many operands; number of operands: {len(operands) - 1}")]
    if operator not in _ORDERING:
        return []
    return [
        of_type(operator, operand.name, ORDERED_TYPES)
        for operand in operands
        if isinstance(operand, grammar.ValueOperand)
    ]


def of_bounds(low: grammar.Operand, high: grammar.Operand) -> list[Check]:
    """Check that two bounds that are values have one type and are in order."""
    if not (isinstance(low, grammar.ValueOperand) and isinstance(high, grammar.ValueOperand)):
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


def has_wrong_arity(node: grammar.Function) -> bool:
    return len(node.arguments) != _ARITY[node.name]


def of_function(node: grammar.Function) -> list[Check]:
    """Check the number and the types of a function's operands."""
    name, arguments = node.name, node.arguments
    if has_wrong_arity(node):
        return [
            always(
                "Incorrect number of operands for operator or function; "
                f"operator or function: {name}, number of operands: {len(arguments)}"
            )
        ]
    if name in _NEEDS_PATH:
        if isinstance(arguments[0], grammar.PathOperand):
            return []
        return [always(f"Operator or function requires a document path; operator or function: {name}")]
    if name == "attribute_type":
        return _of_attribute_type(arguments[1])
    if name == "contains":
        return []
    return [found for argument in arguments for found in _of_argument(name, argument, _ARGUMENT_TYPES[name])]


def _of_argument(function: str, argument: grammar.Operand, allowed: frozenset[str]) -> list[Check]:
    if isinstance(argument, grammar.ValueOperand):
        return [of_type(function, argument.name, allowed)]
    if isinstance(argument, grammar.Function) and argument.name == "size":
        return [always(_wrong_type(function, "N"))]
    return []


def _of_attribute_type(argument: grammar.Operand) -> list[Check]:
    if isinstance(argument, grammar.PathOperand):
        return [always(_wrong_type("attribute_type", "{NS,SS,L,BS,N,M,B,BOOL,NULL,S}"))]
    if isinstance(argument, grammar.Function):
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
    """Check that the value of this name has an allowed type."""

    def check(values: Mapping[str, AttributeValue]) -> None:
        for found in values[name]:
            if found not in allowed:
                raise InvalidExpression(_wrong_type(operator, found))

    return check


def _wrong_type(operator: str, found: str) -> str:
    return f"Incorrect operand type for operator or function; operator or function: {operator}, operand type: {found}"


def _shown_value(value: AttributeValue) -> str:
    [(kind, content)] = value.items()
    if kind == "B":  # DynamoDB shows how Java holds it
        length = value_size(value)
        content = f"java.nio.HeapByteBuffer[pos=0 lim={length} cap={length}]"
    return f"AttributeValue: {{{kind}:{content}}}"
