"""How each field type stands in an item.

A WireType writes the Python source of its conversion into the codec that is generated for an entity, so that reading
or writing an item is one function without lookups. `loosen` is the slow way back, for items of another shape.
"""

from __future__ import annotations

import base64
import struct
from abc import ABC, abstractmethod
from binascii import a2b_base64
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from jobtable.errors import DefinitionError, ValueRefusedError
from jobtable.model.fields import PackedFloats, utc_text
from jobtable.model.plain_values import (
    MOST_DIGITS,
    ORDERS,
    bytes_text,
    decimal_text,
    float_text,
    int_text,
    map_key,
    plain,
    wire_form,
)
from jobtable.model.source import Names, Source

if TYPE_CHECKING:
    from jobtable.model.attribute_access import Access
    from jobtable.model.entity import Part


class WireType(ABC):
    """One kind of attribute value."""

    tag: str = ""
    """Under which tag a scalar stands; the others have none of their own that a key could have."""
    empty_is_absent: ClassVar[bool] = False

    @abstractmethod
    def encode(self, value: str, names: Names) -> str:
        """The source of an expression that turns the Python value `value` into its wire form."""

    @abstractmethod
    def decode(self, wire: str, names: Names, access: Access) -> str:
        """The source of an expression that turns the wire form `wire` into the Python value."""

    def is_null(self, wire: str, access: Access) -> str:
        """The source of the test whether a wire form that may be NULL is."""
        return access.has(wire, "NULL")

    def loosen(self, wire: Mapping[str, Any]) -> Any:
        """The Python value for any wire form, for pydantic to judge."""
        return plain(wire)

    def copy(self, value: str, names: Names) -> str | None:
        """The source of an expression that copies the Python value `value`; None where it cannot be changed."""
        return None

    @cached_property
    def to_wire(self) -> Callable[[Any], dict[str, Any]]:
        """A function that turns one value into its wire form."""
        source = Source()
        source.line("def encode(value):")
        source.line(f"    return {self.encode('value', source.names)}")
        return source.function("encode")


class Scalar(WireType):
    """One text or flag under one tag. The defaults are those of text."""

    tag: str = "S"

    def write(self, value: str, names: Names) -> str:
        """The source of an expression that turns the Python value `value` into what stands under the tag."""
        return value

    def read(self, content: str, names: Names) -> str:
        """The source of an expression that turns what stands under the tag into the Python value."""
        return content

    def encode(self, value: str, names: Names) -> str:
        return f'{{"{self.tag}": {self.write(value, names)}}}'

    def decode(self, wire: str, names: Names, access: Access) -> str:
        return self.read(access.under(wire, self.tag), names)


class Text(Scalar):
    """Text as it is."""


class UuidText(Text):
    """A UUID's canonical text."""


class Bool(Scalar):
    tag = "BOOL"


class Int(Scalar):
    tag = "N"

    def write(self, value: str, names: Names) -> str:
        small = f"{-(10**MOST_DIGITS)} < (n := {value}) < {10**MOST_DIGITS}"
        return f"str(n) if {small} else {names.of(int_text, 'int_text')}(n)"

    def read(self, content: str, names: Names) -> str:
        return f"int({content})"


class Float(Scalar):
    tag = "N"

    def write(self, value: str, names: Names) -> str:
        return f"{names.of(float_text, 'float_text')}({value})"

    def read(self, content: str, names: Names) -> str:
        return f"float({content})"


class DecimalNumber(Scalar):
    tag = "N"

    def write(self, value: str, names: Names) -> str:
        return f"{names.of(decimal_text, 'decimal_text')}({value})"

    def read(self, content: str, names: Names) -> str:
        return f"{names.of(Decimal, 'Decimal')}({content})"


class Binary(Scalar):
    tag = "B"

    def write(self, value: str, names: Names) -> str:
        return f"{names.of(bytes_text, 'bytes_text')}({value})"

    def read(self, content: str, names: Names) -> str:
        return f"{names.of(a2b_base64, 'a2b')}({content})"


class Instant(Scalar):
    def write(self, value: str, names: Names) -> str:
        return f"{names.of(utc_text, 'utc_text')}({value})"

    def read(self, content: str, names: Names) -> str:
        return f"{names.of(read_timestamp, 'read_timestamp')}({content})"


class Day(Scalar):
    def write(self, value: str, names: Names) -> str:
        return f"{value}.isoformat()"

    def read(self, content: str, names: Names) -> str:
        return f"{names.of(date.fromisoformat, 'read_date')}({content})"


@dataclass
class EnumValue(Scalar):
    """An enum, stored by value."""

    enum: type[Enum]

    def __post_init__(self) -> None:
        kinds = {type(member.value) for member in self.enum}
        if len(kinds) > 1 or not kinds <= {int, str}:
            raise DefinitionError(
                f"{self.enum.__name__}: the values of a stored enum must be all strings or all integers"
            )
        self.tag = "N" if int in kinds else "S"
        self._by_wire = {str(member.value): member for member in self.enum}
        folded = [text.casefold() for text in self._by_wire]
        pairs = zip(folded, self._by_wire.values(), strict=True)
        self._by_folded = {text: member for text, member in pairs if folded.count(text) == 1}

    def find(self, given: Any) -> Any:
        """The member for a text as it stands, or in any case if that is one; the rest is left to pydantic to judge."""
        if not isinstance(given, str):
            return given
        return self._by_wire[given] if given in self._by_wire else self._by_folded.get(given.casefold(), given)

    def write(self, value: str, names: Names) -> str:
        return f"str({value}.value)" if self.tag == "N" else f"{value}.value"

    def read(self, content: str, names: Names) -> str:
        return f"{names.of(self._by_wire, self.enum.__name__)}[{content}]"


@dataclass
class Many(WireType):
    """A list."""

    inner: WireType

    def encode(self, value: str, names: Names) -> str:
        each = f"x{len(value)}"
        return f'{{"L": [{self.inner.encode(each, names)} for {each} in {value}]}}'

    def decode(self, wire: str, names: Names, access: Access) -> str:
        each = f"x{len(wire)}"
        return f"[{self.inner.decode(each, names, access)} for {each} in {access.under(wire, 'L')}]"

    def loosen(self, wire: Mapping[str, Any]) -> Any:
        return [self.inner.loosen(each) for each in wire["L"]] if "L" in wire else plain(wire)

    def copy(self, value: str, names: Names) -> str | None:
        each = f"x{len(value)}"
        copied = self.inner.copy(each, names)
        return f"[{copied} for {each} in {value}]" if copied else f"{value}.copy()"


@dataclass
class Mapped(WireType):
    """A map from text to values of one type."""

    inner: WireType

    def encode(self, value: str, names: Names) -> str:
        key, each = f"k{len(value)}", f"x{len(value)}"
        checked = f"{key} if type({key}) is str and {key} else {names.of(map_key, 'map_key')}({key})"
        pair = f"{checked}: {self.inner.encode(each, names)}"
        return f'{{"M": {{{pair} for {key}, {each} in {value}.items()}}}}'

    def decode(self, wire: str, names: Names, access: Access) -> str:
        key, each = f"k{len(wire)}", f"x{len(wire)}"
        pairs = f"{access.under(wire, 'M')}.items()"
        return f"{{{key}: {self.inner.decode(each, names, access)} for {key}, {each} in {pairs}}}"

    def loosen(self, wire: Mapping[str, Any]) -> Any:
        return {k: self.inner.loosen(each) for k, each in wire["M"].items()} if "M" in wire else plain(wire)

    def copy(self, value: str, names: Names) -> str | None:
        key, each = f"k{len(value)}", f"x{len(value)}"
        copied = self.inner.copy(each, names)
        return f"{{{key}: {copied} for {key}, {each} in {value}.items()}}" if copied else f"{value}.copy()"


@dataclass
class Distinct(WireType):
    """A set of texts, numbers or binaries. DynamoDB has no empty set: an empty one is left out of the item."""

    inner: Scalar
    frozen: bool
    is_element: bool = False
    """Whether it stands in a list or a map, which cannot leave it out."""
    empty_is_absent: ClassVar[bool] = True

    def encode(self, value: str, names: Names) -> str:
        tag = self.inner.tag
        if self.is_element:
            value = f"{names.of(_not_empty, 'not_empty')}({value})"
        order = names.of(ORDERS[tag], "order")
        return f'{{"{tag}S": sorted([{self.inner.write("x", names)} for x in {value}], key={order})}}'

    def decode(self, wire: str, names: Names, access: Access) -> str:
        elements = f"[{self.inner.read('x', names)} for x in {access.under(wire, f'{self.inner.tag}S')}]"
        return f"{'frozenset' if self.frozen else 'set'}({elements})"

    def copy(self, value: str, names: Names) -> str | None:
        return None if self.frozen else f"{value}.copy()"


def _not_empty(values: set[Any] | frozenset[Any]) -> set[Any] | frozenset[Any]:
    if not values:
        raise ValueRefusedError("DynamoDB has no empty set; a set inside a list or a map must have an element")
    return values


@dataclass
class Nullable(WireType):
    """An optional element of a list or map, or an optional field that is written as NULL."""

    inner: WireType

    def encode(self, value: str, names: Names) -> str:
        return f'({{"NULL": True}} if {value} is None else {self.inner.encode(value, names)})'

    def decode(self, wire: str, names: Names, access: Access) -> str:
        return f"(None if {self.inner.is_null(wire, access)} else {self.inner.decode(wire, names, access)})"

    def loosen(self, wire: Mapping[str, Any]) -> Any:
        return None if "NULL" in wire else self.inner.loosen(wire)

    def copy(self, value: str, names: Names) -> str | None:
        copied = self.inner.copy(value, names)
        return copied and f"(None if {value} is None else {copied})"


@dataclass
class Nested(WireType):
    """A Part of an entity, stored as a map."""

    part: type[Part]

    def encode(self, value: str, names: Names) -> str:
        return f'{{"M": {names.of(self.part.__codec__.encode, "encode_part")}({value})}}'

    def decode(self, wire: str, names: Names, access: Access) -> str:
        return f"{names.of(access.part_decoder(self.part), 'decode_part')}({access.under(wire, 'M')})"

    def loosen(self, wire: Mapping[str, Any]) -> Any:
        return self.part.__codec__.loosen(wire["M"]) if "M" in wire else plain(wire)

    def copy(self, value: str, names: Names) -> str | None:
        return f"{names.of(self.part.__codec__.copy, 'copy_part')}({value})"


class Numbers(WireType):
    """A vector as a list of numbers; a packed one stays packed."""

    def encode(self, value: str, names: Names) -> str:
        text = names.of(float_text, "float_text")
        packed = f'{{"B": {names.of(pack_vector, "pack_vector")}({value})}}'
        is_packed = f"type({value}) is {names.of(PackedFloats, 'PackedFloats')}"
        return f'({packed} if {is_packed} else {{"L": [{{"N": {text}(x)}} for x in {value}]}})'

    def decode(self, wire: str, names: Names, access: Access) -> str:
        unpacked = f"{names.of(unpack_vector, 'unpack_vector')}({access.under(wire, 'B')})"
        listed = f"[float({access.under('x', 'N')}) for x in {access.under(wire, 'L')}]"
        return f"({unpacked} if {access.has(wire, 'B')} else {listed})"

    def loosen(self, wire: Mapping[str, Any]) -> Any:
        return unpack_vector(wire["B"]) if "B" in wire else plain(wire)

    def copy(self, value: str, names: Names) -> str | None:
        return f"type({value})({value})"  # a packed one stays packed


class PackedNumbers(Numbers):
    """A vector as packed float32; a list of numbers is read as well."""

    def encode(self, value: str, names: Names) -> str:
        return f'{{"B": {names.of(pack_vector, "pack_vector")}({value})}}'


class Anything(WireType):
    """Any value that DynamoDB can hold."""

    def encode(self, value: str, names: Names) -> str:
        return f"{names.of(wire_form, 'wire_form')}({value})"

    def decode(self, wire: str, names: Names, access: Access) -> str:
        return f"{names.of(plain, 'plain')}({wire})"

    def is_null(self, wire: str, access: Access) -> str:
        return f"'NULL' in {wire}"  # It has no form that is known before, and stays a dict.

    def copy(self, value: str, names: Names) -> str | None:
        return f"{names.of(deepcopy, 'deepcopy')}({value})"


def read_timestamp(text: str) -> datetime:
    """A time in the canonical form, and in no other of the ISO 8601 forms that have its length."""
    if len(text) == 27 and text[26] == "Z" and text[19] == "." and text[10] == "T" and text[5] != "W":
        return datetime.fromisoformat(text)
    raise ValueError(f"{text!r} is not in the form 2025-11-01T20:30:00.000000Z")


_NEGATIVE_ZERO = struct.pack("<f", -0.0)


def pack_vector(numbers: list[float]) -> str:
    """Floats as little-endian float32, base64."""
    form = f"<{len(numbers)}f"
    try:
        packed = struct.pack(form, *numbers)
    except OverflowError as error:
        raise ValueRefusedError("a number in the vector does not fit a 32-bit float; store it as Vector") from error
    if _NEGATIVE_ZERO in packed:  # It equals 0 in Python, and DynamoDB compares bytes.
        packed = struct.pack(form, *[number + 0.0 for number in struct.unpack(form, packed)])
    return bytes_text(packed)


def unpack_vector(packed: str) -> list[float]:
    numbers = base64.b64decode(packed)
    return PackedFloats(struct.unpack(f"<{len(numbers) // 4}f", numbers))
