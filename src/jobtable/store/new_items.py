"""What an item needs besides the changes of an update that makes it, where there was none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from jobtable.errors import ValueRefusedError
from jobtable.model.conditions import WireForm
from jobtable.model.expressions import UpdateForm
from jobtable.model.schema import EntitySchema, FieldSchema, KeyPart

_GIVING = ("set", "set_if_missing", "increment", "append", "add")
"""The changes after which an item has the field, whether it was there or not."""


class Additions(NamedTuple):
    """The attributes of a new item that follow from its primary key; one that is there has them as well."""

    type: Mapping[str, WireForm]
    stored: tuple[FieldSchema, ...]
    """The fields of the primary key that stand in the item, too."""
    render: Callable[[Mapping[str, Any]], dict[str, WireForm]]
    """The attributes of index keys that are made from the primary key alone."""

    def attributes(self, key_values: Mapping[str, Any]) -> dict[str, WireForm]:
        """All of them, by their names."""
        stored = {field.attribute: field.kind.to_wire(key_values[field.name]) for field in self.stored}
        return {**self.type, **stored, **self.render(key_values)}


def additions(schema: EntitySchema, forms: tuple[UpdateForm, ...]) -> Additions:
    """What a new item of these changes has besides them; ValueRefusedError if it would not be whole."""
    _refuse_places_inside(schema, forms)
    _refuse_missing(schema, forms)
    type_attribute = schema.table.type_attribute
    if type_attribute is None and all(form.action not in _GIVING for form in forms):
        # DynamoDB makes no item where an update sets nothing.
        raise ValueRefusedError(f"a new {schema.name} cannot be created only by removing something; set a field too")
    of_primary = [schema.fields[name] for name in schema.primary.inputs]
    return Additions(
        {type_attribute: {"S": schema.type_name}} if type_attribute else {},
        tuple(f for f in of_primary if not f.is_key_only and f.attribute not in schema.table.primary),
        schema.codec.renderer(_parts_from_primary(schema, forms)),
    )


def _refuse_places_inside(schema: EntitySchema, forms: tuple[UpdateForm, ...]) -> None:
    for form in forms:
        if form.steps:
            raise ValueRefusedError(f"{form} is inside a field that a new item may lack; set the whole field")
    for name in dict.fromkeys((*(form.field.name for form in forms), *schema.primary.inputs)):
        field = schema.fields[name]
        if field.envelope and not field.is_key_only:
            told = f"{schema.name}.{name} is inside {field.envelope}, which a new item lacks"
            raise ValueRefusedError(f"{told}; add the item, and update it if it already exists")


def _refuse_missing(schema: EntitySchema, forms: tuple[UpdateForm, ...]) -> None:
    for form in forms:
        if form.action == "increment" and form.field.default is None:
            raise ValueRefusedError(f"{form} has no default to start from in a new item; use add")
    given = {form.field.name for form in forms if form.action in _GIVING}.union(schema.primary.inputs)
    missing = [name for name, field in schema.fields.items() if name not in given and not _has_default(field)]
    if missing:
        pronoun = "it" if len(missing) == 1 else "them"
        raise ValueRefusedError(f"a new {schema.name} would lack {', '.join(missing)}; set {pronoun} too")


def _has_default(field: FieldSchema) -> bool:
    """Whether a field that the item lacks is the same each time that it is read."""
    is_made = field.info.default_factory is not None and field.default is None and not field.kind.empty_is_absent
    return field.may_be_missing and not is_made


def _parts_from_primary(schema: EntitySchema, forms: tuple[UpdateForm, ...]) -> tuple[KeyPart, ...]:
    """What the primary key gives to index keys. One that would be wrong in a new item is refused."""
    changed = {form.field.name for form in forms}
    found: list[KeyPart] = []
    for key in schema.indexes.values():
        others = set(key.inputs).difference(schema.primary.inputs)
        unknown = sorted(others - changed)
        # Without a value for one of its fields a new item is not in the index, and one that is there stays where it is.
        if unknown and others.isdisjoint(changed) and any(schema.fields[name].default is None for name in unknown):
            continue
        if unknown:
            told = f"{key.pattern} is built from {' and '.join(unknown)}; set it too, so that a new item has the key"
            raise ValueRefusedError(told)
        found += [part for part in key.templated if others.isdisjoint(part.inputs)]
    return tuple(found)
