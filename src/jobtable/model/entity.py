"""Entities: pydantic models that know their table, their keys, and their form in an item."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import unwrap
from typing import TYPE_CHECKING, Any, ClassVar, Self, dataclass_transform

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, model_validator

from jobtable.errors import DefinitionError
from jobtable.model import wire
from jobtable.model.codec import EntityCodec, PartCodec
from jobtable.model.construction import (
    AS_READ,
    UNDECLARED,
    AsRead,
    begin,
    private_of,
    put_as_read,
    put_undeclared,
    shallow_copy,
    without_forms,
)
from jobtable.model.declaration import Alias, Declaration, read_fields, refuse_shared_attributes
from jobtable.model.expressions import Attribute
from jobtable.model.pydantic_internals import ModelMetaclass, is_collecting_fields
from jobtable.model.schema import EntitySchema, FieldSchema
from jobtable.model.selection import BoundKey, Key
from jobtable.model.table import Table


def camel_case(name: str) -> str:
    """Convert a name: job_id becomes jobId."""
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(Field,))
class PartMeta(ModelMetaclass):
    """Tell the type checker that parts are immutable and constructed with keywords."""


class Record(BaseModel, frozen=True):  # noqa: PLW1641 - pydantic gives immutable classes their hash
    """Base of entities and parts: immutable, strict about unknown arguments, preserving undeclared attributes."""

    model_config = ConfigDict(
        extra="forbid",
        ignored_types=(Key, BoundKey),
        allow_inf_nan=False,
        ser_json_bytes="base64",
        val_json_bytes="base64",
    )
    _undeclared: dict[str, Any] | None = PrivateAttr(default=None)
    _as_read: dict[str, AsRead] | None = PrivateAttr(default=None)
    __choices__: ClassVar[Mapping[str, wire.EnumValue]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Accept the keywords of a class statement; __pydantic_init_subclass__ reads them once the fields are known."""
        super().__init_subclass__()

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        unknown = kwargs.keys() - ConfigDict.__annotations__.keys()
        if unknown:
            raise DefinitionError(f"{cls.__name__}: unknown class arguments: {', '.join(sorted(unknown))}")
        super().__pydantic_init_subclass__(**kwargs)
        # Pydantic would initialise the private attributes of a new instance once for every class that it descends from.
        if unwrap(cls.model_post_init) in (begin, Record.model_post_init):
            is_known = set(cls.__private_attributes__) == {UNDECLARED, AS_READ}
            cls.model_post_init = begin if is_known else Record.model_post_init  # type: ignore[method-assign]

    @model_validator(mode="before")
    @classmethod
    def _find_members_in_any_case(cls, values: Any) -> Any:
        if not cls.__choices__ or not isinstance(values, dict):
            return values
        found = {
            name: choice.find(values[name])
            for name, choice in cls.__choices__.items()
            if name in values and type(values[name]) is not choice.enum
        }
        return {**values, **found} if found else values

    def replace(self, **changes: Any) -> Self:
        """Return a copy with other values for some fields, validated as a whole; keep undeclared attributes."""
        values = {name: getattr(self, name) for name in type(self).model_fields}
        private = private_of(self)
        copied = type(self)(**{**values, **changes}).with_undeclared(private[UNDECLARED])
        put_as_read(copied, private[AS_READ] or {})  # the form of a value counts as long as the field has it
        return copied

    if not TYPE_CHECKING:  # which would miss that hash

        def __eq__(self, other: object) -> bool:
            """Whether the fields and the undeclared attributes are the same, in whatever form they were read."""
            if isinstance(other, Record) and (private_of(self)[AS_READ] or private_of(other)[AS_READ]):
                return BaseModel.__eq__(without_forms(self), without_forms(other))
            return super().__eq__(other)

    def __copy__(self) -> Self:
        return shallow_copy(self)

    def with_undeclared(self, attributes: dict[str, Any] | None) -> Self:
        """Return a copy with attributes, in wire form, that the class does not declare and writes back."""
        put_undeclared(self, attributes)
        return self


def _choices_of(fields: Mapping[str, FieldSchema]) -> dict[str, wire.EnumValue]:
    return {name: field.kind for name, field in fields.items() if isinstance(field.kind, wire.EnumValue)}


class Part(Record, metaclass=PartMeta):
    """A model nested in an entity; stored as a map."""

    __codec__: ClassVar[PartCodec]

    @classmethod
    def __pydantic_init_subclass__(cls, *, alias: Alias | None = None, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        fields = read_fields(cls, alias)
        refuse_shared_attributes(fields.values(), {})
        cls.__choices__ = _choices_of(fields)
        cls.__codec__ = PartCodec(cls, fields)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(Field,))
class EntityMeta(ModelMetaclass):
    """Tell the type checker that entities are immutable and constructed with keywords."""

    if not TYPE_CHECKING:  # which knows the fields itself

        def __getattr__(cls, name: str) -> Any:  # noqa: N805 - of a class
            try:
                return super().__getattr__(name)
            except AttributeError:
                raise AttributeError(f"{cls.__name__} has no field {name!r}", name=name, obj=cls) from None


class _FieldOfClass:
    """Makes `Job.status` the Attribute to build conditions and updates from; an instance has its value instead."""

    __slots__ = ("_attribute", "_owner", "is_inherited")

    def __init__(self, owner: type[Entity], attribute: Attribute[Any]) -> None:
        self._owner = owner
        self._attribute = attribute
        self.is_inherited = False
        """Whether a class derives from the owner, or is about to."""

    def __get__(self, instance: Entity | None, owner: type[Entity]) -> Attribute[Any]:
        # While a subclass is made, pydantic would take what it finds under a field's name for the field's default, and
        # in its parent for something else that a field of that name would hide.
        if instance is None and owner is self._owner and not (self.is_inherited and is_collecting_fields()):
            return self._attribute
        raise AttributeError


class _NoSchema:
    """Stands where a class without a table has no schema."""

    def __get__(self, instance: Entity | None, owner: type[Entity]) -> EntitySchema:
        raise DefinitionError(f"{owner.__name__} has no table; add table= to its class statement")


class Entity(Record, metaclass=EntityMeta):
    """One kind of item of a table: its docstring, its keys and its fields.

    `key` is the primary key; a Key with `index=` is a key in that index. If a table's key attributes are themselves
    fields, write no key. A class without `table=` is a base for others.
    """

    key: ClassVar[Key] = Key()
    by_type: ClassVar[Key]
    """All items of the type; there where the table has an index on its type attribute."""
    __schema__: ClassVar[EntitySchema] = _NoSchema()  # type: ignore[assignment]  # reads as one that is missing

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for base in cls.__bases__:
            for value in vars(base).values():
                if isinstance(value, _FieldOfClass):
                    value.is_inherited = True

    @classmethod
    def __pydantic_init_subclass__(
        cls,
        *,
        table: Table | None = None,
        type: str | None = None,  # noqa: A002 - reads best in the class statement
        envelope: str | None = None,
        alias: Alias | None = None,
        shares_keys_with: tuple[type[Entity], ...] = (),
        **kwargs: Any,
    ) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        if table is None:
            _refuse_entity_as_base(cls)
            return
        schema = Declaration(cls, table, type, envelope, alias, shares_keys_with).schema()
        object.__setattr__(schema, "codec", EntityCodec(schema))
        table.register(schema, {part.attribute: part.key_type for key in schema.keys for part in key.parts})
        cls.__schema__ = schema
        cls.__choices__ = _choices_of(schema.fields)
        for name, field in schema.fields.items():
            setattr(cls, name, _FieldOfClass(cls, Attribute(field)))
        for key in schema.keys:
            setattr(cls, key.name, BoundKey(cls, key))


def _refuse_entity_as_base(cls: type[Entity]) -> None:
    """Refuse a class that has its table, its keys and its codec from another one, which knows none of its fields."""
    for base in cls.__mro__:
        if "__schema__" in vars(base) and base is not Entity:
            raise DefinitionError(
                f"{cls.__name__} derives from {base.__name__} and would be stored as one, without its own fields; "
                "add table= and type= to its class statement, or derive both from a class without a table"
            )
