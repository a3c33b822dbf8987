"""Conditions as values that write themselves as DynamoDB expressions, and never change.

They are made for every request, and a frozen dataclass takes three times as long to make as one that only behaves so;
an abstract base class would take its time at every isinstance.
Only placeholders reach the text of an expression: names and values from outside can never become part of it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from jobtable.errors import DefinitionError
from jobtable.model.plain_values import wire_form

if TYPE_CHECKING:
    from jobtable.model.schema import EntitySchema, FieldSchema

WireForm = dict[str, Any]
_GIVEN_LATER: WireForm = {}


class Placeholders:
    """The names and values of one request's expressions; a second set in one request takes another letter."""

    def __init__(self, letter: str = "n", *, schema: EntitySchema | None = None, pk: str | None = None) -> None:
        self._letter = letter
        self._schema = schema
        """The entity that the expressions are for, whose fields alone they may have; None where there is none."""
        self.pk = pk
        """The attribute that every item has, where it is not known that there is an item."""
        self._known: dict[str, str] = {}
        self.names: dict[str, str] = {}
        self.values: dict[str, WireForm] = {}

    def name(self, name: str) -> str:
        """The placeholder of an attribute's name."""
        placeholder = self._known.get(name)
        if placeholder is None:
            placeholder = self._known[name] = f"#{self._letter}{len(self._known)}"
            self.names[placeholder] = name
        return placeholder

    def check(self, field: FieldSchema) -> None:
        """Refuse a field that is not one of the entity's."""
        if self._schema is not None and self._schema.fields.get(field.name) is not field:
            self._schema.refuse_foreign(field)

    def path(self, steps: tuple[str | int, ...]) -> str:
        """A document path."""
        if len(steps) == 1:
            return self.name(str(steps[0]))
        first, *rest = steps
        return self.name(str(first)) + "".join([f"[{s}]" if isinstance(s, int) else f".{self.name(s)}" for s in rest])

    def value(self, wire_form: WireForm = _GIVEN_LATER) -> str:
        """The placeholder of a value."""
        placeholder = f":v{len(self.values)}"
        self.values[placeholder] = wire_form
        return placeholder

    def take(self, written: Written, values: Sequence[WireForm]) -> None:
        """Begin with a text that was written before, and with the values that belong to it."""
        self._known = written.known.copy()
        self.names = written.names.copy()
        self.values = dict(zip(written.marks, values, strict=True))

    def written(self, text: str) -> Written:
        """A text with these placeholders, to be kept; its values are given when it is used."""
        return Written(text, self._known, self.names, tuple(self.values))

    def add_to(self, request: dict[str, Any]) -> None:
        """Put the maps into a request, where there is something in them."""
        if self.names:
            request["ExpressionAttributeNames"] = self.names
        if self.values:
            request["ExpressionAttributeValues"] = self.values


class Written(NamedTuple):
    """A text, and the placeholders in it."""

    text: str
    known: dict[str, str]
    """The placeholder of each name."""
    names: dict[str, str]
    marks: tuple[str, ...]
    """The placeholders of the values, in their order."""


class Condition:
    """Something that is true or false of an item; combine conditions with & | ~."""

    __slots__ = ()

    def write(self, placeholders: Placeholders) -> str:
        """Render the condition."""
        raise NotImplementedError

    def __and__(self, other: Condition) -> Condition:
        return joined("AND", (self, other))

    def __or__(self, other: Condition) -> Condition:
        return joined("OR", (self, other))

    def __invert__(self) -> Condition:
        return _Not(self)

    def __bool__(self) -> bool:
        raise TypeError("combine conditions with & | ~, not with and, or, not; a condition has no truth value")


@dataclass(slots=True, eq=False)
class _Joined(Condition):
    word: Literal["AND", "OR"]
    conditions: tuple[Condition, ...]

    def write(self, placeholders: Placeholders) -> str:
        return f" {self.word} ".join([_bracketed(each, placeholders) for each in self.conditions])


def joined(word: Literal["AND", "OR"], conditions: tuple[Condition, ...]) -> Condition:
    """The conditions in one row; those that are already joined by the word come without brackets."""
    row: list[Condition] = []
    for condition in conditions:
        if type(condition) is _Joined and condition.word == word:
            row += condition.conditions
        else:
            row.append(condition)
    return row[0] if len(row) == 1 else _Joined(word, tuple(row))


def _bracketed(condition: Condition, placeholders: Placeholders) -> str:
    text = condition.write(placeholders)
    return f"({text})" if isinstance(condition, _Joined | OrDefault) else text


@dataclass(slots=True, eq=False)
class _Not(Condition):
    condition: Condition

    def write(self, placeholders: Placeholders) -> str:
        return f"NOT {_bracketed(self.condition, placeholders)}"


@dataclass(slots=True, eq=False)
class OrDefault(Condition):
    """Holds also for an item that lacks the attribute, because its default would make the condition hold."""

    path: Path
    condition: Condition

    def write(self, placeholders: Placeholders) -> str:
        is_default = f"attribute_not_exists({self.path.write(placeholders)})"
        if placeholders.pk is not None:
            is_default = f"attribute_exists({placeholders.name(placeholders.pk)}) AND {is_default}"
        return f"{is_default} OR {self.condition.write(placeholders)}"


@dataclass(slots=True, eq=False)
class Predicate(Condition):
    """What DynamoDB can say of some operands, as a format of their texts."""

    text: str
    operands: tuple[Operand, ...]

    def write(self, placeholders: Placeholders) -> str:
        return self.text % tuple([operand.write(placeholders) for operand in self.operands])


class Operand:
    """Something that a condition compares."""

    __slots__ = ()

    def write(self, placeholders: Placeholders) -> str:
        """The text of the operand."""
        raise NotImplementedError


@dataclass(slots=True, eq=False)
class Value(Operand):
    wire_form: WireForm

    def write(self, placeholders: Placeholders) -> str:
        return placeholders.value(self.wire_form)


class Path(Operand):
    """A field, or a place inside it."""

    __slots__ = ("_field", "_name", "steps")

    def __init__(self, field: FieldSchema, inside: tuple[str | int, ...] = ()) -> None:
        self._field = field
        self.steps = steps = (*field.path, *inside)
        """From the item to the place."""
        self._name = str(steps[0]) if len(steps) == 1 else None

    def write(self, placeholders: Placeholders) -> str:
        placeholders.check(self._field)
        return placeholders.path(self.steps) if self._name is None else placeholders.name(self._name)


@dataclass(slots=True, eq=False)
class Size(Operand):
    """The size of an attribute: the length of a text, or the number of elements."""

    path: Path
    default: int | None
    """The size of the default that entities have where the item lacks the attribute; None where it has no size."""

    def write(self, placeholders: Placeholders) -> str:
        return f"size({self.path.write(placeholders)})"

    def _compare(self, operator: str, number: int) -> Condition:
        condition = Predicate(f"%s {operator} %s", (self, Value(wire_form(number))))
        if self.default is None:
            return condition
        return for_default(self.path, condition, operator, HOLDS[operator](self.default, number))

    def __eq__(self, number: int) -> Condition:  # type: ignore[override]  # an expression, not a comparison
        return self._compare("=", number)

    def __ne__(self, number: int) -> Condition:  # type: ignore[override]
        return self._compare("<>", number)

    def __lt__(self, number: int) -> Condition:
        return self._compare("<", number)

    def __le__(self, number: int) -> Condition:
        return self._compare("<=", number)

    def __gt__(self, number: int) -> Condition:
        return self._compare(">", number)

    def __ge__(self, number: int) -> Condition:
        return self._compare(">=", number)

    __hash__ = None  # type: ignore[assignment]  # equality makes a condition


@dataclass(slots=True, eq=False)
class HasAttribute(Condition):
    """An attribute, given by its name in the item, is there or is not."""

    name: str
    present: bool = True

    def write(self, placeholders: Placeholders) -> str:
        return f"attribute_{'' if self.present else 'not_'}exists({placeholders.name(self.name)})"


@dataclass(slots=True, eq=False)
class AttributeIs(Condition):
    """An attribute, given by its name in the item, has this value."""

    steps: tuple[str | int, ...]
    wire_form: WireForm
    field: FieldSchema | None = None
    """The field that has the attribute, where it is one of an entity."""

    def write(self, placeholders: Placeholders) -> str:
        if self.field is not None:
            placeholders.check(self.field)
        return f"{placeholders.path(self.steps)} = {placeholders.value(self.wire_form)}"


EXISTS, IS_MISSING = "attribute_exists(%s)", "attribute_not_exists(%s)"
HOLDS: dict[str, Callable[..., bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "BETWEEN": lambda default, low, high: bool(low <= default <= high),
    "IN": lambda default, *values: default in values,
}
"""Whether a comparison holds for a default."""


def for_default(path: Path, condition: Condition, test: str, holds: bool) -> Condition:
    """The condition as it is for entities, where an item without the attribute has a default for which it `holds`."""
    if holds:
        # Without the attribute, DynamoDB takes every test for wrong but the one with <>.
        return condition if test == "<>" else OrDefault(path, condition)
    return Predicate(EXISTS, (path,)) & condition if test == "<>" else condition


def all_of(*conditions: Condition | None) -> Condition | None:
    """All conditions together; those that are None do not count."""
    given = tuple([condition for condition in conditions if condition is not None])
    if len(given) < 2:
        return given[0] if given else None
    return joined("AND", given)


def as_condition(given: Condition | bool | None) -> Condition | None:
    """What a caller gave as a condition; for the checker, comparing a plainly declared field gives a bool."""
    if given is None or isinstance(given, Condition):
        return given
    raise DefinitionError(
        "a condition must compare an attribute of an entity class, as in Job.status == 'PENDING'; "
        f"this one is the Python value {given!r}"
    )
