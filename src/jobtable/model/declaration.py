"""From an entity's class to its schema; every fault of a declaration is found here, when the class is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from inspect import isfunction, signature
from typing import TYPE_CHECKING, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, PlainValidator, WrapValidator
from pydantic.fields import FieldInfo

from jobtable.errors import DefinitionError
from jobtable.model.annotations import Described, describe
from jobtable.model.key_templates import KeyForm, Template, key_form
from jobtable.model.schema import EntitySchema, FieldSchema, KeyPart, KeySchema
from jobtable.model.selection import BoundKey, Key
from jobtable.model.table import Table

if TYPE_CHECKING:
    from jobtable.model.entity import Entity

Alias = Callable[[str], str]


def read_fields(cls: type[BaseModel], alias: Alias | None, envelope: str | None = None) -> dict[str, FieldSchema]:
    """The fields of an entity or a part, with the names that they have in an item."""
    if not cls.__pydantic_complete__:
        raise DefinitionError(f"{cls.__name__}: declare the types of its fields before the class")
    if cls.model_config.get("extra") == "allow":
        told = "undeclared fields would not be stored; declare a Json field for them"
        raise DefinitionError(f"{cls.__name__}: extra='allow' is not supported; {told}")
    fields = {}
    for name, info in cls.model_fields.items():
        if info.alias is not None or info.validation_alias is not None:
            raise DefinitionError(f"{cls.__name__}.{name}: use Name, not an alias, to set its attribute name")
        validators = _validators_of(cls, name)
        described = describe(info.annotation, (*info.metadata, *validators), f"{cls.__name__}.{name}")
        named = described.name
        fields[name] = FieldSchema(
            owner=cls.__name__,
            name=name,
            attribute=named.name if named else alias(name) if alias else name,
            envelope=None if named and named.beside_envelope else envelope,
            kind=described.kind,
            optional=described.optional,
            is_null_written=described.is_null_written or _none_is_not_missing(described, info),
            is_key_only=False,
            is_stored=described.is_stored,
            is_constrained=described.is_constrained,
            is_validated=described.is_validated or bool(validators),
            info=info,
            validators=validators,
        )
        if isfunction(info.default):
            raise DefinitionError(f"{cls.__name__}.{name} clashes with a method of Entity; {_named_otherwise(name)}")
        if not fields[name].is_default_storable:
            advice = "declare it as optional" if info.default is None else "use a default of its type"
            raise DefinitionError(f"{cls.__name__}.{name} rejects its default, {info.default!r:.100}; {advice}")
    return fields


def _named_otherwise(name: str) -> str:
    return f'rename the field and keep its attribute name with Annotated[..., Name("{name}")]'


_VALIDATORS: dict[str, tuple[type[Any], int]] = {
    "before": (BeforeValidator, 1),
    "after": (AfterValidator, 1),
    "plain": (PlainValidator, 1),
    "wrap": (WrapValidator, 2),
}
"""By the mode of a @field_validator: the mark that does the same, and how many arguments its function takes."""


def _validators_of(cls: type[BaseModel], name: str) -> tuple[Any, ...]:
    """The @field_validators of a field as marks, without those that look at other fields as well."""
    found = []
    for decorator in cls.__pydantic_decorators__.field_validators.values():
        mark, arguments = _VALIDATORS[decorator.info.mode]
        if {name, "*"}.intersection(decorator.info.fields) and len(signature(decorator.func).parameters) == arguments:
            found.append(mark(decorator.func))
    return tuple(found)


def _none_is_not_missing(described: Described, info: FieldInfo) -> bool:
    """A missing attribute means the default; where that is something else, a None has to be written."""
    return described.optional and not info.is_required() and info.default is not None


@dataclass(frozen=True)
class Declaration:
    """The arguments of a class statement."""

    cls: type[Entity]
    table: Table
    type_name: str | None
    envelope: str | None
    alias: Alias | None
    shares_keys_with: tuple[type[Entity], ...]

    @property
    def name(self) -> str:
        return self.cls.__name__

    def schema(self) -> EntitySchema:
        """The schema, or a DefinitionError that names the field."""
        if self.table.type_attribute and self.type_name is None:
            told_apart = f"table {self.table.name} distinguishes its items by {self.table.type_attribute}"
            raise DefinitionError(f"{self.name}: {told_apart}; set type=")
        declared = self._declared_keys()
        for name in declared.keys() & self.cls.model_fields.keys():
            raise DefinitionError(f"{self.name}.{name} is both a field and a key; {_named_otherwise(name)}")
        fields = read_fields(self.cls, self.alias, self.envelope)
        fields = self._placed(fields, self._key("key", declared["key"], fields), self._natural_paths(declared))
        keys = {name: self._key(name, key, fields) for name, key in declared.items()}
        schema = EntitySchema(
            cls=self.cls,
            name=self.name,
            table=self.table,
            type_name=self.type_name or self.name,
            fields=fields,
            primary=keys.pop("key"),
            indexes=keys,
            shares_keys_with=self.shares_keys_with,
        )
        _check(schema)
        return schema

    def _declared_keys(self) -> dict[str, Key]:
        declared: dict[str, Key] = {}
        for base in reversed(self.cls.__mro__):
            for name, value in vars(base).items():
                if isinstance(value, Key | BoundKey):
                    declared[name] = value if isinstance(value, Key) else value.declared
        type_index = self.table.type_index
        if type_index and all(key.index != type_index.name for key in declared.values()):
            declared["by_type"] = Key(index=type_index.name)
        for name, key in declared.items():
            if (key.index is None) != (name == "key"):
                raise DefinitionError(
                    f"{self.name}.{name}: only the primary key is called key; other keys name an index"
                )
        indexes = [key.index for key in declared.values()]
        if len(set(indexes)) != len(indexes):
            raise DefinitionError(f"{self.name}: two keys use the same index")
        return declared

    def _key(self, name: str, key: Key, fields: Mapping[str, FieldSchema]) -> KeySchema:
        if key.index is not None and key.index not in self.table.indexes:
            there = f"its indexes are: {', '.join(self.table.indexes)}" if self.table.indexes else "it has none"
            raise DefinitionError(f"{self.name}.{name}: table {self.table.name} has no index {key.index}; {there}")
        index = self.table.indexes[key.index] if key.index is not None else None
        partition = index.partition if index else self.table.primary[:1]
        sort = index.sort if index else self.table.primary[1:]
        return KeySchema(
            owner=self.name,
            name=name,
            index=index,
            partition=self._key_parts(name, partition, key.partition, fields),
            sort=self._key_parts(name, sort, key.sort, fields),
        )

    def _key_parts(
        self, name: str, attributes: tuple[str, ...], templates: tuple[str, ...], fields: Mapping[str, FieldSchema]
    ) -> tuple[KeyPart, ...]:
        owner = f"{self.name}.{name}"
        if not templates:
            return tuple(self._natural_part(owner, attribute, fields) for attribute in attributes)
        if len(templates) != len(attributes):
            there = ", ".join(attributes) or "no sort attribute"
            raise DefinitionError(f"{owner}: it has {len(templates)} templates for {there}")
        forms = {field.name: _forms_of(field) for field in fields.values()}
        pairs = zip(attributes, templates, strict=True)
        return tuple(KeyPart(attribute, template=Template(text, forms, owner)) for attribute, text in pairs)

    def _natural_part(self, owner: str, attribute: str, fields: Mapping[str, FieldSchema]) -> KeyPart:
        if attribute == self.table.type_attribute:
            return KeyPart(attribute, constant=self.type_name)
        for field in fields.values():
            if field.path == (attribute,):
                return KeyPart(attribute, natural=field)
        raise DefinitionError(f"{owner}: key attribute {attribute!r} is not a field; declare it, or write a template")

    def _natural_paths(self, declared: Mapping[str, Key]) -> set[tuple[str, ...]]:
        """The attributes of indexes that are fields themselves, and not made from templates."""
        found: set[str] = set()
        for key in declared.values():
            if key.index in self.table.indexes:
                index = self.table.indexes[key.index]
                found.update(() if key.partition else index.partition, () if key.sort else index.sort)
        return {(attribute,) for attribute in found}

    def _placed(
        self, fields: Mapping[str, FieldSchema], primary: KeySchema, of_indexes: set[tuple[str, ...]]
    ) -> dict[str, FieldSchema]:
        """A field that can be read out of the primary key is not stored again, unless it is marked as Stored.

        It is as well where an index has it as its attribute: an item without that would not be in the index.
        """
        templated = {name for part in primary.parts if part.template for name in part.inputs}
        stored = {name for name, field in fields.items() if field.is_stored or field.path in of_indexes}
        return {name: replace(field, is_key_only=name in templated - stored) for name, field in fields.items()}


def _forms_of(field: FieldSchema) -> Callable[[str], KeyForm]:
    return lambda spec: key_form(field.kind, spec, f"{field.owner}.{field.name}")


def _check(schema: EntitySchema) -> None:
    for name in schema.primary.inputs:
        if schema.fields[name].optional:
            raise DefinitionError(f"{schema.name}.{name}: a field of the primary key cannot be None")
    naturals = (part.natural for key in schema.keys for part in key.parts if part.natural)
    for field in naturals:
        if field.is_null_written:
            raise DefinitionError(f"{schema.name}.{field.name}: a key attribute cannot be written as NULL")
        if field.kind.tag not in ("S", "N", "B"):
            raise DefinitionError(f"{schema.name}.{field.name}: a key attribute must be a string, a number or binary")
    for field in schema.fields.values():
        if field.path == (schema.table.ttl,) and field.kind.tag != "N":
            raise DefinitionError(
                f"{schema.name}.{field.name}: items expire by {schema.table.ttl}, which must be a "
                "number of seconds since 1970; declare it as int"
            )
    refuse_shared_attributes(
        [field for field in schema.fields.values() if not field.is_key_only],
        {(name,): f"{name} is derived from the keys" for name in schema.derived},
    )


def refuse_shared_attributes(fields: Iterable[FieldSchema], taken: dict[tuple[str, ...], str]) -> None:
    """Refuse fields of which one would be written over another one, or over what is `taken`."""
    # Those beside an envelope come first, so that one with the envelope's own name is in the way of those in it.
    for field in sorted(fields, key=lambda field: len(field.path)):
        if not all(field.path):
            raise DefinitionError(f"{field.owner}.{field.name}: the name of an attribute cannot be empty")
        clash = taken.get(field.path) or taken.get(field.path[:1])
        if clash:
            raise DefinitionError(f"{field.owner}.{field.name} cannot be the attribute {field.attribute!r}: {clash}")
        taken[field.path] = f"{field.name} is already {'.'.join(field.path)}"
