"""What DynamoDB counts of an UpdateExpression against the 400 KB of an item.

It counts the request and not the item: a value as often as it is used, also where it does not become part of the item.
The figures are what the service was measured to count; nothing explains them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from jobtable.embedded.expressions.grammar import Action, Operand, PathOperand, Sum, ValueOperand
from jobtable.embedded.expressions.paths import Path
from jobtable.store.sizes import utf8_length

_UPDATE = 3
_WRITING = 19
_REMOVING = 1
_STEP_OF_TARGET = 4
_PATH = 1
_STEP_OF_PATH = 14
_OPERATIONS = {"+": 34, "-": 37, "if_not_exists": 39, "list_append": 37}


class UpdateCost(NamedTuple):
    """The bytes that are counted of an update, as far as they show without the values of a request."""

    size: int
    values: tuple[str, ...]
    """The values that are counted besides, each as often as it is used."""


NO_COST = UpdateCost(0, ())
"""That of AttributeUpdates, of which only the item that they leave is counted."""


def cost_of(actions: Iterable[Action], names: Mapping[str, str]) -> UpdateCost:
    """The cost of an update that is checked already."""
    size = _UPDATE
    values: list[str] = []
    for action in actions:
        first, *rest = _sizes(action.path, names)
        size += first + sum(_STEP_OF_TARGET + step for step in rest)
        if action.value is None or action.section == "DELETE":
            size += _REMOVING
        else:
            size += _WRITING + _operand_size(action.value, names, values)
    return UpdateCost(size, tuple(values))


def _operand_size(operand: Operand | Sum, names: Mapping[str, str], values: list[str]) -> int:
    """What is counted of an operand, without its values, which are added to the others."""
    size = 0
    waiting: list[Operand | Sum] = [operand]
    while waiting:
        one = waiting.pop()
        if isinstance(one, ValueOperand):
            values.append(one.name)
        elif isinstance(one, PathOperand):
            size += _PATH + sum(_STEP_OF_PATH + step for step in _sizes(one.path, names))
        elif isinstance(one, Sum):
            size += _OPERATIONS[one.operator]
            waiting += one.operands
        else:
            size += _OPERATIONS[one.name]
            waiting += one.arguments
    return size


def _sizes(path: Path, names: Mapping[str, str]) -> list[int]:
    return [len(str(part)) if isinstance(part, int) else utf8_length(names.get(part, part)) for part in path]
