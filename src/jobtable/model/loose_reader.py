"""Items that do not have the declared shape: read with the help of pydantic, or refused by the field that is wrong."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from jobtable.errors import ItemShapeError
from jobtable.model.construction import AsRead, put_as_read
from jobtable.model.key_codec import KeyCodec
from jobtable.model.schema import EntitySchema, FieldSchema

SHAPE_ERRORS = (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, struct.error)
"""What a generated decoder raises where an item does not have the declared shape."""


class LooseReader:
    """Reads items of an entity one by one, whatever their shape."""

    def __init__(self, schema: EntitySchema, keys: KeyCodec) -> None:
        self._schema = schema
        self._keys = keys

    def read(self, item: dict[str, Any]) -> Any:
        """The entity of an item, or ItemShapeError that names the key and the field."""
        schema = self._schema
        try:
            self._check_type(item)
            values = self._loose_values(item)
            entity = schema.cls.model_validate(values)
            put_as_read(entity, self._other_forms(entity, item))
            return entity.with_undeclared(self._undeclared_in(item))
        except ValidationError as error:
            details = "; ".join(
                f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors(include_url=False)[:3]
            )
            raise ItemShapeError(f"{schema.name} {self._keys.describe(item)}: {details}") from error
        except SHAPE_ERRORS as error:
            raise ItemShapeError(f"{schema.name} {self._keys.describe(item)}: {error}") from error

    def _other_forms(self, entity: Any, item: Mapping[str, Any]) -> dict[str, AsRead]:
        """The fields that the item has in another form than the one in which they are written."""
        forms = {}
        for field in self._schema.fields.values():
            holder = _holder(item, field.envelope)
            if not field.is_key_only and field.attribute in holder:
                value, stored = getattr(entity, field.name), holder[field.attribute]
                if stored != ({"NULL": True} if value is None else field.kind.to_wire(value)):
                    forms[field.name] = (value, stored)
        return forms

    def _check_type(self, item: Mapping[str, Any]) -> None:
        name = self._schema.table.type_attribute
        stored = item.get(name, {}).get("S", self._schema.type_name) if name else self._schema.type_name
        if stored != self._schema.type_name:
            raise ValueError(f"{name} is {stored!r}, not {self._schema.type_name!r}")

    def _loose_values(self, item: Mapping[str, Any]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for part in self._schema.primary.parts:
            if part.template is not None:
                if "S" not in item.get(part.attribute, {}):
                    raise ValueError(f"{part.attribute} is missing")
                values |= part.template.parse(item[part.attribute]["S"])
        stored = [field for field in self._schema.fields.values() if field.name not in values]
        for envelope in {field.envelope for field in stored}:
            holder = _holder(item, envelope)
            values |= loose_values([field for field in stored if field.envelope == envelope], holder)
        return values | self._told_by_indexes(item, values)

    def _told_by_indexes(self, item: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
        """Required fields without an attribute, which stand in the keys of the item's indexes all the same."""
        fields = self._schema.fields.values()
        missing = {field.name for field in fields if field.info.is_required() and field.name not in values}
        told: dict[str, Any] = {}
        for part in (part for key in self._schema.indexes.values() for part in key.parts):
            if part.template is not None and part.attribute in item and missing.intersection(part.template.fields):
                parsed = part.template.parse(item[part.attribute]["S"])
                told |= {name: value for name, value in parsed.items() if name in missing}
        return told

    def _undeclared_in(self, item: Mapping[str, Any]) -> dict[str, Any]:
        more = {k: v for k, v in item.items() if k not in self._schema.attributes}
        for envelope in {f.envelope for f in self._schema.fields.values() if f.envelope}:
            data = _holder(item, envelope)
            rest = {k: v for k, v in data.items() if k not in self._schema.attributes_inside}
            if rest:
                more[envelope] = {"M": rest}
        return more


def _holder(item: Mapping[str, Any], envelope: str | None) -> Mapping[str, Any]:
    """What has the attributes of fields: the item, or its envelope, without which all of them are missing."""
    if envelope is None:
        return item
    found = item.get(envelope, {"NULL": True})
    if "NULL" in found:
        return {}
    if "M" not in found:
        raise ValueError(f"{envelope} is not a map")
    inside: Mapping[str, Any] = found["M"]
    return inside


def loose_values(fields: Iterable[FieldSchema], attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The values of fields in attributes of any shape, by field name, for pydantic to judge."""
    values: dict[str, Any] = {}
    for field in fields:
        if field.attribute in attributes and not _means_default(field, attributes[field.attribute]):
            try:
                values[field.name] = field.kind.loosen(attributes[field.attribute])
            except SHAPE_ERRORS as error:
                raise ValueError(f"{field.name}: {error}") from error
        elif field.kind.empty_is_absent and not field.optional:
            values[field.name] = set()
        elif field.optional and (field.info.is_required() or field.info.default is None):
            values[field.name] = None  # given, and not left to a default: the item has no value
    return values


def _means_default(field: FieldSchema, stored: Mapping[str, Any]) -> bool:
    """Whether an attribute says as little as a missing one: other programs write NULL where they have no value."""
    return "NULL" in stored and not field.optional and not field.info.is_required()
