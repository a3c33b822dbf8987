"""WHERE: a condition as the tree of an expression, and its alternatives: what each says of keys and attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

from jobtable.embedded.expressions import Condition
from jobtable.embedded.expressions.checks import CONDITION_FUNCTIONS, UPDATE_FUNCTIONS, check_condition
from jobtable.embedded.expressions.conditions import program_of_condition
from jobtable.embedded.expressions.grammar import (
    COMPARATORS,
    ConditionNode,
    Function,
    Junction,
    Operand,
    PathOperand,
    Test,
    ValueOperand,
)
from jobtable.embedded.expressions.key_conditions import OneKey
from jobtable.embedded.expressions.paths import InvalidExpression
from jobtable.embedded.key_checks import empty_key_value, refuse_nested_keys
from jobtable.embedded.partiql.syntax import Call, Constant, Missing, Node, Operation, Parameter, Reference
from jobtable.embedded.partiql.terms import Terms
from jobtable.embedded.table_schema import KeyAttribute, TableSchema
from jobtable.embedded.wordings import invalid
from jobtable.errors import RequestRefused
from jobtable.store.backend import AttributeValue

_TYPES = {
    "MISSING": "MISSING",
    "NULL": "NULL",
    "BOOLEAN": "BOOL",
    "BLOB": "B",
    "STRING": "S",
    "NUMERIC": "N",
    "STRUCT": "M",
    "TUPLE": "M",
    "LIST": "L",
}
_FUNCTIONS = CONDITION_FUNCTIONS | UPDATE_FUNCTIONS | {"size"}
_AGGREGATES = frozenset({"avg", "count", "max", "min", "sum"})
_MISSING_COMPARED = "MISSING must be compared using IS operator"

_Unsupported: TypeAlias = Callable[[Operation], RequestRefused]  # words the fault of an operation


def condition_tree(node: Node, terms: Terms) -> ConditionNode:
    """Return the condition of a WHERE clause, or raise RequestRefused."""
    tree = _condition(node, terms, "WHERE clause must contain an expression that resolves to a boolean")
    try:
        check_condition(tree)
        program_of_condition(tree, terms.names).checks.run(terms.values)
    except InvalidExpression as error:
        raise RequestRefused(str(error)) from error
    return tree


def compiled(tree: ConditionNode, terms: Terms, table: TableSchema) -> Condition:
    """Compile a checked condition for the items of a table, or raise RequestRefused."""
    program = program_of_condition(tree, terms.names)
    refuse_nested_keys(table, program.nested_names)
    return Condition(program.test, terms.values, program.top_level_names)


def conjunction(*trees: ConditionNode | None) -> ConditionNode | None:
    """Join all given conditions by AND."""
    joined: ConditionNode | None = None
    for tree in trees:
        if tree is not None:
            joined = tree if joined is None else Junction("AND", (joined, tree))
    return joined


def _condition(node: Node, terms: Terms, otherwise: str) -> ConditionNode:
    match node:
        case Operation("AND" | "OR" as operator, operands):
            parts = [_condition(part, terms, "The arguments to AND/OR must be Expressions") for part in operands]
            joined = parts[0]
            for part in parts[1:]:
                joined = Junction("AND" if operator == "AND" else "OR", (joined, part))
            return joined
        case Operation("NOT", (negated,)):
            return Junction("NOT", (_condition(negated, terms, "The argument to NOT must be a Type or Expression"),))
        case Operation("=" | "<>" as operator, (left, right)) if _is_condition(left) or _is_condition(right):
            return _compared_condition(operator, left, right, terms)
        case Operation(operator, operands) if operator in COMPARATORS or operator in ("BETWEEN", "IN"):
            return Test(operator, tuple(_operand(operand, terms) for operand in operands))
        case Operation(operator, (tested,)) if operator.startswith("IS "):
            return _type_test(node, operator.removeprefix("IS "), tested, terms)
        case Operation(operator):
            raise RequestRefused(f"Unsupported operator in Condition Expression. Operator: {operator}")
        case Call():
            return _function(node, terms, _unsupported)
        case _:
            raise RequestRefused(otherwise)


def _is_condition(node: Node) -> bool:
    """Whether a node is true or false, and not a value of the item."""
    if isinstance(node, Call):
        return node.name in CONDITION_FUNCTIONS
    return isinstance(node, Operation) and node.operator not in ("+", "-")


def _compared_condition(operator: str, left: Node, right: Node, terms: Terms) -> ConditionNode:
    """Return a condition compared with a value: itself, or its opposite, as far as the value is true or false."""
    said, other = (left, right) if _is_condition(left) else (right, left)
    if isinstance(other, Missing):
        raise RequestRefused(_MISSING_COMPARED)
    holds = _condition(said, terms, "")
    is_not = Junction("NOT", (holds,))
    if isinstance(other, (Constant, Parameter)):
        flag = terms.value(other).get("BOOL")
        equal = Junction("AND", (holds, is_not)) if flag is None else holds if flag else is_not
    else:
        is_true, is_false = (_is_flag(other, flag, terms) for flag in (True, False))
        equal = Junction("OR", (Junction("AND", (holds, is_true)), Junction("AND", (is_not, is_false))))
    return equal if operator == "=" else Junction("NOT", (equal,))


def _is_flag(node: Node, flag: bool, terms: Terms) -> ConditionNode:
    """Return the condition that a condition, or a value of the item, is true or false."""
    if _is_condition(node):
        tree = _condition(node, terms, "")
        return tree if flag else Junction("NOT", (tree,))
    return Test("=", (_operand(node, terms), terms.operand(Constant("BOOL", flag, node.place))))


def operand_of(node: Node, terms: Terms, unsupported: _Unsupported) -> Operand:
    """Return the operand that a node is, or raise RequestRefused."""
    match node:
        case Reference(path):
            return terms.reference(path)
        case Call():
            return _function(node, terms, unsupported)
        case Missing():
            raise RequestRefused(_MISSING_COMPARED)
        case Operation():
            raise unsupported(node)
        case _:
            return terms.operand(node)


def _function(node: Call, terms: Terms, unsupported: _Unsupported) -> Function:
    if node.name not in _FUNCTIONS:
        said = "Unsupported token in expression" if node.name in _AGGREGATES else "Unrecognized function"
        raise RequestRefused(f"{said}: {node.name} at {node.place}")
    return Function(node.name, tuple(operand_of(argument, terms, unsupported) for argument in node.arguments))


def _operand(node: Node, terms: Terms) -> Operand:
    return operand_of(node, terms, _unsupported)


def _unsupported(operation: Operation) -> RequestRefused:
    return RequestRefused(f"Unsupported operator in Condition Expression. Operator: {operation.operator.lower()}")


def _type_test(node: Operation, name: str, tested: Node, terms: Terms) -> Function:
    if not isinstance(tested, (Reference, Constant)):
        raise RequestRefused("The left hand side argument to IS must be a Variable Reference, Literal, or Path")
    if name not in _TYPES:
        raise RequestRefused(
            f"Unsupported data type for IS operator: {name}. Supported data types are [{', '.join(_TYPES)}] at"
            f" {node.place}"
        )
    operand = _operand(tested, terms)
    if name == "MISSING":
        return Function("attribute_not_exists", (operand,))
    return Function("attribute_type", (operand, terms.operand(Constant("S", _TYPES[name], tested.place))))


def conjuncts(tree: ConditionNode) -> list[ConditionNode]:
    """Return the conditions that must all hold, from left to right."""
    found: list[ConditionNode] = []
    waiting = [tree]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Junction) and part.operator == "AND":
            waiting += reversed(part.conditions)
        else:
            found.append(part)
    return found


def attribute_of(operand: Operand, terms: Terms) -> str | None:
    """Return the attribute that an operand names as a whole, or None."""
    if isinstance(operand, PathOperand) and len(operand.path) == 1:
        return terms.names[str(operand.path[0])]
    return None


def attributes_in(tree: ConditionNode, terms: Terms) -> Iterator[str]:
    """Yield the attributes that a condition reads, from left to right."""
    if isinstance(tree, Junction):
        for part in tree.conditions:
            yield from attributes_in(part, terms)
        return
    for operand in tree.arguments if isinstance(tree, Function) else tree.operands:
        if isinstance(operand, PathOperand):
            yield terms.names[str(operand.path[0])]
        elif isinstance(operand, Function):
            yield from attributes_in(operand, terms)


def equality(tree: ConditionNode, terms: Terms) -> tuple[str, AttributeValue] | None:
    """Return the attribute and the value that a condition declares equal, in either order; None for others."""
    if isinstance(tree, Test) and tree.operator == "=":
        left, right = tree.operands
        if isinstance(left, ValueOperand):
            left, right = right, left
        attribute = attribute_of(left, terms)
        if attribute is not None and isinstance(right, ValueOperand):
            return attribute, terms.values[right.name]
    return None


def check_key_types(tree: ConditionNode, terms: Terms, attributes: tuple[KeyAttribute, ...]) -> None:
    """Raise RequestRefused if a key attribute is compared with a value that no key can have."""
    types = {attribute.name: attribute for attribute in attributes}
    for operands in _compared(tree):
        named = {name for operand in operands if (name := attribute_of(operand, terms)) in types}
        for name in named:
            for operand in operands:
                if isinstance(operand, ValueOperand):
                    _check_key_value(types[str(name)], terms.values[operand.name])


def _compared(tree: ConditionNode) -> Iterator[tuple[Operand, ...]]:
    """Yield the operands of every test, and of every function that compares them."""
    waiting = [tree]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Junction):
            waiting += part.conditions
        elif isinstance(part, Test):
            yield part.operands
        elif part.name in ("begins_with", "contains"):
            yield part.arguments


def _check_key_value(attribute: KeyAttribute, value: AttributeValue) -> None:
    if attribute.type not in value:
        raise invalid("Condition parameter type does not match schema type")
    if value[attribute.type] == "":
        raise empty_key_value(attribute)


_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_MOST = 1000  # most alternatives into which a condition is split


@dataclass(frozen=True, slots=True)
class Branch:
    """One alternative: the partitions that it names, its conditions on the sort attribute, and its other conditions."""

    partitions: tuple[OneKey, ...] = ()
    sorts: tuple[OneKey, ...] = ()
    filters: tuple[ConditionNode, ...] = ()

    def alone(self) -> list[list[OneKey]]:
        """Return key conditions of the usual form that together mean the same."""
        return [[partition, *sort] for partition in self.partitions for sort in ([[one] for one in self.sorts] or [[]])]


def branches_of(
    tree: ConditionNode, terms: Terms, partition: KeyAttribute, sorts: tuple[KeyAttribute, ...]
) -> list[Branch] | None:
    """Return the alternatives of a condition; None if there are too many."""
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
    # An OR of conditions on other attributes is a filter, not alternatives.
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
    """Whether a condition excludes values of one of the attributes."""
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
    """Return the names of the values that an IN allows for an attribute; None for other conditions."""
    if not isinstance(tree, Test) or tree.operator != "IN" or attribute_of(tree.operands[0], terms) != attribute:
        return None
    names = [operand.name for operand in tree.operands[1:] if isinstance(operand, ValueOperand)]
    return names if len(names) == len(tree.operands) - 1 else None


def one_key(tree: ConditionNode, terms: Terms) -> OneKey | None:
    """Return a condition by which a key can be found; None for others."""
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
