"""The keys of one entity: how generated code renders them from fields, and reads fields out of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any

from jobtable.errors import ValueRefusedError
from jobtable.model.attribute_access import Access
from jobtable.model.key_templates import KeyForm, Template, TemplatePart, escape, unescape
from jobtable.model.schema import EntitySchema, FieldSchema, KeyPart, KeySchema
from jobtable.model.source import Source

_MOST_PARTITION_BYTES = 2048
_MOST_SORT_BYTES = 1024


class KeyCodec:
    """Renders the keys of an entity, and writes the statements that do so in its encoder and decoder."""

    def __init__(self, schema: EntitySchema) -> None:
        self._schema = schema

    def renderer(self, parts: tuple[KeyPart, ...]) -> Callable[[Mapping[str, Any]], dict[str, dict[str, Any]]]:
        """A generated function that renders some attributes of a key, as `render_part` does one by one."""
        writer = Source()
        writer.line("def render(d):")
        with writer.inside("    try:"):
            sources = self._write_templates(parts, writer, {})
            one = writer.names.of(self.render_part, "render_part")
            for part in parts:
                if part.template is None:
                    sources[part.attribute] = f"{one}({writer.names.of(part, 'part')}, d)"
            pairs = (f"{part.attribute!r}: {sources[part.attribute]}" for part in parts)
            writer.line(f"    return {{{', '.join(pairs)}}}")
        writer.line(f"    except {writer.names.of(ValueRefusedError, 'error')}:")
        # The slow way names the key and the template in its error.
        slowly = writer.names.of(self._render_parts, "render_parts")
        writer.line(f"        return {slowly}({writer.names.of(parts, 'parts')}, d)")
        return writer.function("render")

    def _render_parts(self, parts: tuple[KeyPart, ...], values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        return {part.attribute: self.render_part(part, values) for part in parts}

    def render_part(self, part: KeyPart, values: Mapping[str, Any]) -> dict[str, Any]:
        try:
            if part.template is not None:
                text = part.template.render(values)
                _check_size(text, part.attribute, self._most_bytes[part.attribute])
                return {"S": text}
            if part.natural is not None:
                return self._encode_natural(part.natural, values[part.natural.name])
        except ValueRefusedError as error:
            raise ValueRefusedError(f"{self._schema.name}: {_refusal(part, values, error)}") from error
        return {"S": part.constant}

    def describe(self, item: Mapping[str, Any]) -> str:
        """The primary key of an item, for a message."""
        names = self._schema.table.primary
        return " ".join(f"{name}={next(iter(item[name].values()))!r}" for name in names if item.get(name))

    def write_primary(self, writer: Source, texts: dict[str, str]) -> dict[str, str]:
        """Write the statements that render the primary key; gives attribute -> source of its wire form.

        `texts` knows what is rendered already: whole templates, and the values of fields.
        """
        key = self._schema.primary
        sources = self._write_templates(key.parts, writer, texts)
        self._write_checks_of_naturals(key, writer)
        return sources

    def write_index(self, key: KeySchema, writer: Source, texts: dict[str, str]) -> None:
        """Write the statements that put the key of an index into `item`, unless one of its fields is None."""
        self._write_checks_of_naturals(key, writer)
        optional = [name for name in key.inputs if self._schema.fields[name].optional]
        if not optional:
            self._write_index_attributes(key, writer, texts)
            return
        with writer.inside(f"    if {' and '.join(f'd[{name!r}] is not None' for name in optional)}:"):
            writer.line("    pass")
            # A copy: what is rendered under this condition is not there without it.
            self._write_index_attributes(key, writer, dict(texts))

    def _write_index_attributes(self, key: KeySchema, writer: Source, texts: dict[str, str]) -> None:
        for attribute, source in self._write_templates(key.parts, writer, texts).items():
            writer.line(f"    item[{attribute!r}] = {source}")
        if len(key.partition) > 1 or len(key.sort) > 1:
            check = writer.names.of(self._check_total_size, "check_total")
            writer.line(f"    {check}({writer.names.of(key, 'key')}, d)")

    def _write_templates(self, parts: Iterable[KeyPart], writer: Source, texts: dict[str, str]) -> dict[str, str]:
        sources: dict[str, str] = {}
        check = writer.names.of(_check_size, "check_size")
        for part in parts:
            if part.template is not None:
                text = _write_text(part.template, writer, texts)
                most = self._most_bytes[part.attribute]
                writer.line(f"    if len({text}) > {most // 4}: {check}({text}, {part.attribute!r}, {most})")
                sources[part.attribute] = f'{{"S": {text}}}'
        return sources

    def _write_checks_of_naturals(self, key: KeySchema, writer: Source) -> None:
        """Write the checks of key attributes that are fields. DynamoDB looks at each, also where others are missing."""
        check = writer.names.of(self._encode_natural, "natural")
        for field in [part.natural for part in key.parts if part.natural and part.natural.kind.tag in ("S", "B")]:
            unless_none = f"d[{field.name!r}] is None or " if field.optional else ""
            writer.line(f"    {unless_none}{check}({writer.names.of(field, 'field')}, d[{field.name!r}])")

    def write_reading(self, writer: Source, access: Access) -> dict[str, str]:
        """Write the statements that read fields out of the primary key of `item`; gives field -> source of its value.

        Fields that stand as attributes as well are read from the key all the same: it is what the item is found by.
        `seen` is the partition of the item before: while it stays the same, its fields are not read again.
        """
        sources: dict[str, str] = {}
        for part in self._schema.primary.parts:
            if part.template is None:
                continue
            text = access.text(part.attribute)
            if part not in self._schema.primary.partition:
                sources |= _write_parsing(part.template, text, writer)
                continue
            with writer.inside(f"    if (partition := {text}) != seen:"):
                for name, source in _write_parsing(part.template, "partition", writer).items():
                    sources[name] = f"of_partition_{len(sources)}"
                    writer.line(f"    {sources[name]} = {source}")
                writer.line("    seen = partition")
        return sources

    def _encode_natural(self, field: FieldSchema, value: Any) -> dict[str, Any]:
        wire = field.kind.to_wire(value)
        if wire.get("S") == "" or wire.get("B") == "":
            raise ValueRefusedError("a key attribute cannot be empty")
        if isinstance(value, str):
            _check_size(value, field.attribute, self._most_bytes[field.attribute])
        return wire

    def _check_total_size(self, key: KeySchema, values: Mapping[str, Any]) -> None:
        """Refuse values of a key of several attributes that are too large together."""
        for parts, most in ((key.partition, _MOST_PARTITION_BYTES), (key.sort, _MOST_SORT_BYTES)):
            texts = [
                text for part in parts for text in self.render_part(part, values).values() if isinstance(text, str)
            ]
            size = sum(len(text.encode()) for text in texts)
            if size > most:
                names = ", ".join(part.attribute for part in parts)
                raise ValueRefusedError(
                    f"{key.pattern}: {names} have {size} bytes together; DynamoDB allows at most {most}"
                )

    @cached_property
    def _most_bytes(self) -> dict[str, int]:
        sizes: dict[str, int] = {}
        for key in self._schema.keys:
            sizes |= {part.attribute: _MOST_SORT_BYTES for part in key.sort}
            sizes |= {part.attribute: _MOST_PARTITION_BYTES for part in key.partition}
        return sizes


def _refusal(part: KeyPart, values: Mapping[str, Any], error: ValueRefusedError) -> str:
    """Why a key attribute cannot be made, with the field that is to blame where one is empty."""
    fields = () if part.template is None else part.template.fields
    empty = next((name for name in fields if values[name] == ""), None)
    if empty is None:
        return f"{part.attribute} ({part}): {error}"
    return f"{empty} is empty, but {part.attribute} ({part}) is built from it"


def _write_text(template: Template, writer: Source, texts: dict[str, str]) -> str:
    """Write the statements that render a template, as far as `texts` does not know it; gives the name of the text."""
    if template.text in texts:
        return texts[template.text]
    pieces = []
    for part in template.parts:
        if part.form is None:
            pieces.append(repr(part.literal))
            continue
        known = f"{part.field} {id(part.form.render)}"
        if known not in texts:
            texts[known] = f"r{len(writer.lines)}"
            writer.line(f"    {texts[known]} = {_value_source(part, part.form, writer)}")
        pieces.append(texts[known])
    texts[template.text] = f"k{len(writer.lines)}"
    writer.line(f"    {texts[template.text]} = {' + '.join(pieces)}")
    return texts[template.text]


def _value_source(part: TemplatePart, form: KeyForm, writer: Source) -> str:
    value = f"d[{part.field!r}]"
    render = writer.names.of(form.render, "render")
    if form.render is escape:
        return f"v if '#' not in (v := {value}) and '%' not in v and v else {render}(v)"
    if form.read is int and form.width is not None:
        return f"'%0{form.width}d' % v if 0 <= (v := {value}) < {10**form.width} else {render}(v)"
    return f"{render}({value})"


def _write_parsing(template: Template, text: str, writer: Source) -> dict[str, str]:
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


def _check_size(text: str, attribute: str, most_bytes: int) -> None:
    if len(text) <= most_bytes // 4:
        return
    size = len(text.encode())
    if size > most_bytes:
        raise ValueRefusedError(
            f"{attribute} would have {size} bytes, but DynamoDB allows {most_bytes}: {text[:60]!r}..."
        )
