"""What the text of an expression alone shows to be wrong, beyond its grammar."""

from __future__ import annotations

from functools import lru_cache

from jobtable.embedded.expressions import grammar
from jobtable.embedded.expressions.grammar import ConditionNode, Function, Operand, PathOperand, Sum, Test, UpdateNode
from jobtable.embedded.expressions.paths import MAX_INDEX, Path
from jobtable.embedded.expressions.reserved import RESERVED_WORDS
from jobtable.embedded.expressions.tokens import InvalidExpression

CONDITION_FUNCTIONS = frozenset(
    {"attribute_exists", "attribute_not_exists", "attribute_type", "begins_with", "contains"}
)
UPDATE_FUNCTIONS = frozenset({"if_not_exists", "list_append"})
_ALL_FUNCTIONS = CONDITION_FUNCTIONS | UPDATE_FUNCTIONS | {"size"}


@lru_cache(maxsize=1024)
def checked_condition(text: str) -> ConditionNode:
    """The tree of a condition whose names, functions and indexes may stand where they stand."""
    node = grammar.parse_condition(text)
    _check_condition(node)
    return node


@lru_cache(maxsize=1024)
def checked_update(text: str) -> UpdateNode:
    """The tree of an update whose names, functions, indexes and sections may stand where they stand."""
    node = grammar.parse_update(text)
    for action in node.actions:
        check_path(action.path)
        if isinstance(action.value, Sum):
            for operand in action.value.operands:
                _check_update_operand(operand, inside=True)
        elif action.value is not None:
            _check_update_operand(action.value, inside=False)
    if node.repeated is not None:
        raise InvalidExpression(f'The "{node.repeated}" section can only be used once in an update expression;')
    return node


@lru_cache(maxsize=1024)
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


def _check_condition(node: ConditionNode) -> None:
    if isinstance(node, Function):
        _check_function_name(node.name, UPDATE_FUNCTIONS, "a condition")
        if node.name == "size":
            raise _misplaced(node)
        for argument in node.arguments:
            _check_condition_operand(argument)
    elif isinstance(node, Test):
        for operand in node.operands:
            _check_condition_operand(operand)
    else:
        for condition in node.conditions:
            _check_condition(condition)


def _check_condition_operand(node: Operand) -> None:
    if isinstance(node, PathOperand):
        check_path(node.path)
    elif isinstance(node, Function):
        _check_function_name(node.name, UPDATE_FUNCTIONS, "a condition")
        if node.name != "size":
            raise _misplaced(node)
        for argument in node.arguments:
            _check_condition_operand(argument)


def _check_update_operand(node: Operand, *, inside: bool) -> None:
    """`inside`: the operand is part of a sum or a function, where list_append must not stand."""
    if isinstance(node, PathOperand):
        check_path(node.path)
    elif isinstance(node, Function):
        _check_function_name(node.name, CONDITION_FUNCTIONS | {"size"}, "an update")
        if inside and node.name == "list_append":
            raise _misplaced(node)
        for argument in node.arguments:
            _check_update_operand(argument, inside=True)


def _check_function_name(name: str, forbidden: frozenset[str], place: str) -> None:
    if name not in _ALL_FUNCTIONS:
        raise InvalidExpression(f"Invalid function name; function: {name}")
    if name in forbidden:
        raise InvalidExpression(f"The function is not allowed in {place} expression; function: {name}")


def _misplaced(node: Function) -> InvalidExpression:
    return InvalidExpression(f"The function is not allowed to be used this way in an expression; function: {node.name}")
