"""The item of an entity as JSON, and its size as DynamoDB measures it: one generated function for each entity.

A backend in the same process stores the JSON. As Python objects it needs few attributes: those that keys and times of
expiry are made of, and those whose values may have any shape. All others go from the entity into the text at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import groupby
from json.encoder import encode_basestring
from typing import Any, NoReturn

from pydantic_core import to_json

from jobtable.model import wire
from jobtable.model.construction import UNDECLARED
from jobtable.model.plain_values import map_key
from jobtable.model.schema import EntitySchema, FieldSchema
from jobtable.model.source import Names, Source
from jobtable.store.backend import AttributeValue, EncodedItem
from jobtable.store.sizes import CONTAINER_BYTES, number_size, utf8_length, value_size

_ANY = "?"
"""The kind of values that may have any shape: the backend looks at them, and counts them."""
_NUMBERS = (wire.Int, wire.Float, wire.DecimalNumber)
_LENGTHS: dict[type[wire.WireType], int] = {wire.Instant: 27, wire.Day: 10}
"""Texts that always have so many characters, none of which is escaped in JSON."""


@lru_cache(maxsize=4096)
def encoder_of(schema: EntitySchema) -> Callable[[Any], EncodedItem | None]:
    """The function for the entities of a class; it gives None for one with attributes that the class does not declare.

    Those were taken over from elsewhere, in whatever form.
    """
    stored = [field for field in schema.fields.values() if not field.is_key_only]
    unknown = tuple(dict.fromkeys(field.path[0] for field in stored if field.envelope or not _is_plain(field.kind)))
    looked_at = {*_looked_at(schema), *unknown}
    held = [field for field in stored if field.path[0] in looked_at]
    others = [field for field in stored if field not in held]
    source = Source()
    source.line("def encode(entity):")
    source.line(f"    if entity.__pydantic_private__[{UNDECLARED!r}]: return None")
    source.line("    d = entity.__dict__")
    schema.codec.write_item(source, held)
    fixed, sparse = _Part(source.names, "{"), list[tuple[str, _Part]]()
    for attribute, (kind, may_be_missing) in _held_attributes(schema, held).items():
        part = _Part(source.names) if may_be_missing else fixed
        part.begin(attribute, is_counted=kind != _ANY)
        part.add_wire_form(f"item[{attribute!r}]", kind)
        if may_be_missing:
            sparse.append((f"{attribute!r} in item", part))
    for field in others:
        part = _Part(source.names) if _may_be_missing(field) else fixed
        part.begin(field.attribute)
        part.add_value(field, f"d[{field.name!r}]")
        if _may_be_missing(field):
            test = "" if field.kind.empty_is_absent else " is not None"
            sparse.append((f"d[{field.name!r}]{test}", part))
    _write_body(source, fixed, sparse)
    left_out = frozenset(field.attribute for field in others)
    source.line(f"    encoded = {source.names.of(EncodedItem, 'EncodedItem')}(item)")
    source.line("    encoded.body, encoded.size = body, size")
    source.line(f"    encoded.unknown = {source.names.of(unknown, 'unknown')}")
    source.line(f"    encoded.left_out = {source.names.of(left_out, 'left_out')}")
    source.line("    return encoded")
    return source.function("encode")


def _looked_at(schema: EntitySchema) -> tuple[str, ...]:
    """The attributes that a backend looks at, if it has the table as it is declared."""
    table = schema.table
    of_indexes = [name for index in table.indexes.values() for name in (*index.partition, *index.sort)]
    return *table.primary, *of_indexes, *filter(None, [table.ttl])


def _held_attributes(schema: EntitySchema, held: list[FieldSchema]) -> dict[str, tuple[str, bool]]:
    """The attributes that the codec makes of the keys and of some fields: the kinds of their values, and whether an
    item may lack them.

    A kind is S, or "" for another one of a known shape, or _ANY.
    """
    found = {part.attribute: ("S", False) for part in schema.primary.parts}
    if schema.table.type_attribute:
        found[schema.table.type_attribute] = ("S", False)
    for field in held:
        kind = "" if field.envelope is None and _is_plain(field.kind) else _ANY
        found[field.path[0]] = (kind, field.envelope is None and _may_be_missing(field))
    for key in schema.indexes.values():
        is_sparse = any(schema.fields[name].optional for name in key.inputs)
        found |= {part.attribute: ("S", is_sparse) for part in key.templated}
    return found


def _may_be_missing(field: FieldSchema) -> bool:
    return (field.optional and not field.is_null_written) or field.kind.empty_is_absent


def _is_plain(kind: wire.WireType) -> bool:
    """Whether every value of a kind is valid, and not nested deeply."""
    if isinstance(kind, wire.Many | wire.Mapped | wire.Nullable):
        return not isinstance(kind.inner, wire.Distinct) and _is_plain(kind.inner)
    return not isinstance(kind, wire.Anything | wire.Nested)


class _Constant(str):
    """A text as it is; other pieces are source."""

    __slots__ = ()


class _Part:
    """Source for some attributes: the pieces of their JSON, the texts among their values, and the bytes of the rest."""

    def __init__(self, names: Names, before: str = ",") -> None:
        self.lines: list[str] = []
        """Assignments that come first."""
        self.pieces: list[str | _Constant] = []
        self.texts: list[str] = []
        self.sizes: list[str] = []
        self._names = names
        self._before = before

    def begin(self, attribute: str, *, is_counted: bool = True) -> None:
        """Write the name of an attribute; its value follows."""
        self.pieces.append(_Constant(f"{self._before}{encode_basestring(attribute)}:"))
        self._before = ","
        if is_counted:
            self.sizes.append(str(utf8_length(attribute)))

    def add_wire_form(self, wire_form: str, kind: str) -> None:
        """Write a value that is in wire form, of one of the kinds that `_held_attributes` tells apart."""
        if kind == "S":
            self._add_text(f"{wire_form}['S']")
            return
        self.pieces.append(f"{self._names.of(_json_of, 'json_of')}({wire_form})")
        if kind != _ANY:
            self.sizes.append(f"{self._names.of(value_size, 'value_size')}({wire_form})")

    def add_value(self, field: FieldSchema, value: str) -> None:
        """Write the value of a field, as its kind stands in JSON."""
        kind, names = field.kind, self._names
        value = self._assign(value)
        inner = getattr(kind, "inner", None)
        if field.optional and field.is_null_written:
            self.add_wire_form(
                self._assign(f'{{"NULL": True}} if {value} is None else {kind.encode(value, names)}'), ""
            )
        elif isinstance(kind, wire.Text):
            self._add_text(value)
        elif isinstance(kind, wire.EnumValue) and kind.tag == "S":
            self._add_text(self._assign(kind.write(value, names)))
        elif isinstance(kind, wire.Instant | wire.Day):
            self._add('{"S":"', kind.write(value, names), '"}', str(_LENGTHS[type(kind)]))
        elif isinstance(kind, _NUMBERS):
            number = self._assign(kind.write(value, names))
            self._add('{"N":"', number, '"}', f"{names.of(_number_size, 'number_size')}({number})")
        elif isinstance(kind, wire.Bool):
            known = f"'true' if {value} is True else 'false' if {value} is False"
            self._add('{"BOOL":', f"{known} else {names.of(_refuse_flag, 'refuse_flag')}({value})", "}", "1")
        elif isinstance(kind, wire.Many) and isinstance(inner, wire.Text):
            joined = f"""'{{"S":' + '}},{{"S":'.join(map({self._quote}, {value})) + '}}'"""
            self._add('{"L":[', f"{joined} if {value} else ''", "]}", f"{CONTAINER_BYTES} + len({value})")
            self.texts.append(f"*{value}")
        elif isinstance(kind, wire.Mapped) and isinstance(inner, wire.Text):
            key = f"{self._quote}(k if type(k) is str and k else {names.of(map_key, 'map_key')}(k))"
            pairs = f"""{key} + ':{{"S":' + {self._quote}(x) + '}}' for k, x in {value}.items()"""
            self._add('{"M":{', f"','.join([{pairs}])", "}}", f"{CONTAINER_BYTES} + len({value})")
            self.texts.append(f"*{value}, *{value}.values()")
        else:
            self.add_wire_form(self._assign(kind.encode(value, names)), "")

    def _assign(self, value: str) -> str:
        """Give a value a name, because it is needed more than once."""
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {value}")
        return name

    @property
    def _quote(self) -> str:
        return self._names.of(encode_basestring, "quote")

    def _add(self, before: str, value: str, after: str, size: str) -> None:
        self.pieces += [_Constant(before), value, _Constant(after)]
        self.sizes.append(size)

    def _add_text(self, text: str) -> None:
        self.pieces += [_Constant('{"S":'), f"{self._quote}({text})", _Constant("}")]
        self.texts.append(text)


def _write_body(source: Source, fixed: _Part, sparse: list[tuple[str, _Part]]) -> None:
    for line in fixed.lines:
        source.line(f"    {line}")
    source.line(f"    pieces = [{', '.join(_merged(fixed.pieces))}]")
    source.line(f"    texts = [{', '.join(fixed.texts)}]")
    source.line(f"    size = {' + '.join(fixed.sizes)}")
    for test, part in sparse:
        with source.inside(f"    if {test}:"):
            for line in part.lines:
                source.line(f"    {line}")
            source.line(f"    pieces += [{', '.join(_merged(part.pieces))}]")
            if part.texts:
                source.line(f"    texts += [{', '.join(part.texts)}]")
            if part.sizes:
                source.line(f"    size += {' + '.join(part.sizes)}")
    source.line("    text = ''.join(texts)")
    source.line(f"    size += len(text) if text.isascii() else {source.names.of(utf8_length, 'utf8')}(text)")
    source.line("    pieces.append('}')")
    source.line("    body = ''.join(pieces).encode()")


def _merged(pieces: list[str | _Constant]) -> Iterator[str]:
    """The sources of the pieces, constants that follow each other as one."""
    for kind, some in groupby(pieces, type):
        if kind is _Constant:
            yield repr("".join(some))
        else:
            yield from some


def _json_of(value: AttributeValue) -> str:
    return to_json(value).decode()


def _refuse_flag(value: object) -> NoReturn:
    raise TypeError(f"{value!r} is not a bool")


_number_size = lru_cache(maxsize=16384)(number_size)  # most numbers come again
