"""What the text of an expression alone shows to be wrong, beyond its grammar."""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

from jobtable.embedded.expressions import grammar
from jobtable.embedded.expressions.grammar import (
    ConditionNode,
    Function,
    Junction,
    Operand,
    PathOperand,
    Sum,
    Test,
    UpdateNode,
)
from jobtable.embedded.expressions.memory import MOST_TREES
from jobtable.embedded.expressions.paths import MAX_INDEX, Path
from jobtable.embedded.expressions.reserved import RESERVED_WORDS
from jobtable.embedded.expressions.tokens import InvalidExpression

CONDITION_FUNCTIONS = frozenset(
    {"attribute_exists", "attribute_not_exists", "attribute_type", "begins_with", "contains"}
)
UPDATE_FUNCTIONS = frozenset({"if_not_exists", "list_append"})
MAX_OPERATORS = 300
_ALL_FUNCTIONS = CONDITION_FUNCTIONS | UPDATE_FUNCTIONS | {"size"}
# DynamoDB counts no further than to the first one that is too many.
TOO_MANY = f"The expression contains too many operators; operator count: {MAX_OPERATORS + 1}"

ConditionPart: TypeAlias = ConditionNode | Operand


class TooManyOperators(InvalidExpression):
    """A condition has too many operators.

    DynamoDB counts each operator when it has checked it and its operands, and so tells a fault of those up to the one
    that is too many instead. `counted` has them, in that order.
    """

    def __init__(self, counted: list[ConditionPart]) -> None:
        super().__init__(TOO_MANY)
        self.counted = counted


@lru_cache(maxsize=MOST_TREES)
def checked_condition(text: str) -> ConditionNode:
    """The tree of a condition whose names, functions and indexes may stand where they stand."""
    node = grammar.parse_condition(text)
    check_condition(node)
    return node


def check_condition(node: ConditionNode) -> None:
    """InvalidExpression if a name, function or index may not stand where it stands; TooManyOperators."""
    if _operators_of_condition(node) > MAX_OPERATORS:
        raise TooManyOperators(_counted(node))


@lru_cache(maxsize=MOST_TREES)
def checked_update(text: str) -> UpdateNode:
    """The tree of an update whose names, functions, indexes and sections may stand where they stand.

    It may have too many operators, which is told among the faults of its operands.
    """
    node = grammar.parse_update(text)
    _operators_of_update(node)
    return node


def check_update(node: UpdateNode) -> None:
    """InvalidExpression if a name, function, index or section may not stand where it stands, or there are too many."""
    if _operators_of_update(node) > MAX_OPERATORS:
        raise InvalidExpression(TOO_MANY)


@lru_cache(maxsize=MOST_TREES)
def checked_projection(text: str) -> tuple[Path, ...]:
    """The paths of a projection, whose names and indexes are allowed."""
    paths = grammar.parse_projection(text)
    for path in paths:
        check_path(path)
    return paths


def check_path(path: Path) -> None:
    """InvalidExpression for a reserved word, or an index out of range."""
    for part in path:
        if isinstance(part, int):
            if part > MAX_INDEX:
                raise InvalidExpression(f"List index is not within the allowable range; index: [{part}]")
        elif part.upper() in RESERVED_WORDS:
            raise InvalidExpression(f"Attribute name is a reserved keyword; reserved keyword: {part}")


def _operators_of_condition(node: ConditionNode) -> int:
    """How many operators and functions a condition has, which are all allowed where they stand."""
    operators = 0
    waiting: list[tuple[ConditionPart, bool]] = [(node, False)]
    while waiting:  # no recursion: only what is counted here is known not to be nested too deeply for it
        part, is_operand = waiting.pop()
        if isinstance(part, PathOperand):
            check_path(part.path)
        elif isinstance(part, Function):
            _check_function_name(part.name, UPDATE_FUNCTIONS, "a condition")
            if is_operand != (part.name == "size"):
                raise _misplaced(part)
        waiting += ((inner, not isinstance(part, Junction)) for inner in reversed(_inside(part)))
        operators += _is_operator(part)
    return operators


def _counted(node: ConditionNode) -> list[ConditionPart]:
    """The parts of a condition up to the operator that is one too many, each as large as it can be."""
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


def _operators_inside(node: ConditionNode) -> dict[int, int]:
    """How many operators each part of a condition has with itself, by its id()."""
    parts: list[ConditionPart] = [node]
    for part in parts:  # which grows meanwhile: what has too many operators may be nested too deeply for recursion
        parts += _inside(part)
    operators: dict[int, int] = {}
    for part in reversed(parts):
        operators[id(part)] = _is_operator(part) + sum(operators[id(inner)] for inner in _inside(part))
    return operators


def _inside(part: ConditionPart) -> tuple[ConditionPart, ...]:
    if isinstance(part, Function):
        return part.arguments
    if isinstance(part, Test):
        return part.operands
    return part.conditions if isinstance(part, Junction) else ()


def _is_operator(part: ConditionPart) -> bool:
    return isinstance(part, (Function, Test, Junction))


def _operators_of_update(node: UpdateNode) -> int:
    """The same for an update."""
    operators = 0
    for action in node.actions:
        check_path(action.path)
        if action.value is not None:
            operators += _operators_of_value(action.value)
    if node.repeated is not None:
        raise InvalidExpression(f'The "{node.repeated}" section can only be used once in an update expression;')
    return operators


def _operators_of_value(node: Operand | Sum) -> int:
    """The same for a value of an update: list_append must not stand in a sum or a function."""
    operators = 0
    waiting: list[tuple[Operand | Sum, bool]] = [(node, False)]
    while waiting:
        part, is_inside = waiting.pop()
        if isinstance(part, PathOperand):
            check_path(part.path)
        elif isinstance(part, Function):
            _check_function_name(part.name, CONDITION_FUNCTIONS | {"size"}, "an update")
            if is_inside and part.name == "list_append":
                raise _misplaced(part)
            waiting += ((argument, True) for argument in reversed(part.arguments))
        elif isinstance(part, Sum):
            waiting += ((operand, True) for operand in reversed(part.operands))
        operators += isinstance(part, (Function, Sum))
    return operators


def _check_function_name(name: str, forbidden: frozenset[str], place: str) -> None:
    if name not in _ALL_FUNCTIONS:
        raise InvalidExpression(f"Invalid function name; function: {name}")
    if name in forbidden:
        raise InvalidExpression(f"The function is not allowed in {place} expression; function: {name}")


def _misplaced(node: Function) -> InvalidExpression:
    return InvalidExpression(f"The function is not allowed to be used this way in an expression; function: {node.name}")
