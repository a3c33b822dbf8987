"""One generated encoder and decoder for each entity and each part of one.

The generated functions assume the declared shape and do no lookups at run time. An item of another shape makes the
decoder fail, and then goes through pydantic, which either understands it or says which field is wrong.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from jobtable.errors import ItemShapeError, ValueRefusedError
from jobtable.model.instances import UNDECLARED, AsRead, construct, copier, put_as_read
from jobtable.model.memory import Memory
from jobtable.model.schema import EntitySchema, FieldSchema, KeyPart, KeySchema
from jobtable.model.source import Source
from jobtable.model.templates import Part as TemplatePart
from jobtable.model.templates import Template, escape, unescape

if TYPE_CHECKING:
    from jobtable.model.entity import Part

_SHAPE_ERRORS = (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, struct.error)
"""What the fast decoder raises where an item does not have the declared shape."""

MOST_BYTES = {"partition": 2048, "sort": 1024}


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
        self.decode: Callable[[dict[str, Any]], Any] = self._decoder()
        self.copy: Callable[[Any], Any] = copier(cls, fields.values())

    def _decoder(self) -> Callable[[dict[str, Any]], Any]:
        writer = Source()
        writer.line("def decode(item):")
        known = writer.names.of(frozenset(f.attribute for f in self.fields.values()), "known")
        writer.line(
            f"    more = None if {known}.issuperset(item) else {{k: item[k] for k in item if k not in {known}}}"
        )
        decode_fields(writer, self.fields.values(), {})
        construct(writer, self.cls)
        writer.line("    return self")
        return writer.function("decode")

    def loosen(self, attributes: Mapping[str, Any]) -> Any:
        """The values of a map of any shape, by field name, for pydantic to judge."""
        known = {f.attribute for f in self.fields.values()}
        part = self.cls.model_validate(loose_values(self.fields.values(), attributes))
        more = {k: v for k, v in attributes.items() if k not in known}
        return part.with_undeclared(more) if more else part


class EntityCodec:
    """Encodes and decodes the items of an entity, and renders its keys."""

    def __init__(self, schema: EntitySchema) -> None:
        self.schema = schema
        self.encode: Callable[[Any], dict[str, dict[str, Any]]] = self._encoder()
        self._primary_key = self.renderer(schema.primary.parts)
        self._decode_declared: Callable[[list[dict[str, Any]]], list[Any]] = self._decoder()
        self.copy: Callable[[Any], Any] = copier(schema.cls, schema.fields.values())
        memory = Memory(self.decode_all, self.copy)
        self.decode_json: Callable[[bytes], Any] = memory.entity
        self.decode_all_json: Callable[[list[bytes]], list[Any]] = memory.entities

    def decode(self, item: dict[str, Any]) -> Any:
        """The entity of an item, or ItemShapeError."""
        try:
            return self._decode_declared([item])[0]
        except _SHAPE_ERRORS:
            return self._decode_loosely(item)

    def decode_all(self, items: list[dict[str, Any]]) -> list[Any]:
        """The entities of items, or ItemShapeError if one of them has another shape."""
        try:
            return self._decode_declared(items)
        except _SHAPE_ERRORS:
            return [self.decode(item) for item in items]

    @staticmethod
    def has_more(entity: Any) -> bool:
        """Whether the item of an entity has attributes that its class does not declare."""
        return bool(entity.__pydantic_private__[UNDECLARED])

    def key_of(self, entity: Any) -> dict[str, dict[str, Any]]:
        """The primary key of an entity, in wire form."""
        return self._primary_key(entity.__dict__)

    def renderer(self, parts: tuple[KeyPart, ...]) -> Callable[[Mapping[str, Any]], dict[str, dict[str, Any]]]:
        """A generated function that renders some attributes of a key, as `render_part` does one by one."""
        writer = Source()
        writer.line("def render(d):")
        writer.line("    try:")
        sources: dict[str, str] = {}
        for part in parts:
            if part.template is not None:
                name = render_source(part.template, writer, {}, "        ")
                self._size_check(part, name, writer, "        ")
                sources[part.attribute] = f'{{"S": {name}}}'
            else:
                one = writer.names.of(self.render_part, "render_part")
                sources[part.attribute] = f"{one}({writer.names.of(part, 'part')}, d)"
        writer.line(f"        return {{{', '.join(f'{k!r}: {v}' for k, v in sources.items())}}}")
        writer.line(f"    except {writer.names.of(ValueRefusedError, 'error')}:")
        # The slow way names the key and the template in its error.
        slowly = writer.names.of(self._render_parts, "render_parts")
        writer.line(f"        return {slowly}({writer.names.of(parts, 'parts')}, d)")
        return writer.function("render")

    def _render_parts(self, parts: tuple[KeyPart, ...], values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        return {part.attribute: self.render_part(part, values) for part in parts}

    def _size_check(self, part: KeyPart, name: str, writer: Source, indent: str) -> None:
        most = self._most_bytes[part.attribute]
        check = writer.names.of(check_key_size, "check_size")
        writer.line(f"{indent}if len({name}) > {most // 4}: {check}({name}, {part.attribute!r}, {most})")

    def render_part(self, part: KeyPart, values: Mapping[str, Any]) -> dict[str, Any]:
        """One key attribute, in wire form."""
        try:
            if part.template is not None:
                text = part.template.render(values)
                check_key_size(text, part.attribute, self._most_bytes[part.attribute])
                return {"S": text}
            if part.natural is not None:
                return self.encode_natural(part.natural, values[part.natural.name])
        except ValueRefusedError as error:
            raise ValueRefusedError(f"{self.schema.name}: {part.attribute} ({part}): {error}") from error
        return {"S": part.constant}

    def encode_natural(self, field: FieldSchema, value: Any) -> dict[str, Any]:
        """A key attribute that is a field itself."""
        wire = field.kind.to_wire(value)
        if wire.get("S") == "" or wire.get("B") == "":
            raise ValueRefusedError("a key attribute is empty")
        if isinstance(value, str):
            check_key_size(value, field.attribute, self._most_bytes[field.attribute])
        return wire

    def check_total_size(self, key: KeySchema, values: Mapping[str, Any]) -> None:
        """Refuse values of a key of several attributes that are too large together."""
        for parts, most in ((key.partition, MOST_BYTES["partition"]), (key.sort, MOST_BYTES["sort"])):
            texts = [
                text for part in parts for text in self.render_part(part, values).values() if isinstance(text, str)
            ]
            size = sum(len(text.encode()) for text in texts)
            if size > most:
                names = ", ".join(part.attribute for part in parts)
                raise ValueRefusedError(
                    f"{key.pattern}: {names} have {size} bytes together, and DynamoDB allows {most}"
                )

    @cached_property
    def _most_bytes(self) -> dict[str, int]:
        sizes: dict[str, int] = {}
        for key in self.schema.keys:
            sizes |= {part.attribute: MOST_BYTES["sort"] for part in key.sort}
            sizes |= {part.attribute: MOST_BYTES["partition"] for part in key.partition}
        return sizes

    # --- generating -------------------------------------------------------------------------------------------------

    def _encoder(self) -> Callable[[Any], dict[str, dict[str, Any]]]:
        schema, writer = self.schema, Source()
        writer.line("def encode(entity):")
        writer.line("    d = entity.__dict__")
        texts: dict[str, str] = {}
        head = self._key_source(schema.primary, writer, texts)
        self._check_naturals(schema.primary, writer)
        if schema.table.type_attribute and schema.table.type_attribute not in head:
            head[schema.table.type_attribute] = f'{{"S": {schema.type_name!r}}}'
        stored = [f for f in schema.fields.values() if not f.is_key_only]
        outside = [f for f in stored if f.envelope is None]
        inside = [f for f in stored if f.envelope is not None]
        encode_fields(writer, outside, "item", head)
        if inside:
            encode_fields(writer, inside, "data", {})
            writer.line(f'    item[{inside[0].envelope!r}] = {{"M": data}}')
        for key in schema.indexes.values():
            self._index_source(key, writer, texts)
        writer.line(f"    if (more := entity.__pydantic_private__[{UNDECLARED!r}]):")
        writer.line(f"        item = {writer.names.of(merge_undeclared, 'merge')}(item, more)")
        writer.line("    return item")
        return writer.function("encode")

    def _key_source(
        self, key: KeySchema, writer: Source, texts: dict[str, str], indent: str = "    "
    ) -> dict[str, str]:
        """Write the statements that render a key's templates; gives attribute -> source of its wire form.

        `texts` knows what is rendered already: whole templates, and the values of fields.
        """
        sources: dict[str, str] = {}
        for part in key.parts:
            if part.template is not None:
                name = texts.get(part.template.text) or render_source(part.template, writer, texts, indent)
                self._size_check(part, name, writer, indent)
                sources[part.attribute] = f'{{"S": {name}}}'
        return sources

    def _check_naturals(self, key: KeySchema, writer: Source) -> None:
        """Write the checks of key attributes that are fields. DynamoDB looks at each, also where others are missing."""
        check = writer.names.of(self.encode_natural, "natural")
        for field in [part.natural for part in key.parts if part.natural and part.natural.kind.tag in ("S", "B")]:
            unless_none = f"d[{field.name!r}] is None or " if field.optional else ""
            writer.line(f"    {unless_none}{check}({writer.names.of(field, 'field')}, d[{field.name!r}])")

    def _index_source(self, key: KeySchema, writer: Source, texts: dict[str, str]) -> None:
        optional = [name for name in key.inputs if self.schema.fields[name].optional]
        indent = "    "
        self._check_naturals(key, writer)
        if optional:
            condition = " and ".join(f"d[{name!r}] is not None" for name in optional)
            writer.line(f"    if {condition}:")
            indent = "        "
            writer.line(f"{indent}pass")
        for attribute, source in self._key_source(key, writer, texts, indent).items():
            writer.line(f"{indent}item[{attribute!r}] = {source}")
        if len(key.partition) > 1 or len(key.sort) > 1:
            check = writer.names.of(self.check_total_size, "check_total")
            writer.line(f"{indent}{check}({writer.names.of(key, 'key')}, d)")

    def _decoder(self) -> Callable[[list[dict[str, Any]]], list[Any]]:
        """A generated function for several items: most of them are read together, and share their partition."""
        writer = Source()
        writer.line("def decode(items):")
        writer.line("    found = []")
        writer.line("    seen = ()  # equal to nothing that JSON can hold")
        with writer.inside("    for item in items:"):
            self._decode_one(writer)
            writer.line("    found.append(self)")
        writer.line("    return found")
        return writer.function("decode")

    def _decode_one(self, writer: Source) -> None:
        schema = self.schema
        if schema.table.type_attribute:
            writer.line(f'    if item[{schema.table.type_attribute!r}]["S"] != {schema.type_name!r}: raise ValueError')
        sources = self._key_sources(writer)
        stored = [f for f in schema.fields.values() if not f.is_key_only]
        envelope = next((f.envelope for f in stored if f.envelope), None)
        known = writer.names.of(self._known_attributes, "known")
        writer.line(
            f"    more = None if {known}.issuperset(item) else {{k: item[k] for k in item if k not in {known}}}"
        )
        if envelope:
            inner = writer.names.of(self._known_inside, "inner")
            writer.line(f'    data = item[{envelope!r}]["M"]')
            writer.line(f"    if not {inner}.issuperset(data):")
            writer.line(f"        rest = {{k: data[k] for k in data if k not in {inner}}}")
            writer.line(f'        more = {{**(more or {{}}), {envelope!r}: {{"M": rest}}}}')
        decode_fields(writer, schema.fields.values(), sources)
        construct(writer, schema.cls)

    def _key_sources(self, writer: Source) -> dict[str, str]:
        """Write the statements that read fields out of the primary key; gives field -> source of its value.

        Fields that stand as attributes as well are read from the key all the same: it is what the item is found by.
        """
        sources: dict[str, str] = {}
        for part in self.schema.primary.parts:
            if part.template is None:
                continue
            text = f'item[{part.attribute!r}]["S"]'
            if part not in self.schema.primary.partition:
                sources |= _parse_source(part.template, text, writer)
                continue
            with writer.inside(f"    if (partition := {text}) != seen:"):
                for name, source in _parse_source(part.template, "partition", writer).items():
                    sources[name] = f"of_partition_{len(sources)}"
                    writer.line(f"    {sources[name]} = {source}")
                writer.line("    seen = partition")
        return sources

    @cached_property
    def _known_attributes(self) -> frozenset[str]:
        fields = (f.path[0] for f in self.schema.fields.values() if not f.is_key_only)
        return frozenset((*fields, *self.schema.derived))

    @cached_property
    def _known_inside(self) -> frozenset[str]:
        return frozenset(f.attribute for f in self.schema.fields.values() if f.envelope and not f.is_key_only)

    # --- the slow way -----------------------------------------------------------------------------------------------

    def _decode_loosely(self, item: dict[str, Any]) -> Any:
        schema = self.schema
        try:
            self._check_type(item)
            values = self._loose_values(item)
            entity = schema.cls.model_validate(values)
        except ValidationError as error:
            details = "; ".join(
                f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors(include_url=False)[:3]
            )
            raise ItemShapeError(f"{schema.name} {self.describe_key(item)}: {details}") from error
        except _SHAPE_ERRORS as error:
            raise ItemShapeError(f"{schema.name} {self.describe_key(item)}: {error}") from error
        put_as_read(entity, self._other_forms(entity, item))
        return entity.with_undeclared(self._undeclared_in(item))

    def _other_forms(self, entity: Any, item: Mapping[str, Any]) -> dict[str, AsRead]:
        """The fields that the item has in another form than the one in which they are written."""
        forms = {}
        for field in self.schema.fields.values():
            holder = _holder(item, field.envelope)
            if not field.is_key_only and field.attribute in holder:
                value, stored = getattr(entity, field.name), holder[field.attribute]
                if stored != ({"NULL": True} if value is None else field.kind.to_wire(value)):
                    forms[field.name] = (value, stored)
        return forms

    def _check_type(self, item: Mapping[str, Any]) -> None:
        name = self.schema.table.type_attribute
        stored = item.get(name, {}).get("S", self.schema.type_name) if name else self.schema.type_name
        if stored != self.schema.type_name:
            raise ValueError(f"{name} is {stored!r}, not {self.schema.type_name!r}")

    def _loose_values(self, item: Mapping[str, Any]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for part in self.schema.primary.parts:
            if part.template is not None:
                if "S" not in item.get(part.attribute, {}):
                    raise ValueError(f"{part.attribute} is missing")
                values |= part.template.parse(item[part.attribute]["S"])
        stored = [field for field in self.schema.fields.values() if field.name not in values]
        for envelope in {field.envelope for field in stored}:
            holder = _holder(item, envelope)
            values |= loose_values([field for field in stored if field.envelope == envelope], holder)
        return values | self._told_by_indexes(item, values)

    def _told_by_indexes(self, item: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
        """Required fields without an attribute, which stand in the keys of the item's indexes all the same."""
        fields = self.schema.fields.values()
        missing = {field.name for field in fields if field.info.is_required() and field.name not in values}
        told: dict[str, Any] = {}
        for part in (part for key in self.schema.indexes.values() for part in key.parts):
            if part.template is not None and part.attribute in item and missing.intersection(part.template.fields):
                parsed = part.template.parse(item[part.attribute]["S"])
                told |= {name: value for name, value in parsed.items() if name in missing}
        return told

    def _undeclared_in(self, item: Mapping[str, Any]) -> dict[str, Any]:
        more = {k: v for k, v in item.items() if k not in self._known_attributes}
        for envelope in {f.envelope for f in self.schema.fields.values() if f.envelope}:
            data = _holder(item, envelope)
            rest = {k: v for k, v in data.items() if k not in self._known_inside}
            if rest:
                more[envelope] = {"M": rest}
        return more

    def refusal_of(self, entity: Any, error: ValueRefusedError) -> ValueRefusedError:
        """The error of an entity that cannot be encoded, naming field and key, which generated code does not."""
        try:
            key = self.describe_key(self.key_of(entity))
            for index in self.schema.indexes.values():
                for part in index.parts:
                    needed = index.inputs if part.template else part.inputs
                    if all(getattr(entity, name) is not None for name in needed):
                        self.render_part(part, entity.__dict__)
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

    def describe_key(self, item: Mapping[str, Any]) -> str:
        """The primary key of an item, for a message."""
        names = self.schema.table.primary
        return " ".join(f"{name}={next(iter(item[name].values()))!r}" for name in names if item.get(name))


def _holder(item: Mapping[str, Any], envelope: str | None) -> Mapping[str, Any]:
    """What has the attributes of fields: the item, or its envelope, without which all of them are missing."""
    if envelope is None:
        return item
    found = item.get(envelope, {"NULL": True})
    if "NULL" in found:
        return {}
    if "M" not in found:
        raise ValueError(f"{envelope} is no map")
    inside: Mapping[str, Any] = found["M"]
    return inside


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


def decode_fields(writer: Source, fields: Iterable[FieldSchema], sources: Mapping[str, str]) -> None:
    """Write the statement that makes the dict `values` of an instance; `sources` are known already."""
    pairs: dict[str, str] = {}
    for field in fields:
        if field.name in sources:
            pairs[field.name] = sources[field.name]
            continue
        item = "data" if field.envelope else "item"
        decoded = _decode_source(field, "a", writer)
        if field.optional:
            absent = f"{item}.get({field.attribute!r})"
            if field.info.is_required() or field.info.default is None:
                pairs[field.name] = f"(None if (a := {absent}) is None or 'NULL' in a else {decoded})"
            else:
                pairs[field.name] = f"(None if 'NULL' in (a := {item}[{field.attribute!r}]) else {decoded})"
        elif field.kind.empty_is_absent:
            empty = "frozenset()" if getattr(field.kind, "frozen", False) else "set()"
            pairs[field.name] = f"({empty} if (a := {item}.get({field.attribute!r})) is None else {decoded})"
        elif not field.info.is_required() and field.info.default_factory is None:
            default = writer.names.of(field.info.default, "default")
            default = field.kind.copy(default, writer.names) or default
            pairs[field.name] = f"({default} if (a := {item}.get({field.attribute!r})) is None else {decoded})"
        else:
            pairs[field.name] = _decode_source(field, f"{item}[{field.attribute!r}]", writer)
    writer.line(f"    values = {{{', '.join(f'{k!r}: {v}' for k, v in pairs.items())}}}")


def _decode_source(field: FieldSchema, wire_form: str, writer: Source) -> str:
    decoded = field.kind.decode(wire_form, writer.names)
    return f"{writer.names.of(_as_it_stands(field), 'as_it_stands')}({decoded})" if field.is_validated else decoded


def _as_it_stands(field: FieldSchema) -> Callable[[Any], Any]:
    """A function that gives a value if the field takes it as it is; others go the slow way, which keeps both forms."""

    def as_it_stands(value: Any) -> Any:
        if field.accept(value) != value:
            raise ValueError(f"{field.name} is not in the form in which it is written")
        return value

    return as_it_stands


def loose_values(fields: Iterable[FieldSchema], attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The values of fields in attributes of any shape, by field name, for pydantic to judge."""
    values: dict[str, Any] = {}
    for field in fields:
        if field.attribute in attributes and not _means_default(field, attributes[field.attribute]):
            try:
                values[field.name] = field.kind.loosen(attributes[field.attribute])
            except _SHAPE_ERRORS as error:
                raise ValueError(f"{field.name}: {error}") from error
        elif field.kind.empty_is_absent and not field.optional:
            values[field.name] = set()
        elif field.optional and (field.info.is_required() or field.info.default is None):
            values[field.name] = None  # said, not left to a default: the item has no value
    return values


def _means_default(field: FieldSchema, stored: Mapping[str, Any]) -> bool:
    """Whether an attribute says as little as a missing one: other programs write NULL where they have no value."""
    return "NULL" in stored and not field.optional and not field.info.is_required()


def render_source(template: Template, writer: Source, texts: dict[str, str], indent: str) -> str:
    """Write the statements that render a template; gives the name of the text."""
    always = indent == "    "
    pieces = []
    for part in template.parts:
        if part.form is None:
            pieces.append(repr(part.literal))
            continue
        known = f"{part.field} {id(part.form.render)}"
        if known not in texts:
            name = f"r{len(writer.lines)}"
            writer.line(f"{indent}{name} = {_render_source(part, writer)}")
            if not always:
                pieces.append(name)
                continue
            texts[known] = name
        pieces.append(texts[known])
    text = f"k{len(writer.lines)}"
    writer.line(f"{indent}{text} = {' + '.join(pieces)}")
    if always:
        texts[template.text] = text
    return text


def _render_source(part: TemplatePart, writer: Source) -> str:
    value = f"d[{part.field!r}]"
    if part.form is None:
        return repr(part.literal)
    render = writer.names.of(part.form.render, "render")
    if part.form.render is escape:
        return f"v if '#' not in (v := {value}) and '%' not in v and v else {render}(v)"
    return f"{render}({value})"


def _parse_source(template: Template, text: str, writer: Source) -> dict[str, str]:
    """Write statements that read a template's fields from `text`: a split where every part stands between two #."""
    segments = _segments(template)
    number = len(writer.lines)
    if segments is None:
        writer.line(f"    p{number} = {writer.names.of(template.parse, 'parse')}({text})")
        return {name: f"p{number}[{name!r}]" for name in template.fields}
    names = [f"p{number}_{i}" for i in range(len(segments))]
    writer.line(f"    {', '.join(names)}, = {text}.split('#')")
    sources = {}
    checks = []
    for name, segment in zip(names, segments, strict=True):
        if isinstance(segment, str):
            checks.append(f"{name} != {segment!r}")
            continue
        checks.append(f"not {name}")
        field, form = segment
        if form.read is int:
            checks.append(f"len({name}) != {form.width} or not ({name}.isascii() and {name}.isdigit())")
        read = "" if form.read is str else writer.names.of(form.read, "read")
        sources[field] = (
            f"{name} if '%' not in {name} else {read}({name})" if form.read is unescape else f"{read}({name})"
        )
    writer.line(f"    if {' or '.join(checks)}: raise ValueError")
    return sources


def _segments(template: Template) -> list[Any] | None:
    """The parts between the #s, where each is one literal or one field; None where one is a mixture."""
    segments: list[list[Any]] = [[]]
    for part in template.parts:
        if part.form is not None:
            segments[-1].append((part.field, part.form))
            continue
        first, *rest = part.literal.split("#")
        if first:
            segments[-1].append(first)
        segments += [[text] if text else [] for text in rest]
    return [segment[0] for segment in segments] if all(len(segment) == 1 for segment in segments) else None


def merge_undeclared(item: dict[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """An item with the attributes that the entity does not declare, also those inside its envelope."""
    merged = {**more, **item}
    for name in item.keys() & more.keys():
        if "M" in item[name] and "M" in more[name]:
            merged[name] = {"M": {**more[name]["M"], **item[name]["M"]}}
    return merged


def check_key_size(text: str, attribute: str, most_bytes: int) -> None:
    """Refuse a key that DynamoDB would refuse."""
    if len(text) <= most_bytes // 4:
        return
    size = len(text.encode())
    if size > most_bytes:
        raise ValueRefusedError(
            f"{attribute} would have {size} bytes, but DynamoDB allows {most_bytes}: {text[:60]!r}..."
        )
