"""Items that msgspec parses: JSON becomes records of what an entity declares, and no dicts.

That takes half the time, and generated code reads a record faster than a dict. msgspec comes with `jobtable[fast]`;
without it, and where an item has another shape, items are parsed into dicts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import GenericAlias
from typing import TYPE_CHECKING, Any

import msgspec

from jobtable.model import wire
from jobtable.model.attribute_access import Access, holder_of
from jobtable.model.schema import EntitySchema, FieldSchema
from jobtable.model.source import Source

if TYPE_CHECKING:
    from jobtable.model.entity import Part

if not issubclass(msgspec.DecodeError, ValueError):
    older = "msgspec is older than 0.21, and its errors are not those of an item of another shape"
    raise ImportError(older)  # noqa: TRY004 - who wants records takes it as if there were none


class RecordAccess(Access):
    """Items as records. A record is made of what the generated code has asked for, so it is asked for last."""

    def __init__(self) -> None:
        self._slots: dict[str, dict[str, tuple[Any, ...]]] = {"item": {}, "data": {}}

    def under(self, wire: str, tag: str) -> str:
        return f"{wire}.{tag}"

    def has(self, wire: str, tag: str) -> str:
        return f"{wire}.{tag} is not None"

    def part_decoder(self, part: type[Part]) -> Callable[[Any], Any]:
        _, decode = part.__codec__.of_records
        return decode

    def text(self, attribute: str) -> str:
        return f"item.{self._slot('item', attribute, _wire_record(wire.Text()))}.S"

    def envelope(self, attribute: str) -> str:
        return f"item.{self._slot('item', attribute, None)}.M"  # What it holds is not known yet.

    def required(self, field: FieldSchema) -> str:
        record = _wire_record(field.kind, is_optional=field.optional)
        return f"{holder_of(field)}.{self._slot(holder_of(field), field.attribute, record)}"

    def maybe(self, field: FieldSchema) -> str:
        record = _wire_record(field.kind, is_optional=field.optional)
        return f"{holder_of(field)}.{self._slot(holder_of(field), field.attribute, record | None, None)}"

    def write_more(self, writer: Source, attributes: frozenset[str]) -> None:
        writer.line("    more = None  # a record has no room for what is not declared")

    def write_more_inside(self, writer: Source, schema: EntitySchema) -> None:
        pass  # as above

    def record(self, attributes: Iterable[str], holder: str = "item") -> Any:
        """The record of an item or a part that may have these attributes."""
        slots = self._slots[holder]
        for attribute in attributes:
            if attribute not in slots:
                self._slot(holder, attribute, msgspec.Raw, msgspec.Raw())  # nobody reads it
        return _strict_record(slots.values(), {slot[0]: attribute for attribute, slot in slots.items()})

    def parser(self, schema: EntitySchema) -> Callable[[bytes], list[Any]]:
        """A function that parses a list of items of the declared shape; ValueError if one has another."""
        if schema.envelope is not None:
            inside = self.record(schema.attributes_inside, "data")
            name, *_ = self._slots["item"][schema.envelope]
            self._slots["item"][schema.envelope] = (name, _strict_record([("M", inside)]))
        return msgspec.json.Decoder(_list_of(self.record(schema.attributes))).decode

    def _slot(self, holder: str, attribute: str, *type_and_default: Any) -> str:
        slots = self._slots[holder]
        name = f"a{len(slots)}"
        slots[attribute] = (name, *type_and_default)
        return name


def _wire_record(kind: wire.WireType, *, is_optional: bool = False) -> Any:
    """The record of a wire form; a dict where its tags are not known before."""
    if isinstance(kind, wire.Nullable):
        return _wire_record(kind.inner, is_optional=True)
    tags = _tags_of(kind)
    if tags is None:
        return dict[str, Any]
    if is_optional:
        tags["NULL"] = bool
    if len(tags) == 1:
        return _strict_record(tags.items())
    return _strict_record((tag, content | None, None) for tag, content in tags.items())


def _tags_of(kind: wire.WireType) -> dict[str, Any] | None:
    """What may stand under which tag of a wire form; None where it can be anything."""
    match kind:
        case wire.Bool():
            return {"BOOL": bool}
        case wire.Scalar():
            return {kind.tag: str}
        case wire.Many():
            return {"L": _list_of(_wire_record(kind.inner))}
        case wire.Mapped():
            return {"M": GenericAlias(dict, (str, _wire_record(kind.inner)))}
        case wire.Distinct():
            return {f"{kind.inner.tag}S": list[str]}
        case wire.Nested():
            record, _ = kind.part.__codec__.of_records
            return {"M": record}
        case wire.Numbers():
            return {"L": _list_of(_wire_record(wire.Float())), "B": str}
        case _:
            return None


def _list_of(record: Any) -> GenericAlias:
    return GenericAlias(list, (record,))


def _strict_record(slots: Iterable[tuple[Any, ...]], attributes: dict[str, str] | None = None) -> Any:
    """A record of these slots, each with its name, its type, and its default where it may be missing."""
    # gc=False: a record has no way back to itself, so nobody needs to look for one.
    return msgspec.defstruct("Record", slots, rename=attributes, kw_only=True, forbid_unknown_fields=True, gc=False)
