"""Items that msgspec parses: JSON becomes records of just the attributes that an entity declares, and no dicts.

That takes half the time, and generated code reads a record faster than a dict. msgspec comes with `jobtable[fast]`;
without it, and where an item has another shape, items are parsed into dicts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from types import GenericAlias
from typing import Any

import msgspec

from jobtable.model.access import holder_of
from jobtable.model.schema import EntitySchema, FieldSchema
from jobtable.model.source import Names, Source
from jobtable.model.wire import Scalar


class RecordAccess:
    """Items as records. They are made of what the generated code has asked for, so `parser` is asked for last."""

    def __init__(self) -> None:
        self._slots: dict[str, dict[str, tuple[Any, ...]]] = {"item": {}, "data": {}}
        self._envelope: str | None = None

    def text(self, attribute: str) -> str:
        return f"item.{self._slot('item', attribute, _scalar('S', is_optional=False))}.S"

    def envelope(self, attribute: str) -> str:
        self._envelope = attribute
        return "item.envelope.M"

    def required(self, field: FieldSchema) -> str:
        return f"{holder_of(field)}.{self._slot(holder_of(field), field.attribute, _wire_type(field))}"

    def maybe(self, field: FieldSchema) -> str:
        return f"{holder_of(field)}.{self._slot(holder_of(field), field.attribute, _wire_type(field) | None, None)}"

    def is_null(self, field: FieldSchema, wire: str) -> str:
        return f"{wire}.{field.kind.tag} is None" if isinstance(field.kind, Scalar) else f"'NULL' in {wire}"

    def decode(self, field: FieldSchema, wire: str, names: Names) -> str:
        if isinstance(field.kind, Scalar):
            return field.kind.read(f"{wire}.{field.kind.tag}", names)
        return field.kind.decode(wire, names)

    def write_undeclared(self, writer: Source, schema: EntitySchema) -> None:
        writer.line("    more = None  # the parser refuses items that have more")

    def parser(self, schema: EntitySchema) -> Callable[[bytes], list[Any]]:
        """A function that parses a list of items of the declared shape; ValueError if one has another."""
        if self._envelope is not None:
            inside = self._record("data", schema.attributes_inside)
            self._slots["item"][self._envelope] = ("envelope", _strict_record([("M", inside)]))
        item = self._record("item", schema.attributes)
        return msgspec.json.Decoder(GenericAlias(list, (item,))).decode

    def _slot(self, holder: str, attribute: str, *type_and_default: Any) -> str:
        slots = self._slots[holder]
        name = f"a{len(slots)}"
        slots[attribute] = (name, *type_and_default)
        return name

    def _record(self, holder: str, attributes: Iterable[str]) -> Any:
        for attribute in attributes:
            if attribute not in self._slots[holder]:
                self._slot(holder, attribute, msgspec.Raw, msgspec.Raw())  # nobody reads it
        slots = self._slots[holder]
        return _strict_record(slots.values(), {slot[0]: attribute for attribute, slot in slots.items()})


def _wire_type(field: FieldSchema) -> Any:
    """The type of a field's wire form. Only that of a scalar is a record: the others read dicts."""
    return _scalar(field.kind.tag, is_optional=field.optional) if isinstance(field.kind, Scalar) else dict[str, Any]


@cache
def _scalar(tag: str, *, is_optional: bool) -> Any:
    """The record of a value under its tag, or of a NULL."""
    content = bool if tag == "BOOL" else str
    if is_optional:
        return _strict_record([(tag, content | None, None), ("NULL", bool, False)])
    return _strict_record([(tag, content)])


def _strict_record(slots: Iterable[tuple[Any, ...]], attributes: dict[str, str] | None = None) -> Any:
    """A record of these slots, each with its name, its type, and its default where it may be missing."""
    # gc=False: a record has no way back to itself, so nobody needs to look for one.
    return msgspec.defstruct("Record", slots, rename=attributes, kw_only=True, forbid_unknown_fields=True, gc=False)
