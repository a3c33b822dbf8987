"""Fields in conditions and updates: immutable values that render themselves as DynamoDB expressions."""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar

from jobtable.errors import DefinitionError, ValueRefusedError
from jobtable.model import plain_values, wire
from jobtable.model.conditions import (
    EXISTS,
    HOLDS,
    IS_MISSING,
    AttributeIs,
    Condition,
    Operand,
    OrDefault,
    Path,
    Placeholders,
    Predicate,
    Size,
    Value,
    WireForm,
    for_default,
    joined,
)
from jobtable.model.construction import AS_READ, private_of

if TYPE_CHECKING:
    from jobtable.model.entity import Entity
    from jobtable.model.schema import Element, FieldSchema

T = TypeVar("T")


class Attribute(Generic[T]):
    """A field of an entity in conditions and updates; index it to reach into lists, maps and parts."""

    __slots__ = ("_default", "_forms", "_kind", "_path", "_slot", "_to_wire", "field", "is_nested", "steps")

    def __init__(
        self,
        field: FieldSchema,
        steps: tuple[str | int, ...] = (),
        kind: wire.WireType | None = None,
        slot: FieldSchema | Element | None = None,
    ) -> None:
        self.field = field
        self.is_nested = bool(steps)
        """Whether this is a place inside the field."""
        self.steps = steps
        """From the field to that place."""
        kind = kind or field.kind
        self._kind = kind.inner if isinstance(kind, wire.Nullable) else kind
        self._to_wire = self._kind.to_wire
        self._forms: dict[Action, UpdateForm] = {}
        self._slot = slot if steps else field
        self._path = Path(field, steps)
        self._default = None if steps else field.default
        """What entities have where the item lacks the attribute; None where that is nothing."""

    def __repr__(self) -> str:
        return _named(self.field, self.steps)

    def __getitem__(self, step: str | int) -> Attribute[Any]:
        """Return the element of a list, the value of a map, or the field of a part."""
        kind, slot, name = _inside(self._kind, self._slot, step, self)
        return Attribute(self.field, (*self.steps, name), kind, slot)

    __iter__ = None
    """Not to be looped over: Python would ask for one element after the other, for ever."""

    if not TYPE_CHECKING:  # which refuses all of this itself

        def __getattr__(self, name: str) -> Any:
            told = f"{type(self).__name__!r} object has no attribute {name!r}"
            if not name.startswith("_") and name not in self.__slots__:
                with suppress(ValueRefusedError):
                    told += f"; write {self[name]!r} for a value inside the field"
            raise AttributeError(told)

        def __contains__(self, value: object) -> bool:
            raise TypeError(f"a field does not support `in`; write {self!r}.contains({value!r})")

        def _without_brackets(self, _: object) -> Any:
            raise TypeError(
                "& and | bind tighter than comparisons: put each comparison in parentheses, "
                "as in (Job.x > 1) & (Job.y < 2)"
            )

        __and__ = __rand__ = __or__ = __ror__ = _without_brackets

    @property
    def path(self) -> Path:
        if self.field.is_key_only:
            raise _only_in_key(self)
        return self._path

    def accept(self, value: Any) -> Any:
        return self._slot.accept(value) if self._slot else value

    def wire_form(self, value: Any) -> WireForm:
        return {"NULL": True} if value is None else self.encode(self.accept(value))

    def encode(self, value: Any) -> WireForm:
        """An accepted value in wire form."""
        return {"NULL": True} if value is None else self._encoded(self._to_wire, value)

    def _encoded(self, to_wire: Callable[[Any], WireForm], value: Any) -> WireForm:
        try:
            return to_wire(value)
        except ValueRefusedError as error:
            raise ValueRefusedError(f"{self!r}: {error}") from error
        except (TypeError, AttributeError, KeyError) as error:
            raise ValueRefusedError(f"{self!r} cannot hold {value!r:.100}") from error

    def amount_form(self, amount: int | float | Decimal) -> WireForm:
        """What is added to a number. It is not a value of the field itself, so the field's limits do not apply."""
        if not isinstance(self._kind, wire.Int | wire.Float | wire.DecimalNumber | wire.Anything):
            raise ValueRefusedError(f"{self!r} is not a number, so {amount!r} cannot be added to it")
        if isinstance(self._kind, wire.Int) and amount % 1:
            raise ValueRefusedError(f"{self!r} is a whole number, so {amount!r} cannot be added to it")
        return plain_values.wire_form(amount)

    def element_form(self, value: Any) -> WireForm:
        """What is put into a list, or looked for in a list, a set or a text, in wire form."""
        kind = self._kind
        if isinstance(kind, wire.Many | wire.Distinct):
            kind = kind.inner
        elif isinstance(kind, wire.Numbers):
            kind = wire.Float()
        if isinstance(kind, wire.Anything):
            return plain_values.wire_form(value)
        if isinstance(self._kind, wire.Text):
            return self._text_form(value)
        element = self._slot.element if self._slot is not None else None
        return self._encoded(kind.to_wire, value if element is None else element.accept(value))

    def _text_form(self, value: Any) -> WireForm:
        """A part of a text. It is not a value of the field itself, so the field's limits do not apply."""
        if not isinstance(value, str):
            raise ValueRefusedError(f"{self!r} must be compared with a string, not {value!r:.100}")
        return {"S": value}

    def _operand(self, value: Any) -> Operand:
        return value.path if isinstance(value, Attribute) else Value(self.wire_form(value))

    def _compare(self, operator: str, value: Any) -> Condition:
        condition = Predicate(f"%s {operator} %s", (self.path, self._operand(value)))
        return condition if self._default is None else self._for_default(condition, operator, value)

    def _for_default(self, condition: Condition, operator: str, *values: Any) -> Condition:
        for value in values:
            if isinstance(value, Attribute):  # what that one has, only the item tells
                return condition
        default, accepted = _comparable(self._default), [_comparable(self.accept(value)) for value in values]
        return for_default(self.path, condition, operator, HOLDS[operator](default, *accepted))

    def _is_empty_set(self, value: Any) -> bool:
        """Whether the value is an empty set, which is a missing attribute in an item."""
        return self._kind.empty_is_absent and not self.is_nested and not isinstance(value, Attribute) and not value

    def __eq__(self, value: T | Attribute[T]) -> Condition:  # type: ignore[override]  # an expression, not a comparison
        if value is None:
            return self._is_none()
        return self.missing() if self._is_empty_set(value) else self._compare("=", value)

    def __ne__(self, value: T | Attribute[T]) -> Condition:  # type: ignore[override]
        if value is None:
            return ~self._is_none()
        return self.exists() if self._is_empty_set(value) else self._compare("<>", value)

    def _is_none(self) -> Condition:
        """That it is None: we write it in one way, but other programs may write it in the other."""
        is_null = Predicate("%s = %s", (self.path, Value({"NULL": True})))
        return is_null if self._default is not None else self.missing() | is_null

    def __lt__(self, value: T | Attribute[T]) -> Condition:
        return self._compare("<", value)

    def __le__(self, value: T | Attribute[T]) -> Condition:
        return self._compare("<=", value)

    def __gt__(self, value: T | Attribute[T]) -> Condition:
        return self._compare(">", value)

    def __ge__(self, value: T | Attribute[T]) -> Condition:
        return self._compare(">=", value)

    __hash__ = None  # type: ignore[assignment]  # equality makes a condition

    def between(self, low: T | Attribute[T], high: T | Attribute[T]) -> Condition:
        """Compare: from `low` to `high`, both included."""
        ends = self._operand(low), self._operand(high)
        if isinstance(ends[0], Value) and isinstance(ends[1], Value):
            refuse_swapped_ends(repr(self), (low, high), (ends[0].wire_form, ends[1].wire_form))
        condition = Predicate("%s BETWEEN %s AND %s", (self.path, *ends))
        return condition if self._default is None else self._for_default(condition, "BETWEEN", low, high)

    def is_in(self, *values: T) -> Condition:
        """Compare: one of at most 100 values."""
        if not 1 <= len(values) <= 100:
            raise ValueRefusedError(f"{self!r}.is_in takes 1 to 100 values, not {len(values)}")
        some = [value for value in values if value is not None and not self._is_empty_set(value)]
        if len(some) < len(values):
            return self._is_none() | self.is_in(*some) if some else self._is_none()
        marks = ", ".join(["%s"] * len(values))
        condition = Predicate(f"%s IN ({marks})", (self.path, *map(self._operand, values)))
        return condition if self._default is None else self._for_default(condition, "IN", *values)

    def exists(self) -> Condition:
        """Require that the item has the attribute."""
        return Predicate(EXISTS, (self.path,))

    def missing(self) -> Condition:
        """Require that the item lacks the attribute."""
        return Predicate(IS_MISSING, (self.path,))

    def begins_with(self, prefix: str) -> Condition:
        """Require a text with this prefix."""
        condition = Predicate("begins_with(%s, %s)", (self.path, Value(self._text_form(prefix))))
        default = self._default_form
        return for_default(self.path, condition, "begins_with", "S" in default and default["S"].startswith(prefix))

    def contains(self, element: Any) -> Condition:
        """Require a text with this part, or a list or set with this element."""
        form, default = self.element_form(element), self._default_form
        condition = Predicate("contains(%s, %s)", (self.path, Value(form)))
        is_part = "S" in form and "S" in default and form["S"] in default["S"]
        return for_default(self.path, condition, "contains", is_part or form in default.get("L", ()))

    def size(self) -> Size:
        """Compare the length of a text or binary, or the number of elements."""
        return Size(self.path, 0 if self._is_empty_set(()) else _size_of(self._default_form))

    @property
    def _default_form(self) -> WireForm:
        """The default in wire form; nothing where there is none."""
        return {} if self._default is None else self.encode(self._default)

    def set(self, value: T) -> Update:
        """Set the value; None removes the attribute."""
        accepted = self.accept(value)
        is_removed = not self.is_nested and self.field.is_absent(accepted)
        return Update(self, "remove" if is_removed else "set", accepted)

    def form_of(self, action: Action) -> UpdateForm:
        """What the text of a change depends on."""
        form = self._forms.get(action)
        if form is None:
            form = self._forms[action] = UpdateForm(self.field, self.steps, action)
        return form

    def set_if_missing(self, value: T) -> Update:
        """Set the value if the item lacks the attribute."""
        return Update(self, "set_if_missing", self.accept(value))

    def remove(self) -> Update:
        """Remove the attribute from an item that is valid without it."""
        if self._slot is not None and not self._slot.may_be_missing:
            raise ValueRefusedError(f"{self!r} is required, and an item without it could not be read; set it instead")
        return Update(self, "remove")

    def increment(self, by: float = 1) -> Update:
        """Add to the number, or to the field's default if the item lacks it."""
        return Update(self, "increment", by)

    def add(self, value: Any) -> Update:
        """Add to the number, which counts from 0 if missing, or add elements to a set."""
        return Update(self, "add", value)

    def discard(self, elements: T) -> Update:
        """Remove elements from a set."""
        if not isinstance(self._kind, wire.Distinct | wire.Anything):
            raise ValueRefusedError(f"{self!r} is not a set, so nothing can be removed from it")
        return Update(self, "discard", elements)

    def append(self, *elements: Any) -> Update:
        """Append elements to the list, or to the field's default if the item lacks it."""
        if not isinstance(self._kind, wire.Many | wire.Numbers | wire.Anything):
            raise ValueRefusedError(f"{self!r} is not a list, so nothing can be appended to it")
        return Update(self, "append", elements)


def refuse_swapped_ends(what: str, ends: tuple[Any, Any], forms: tuple[WireForm, WireForm]) -> None:
    """Refuse a range of which the lower end is the higher one, as DynamoDB compares their forms."""
    low, high = forms
    ((tag, content),) = low.items()
    order = plain_values.ORDERS.get(tag)
    if order is not None and tag in high and order(content) > order(high[tag]):
        raise ValueRefusedError(
            f"{what} cannot be between {ends[0]!r:.100} and {ends[1]!r:.100}; put the lower end first"
        )


def _named(field: FieldSchema, steps: tuple[str | int, ...]) -> str:
    """A field, or a place inside it, as programs write it."""
    return f"{field.owner}.{field.name}" + "".join(f"[{step!r}]" for step in steps)


def _only_in_key(attribute: Attribute[Any] | UpdateForm) -> ValueRefusedError:
    return ValueRefusedError(f"{attribute!s} exists only in the key; declare it as Stored to use it in an expression")


def _inside(
    kind: wire.WireType, slot: FieldSchema | Element | None, step: str | int, owner: Attribute[Any]
) -> tuple[wire.WireType, FieldSchema | Element | None, str | int]:
    element = None if slot is None else slot.element
    if isinstance(kind, wire.Nested) and isinstance(step, str):
        fields = kind.part.__codec__.fields
        if step not in fields:
            raise ValueRefusedError(f"{owner!r} has no field {step!r}; it has {', '.join(fields)}")
        return fields[step].kind, fields[step], fields[step].attribute
    if isinstance(kind, wire.Many | wire.Numbers) and isinstance(step, int) and step >= 0:
        return (kind.inner if isinstance(kind, wire.Many) else wire.Float()), element, step
    if isinstance(kind, wire.Mapped) and isinstance(step, str):
        return kind.inner, element, step
    if isinstance(kind, wire.Anything):
        return kind, None, step
    raise ValueRefusedError(f"{owner!r} cannot be indexed with {step!r}")


def _comparable(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value


def _size_of(form: WireForm) -> int | None:
    """What DynamoDB takes for the size of a value: of a text, the UTF-16 units; None for those without a size."""
    for tag, content in form.items():
        if tag == "S":
            return len(content.encode("utf-16-le")) // 2
        if tag in ("L", "M"):
            return len(content)
        if tag == "B":
            return len(a2b_base64(content))
    return None


Action = Literal["set", "set_if_missing", "increment", "append", "remove", "add", "discard"]
Clause = Literal["SET", "REMOVE", "ADD", "DELETE"]


class UpdateForm(NamedTuple):
    """All that the text of a change depends on, so that it can be kept: its values come anew with each request."""

    field: FieldSchema
    steps: tuple[str | int, ...]
    """From the field to a place inside it."""
    action: Action

    def __str__(self) -> str:
        return _named(self.field, self.steps)

    @property
    def is_whole(self) -> bool:
        """Whether it says what the whole field is afterwards."""
        return not self.steps and self.action in ("set", "remove")

    def write(self, placeholders: Placeholders) -> tuple[Clause, str]:
        """The clause that the change belongs to, and its text, with a placeholder for each of `Update.values`."""
        if self.field.is_key_only:
            raise _only_in_key(self)
        path = placeholders.path((*self.field.path, *self.steps))
        if self.action == "remove":
            return "REMOVE", path
        value = placeholders.value()
        match self.action:
            case "set":
                return "SET", f"{path} = {value}"
            case "set_if_missing":
                return "SET", f"{path} = if_not_exists({path}, {value})"
            case "append":
                return "SET", f"{path} = list_append(if_not_exists({path}, {placeholders.value()}), {value})"
            case "increment":
                if self.steps or self.field.default is None:
                    return "SET", f"{path} = {path} + {value}"
                return "SET", f"{path} = if_not_exists({path}, {value}) + {placeholders.value()}"
            case "add":
                return "ADD", f"{path} {value}"
            case "discard":
                return "DELETE", f"{path} {value}"


@dataclass(slots=True, eq=False)
class Update:
    """One change of one attribute."""

    attribute: Attribute[Any]
    action: Action
    value: Any = None

    def values(self) -> tuple[WireForm, ...]:
        """The values for the placeholders in its text, in order."""
        attribute = self.attribute
        match self.action:
            case "set" | "set_if_missing":  # the value was accepted when the update was made
                return (attribute.encode(self.value),)
            case "remove":
                return ()
            case "append":
                elements: WireForm = {"L": [attribute.element_form(each) for each in self.value]}
                return elements, attribute._default_form or {"L": []}
            case "increment" if attribute._default is not None:
                return attribute.encode(attribute._default), self._amount()
            case "increment" | "add":
                return (self._amount(),)
            case "discard":
                return (attribute.wire_form(self.value),)

    @property
    def value_afterwards(self) -> Any:
        """What entities have in the field behind a change that says so; see UpdateForm.is_whole."""
        return self.attribute.field.default if self.action == "remove" else self.value

    def _amount(self) -> WireForm:
        is_amount = isinstance(self.value, int | float | Decimal)
        return self.attribute.amount_form(self.value) if is_amount else self.attribute.wire_form(self.value)


def write_updates(clauses: Iterable[tuple[Clause, str]]) -> str:
    texts: dict[Clause, list[str]] = {"SET": [], "REMOVE": [], "ADD": [], "DELETE": []}
    for clause, text in clauses:
        texts[clause].append(text)
    return " ".join([f"{clause} {', '.join(own)}" for clause, own in texts.items() if own])


def unchanged(entity: Entity, *attributes: Attribute[Any]) -> Condition:
    """Require that the item has in these fields what the entity had when it was read."""
    for each in attributes:
        type(entity).__schema__.refuse_foreign(each.field)
    return joined("AND", tuple([is_as_read(entity, each.field) for each in attributes]))


def is_as_read(entity: Entity, field: FieldSchema) -> Condition:
    """That the item has in a field what the entity has, in the form in which it was read."""
    value = getattr(entity, field.name)
    forms = private_of(entity)[AS_READ]
    if forms is not None and field.name in forms:
        read, stored = forms[field.name]
        if read == value:
            return AttributeIs(field.path, stored, field)
    if value is None:
        is_null = AttributeIs(field.path, {"NULL": True}, field)
        return is_null if field.default is not None else _is_missing(field) | is_null
    if field.is_absent(value):
        return _is_missing(field)
    condition = AttributeIs(field.path, field.kind.to_wire(value), field)
    return OrDefault(Path(field), condition) if value == field.default else condition


def _is_missing(field: FieldSchema) -> Condition:
    return Predicate(IS_MISSING, (Path(field),))


def attribute_of(given: Any) -> Attribute[Any]:
    """Return a caller's argument as an Attribute; the type checker sees the field's own type."""
    if isinstance(given, Attribute):
        return given
    raise DefinitionError(f"expected an attribute of an entity class, as in Job.status, not {given!r}")
