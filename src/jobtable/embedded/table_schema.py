"""What the engine knows of a table: its keys and indexes, and how key values become bytes that sort as the values do.

Strings sort by UTF-8 bytes, numbers by value, binary raw. No encoding is a prefix of another one, so encodings can
follow each other in one key.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from jobtable.embedded.decimals import number_sort_bytes
from jobtable.model.source import Source
from jobtable.store.backend import AttributeValue, Item

KeyType = Literal["S", "N", "B"]

# Inside a value a zero byte becomes 00 FF, so 00 00 is always an end, and sorts before any longer value.
END = b"\x00\x00"
_ESCAPED_ZERO = b"\x00\xff"
_HASH_BYTES = 8


def _string_bytes(text: str) -> bytes:
    return text.encode().replace(b"\x00", _ESCAPED_ZERO) + END


def _binary_bytes(text: str) -> bytes:
    return base64.b64decode(text).replace(b"\x00", _ESCAPED_ZERO) + END


ENCODERS: dict[KeyType, Callable[[str], bytes]] = {"S": _string_bytes, "N": number_sort_bytes, "B": _binary_bytes}
"""The encoder of each key type, from a value in wire form to its bytes."""


def _hashed(partition: bytes) -> bytes:
    """Return the encoded partition after eight bytes of a stable hash of it."""
    return hashlib.blake2b(partition, digest_size=_HASH_BYTES).digest() + partition


@lru_cache(maxsize=4096)  # the same partitions come again and again
def _hashed_value(type_: KeyType, text: str) -> bytes:
    """Return the same for a partition of one attribute with this value."""
    return _hashed(ENCODERS[type_](text))


def after_prefix(prefix: bytes) -> bytes:
    """Return the smallest bytes greater than everything that begins with `prefix` (which is not all 0xFF)."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes((kept[-1] + 1,))


def segment_range(segment: int, total: int) -> tuple[bytes, bytes | None]:
    """Return the range [low, high) of hashes in one of `total` equal segments; the last one has no upper end."""
    bounds = [-(-(number << 8 * _HASH_BYTES) // total) for number in (segment, segment + 1)]
    low = bounds[0].to_bytes(_HASH_BYTES, "big") if segment else b""
    high = bounds[1].to_bytes(_HASH_BYTES, "big") if segment + 1 < total else None
    return low, high


Range: TypeAlias = tuple[bytes, bytes | None]
"""Positions from the first (inclusive) to the second (exclusive; None: to the end)."""

IndexValues: TypeAlias = tuple[str, ...]  # the values of an index key, partition first, without their types

MAX_PARTITION_BYTES = 2048
MAX_SORT_BYTES = 1024
SHORT = MAX_SORT_BYTES // 4
"""Key values with at most this many characters never have too many bytes: a character has at most four."""

ProjectionType = Literal["ALL", "KEYS_ONLY", "INCLUDE"]
SortOperator = Literal["<", "<=", ">", ">=", "BETWEEN", "begins_with"]


@dataclass(frozen=True, slots=True)
class KeyAttribute:
    """One attribute of a key, and the type of all its values."""

    name: str
    type: KeyType


@dataclass(frozen=True, slots=True)
class IndexSchema:
    """A secondary index. A local one has the table's partition attribute as its only partition attribute."""

    id: int
    name: str
    is_local: bool
    partition: tuple[KeyAttribute, ...]
    sort: tuple[KeyAttribute, ...]
    projection: ProjectionType
    included: frozenset[str]
    is_filling: bool = False  # whether it still lacks older items and cannot be read
    key: tuple[KeyAttribute, ...] = field(init=False)  # the attributes of the index key, partition first

    def __post_init__(self) -> None:
        _set(self, "key", self.partition + self.sort)

    def position(self, values: IndexValues) -> bytes:
        """Return the position of items with these key values in the index: bytes that sort as the items do."""
        behind = len(self.partition)
        if behind == 1:
            position = _hashed_value(self.partition[0].type, values[0])
        else:
            pairs = zip(self.partition, values, strict=False)
            position = _hashed(b"".join([ENCODERS[attribute.type](value) for attribute, value in pairs]))
        for number, attribute in enumerate(self.sort, behind):
            position += ENCODERS[attribute.type](values[number])
        return position

    def is_too_long(self, values: IndexValues) -> bool:
        behind = len(self.partition)
        partition_bytes = key_bytes(zip(self.partition, values[:behind], strict=True))
        sort_bytes = key_bytes(zip(self.sort, values[behind:], strict=True))
        return partition_bytes > MAX_PARTITION_BYTES or sort_bytes > MAX_SORT_BYTES


@dataclass(frozen=True, slots=True)
class TableSchema:
    """A table as of one version of the catalogue. Its `id` is never reused, even after it is deleted."""

    id: int
    name: str
    partition: KeyAttribute
    sort: KeyAttribute | None
    indexes: Mapping[str, IndexSchema]
    ttl_attribute: str | None
    is_journaled: bool
    """Whether a stream or point-in-time recovery needs the changes of this table."""
    is_filling_expiry: bool = False  # whether the list of expiry times still lacks older items
    key: tuple[KeyAttribute, ...] = field(init=False)  # the attributes of the primary key, partition first
    index_attributes: Mapping[str, KeyAttribute] = field(init=False)
    """The attributes of all index keys, by name."""
    looked_at: frozenset[str] | None = field(init=False)
    """The attributes of an item that a put checks; None: all of them."""
    index_values: Callable[[Item], tuple[IndexValues | None, ...]] = field(init=False, compare=False)
    """Returns the key of an item in each index; None if the index does not hold it."""
    has_plain_index_keys: Callable[[Item], bool] = field(init=False, compare=False)
    """Whether each present attribute of an index key has its type, is not empty, and is short. Saves 10 % of a put."""
    plain_position: Callable[[Item], bytes | None] = field(init=False, compare=False)
    """Returns the position of an item with a key of short strings, or None. Saves a third of a get."""

    def __post_init__(self) -> None:
        indexes = self.indexes.values()
        _set(self, "key", (self.partition,) if self.sort is None else (self.partition, self.sort))
        _set(self, "index_attributes", {attribute.name: attribute for index in indexes for attribute in index.key})
        keys = [attribute.name for attribute in self.key]
        names = [*keys, *self.index_attributes, *filter(None, [self.ttl_attribute])]
        _set(self, "looked_at", frozenset(names) if all(index.projection == "ALL" for index in indexes) else None)
        _set(self, "index_values", _reader_of_values(tuple(indexes)))
        _set(self, "has_plain_index_keys", _judge_of_keys(tuple(indexes)))
        _set(self, "plain_position", _finder_of_position(self.key))

    def key_of(self, item: Item) -> Item:
        partition = self.partition.name
        if self.sort is None:
            return {partition: item[partition]}
        return {partition: item[partition], self.sort.name: item[self.sort.name]}

    def position(self, key: Item) -> bytes:
        """Return the position of an item with this (valid) primary key: bytes that sort as the items do.

        Eight bytes of a stable hash of the partition value come first, so that a parallel scan can cut the table into
        equal ranges, then the partition value, then the sort value, both self-delimiting.
        """
        partition, sort = self.partition, self.sort
        start = _hashed_value(partition.type, key[partition.name][partition.type])
        if sort is None:
            return start
        return start + ENCODERS[sort.type](key[sort.name][sort.type])

    def index_position(self, index: IndexSchema, item: Item) -> bytes | None:
        """Return the position of an item in an index, its index key and table position; None if it is not in the index.

        `item` may also be just the attributes of the index key and the primary key, as in an ExclusiveStartKey.
        """
        (values,) = _reader_of_values((index,))(item)
        return None if values is None else index.position(values) + self.position(item)

    def projected(self, index: IndexSchema, item: Item) -> Item:
        """Return the part of an item that an index holds."""
        if index.projection == "ALL":
            return item
        held = self.projected_names(index)
        return {name: value for name, value in item.items() if name in held}

    def projected_names(self, index: IndexSchema) -> frozenset[str]:
        """Return the attributes that an index without projection ALL holds: included ones and all of keys."""
        keys = [self.partition, *index.partition, *index.sort] + ([self.sort] if self.sort else [])
        return index.included | {attribute.name for attribute in keys}

    def key_range(
        self,
        index: IndexSchema | None,
        partition_values: Sequence[AttributeValue],
        sort_equal: Sequence[AttributeValue] = (),
        operator: SortOperator | None = None,
        operands: Sequence[AttributeValue] = (),
    ) -> tuple[bytes, bytes]:
        """Return the range of all items with these partition values (all, in order) and these first sort values.

        `operator` and its operands (two for BETWEEN, else one) restrict the next sort attribute. Every value has the
        declared type of its attribute.
        """
        partition = (self.partition,) if index is None else index.partition
        sort = ((self.sort,) if self.sort else ()) if index is None else index.sort
        prefix = _hashed(_encoded(partition, partition_values)) + _encoded(sort, sort_equal)
        if operator is None:
            return prefix, after_prefix(prefix)
        type_ = sort[len(sort_equal)].type
        return _narrowed(prefix, type_, operator, [operand[type_] for operand in operands])


_ABSENT: AttributeValue = {}


def key_bytes(values: Iterable[tuple[KeyAttribute, str]]) -> int:
    """Return the bytes of key values together, as the limits of keys count them."""
    total = 0
    for attribute, text in values:
        if attribute.type == "S":
            total += len(text) if text.isascii() else len(text.encode())
        elif attribute.type == "B":
            total += len(text) // 4 * 3 - text.count("=")
    return total


def _set(schema: IndexSchema | TableSchema, name: str, value: Any) -> None:
    """Set a field that follows from the others."""
    object.__setattr__(schema, name, value)


@lru_cache(maxsize=1024)
def _reader_of_values(indexes: tuple[IndexSchema, ...]) -> Callable[[Item], tuple[IndexValues | None, ...]]:
    """Generate a function that returns the key of an item in each index; None for an index without it.

    A part of the key may be missing, empty, or of another type, or the key too long: the item may be older than the
    index. Every write calls the function for the item before and after.
    """
    source = Source()
    absent = source.names.of(_ABSENT, "absent")
    keys = []
    for index in indexes:
        found = [
            f"(v{number} := get({attribute.name!r}, {absent}).get({attribute.type!r}))"
            for number, attribute in enumerate(index.key)
        ]
        values = "".join(f"v{number}, " for number in range(len(found)))
        short = SHORT // max(len(index.partition), len(index.sort))
        long = [f"len(v{number}) > {short}" for number, attribute in enumerate(index.key) if attribute.type != "N"]
        if long:
            found.append(
                f"not (({' or '.join(long)}) and {source.names.of(index.is_too_long, 'is_too_long')}(({values})))"
            )
        keys.append(f"({values}) if {' and '.join(found)} else None, ")
    source.line("def read(item):")
    source.line("    get = item.get")
    source.line(f"    return ({''.join(keys)})")
    return source.function("read")


@lru_cache(maxsize=1024)
def _judge_of_keys(indexes: tuple[IndexSchema, ...]) -> Callable[[Item], bool]:
    """Generate a function that checks that all present attributes of index keys have their type and are short.

    They are so short that the whole key is never too long. Every write calls the function.
    """
    short = SHORT // max((max(len(index.partition), len(index.sort)) for index in indexes), default=1)
    attributes = dict.fromkeys(attribute for index in indexes for attribute in index.key)
    tests = [
        f"((v := get({attribute.name!r})) is None or 0 < len(v.get({attribute.type!r}, '')) <= {short})"
        for attribute in attributes
    ]
    source = Source()
    source.line("def judge(item):")
    source.line("    get = item.get")
    source.line(f"    return {' and '.join(tests) or True}")
    return source.function("judge")


@lru_cache(maxsize=1024)
def _finder_of_position(key: tuple[KeyAttribute, ...]) -> Callable[[Item], bytes | None]:
    """Generate a function that returns the position for a key of short strings, and None for another one."""
    source = Source()
    tests = [
        f"type(v := item.get({attribute.name!r})) is dict and len(v) == 1"
        f" and type(t{number} := v.get('S')) is str and 0 < len(t{number}) <= {SHORT}"
        for number, attribute in enumerate(key)
    ]
    encode = source.names.of(ENCODERS["S"], "encode")
    sort = f" + (t1.encode() + {END!r} if '\\0' not in t1 else {encode}(t1))" if len(key) > 1 else ""
    position = f"{source.names.of(_hashed_value, '_hashed')}('S', t0){sort}"
    source.line("def find(item):")
    if all(attribute.type == "S" for attribute in key):
        source.line(f"    if {' and '.join(tests)}:")
        source.line(f"        return {position}")
    source.line("    return None")
    return source.function("find")


def just_after(position: bytes) -> bytes:
    """Return the smallest position after this one, where a forward read continues. A backward one ends before it."""
    return position + b"\x00"


def _encoded(attributes: Sequence[KeyAttribute], values: Sequence[AttributeValue]) -> bytes:
    pairs = zip(attributes, values, strict=False)
    return b"".join([ENCODERS[attribute.type](value[attribute.type]) for attribute, value in pairs])


def _narrowed(prefix: bytes, type_: KeyType, operator: SortOperator, operands: list[str]) -> tuple[bytes, bytes]:
    if operator == "begins_with":
        start = prefix + ENCODERS[type_](operands[0])[: -len(END)]  # what all values with this beginning share
        return start, after_prefix(start)
    value = prefix + ENCODERS[type_](operands[0])
    match operator:
        case "<":
            return prefix, value
        case "<=":
            return prefix, after_prefix(value)
        case ">":
            return after_prefix(value), after_prefix(prefix)
        case ">=":
            return value, after_prefix(prefix)
        case "BETWEEN":
            return value, after_prefix(prefix + ENCODERS[type_](operands[1]))
