"""UpdateExpression."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from jobtable.embedded.expressions import checks, grammar
from jobtable.embedded.expressions import update_values as compute
from jobtable.embedded.expressions.checks import MAX_OPERATORS, TOO_MANY, Check, Checks, checked_update
from jobtable.embedded.expressions.paths import Computed, InvalidExpression, Path, PathTree, part_of, resolved, tree_of
from jobtable.embedded.expressions.placeholders import Names, Placeholders, remembered
from jobtable.embedded.expressions.update_values import check_writable, written
from jobtable.store.backend import AttributeValue, Item
from jobtable.store.sizes import utf8_length, value_size

_UPDATE = 3
_WRITING = 19
_REMOVING = 1
_STEP_OF_TARGET = 4
_PATH = 1
_STEP_OF_PATH = 14
_OPERATIONS = {"+": 34, "-": 37, "if_not_exists": 39, "list_append": 37}


class UpdateCost(NamedTuple):
    """The bytes that DynamoDB counts for an update, as far as they are known without the values of a request."""

    size: int
    values: tuple[str, ...]  # the values that are counted too, each as often as it is used


NO_COST = UpdateCost(0, ())
"""The cost of AttributeUpdates, of which only the resulting item is counted."""


def _cost_of(actions: Iterable[grammar.Action], names: Mapping[str, str]) -> UpdateCost:
    """Return the cost of a checked update."""
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


def _operand_size(operand: grammar.Operand | grammar.Sum, names: Mapping[str, str], values: list[str]) -> int:
    """Return the cost of an operand without its values, whose names are added to `values`."""
    size = 0
    waiting: list[grammar.Operand | grammar.Sum] = [operand]
    while waiting:
        one = waiting.pop()
        if isinstance(one, grammar.ValueOperand):
            values.append(one.name)
        elif isinstance(one, grammar.PathOperand):
            size += _PATH + sum(_STEP_OF_PATH + step for step in _sizes(one.path, names))
        elif isinstance(one, grammar.Sum):
            size += _OPERATIONS[one.operator]
            waiting += one.operands
        else:
            size += _OPERATIONS[one.name]
            waiting += one.arguments
    return size


def _sizes(path: Path, names: Mapping[str, str]) -> list[int]:
    return [len(str(part)) if isinstance(part, int) else utf8_length(names.get(part, part)) for part in path]


@dataclass(frozen=True, slots=True)
class UpdateStep:
    """One action: where it writes, and what. None as the computed value means: remove the old one."""

    section: grammar.Section
    path: Path
    computed: Computed


@dataclass(frozen=True, slots=True)
class UpdateProgram:
    """An update, prepared as far as possible without the values of a request."""

    steps: tuple[UpdateStep, ...]
    tree: PathTree
    checks: Checks
    names_used: frozenset[str]
    values_used: frozenset[str]
    nested_names: frozenset[str]
    top_level_names: frozenset[str]
    only_removes: bool  # whether it only removes attributes or members of sets
    sources: tuple[tuple[str, str], ...]
    """Whole attributes whose new type is known without an item, with that type or the name of the value."""
    cost: UpdateCost


class Update:
    """A compiled update of one request."""

    __slots__ = ("_program", "_values", "top_level_names")

    top_level_names: frozenset[str]
    """The top-level attributes that the update writes (not those that it only reads)."""

    def __init__(self, program: UpdateProgram, values: Mapping[str, AttributeValue]) -> None:
        self._program = program
        self._values = values
        self.top_level_names = program.top_level_names

    @classmethod
    def of(cls, program: UpdateProgram, values: Mapping[str, AttributeValue]) -> Update:
        """Return the update for valid values, or raise RequestRefused."""
        try:
            program.checks.run(values)
        except InvalidExpression as error:
            raise error.refused("UpdateExpression") from error
        return cls(program, values)

    def apply(self, item: Item) -> Item:
        """Return the item after the update, as a new dict; RequestRefused if it cannot be applied to this item."""
        values, steps = self._values, self._program.steps
        writes: list[tuple[Path, AttributeValue | None]] = []
        for step in steps:
            if len(step.path) > 1:
                check_writable(item, step.path)
            writes.append((step.path, step.computed(item, values)))
        return written(item, writes)

    @property
    def only_removes(self) -> bool:
        """Whether it only removes attributes or members of sets."""
        return self._program.only_removes

    def known_types(self) -> dict[str, str]:
        """Return the types of whole attributes that the update writes, as far as they are known without an item."""
        values = self._values
        return {name: next(iter(values[of])) if of in values else of for name, of in self._program.sources}

    def cost(self) -> int:
        """Return the bytes that DynamoDB counts for the update itself, whatever the item."""
        size, names = self._program.cost
        values = self._values
        for name in names:
            size += value_size(values[name])
        return size

    def updated_part(self, item: Item) -> Item:
        """Return the attributes for ReturnValues UPDATED_OLD (of the old item) and UPDATED_NEW (of the new one)."""
        return part_of(item, self._program.tree)


def compile_update(text: str, placeholders: Placeholders) -> Update:
    program = prepare_update_program(text, placeholders.names_key)
    placeholders.use(program.names_used, program.values_used, program.nested_names)
    return Update.of(program, placeholders.values)


def prepare_update_program(text: str, names_key: Names) -> UpdateProgram:
    """Return the program of an update, or raise RequestRefused for an invalid text."""
    try:
        return _program(text, names_key)
    except InvalidExpression as error:
        raise error.refused("UpdateExpression") from error


_ORDER: tuple[grammar.Section, ...] = ("SET", "ADD", "DELETE", "REMOVE")


@remembered
def _program(text: str, names_key: Names) -> UpdateProgram:
    return program_of_update(checked_update(text), dict(names_key))


def program_of_update(node: grammar.UpdateNode, names: Mapping[str, str]) -> UpdateProgram:
    """Return the program of a parsed and checked update, or raise InvalidExpression if its paths overlap."""
    builder = _Builder(names)
    actions = node.actions
    # DynamoDB goes through the actions from the last to the first, which decides what fault is reported.
    tree = tree_of(builder.path(action.path) for action in reversed(actions))
    steps = [builder.step(action) for action in reversed(actions)]
    steps.sort(key=lambda step: _ORDER.index(step.section))
    return UpdateProgram(
        tuple(steps),
        tree,
        Checks(builder.checks),
        frozenset(builder.names_used),
        frozenset(builder.values_used),
        frozenset(builder.nested_names),
        frozenset(map(str, tree)),
        all(step.section in ("REMOVE", "DELETE") for step in steps),
        tuple(builder.sources),
        _cost_of(actions, names),
    )


class _Builder:
    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        self._operators = 0
        self.checks: list[Check] = []
        self.names_used: set[str] = set()
        self.values_used: set[str] = set()
        self.nested_names: set[str] = set()
        self.sources: list[tuple[str, str]] = []

    def path(self, path: Path) -> Path:
        self.names_used.update(part for part in path if isinstance(part, str) and part in self._names)
        found = resolved(path, self._names)
        if len(found) > 1:
            self.nested_names.add(str(found[0]))
        return found

    def step(self, action: grammar.Action) -> UpdateStep:
        node, path = action.value, self.path(action.path)
        source = _source(node)
        if source is not None and len(path) == 1 and action.section != "DELETE":
            self.sources.append((str(path[0]), source))
        computed: Computed
        if node is None:
            computed = compute.NOTHING
        elif action.section == "SET" or not isinstance(node, grammar.ValueOperand):
            computed = self._operand(node)
        else:
            self._operand(node)
            self.checks.append(compute.set_or_number_check(action.section, node.name))
            computed = (compute.added if action.section == "ADD" else compute.deleted)(path, node.name)
        return UpdateStep(action.section, path, computed)

    def _sum(self, node: grammar.Sum) -> Computed:
        left, right = (self._operand(operand) for operand in node.operands)
        for operand in node.operands:
            if isinstance(operand, grammar.ValueOperand):
                self.checks.append(checks.of_type(node.operator, operand.name, frozenset({"N"})))
        return compute.total(node.operator, left, right)

    def _operand(self, node: grammar.Operand | grammar.Sum) -> Computed:
        if isinstance(node, grammar.ValueOperand):
            self.values_used.add(node.name)
            self.checks.append(checks.Defined(node.name))
            return compute.value(node.name)
        if isinstance(node, grammar.PathOperand):
            try:
                return compute.attribute(self.path(node.path))
            except InvalidExpression as error:
                self.checks.append(checks.always(str(error)))
                return compute.NOTHING
        computed = self._sum(node) if isinstance(node, grammar.Sum) else self._function(node)
        self._operators += 1
        if self._operators == MAX_OPERATORS + 1:  # DynamoDB counts each when it has checked it and its operands
            self.checks.append(checks.always(TOO_MANY))
        return computed

    def _function(self, node: grammar.Function) -> Computed:
        arguments = list(map(self._operand, node.arguments))  # fewer frames than a comprehension, for deep nesting
        self.checks += checks.of_function(node)
        if checks.has_wrong_arity(node):
            return compute.NOTHING
        if node.name == "list_append":
            return compute.list_append(arguments[0], arguments[1])
        path, other = (checks.path_of(argument, self._names) for argument in node.arguments)
        if path is None:
            return compute.NOTHING
        if path == other:
            self.checks.append(checks.not_distinct(node.name, path))
        return compute.if_not_exists(path, arguments[1])


def _source(node: grammar.Operand | grammar.Sum | None) -> str | None:
    """Return the type of a new value, or the name of the value that has it; None if it depends on the item."""
    if isinstance(node, grammar.ValueOperand):
        return node.name
    if isinstance(node, grammar.Sum):
        return "N"
    return "L" if isinstance(node, grammar.Function) and node.name == "list_append" else None
