"""ConditionExpression and FilterExpression."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from jobtable.embedded.expressions import checks
from jobtable.embedded.expressions import condition_tests as tests
from jobtable.embedded.expressions.checks import Check, Checks, ConditionPart, TooManyOperators, checked_condition
from jobtable.embedded.expressions.condition_tests import Predicate
from jobtable.embedded.expressions.grammar import ConditionNode, Function, Operand, PathOperand, Test, ValueOperand
from jobtable.embedded.expressions.paths import Computed, InvalidExpression, Path, resolved
from jobtable.embedded.expressions.placeholders import Names, Placeholders, remembered
from jobtable.store.backend import AttributeValue, Item

ConditionKind: TypeAlias = Literal["ConditionExpression", "FilterExpression"]


class Condition:
    """A compiled condition of one request."""

    __slots__ = ("_test", "_values", "top_level_names")

    parameter = "Filter Expression"  # DynamoDB's name for it as the filter of a query
    top_level_names: frozenset[str]  # the top-level attributes that the condition reads

    def __init__(self, test: Predicate, values: Mapping[str, AttributeValue], top_level_names: frozenset[str]) -> None:
        self._test = test
        self._values = values
        self.top_level_names = top_level_names

    @classmethod
    def of(
        cls,
        program: ConditionProgram,
        values: Mapping[str, AttributeValue],
        kind: ConditionKind = "ConditionExpression",
    ) -> Condition:
        """Return the condition for valid values, or raise RequestRefused."""
        try:
            program.checks.run(values)
        except InvalidExpression as error:
            raise error.refused(kind) from error
        return cls(program.test, values, program.top_level_names)

    def holds(self, item: Item) -> bool:
        """Whether the item satisfies the condition; a missing item is an empty one."""
        return self._test(item, self._values)


def compile_condition(text: str, placeholders: Placeholders, kind: ConditionKind = "ConditionExpression") -> Condition:
    program = prepare_condition(text, placeholders.names_key, kind)
    placeholders.use(program.names_used, program.values_used, program.nested_names)
    return Condition.of(program, placeholders.values, kind)


def prepare_condition(text: str, names_key: Names, kind: ConditionKind = "ConditionExpression") -> ConditionProgram:
    """Return the program of a condition, or raise RequestRefused for an invalid text."""
    try:
        return condition_program(text, names_key)
    except InvalidExpression as error:
        raise error.refused(kind) from error


@dataclass(frozen=True, slots=True)
class ConditionProgram:
    """A condition, prepared as far as possible without the values of a request."""

    test: Predicate
    checks: Checks  # checks of the values
    names_used: frozenset[str]
    values_used: frozenset[str]
    top_level_names: frozenset[str]
    nested_names: frozenset[str]


@remembered
def condition_program(text: str, names_key: Names) -> ConditionProgram:
    """Return the program of a condition, or raise InvalidExpression for an invalid text."""
    try:
        node = checked_condition(text)
    except TooManyOperators as error:
        return _refused_program(error, dict(names_key))
    return program_of_condition(node, dict(names_key))


def program_of_condition(node: ConditionNode, names: Mapping[str, str]) -> ConditionProgram:
    """Return the program of a parsed and checked condition."""
    builder = _Builder(names)
    return builder.program(builder.condition(node))


def _refused_program(error: TooManyOperators, names: Mapping[str, str]) -> ConditionProgram:
    """Return a program whose checks always find a fault."""
    builder = _Builder(names)
    for part in error.counted:
        builder.check(part)
    builder.checks.append(checks.always(str(error)))
    return builder.program(tests.NEVER)


class _Builder:
    """Turns nodes into tests. A fault that shows only with a request becomes a check, in order."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        self.checks: list[Check] = []
        self.names_used: set[str] = set()
        self.values_used: set[str] = set()
        self.top_level_names: set[str] = set()
        self.nested_names: set[str] = set()

    def program(self, test: Predicate) -> ConditionProgram:
        return ConditionProgram(
            test,
            Checks(self.checks),
            frozenset(self.names_used),
            frozenset(self.values_used),
            frozenset(self.top_level_names),
            frozenset(self.nested_names),
        )

    def check(self, part: ConditionPart) -> None:
        """Add only the checks of a condition or an operand."""
        if isinstance(part, (PathOperand, ValueOperand)) or (isinstance(part, Function) and part.name == "size"):
            self._operand(part)
        else:
            self.condition(part)

    def condition(self, node: ConditionNode) -> Predicate:
        if isinstance(node, Function):
            return self._function(node)
        if isinstance(node, Test):
            return self._test(node)
        built = [self.condition(condition) for condition in node.conditions]
        if node.operator == "NOT":
            return tests.negation(built[0])
        return (tests.conjunction if node.operator == "AND" else tests.disjunction)(built[0], built[1])

    def _test(self, node: Test) -> Predicate:
        operands = [self._operand(operand) for operand in node.operands]
        self.checks += checks.of_test(node.operator, node.operands)
        self._check_distinct(node.operator, node.operands)
        if node.operator == "BETWEEN":
            self.checks += checks.of_bounds(node.operands[1], node.operands[2])
            return tests.between(*operands)
        if node.operator == "IN":
            return tests.one_of(operands[0], tuple(operands[1:]))
        return tests.comparison(node.operator, operands[0], operands[1])

    def _function(self, node: Function) -> Predicate:
        operands = [self._operand(argument) for argument in node.arguments]
        if checks.has_wrong_arity(node):
            self.checks += checks.of_function(node)
            return tests.NEVER
        self._check_distinct(node.name, node.arguments)
        self.checks += checks.of_function(node)
        return tests.FUNCTIONS[node.name](*operands)

    def _operand(self, node: Operand) -> Computed:
        if isinstance(node, ValueOperand):
            self.values_used.add(node.name)
            self.checks.append(checks.Defined(node.name))
            return tests.value(node.name)
        if isinstance(node, PathOperand):
            return tests.attribute(self._path(node.path))
        arguments = list(map(self._operand, node.arguments))  # fewer frames than a comprehension, for deep nesting
        self.checks += checks.of_function(node)
        return tests.size(arguments[0])

    def _path(self, path: Path) -> Path:
        try:
            found = resolved(path, self._names)
        except InvalidExpression as error:
            self.checks.append(checks.always(str(error)))
            return path
        self.names_used.update(part for part in path if isinstance(part, str) and part in self._names)
        self.top_level_names.add(str(found[0]))
        if len(found) > 1:
            self.nested_names.add(str(found[0]))
        return found

    def _check_distinct(self, operator: str, operands: tuple[Operand, ...]) -> None:
        paths = [checks.path_of(operand, self._names) for operand in operands]
        if paths[0] is not None and paths[0] in paths[1:]:
            self.checks.append(checks.not_distinct(operator, paths[0]))
