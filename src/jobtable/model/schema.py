"""What the model knows of an entity once its class is made."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import to_json

from jobtable.errors import NotFoundError, ValueRefusedError, missing
from jobtable.model import wire
from jobtable.model.annotations import element_of
from jobtable.model.key_templates import Template
from jobtable.model.source import Names
from jobtable.model.table import Index, KeyType, Table

if TYPE_CHECKING:
    from jobtable.model.codec import EntityCodec
    from jobtable.model.entity import Entity

_AS_GIVEN: dict[type[wire.WireType], type] = {
    wire.Text: str,
    wire.Bool: bool,
    wire.Int: int,
    wire.Float: float,
    wire.Binary: bytes,
    wire.Instant: datetime,
}
"""Types whose values pydantic need not look at, where the field has no constraints: ASCII text, times in UTC, ..."""


@dataclass(frozen=True, eq=False)
class Element:
    """A place in a list, a set or a map: its values have the type that is declared for elements."""

    owner: str
    annotation: Any
    is_null_written = True
    may_be_missing = True

    @cached_property
    def _adapter(self) -> TypeAdapter[Any]:
        return TypeAdapter(self.annotation)

    def accept(self, value: Any) -> Any:
        """The value as the place holds it, or ValueRefusedError."""
        return _validated(self._adapter, value, self.owner)

    @cached_property
    def element(self) -> Element | None:
        """The elements of what stands here; None where it has none."""
        inner = element_of(self.annotation)
        return None if inner is None else Element(self.owner, inner)


def _validated(adapter: TypeAdapter[Any], value: Any, owner: str) -> Any:
    try:
        accepted = adapter.validate_python(value)
        if isinstance(accepted, str):
            accepted.encode()
    except ValidationError as error:
        reason = error.errors(include_url=False)[0]["msg"]
        if isinstance(value, BaseModel) and (name := owner.rpartition(".")[2]) in type(value).model_fields:
            raise ValueRefusedError(f"{owner}: got a whole {type(value).__name__}; write .{name}") from error
        raise ValueRefusedError(f"{owner}: {value!r:.100}: {reason}") from error
    except UnicodeEncodeError as error:
        raise ValueRefusedError(f"{owner}: {value!r:.100} is not valid Unicode") from error
    return accepted


@dataclass(frozen=True, eq=False)
class FieldSchema:
    """A field: where it stands in the item, and in which form."""

    owner: str
    name: str
    attribute: str
    envelope: str | None
    kind: wire.WireType
    optional: bool
    is_null_written: bool
    is_stored: bool
    is_constrained: bool
    is_validated: bool
    """Whether a function of the declaration makes the values, so that it has to see what is read as well."""
    is_key_only: bool
    info: FieldInfo
    validators: tuple[Any, ...]
    """Those that the class gives the field by @field_validator; the annotation has the others."""

    @cached_property
    def path(self) -> tuple[str, ...]:
        """The names from the item down to the attribute."""
        return (self.attribute,) if self.envelope is None else (self.envelope, self.attribute)

    @cached_property
    def _as_given(self) -> type | None:
        if self.is_constrained:
            return None
        return self.kind.enum if isinstance(self.kind, wire.EnumValue) else _AS_GIVEN.get(type(self.kind))

    @cached_property
    def _adapter(self) -> TypeAdapter[Any]:
        annotation: Any = self.info.annotation
        for mark in (*self.info.metadata, *self.validators):
            annotation = Annotated[annotation, mark]
        return TypeAdapter(annotation)

    @cached_property
    def default(self) -> Any:
        """What an item without the attribute has; None where that is nothing, or made anew each time."""
        if self.info.is_required() or self.kind.empty_is_absent:
            return None
        made = self.info.default_factory
        if made is None:
            return self.info.default
        return made() if made in (list, dict) else None

    @property
    def is_default_storable(self) -> bool:
        """Whether the default is of the field's type. Pydantic takes any, also one that its constraints refuse."""
        value = self.info.default
        if self.info.is_required() or self.info.default_factory is not None:
            return True
        if value is None:
            return self.optional
        if type(value) is _AS_GIVEN.get(type(self.kind)):
            return True
        try:
            accepted = value if self.is_constrained else self.accept(value)
            return to_json(self.kind.to_wire(value)) == to_json(self.kind.to_wire(accepted))
        except (ValueRefusedError, TypeError, AttributeError, KeyError):
            return False

    def is_as(self, other: FieldSchema) -> bool:
        """Whether it says the same of an item as a field of another entity."""
        return (self.path, self.is_key_only, self.info.annotation, self.default) == (
            other.path,
            other.is_key_only,
            other.info.annotation,
            other.default,
        )

    @property
    def may_be_missing(self) -> bool:
        """Whether an item without the attribute can be read."""
        return self.optional or self.kind.empty_is_absent or not self.info.is_required()

    def accept_source(self, value: str, names: Names) -> str:
        """The source of an expression that accepts `value`, without a call where the value needs no look."""
        accept = names.of(self.accept, "accept")
        if self._as_given is None:
            return f"{accept}({value})"
        look = {str: " and v.isascii()", float: " and v - v == 0", datetime: f" and v.tzinfo is {names.of(UTC, 'UTC')}"}
        test = f"type(v := {value}) is {names.of(self._as_given, 'type')}{look.get(self._as_given, '')}"
        return f"v if {test} else {accept}(v)"

    def is_absent(self, value: Any) -> bool:
        """Whether an item with this value does not have the attribute."""
        return not value if self.kind.empty_is_absent else value is None and not self.is_null_written

    def accept(self, value: Any) -> Any:
        """The value as the field holds it, or ValueRefusedError."""
        if value is None and self.optional and not self.is_constrained:
            return None
        if type(value) is self._as_given and _is_canonical(value):
            return value
        if isinstance(self.kind, wire.EnumValue):
            value = self.kind.find(value)
        return _validated(self._adapter, value, f"{self.owner}.{self.name}")

    @cached_property
    def element(self) -> Element | None:
        """The elements of the field's lists, sets or maps; None where it has none."""
        inner = element_of(self.info.annotation)
        return None if inner is None else Element(f"{self.owner}.{self.name}", inner)


def _is_canonical(value: Any) -> bool:
    if type(value) is str:
        return value.isascii()
    if type(value) is float:
        return math.isfinite(value)
    return type(value) is not datetime or value.tzinfo is UTC


@dataclass(frozen=True, eq=False)
class KeyPart:
    """One attribute of a key, and what it is made from: a template, a field as it is, or the type's name."""

    attribute: str
    template: Template | None = None
    natural: FieldSchema | None = None
    constant: str | None = None

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """The fields that the attribute is made from."""
        if self.template is not None:
            return self.template.fields
        return (self.natural.name,) if self.natural else ()

    @property
    def key_type(self) -> KeyType:
        """The attribute's type in DynamoDB."""
        tag = self.natural.kind.tag if self.natural else "S"
        return "N" if tag == "N" else "B" if tag == "B" else "S"

    def may_equal(self, other: KeyPart) -> bool:
        """Whether the two can hold the same value."""
        if self.template and other.template:
            return self.template.may_equal(other.template)
        return not (self.constant and other.constant) or self.constant == other.constant

    def __str__(self) -> str:
        return self.template.text if self.template else self.constant or f"{{{self.attribute}}}"


@dataclass(frozen=True, eq=False)
class KeySchema:
    """The primary key of an entity, or its key in one index."""

    owner: str
    name: str
    index: Index | None
    partition: tuple[KeyPart, ...]
    sort: tuple[KeyPart, ...]

    @cached_property
    def parts(self) -> tuple[KeyPart, ...]:
        return self.partition + self.sort

    @cached_property
    def templated(self) -> tuple[KeyPart, ...]:
        """The attributes that are made from templates."""
        return tuple(part for part in self.parts if part.template)

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """The fields that the key is made from, in order."""
        return tuple(dict.fromkeys(name for part in self.parts for name in part.inputs))

    @cached_property
    def pattern(self) -> str:
        """The access pattern's name, as capacity is counted under it."""
        return f"{self.owner}.{self.name}"

    def may_equal(self, other: KeySchema) -> bool:
        """Whether two items can have this key and the other one at once."""
        return all(mine.may_equal(theirs) for mine, theirs in zip(self.parts, other.parts, strict=True))

    def __str__(self) -> str:
        return " / ".join(str(part) for part in self.parts)


@dataclass(frozen=True, eq=False)
class EntitySchema:
    """An entity: its fields, its keys, its table, its codec."""

    cls: type[Entity]
    name: str
    table: Table
    type_name: str
    fields: Mapping[str, FieldSchema]
    primary: KeySchema
    indexes: Mapping[str, KeySchema]
    """By the name that the class gives the key."""
    shares_keys_with: tuple[type[Entity], ...] = ()
    codec: EntityCodec = field(init=False)

    def take_sharer(self, cls: type[Entity]) -> None:
        """Note an entity, declared later, that shares its keys with this one: neither overwrites the other's items."""
        object.__setattr__(self, "shares_keys_with", (*self.shares_keys_with, cls))

    def refuse_foreign(self, field: FieldSchema) -> None:
        """Refuse a field that is none of the entity's, nor of an entity from which this one has it as it is."""
        own = self.fields.get(field.name)
        if own is field or (own is not None and own.is_as(field) and self._derives_from_owner_of(field)):
            return
        if field.owner == self.name:
            told = f" of {self.cls.__module__}"
        elif own is None:
            told = ", which has no field of that name"
        else:
            told = f"; write {self.name}.{field.name}"
        raise ValueRefusedError(f"{field.owner}.{field.name} is not a field of {self.name}{told}")

    def _derives_from_owner_of(self, field: FieldSchema) -> bool:
        schemas = (vars(base).get("__schema__") for base in self.cls.__mro__)
        return any(isinstance(each, EntitySchema) and each.fields.get(field.name) is field for each in schemas)

    def missing(self, key: Mapping[str, Any]) -> NotFoundError:
        """Return the error for a primary key without an item, such as `there is no job 5f3c`."""
        noun = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", self.name).lower()
        values: dict[str, Any] = {}
        for part in self.primary.parts:
            if part.template is not None:
                values |= part.template.parse(key[part.attribute]["S"])
            elif part.natural is not None:
                values[part.natural.name] = next(iter(key[part.attribute].values()))
        if len(values) == 1:
            return missing(noun, next(iter(values.values())))
        described = ", ".join(f"{name} {value}" for name, value in values.items())
        return NotFoundError(f"there is no {noun} with {described}", kind=noun, key=described)

    @property
    def keys(self) -> tuple[KeySchema, ...]:
        return (self.primary, *self.indexes.values())

    def made_parts(self, index: KeySchema) -> tuple[KeyPart, ...]:
        """The attributes of an index key that items lack which were stored before it was declared.

        Those are made: from a template, or from a field that stood in the primary key alone.
        """
        of_primary = self.primary.inputs
        return tuple(part for part in index.parts if part.template or set(part.inputs).intersection(of_primary))

    @cached_property
    def derived(self) -> frozenset[str]:
        """The attributes that are made from fields and never set by hand: templates and the type."""
        templated = (part.attribute for key in self.keys for part in key.parts if part.natural is None)
        own_type = (self.table.type_attribute,) if self.table.type_attribute else ()
        return frozenset((*templated, *own_type))

    @cached_property
    def attributes(self) -> frozenset[str]:
        """The attributes that items have by their declaration, those made from keys included; an envelope is one."""
        fields = (field.path[0] for field in self.fields.values() if not field.is_key_only)
        return frozenset((*fields, *self.derived))

    @cached_property
    def envelope(self) -> str | None:
        """The attribute that holds all that is stored of fields but for those beside it; None where there is none."""
        return next(
            (field.envelope for field in self.fields.values() if field.envelope and not field.is_key_only), None
        )

    @cached_property
    def attributes_inside(self) -> frozenset[str]:
        """The same inside of the envelope."""
        inside = (field for field in self.fields.values() if field.envelope and not field.is_key_only)
        return frozenset(field.attribute for field in inside)
