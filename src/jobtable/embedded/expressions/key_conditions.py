"""KeyConditionExpression."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from jobtable.embedded.expressions.checks import checked_condition
from jobtable.embedded.expressions.conditions import condition_program
from jobtable.embedded.expressions.grammar import ConditionNode, Function, Operand, Test, ValueOperand
from jobtable.embedded.expressions.paths import InvalidExpression, Values, resolved
from jobtable.embedded.expressions.placeholders import Names, Placeholders, remembered
from jobtable.embedded.key_checks import TOO_LONG, empty_key_value
from jobtable.embedded.table_schema import MAX_PARTITION_BYTES, MAX_SORT_BYTES, KeyAttribute, SortOperator, key_bytes
from jobtable.embedded.wordings import invalid
from jobtable.errors import RequestRefused
from jobtable.store.backend import AttributeValue

_MIRRORED: dict[str, str] = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
_RANGES: dict[str, SortOperator] = {
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
    "BETWEEN": "BETWEEN",
    "begins_with": "begins_with",
}
_IN_CONDITION = "Invalid condition in KeyConditionExpression: "


@dataclass(frozen=True, slots=True)
class SortRange:
    """A condition on one sort attribute other than equality; BETWEEN has two operands, the others have one."""

    operator: SortOperator
    operands: tuple[AttributeValue, ...]


@dataclass(frozen=True, slots=True)
class KeyCondition:
    """The part of a table or index that a query reads. Values are valid, canonical, and of the key's types."""

    partition_values: tuple[AttributeValue, ...]
    """One value per partition attribute, in the order of the schema."""
    sort_equal: tuple[AttributeValue, ...]
    """Values of the first sort attributes, from left to right; may be fewer than the schema has."""
    sort_range: SortRange | None  # the condition on the sort attribute after those of `sort_equal`


@dataclass(frozen=True, slots=True)
class OneKey:
    """The condition on one attribute of a key, with the :names of its values."""

    attribute: str
    operator: str
    operands: tuple[str, ...]


class UnmatchedKeyCondition:
    """A key condition with a valid grammar; DynamoDB matches it with the key schema only later.

    For a Query it checks KeyConditionExpression, FilterExpression and ProjectionExpression, in this order, then unused
    placeholders, then whether these are conditions on keys at all, and once it has found the table, whether they match
    its schema.
    """

    __slots__ = ("_names_key", "_text", "_values")

    def __init__(self, text: str, placeholders: Placeholders) -> None:
        self._text = text
        self._names_key = placeholders.names_key
        self._values = placeholders.values

    def check_form(self) -> None:
        """Raise RequestRefused for anything but one simple condition per top-level attribute."""
        _conditions_by_attribute(self._text, self._names_key)

    def against(
        self, partition: tuple[KeyAttribute, ...], sort: tuple[KeyAttribute, ...], index_name: str | None = None
    ) -> KeyCondition:
        """Match the condition with the key schema of a table, or of the named index, or raise RequestRefused."""
        given = _conditions_by_attribute(self._text, self._names_key)
        return matched(given, self._values, partition, sort, index_name)


def matched(
    given: dict[str, OneKey],
    values: Values,
    partition: tuple[KeyAttribute, ...],
    sort: tuple[KeyAttribute, ...],
    index_name: str | None,
) -> KeyCondition:
    """Match conditions on attributes with a key schema, or raise RequestRefused."""
    if len(given) > len(partition) + len(sort):
        raise RequestRefused(
            f"The number of query conditions ({len(given)}) exceeds the number of key attributes defined in the"
            f" schema ({len(partition) + len(sort)})"
        )
    if len(partition) > 1 or len(sort) > 1:
        _check_left_to_right(given, partition, sort)
    partition_values = tuple(_equality(given, attribute, values, index_name) for attribute in partition)
    _check_bytes(partition, partition_values, MAX_PARTITION_BYTES)
    sort_condition = _sort_condition(given, len(partition), sort, values, index_name)
    return KeyCondition(partition_values, *sort_condition)


def prepare_key_condition(text: str, placeholders: Placeholders) -> UnmatchedKeyCondition:
    """Return the key condition, not yet matched with a key schema, or raise RequestRefused."""
    try:
        program = condition_program(text, placeholders.names_key)
        program.checks.run(placeholders.values)
    except InvalidExpression as error:
        raise error.refused("KeyConditionExpression") from error
    placeholders.use(program.names_used, program.values_used)
    return UnmatchedKeyCondition(text, placeholders)


@remembered
def _conditions_by_attribute(text: str, names_key: Names) -> dict[str, OneKey]:
    names = dict(names_key)
    found: dict[str, OneKey] = {}
    for node in _conjuncts(checked_condition(text)):
        one = _one_key(node, names)
        if one.attribute in found:
            raise _malformed("KeyConditionExpressions must only contain one condition per key")
        found[one.attribute] = one
    return found


def _conjuncts(node: ConditionNode) -> Iterable[Test | Function]:
    if isinstance(node, (Test, Function)):
        yield node
    elif node.operator == "AND":
        for condition in node.conditions:
            yield from _conjuncts(condition)
    else:
        raise _invalid_operator(node.operator)


def _one_key(node: Test | Function, names: dict[str, str]) -> OneKey:
    if isinstance(node, Function):
        if node.name != "begins_with":
            raise _invalid_operator(node.name)
        operator, operands = node.name, node.arguments
    else:
        if node.operator in ("IN", "<>"):
            raise _invalid_operator(node.operator)
        operator, operands = node.operator, node.operands
    attribute = _only_attribute(operator, operands, names)
    if isinstance(operands[0], ValueOperand):
        operator = _MIRRORED[operator]
    return OneKey(attribute, operator, tuple(o.name for o in operands if isinstance(o, ValueOperand)))


def _only_attribute(operator: str, operands: tuple[Operand, ...], names: dict[str, str]) -> str:
    attribute = None
    for at, operand in enumerate(operands):
        if isinstance(operand, Function):
            raise _malformed("KeyConditionExpressions cannot contain nested operations")
        if isinstance(operand, ValueOperand):
            if at == 0 and operator in ("BETWEEN", "begins_with"):
                raise _malformed(f"{_IN_CONDITION}{operator} operator must have the key attribute as its first operand")
        elif attribute is not None:
            raise _malformed(f"{_IN_CONDITION}Multiple attribute names used in one condition")
        else:
            attribute, *inner = (str(part) for part in resolved(operand.path, names))
            if inner:
                raise _malformed("KeyConditionExpressions cannot have conditions on nested attributes")
    if attribute is None:
        raise _malformed(f"{_IN_CONDITION}No key attribute specified")
    return attribute


def _invalid_operator(operator: str) -> RequestRefused:
    return _malformed(f"Invalid operator used in KeyConditionExpression: {operator}")


def _malformed(reason: str) -> RequestRefused:
    return RequestRefused(f"Invalid KeyConditionExpression: {reason}")


def _equality(
    given: dict[str, OneKey], attribute: KeyAttribute, values: Values, index_name: str | None
) -> AttributeValue:
    one = given.get(attribute.name)
    if one is None:
        raise _missed(attribute)
    operands = _typed_operands(one, attribute, values)
    if one.operator != "=":
        raise RequestRefused("Query key condition not supported")
    _check_not_empty(operands, attribute, index_name)
    return operands[0]


def _sort_condition(
    given: dict[str, OneKey], used: int, sort: tuple[KeyAttribute, ...], values: Values, index_name: str | None
) -> tuple[tuple[AttributeValue, ...], SortRange | None]:
    """Return equalities from left to right, then at most one range; `used` conditions are on the partition."""
    equal: list[AttributeValue] = []
    for attribute in sort:
        if used == len(given):
            break
        one = given.get(attribute.name)
        if one is None:
            raise _missed(attribute)
        used += 1
        operands = _typed_operands(one, attribute, values)
        _check_not_empty(operands, attribute, index_name)
        for operand in operands:
            _check_bytes(sort, (*equal, operand), MAX_SORT_BYTES)
        if one.operator != "=":
            if used < len(given):
                raise RequestRefused("Query key condition not supported")
            return tuple(equal), SortRange(_RANGES[one.operator], operands)
        equal.append(operands[0])
    if used < len(given):
        raise RequestRefused("Query key condition not supported")
    return tuple(equal), None


def _check_left_to_right(
    given: dict[str, OneKey], partition: tuple[KeyAttribute, ...], sort: tuple[KeyAttribute, ...]
) -> None:
    """Require an equality on each attribute before the last one used of a key of several attributes."""
    unequal = _without_equality(given, partition)
    if unequal:
        raise RequestRefused(f"HASH key attributes {unequal} must have equality conditions specified in the query")
    used = [at for at, attribute in enumerate(sort) if attribute.name in given]
    last = used[-1] if used else 0
    unequal = _without_equality(given, sort[:last])
    if unequal:
        raise RequestRefused(
            f"RANGE key attributes {unequal} must have equality conditions specified in the query because a condition"
            f" is present on key attribute {sort[last].name}"
        )


def _without_equality(given: dict[str, OneKey], attributes: tuple[KeyAttribute, ...]) -> str:
    names = [attribute.name for attribute in attributes]
    return ", ".join(name for name in names if name not in given or given[name].operator != "=")


def _missed(attribute: KeyAttribute) -> RequestRefused:
    return RequestRefused(f"Query condition missed key schema element: {attribute.name}")


def _typed_operands(one: OneKey, attribute: KeyAttribute, values: Values) -> tuple[AttributeValue, ...]:
    operands = []
    for name in one.operands:
        operand = values[name]
        if attribute.type not in operand:
            raise invalid("Condition parameter type does not match schema type")
        operands.append(operand)
    return tuple(operands)


def _check_not_empty(values: tuple[AttributeValue, ...], attribute: KeyAttribute, index_name: str | None) -> None:
    if any(value[attribute.type] == "" for value in values):
        raise empty_key_value(attribute, index_name)


def _check_bytes(attributes: tuple[KeyAttribute, ...], values: tuple[AttributeValue, ...], limit: int) -> None:
    """Raise RequestRefused if values of the first of these attributes exceed the limit of a key together."""
    if key_bytes([(attributes[at], value[attributes[at].type]) for at, value in enumerate(values)]) > limit:
        raise RequestRefused(TOO_LONG[limit])
