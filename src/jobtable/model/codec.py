"""One generated encoder and decoder for each entity and each part of one.

The generated functions assume the declared shape and do no lookups at run time. An item of another shape makes the
decoder fail, and then goes through the LooseReader, which either understands it or says which field is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pydantic_core import from_json

from jobtable.errors import ValueRefusedError
from jobtable.model.attribute_access import Access
from jobtable.model.construction import UNDECLARED, construct, copier
from jobtable.model.kept_entities import Memory
from jobtable.model.key_codec import KeyCodec
from jobtable.model.loose_reader import SHAPE_ERRORS, LooseReader, loose_values
from jobtable.model.schema import EntitySchema, FieldSchema
from jobtable.model.source import Source

if TYPE_CHECKING:
    from jobtable.model.entity import Part
    from jobtable.model.msgspec_records import RecordAccess


class PartCodec:
    """Encodes and decodes a model that is nested in an entity."""

    def __init__(self, cls: type[Part], fields: Mapping[str, FieldSchema]) -> None:
        self.cls = cls
        self.fields = fields
        writer = Source()
        writer.line("def encode(model):")
        writer.line("    d = model.__dict__")
        encode_fields(writer, fields.values(), "item", {})
        writer.line(f"    if (more := model.__pydantic_private__[{UNDECLARED!r}]):")
        writer.line("        item = {**more, **item}")
        writer.line("    return item")
        self.encode: Callable[[Any], dict[str, Any]] = writer.function("encode")
        self.decode: Callable[[dict[str, Any]], Any] = self._decoder(Access())
        self.copy: Callable[[Any], Any] = copier(cls, fields.values())

    @cached_property
    def of_records(self) -> tuple[Any, Callable[[Any], Any]]:
        """The record that msgspec makes of a part, and what decodes it."""
        access = _record_access()
        decode = self._decoder(access)
        return access.record(self._attributes), decode

    @property
    def _attributes(self) -> frozenset[str]:
        return frozenset(f.attribute for f in self.fields.values())

    def _decoder(self, access: Access) -> Callable[[Any], Any]:
        writer = Source()
        writer.line("def decode(item):")
        access.write_more(writer, self._attributes)
        decode_fields(writer, self.fields.values(), {}, access)
        construct(writer, self.cls)
        writer.line("    return self")
        return writer.function("decode")

    def loosen(self, attributes: Mapping[str, Any]) -> Any:
        """The values of a map of any shape, by field name, for pydantic to judge."""
        part = self.cls.model_validate(loose_values(self.fields.values(), attributes))
        more = {k: v for k, v in attributes.items() if k not in self._attributes}
        return part.with_undeclared(more) if more else part


class EntityCodec:
    """Encodes and decodes the items of an entity, and renders its keys."""

    def __init__(self, schema: EntitySchema) -> None:
        self.schema = schema
        self._keys = keys = KeyCodec(schema)
        self.renderer = keys.renderer
        self.describe_key = keys.describe
        self.encode: Callable[[Any], dict[str, dict[str, Any]]] = self._encoder()
        self._primary_key = keys.renderer(schema.primary.parts)
        self.decode_loosely = LooseReader(schema, keys).read
        self._decode_declared: Callable[[list[dict[str, Any]]], list[Any]] = self._decoder(Access())
        self.copy: Callable[[Any], Any] = copier(schema.cls, schema.fields.values())
        memory = Memory(self._decode_bodies, self.copy)
        self.decode_json: Callable[[bytes], Any] = memory.entity
        self.decode_all_json: Callable[[list[bytes]], list[Any]] = memory.entities

    def decode(self, item: dict[str, Any]) -> Any:
        """The entity of an item, or ItemShapeError."""
        try:
            return self._decode_declared([item])[0]
        except SHAPE_ERRORS:
            return self.decode_loosely(item)

    def decode_all(self, items: list[dict[str, Any]]) -> list[Any]:
        """The entities of items, or ItemShapeError if one of them has another shape."""
        try:
            return self._decode_declared(items)
        except SHAPE_ERRORS:
            return [self.decode(item) for item in items]

    def key_of(self, entity: Any) -> dict[str, dict[str, Any]]:
        return self._primary_key(entity.__dict__)

    def _encoder(self) -> Callable[[Any], dict[str, dict[str, Any]]]:
        writer = Source()
        writer.line("def encode(entity):")
        writer.line("    d = entity.__dict__")
        self.write_item(writer, [field for field in self.schema.fields.values() if not field.is_key_only])
        writer.line(f"    if (more := entity.__pydantic_private__[{UNDECLARED!r}]):")
        writer.line(f"        item = {writer.names.of(merge_undeclared, 'merge')}(item, more)")
        writer.line("    return item")
        return writer.function("encode")

    def write_item(self, writer: Source, stored: Sequence[FieldSchema]) -> None:
        """Write the statements that make `item` of `d`, the values of an entity: its keys, and the fields given."""
        schema = self.schema
        texts: dict[str, str] = {}
        head = self._keys.write_primary(writer, texts)
        if schema.table.type_attribute and schema.table.type_attribute not in head:
            head[schema.table.type_attribute] = f'{{"S": {schema.type_name!r}}}'
        outside = [f for f in stored if f.envelope is None]
        inside = [f for f in stored if f.envelope is not None]
        encode_fields(writer, outside, "item", head)
        if inside:
            encode_fields(writer, inside, "data", {})
            writer.line(f'    item[{inside[0].envelope!r}] = {{"M": data}}')
        for key in schema.indexes.values():
            self._keys.write_index(key, writer, texts)

    def _decoder(self, access: Access) -> Callable[[list[Any]], list[Any]]:
        """A generated function for several items: most of them are read together, and share their partition."""
        schema, writer = self.schema, Source()
        writer.line("def decode(items):")
        writer.line("    found = []")
        writer.line("    seen = ()  # equal to nothing that JSON can hold")
        with writer.inside("    for item in items:"):
            if schema.table.type_attribute:
                own_type = access.text(schema.table.type_attribute)
                writer.line(f"    if {own_type} != {schema.type_name!r}: raise ValueError")
            sources = self._keys.write_reading(writer, access)
            access.write_more(writer, schema.attributes)
            if schema.envelope:
                writer.line(f"    data = {access.envelope(schema.envelope)}")
                access.write_more_inside(writer, schema)
            decode_fields(writer, schema.fields.values(), sources, access)
            construct(writer, schema.cls)
            writer.line("    found.append(self)")
        writer.line("    return found")
        return writer.function("decode")

    def _decode_bodies(self, bodies: list[bytes]) -> list[Any]:
        """The entities of items that are JSON, all of which are parsed by one call."""
        body = b"[" + b",".join(bodies) + b"]"
        if self._read_records is not None:
            try:
                return self._read_records(body)
            except SHAPE_ERRORS:
                pass  # One of them has more, or another shape: dicts are read in any.
        return self.decode_all(from_json(body, cache_strings="keys"))

    @cached_property
    def _read_records(self) -> Callable[[bytes], list[Any]] | None:
        """Reads a list of items of the declared shape; None where msgspec is not installed, or has no such records."""
        try:
            access = _record_access()
        except ImportError:
            return None
        try:
            decode = self._decoder(access)
            parse = access.parser(self.schema)
        except ValueError:  # It takes no names with quotes, backslashes or control characters in them.
            return None
        return lambda body: decode(parse(body))

    def misfit_of(self, entity: Any) -> ValueRefusedError | None:
        """The error of an entity with a value that its field would not take; None if there is none."""
        for field in self.schema.fields.values():
            value = getattr(entity, field.name)
            try:
                accepted = field.accept(value)
                if type(accepted) is type(value):
                    continue
                told = f"{field.owner}.{field.name}: {value!r:.100} is not yet a {type(accepted).__name__}"
            except ValueRefusedError as error:
                told = str(error)
            return ValueRefusedError(f"{told}; model_copy and model_construct do not validate; use replace")
        return None

    def refusal_of(self, entity: Any, error: ValueRefusedError) -> ValueRefusedError:
        """The error of an entity that cannot be encoded, naming field and key, which generated code does not."""
        try:
            key = self.describe_key(self.key_of(entity))
            for index in self.schema.indexes.values():
                for part in index.parts:
                    needed = index.inputs if part.template else part.inputs
                    if all(getattr(entity, name) is not None for name in needed):
                        self._keys.render_part(part, entity.__dict__)
        except ValueRefusedError as of_key:
            return of_key
        for field in self.schema.fields.values():
            value = getattr(entity, field.name)
            try:
                if value is not None:
                    field.kind.to_wire(value)
            except ValueRefusedError as of_field:
                return ValueRefusedError(f"{self.schema.name} {key}: {field.name}: {of_field}")
        return error


def _record_access() -> RecordAccess:
    from jobtable.model.msgspec_records import RecordAccess  # noqa: PLC0415 - needs msgspec, which not every user has

    return RecordAccess()


def merge_undeclared(item: dict[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """An item with the attributes that the entity does not declare, also those inside its envelope."""
    merged = {**more, **item}
    for name in item.keys() & more.keys():
        if "M" in item[name] and "M" in more[name]:
            merged[name] = {"M": {**more[name]["M"], **item[name]["M"]}}
    return merged


# --- statements for fields


def encode_fields(writer: Source, fields: Iterable[FieldSchema], target: str, head: dict[str, str]) -> None:
    """Write the statements that put fields into the dict `target`; `head` goes in first."""
    sources = dict(head)
    later: list[FieldSchema] = []
    for field in fields:
        if (field.optional and not field.is_null_written) or field.kind.empty_is_absent:
            later.append(field)
        else:
            sources[field.attribute] = _encode_source(field, f"d[{field.name!r}]", writer)
    writer.line(f"    {target} = {{{', '.join(f'{k!r}: {v}' for k, v in sources.items())}}}")
    for field in later:
        test = "v" if field.kind.empty_is_absent else "v is not None"
        writer.line(f"    v = d[{field.name!r}]")
        writer.line(f"    if {test}: {target}[{field.attribute!r}] = {field.kind.encode('v', writer.names)}")


def _encode_source(field: FieldSchema, value: str, writer: Source) -> str:
    source = field.kind.encode(value, writer.names)
    return f'({{"NULL": True}} if {value} is None else {source})' if field.optional else source


def decode_fields(writer: Source, fields: Iterable[FieldSchema], sources: Mapping[str, str], access: Access) -> None:
    """Write the statement that makes the dict `values` of an instance; `sources` are known already."""
    pairs: dict[str, str] = {}
    for field in fields:
        if field.name in sources:
            pairs[field.name] = sources[field.name]
            continue
        decoded = _decode_source(field, "a", writer, access)
        if field.optional:
            if field.info.is_required() or field.info.default is None:
                is_none = f"(a := {access.maybe(field)}) is None or {field.kind.is_null('a', access)}"
            else:
                is_none = field.kind.is_null(f"(a := {access.required(field)})", access)
            pairs[field.name] = f"(None if {is_none} else {decoded})"
        elif field.kind.empty_is_absent:
            empty = "frozenset()" if getattr(field.kind, "frozen", False) else "set()"
            pairs[field.name] = f"({empty} if (a := {access.maybe(field)}) is None else {decoded})"
        elif not field.info.is_required() and field.info.default_factory is None:
            default = writer.names.of(field.info.default, "default")
            default = field.kind.copy(default, writer.names) or default
            pairs[field.name] = f"({default} if (a := {access.maybe(field)}) is None else {decoded})"
        else:
            pairs[field.name] = _decode_source(field, access.required(field), writer, access)
    writer.line(f"    values = {{{', '.join(f'{k!r}: {v}' for k, v in pairs.items())}}}")


def _decode_source(field: FieldSchema, wire: str, writer: Source, access: Access) -> str:
    decoded = field.kind.decode(wire, writer.names, access)
    return f"{writer.names.of(_as_it_stands(field), 'as_it_stands')}({decoded})" if field.is_validated else decoded


def _as_it_stands(field: FieldSchema) -> Callable[[Any], Any]:
    """A function that gives a value if the field takes it as it is; others go the slow way, which keeps both forms."""

    def as_it_stands(value: Any) -> Any:
        if field.accept(value) != value:
            raise ValueError(f"{field.name} is not stored in its canonical form")
        return value

    return as_it_stands
