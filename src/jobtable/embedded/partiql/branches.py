"""The alternatives of a condition: what each says of the keys, and of other attributes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from jobtable.embedded.expressions.grammar import ConditionNode, Function, Junction, Test, ValueOperand
from jobtable.embedded.expressions.key_conditions import OneKey
from jobtable.embedded.partiql.conditions import attribute_of
from jobtable.embedded.partiql.terms import Terms
from jobtable.embedded.schema import KeyAttribute

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_MOST = 1000
"""Alternatives beyond which a condition is not taken apart."""


@dataclass(frozen=True, slots=True)
class Branch:
    """One alternative: the partitions that it names, what it says of the sort attribute, and what else must hold."""

    partitions: tuple[OneKey, ...] = ()
    sorts: tuple[OneKey, ...] = ()
    filters: tuple[ConditionNode, ...] = ()

    def alone(self) -> list[list[OneKey]]:
        """Key conditions of the usual form, which together say the same."""
        return [[partition, *sort] for partition in self.partitions for sort in ([[one] for one in self.sorts] or [[]])]


def branches_of(
    tree: ConditionNode, terms: Terms, partition: KeyAttribute, sorts: tuple[KeyAttribute, ...]
) -> list[Branch] | None:
    """The alternatives of a condition; None if there are too many."""
    return _spread(tree, terms, partition.name, {attribute.name for attribute in sorts})


def _spread(tree: ConditionNode, terms: Terms, partition: str, sorts: set[str]) -> list[Branch] | None:
    if not isinstance(tree, Junction):
        return _leaf(tree, terms, partition, sorts)
    if tree.operator == "NOT":
        return [Branch(filters=(tree,))]
    left, right = (_spread(part, terms, partition, sorts) for part in tree.conditions)
    if left is None or right is None or len(left) * len(right) > _MOST:
        return None
    if tree.operator == "AND":
        return [
            Branch(a.partitions + b.partitions, a.sorts + b.sorts, a.filters + b.filters)
            for a, b in product(left, right)
        ]
    # An OR of conditions on other attributes is a filter, and no alternatives.
    is_filter = not any(branch.partitions or branch.sorts for branch in left + right)
    return [Branch(filters=(tree,))] if is_filter else left + right


def _leaf(tree: Test | Function, terms: Terms, partition: str, sorts: set[str]) -> list[Branch]:
    one = one_key(tree, terms)
    if one is not None and one.attribute in sorts:
        return [Branch(sorts=(one,))]
    if one is not None and one.attribute == partition and one.operator == "=":
        return [Branch(partitions=(one,))]
    for attribute in (partition, *sorts):
        names = choices(tree, attribute, terms)
        if names is not None:
            ones = [(OneKey(attribute, "=", (name,)),) for name in names]
            return [Branch(partitions=said) if attribute == partition else Branch(sorts=said) for said in ones]
    return [Branch(filters=(tree,))]


def negates(tree: ConditionNode, terms: Terms, attributes: set[str]) -> bool:
    """Whether a condition says what one of the attributes is not."""
    if isinstance(tree, Junction):
        asks = _asks if tree.operator == "NOT" else negates
        return any(asks(part, terms, attributes) for part in tree.conditions)
    return isinstance(tree, Test) and tree.operator == "<>" and _asks(tree, terms, attributes)


def _asks(tree: ConditionNode, terms: Terms, attributes: set[str]) -> bool:
    if isinstance(tree, Junction):
        return any(_asks(part, terms, attributes) for part in tree.conditions)
    operands = tree.arguments if isinstance(tree, Function) else tree.operands
    return any(attribute_of(operand, terms) in attributes for operand in operands)


def choices(tree: ConditionNode, attribute: str, terms: Terms) -> list[str] | None:
    """The names of the values that an IN allows an attribute to have; None for other conditions."""
    if not isinstance(tree, Test) or tree.operator != "IN" or attribute_of(tree.operands[0], terms) != attribute:
        return None
    names = [operand.name for operand in tree.operands[1:] if isinstance(operand, ValueOperand)]
    return names if len(names) == len(tree.operands) - 1 else None


def one_key(tree: ConditionNode, terms: Terms) -> OneKey | None:
    """A condition that a key can be found by; None for others."""
    if isinstance(tree, Junction):
        return None
    operator, operands = (tree.name, tree.arguments) if isinstance(tree, Function) else (tree.operator, tree.operands)
    if operator not in ("=", "<", "<=", ">", ">=", "BETWEEN", "begins_with"):
        return None
    first, *others = operands
    if isinstance(first, ValueOperand) and operator in ("=", *_MIRRORED):
        first, others, operator = others[0], [first], _MIRRORED.get(operator, "=")
    attribute = attribute_of(first, terms)
    names = tuple(operand.name for operand in others if isinstance(operand, ValueOperand))
    return OneKey(attribute, operator, names) if attribute is not None and len(names) == len(others) else None
