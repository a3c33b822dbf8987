"""What the engine knows of a table: its keys, its indexes, and how they become bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from jobtable.embedded.ordering import ENCODERS, KeyType, after_prefix, hash_segment, hashed, prefix_bytes
from jobtable.store.backend import AttributeValue, Item

Range: TypeAlias = tuple[bytes, bytes | None]
"""Positions from the first (inclusive) to the second (exclusive; None: to the end)."""

SortOperator = Literal["<", "<=", ">", ">=", "BETWEEN", "begins_with"]


@dataclass(frozen=True, slots=True)
class KeyAttribute:
    """One attribute of a key, and the type that every value of it must have."""

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
    projection: Literal["ALL", "KEYS_ONLY", "INCLUDE"]
    included: frozenset[str]

    @property
    def key(self) -> tuple[KeyAttribute, ...]:
        """The attributes of the index key, partition first."""
        return self.partition + self.sort


@dataclass(frozen=True, slots=True)
class TableSchema:
    """A table as of one version of the catalogue. `id` is never used again, also after the table is deleted."""

    id: int
    name: str
    partition: KeyAttribute
    sort: KeyAttribute | None
    indexes: Mapping[str, IndexSchema]
    ttl_attribute: str | None
    is_journaled: bool
    """Whether a stream or point-in-time recovery needs the changes of this table."""

    def key_of(self, item: Item) -> Item:
        """The primary key attributes of an item."""
        partition = self.partition.name
        if self.sort is None:
            return {partition: item[partition]}
        return {partition: item[partition], self.sort.name: item[self.sort.name]}

    def position(self, key: Item) -> bytes:
        """Where an item with this (valid) primary key stands in the table: bytes that sort as the items do.

        Eight bytes of a stable hash of the partition value come first, so that a parallel scan can cut the table
        into equal ranges, then the partition value, then the sort value, both self-delimiting.
        """
        partition, sort = self.partition, self.sort
        start = hashed(ENCODERS[partition.type](key[partition.name][partition.type]))
        if sort is None:
            return start
        return start + ENCODERS[sort.type](key[sort.name][sort.type])

    def index_position(self, index: IndexSchema, item: Item) -> bytes | None:
        """Where an item stands in an index: its index key, then its table position. None: it is not in the index.

        `item` may also be just the attributes of the index key and the primary key, as in an ExclusiveStartKey.
        """
        key = index_key(index, item)
        return None if key is None else key + self.position(item)

    def projected(self, index: IndexSchema, item: Item) -> Item:
        """The part of an item that an index holds."""
        if index.projection == "ALL":
            return item
        held = self.projected_names(index)
        return {name: value for name, value in item.items() if name in held}

    def projected_names(self, index: IndexSchema) -> frozenset[str]:
        """The attributes that an index without projection ALL holds: the included ones and every key attribute."""
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
        """The positions of all items with these partition values (all of them, in order) and these first sort values.

        `operator` and its operands (two for BETWEEN, else one) narrow the sort attribute that comes next. Every value
        has the declared type of its attribute.
        """
        partition = (self.partition,) if index is None else index.partition
        sort = ((self.sort,) if self.sort else ()) if index is None else index.sort
        prefix = hashed(_encoded(partition, partition_values)) + _encoded(sort, sort_equal)
        if operator is None:
            return prefix, after_prefix(prefix)
        type_ = sort[len(sort_equal)].type
        return _narrowed(prefix, type_, operator, [operand[type_] for operand in operands])


def index_key(index: IndexSchema, item: Item) -> bytes | None:
    """The index key of an item as bytes; None when an attribute is missing, empty, or not of the declared type."""
    partition = sort = b""
    for attribute in index.partition:
        text = item.get(attribute.name, _ABSENT).get(attribute.type)
        if not text:
            return None
        partition += ENCODERS[attribute.type](text)
    for attribute in index.sort:
        text = item.get(attribute.name, _ABSENT).get(attribute.type)
        if not text:
            return None
        sort += ENCODERS[attribute.type](text)
    return hashed(partition) + sort


def is_in_index(index: IndexSchema, item: Item) -> bool:
    """Whether an index has an entry for an item: every attribute of its key is there, not empty, of its type."""
    return all(item.get(attribute.name, _ABSENT).get(attribute.type) for attribute in index.key)


def has_same_index_key(index: IndexSchema, one: Item, other: Item) -> bool:
    """Whether two items stand at the same place of an index, or both in none. Cheaper than their positions."""
    return all(one.get(attribute.name) == other.get(attribute.name) for attribute in index.key)


_ABSENT: AttributeValue = {}


def segment_range(segment: int, total: int) -> Range:
    """The part of a table or index that one of `total` segments of a parallel scan reads."""
    return hash_segment(segment, total)


def just_after(position: bytes) -> bytes:
    """The smallest position after this one: where a forward read continues. A backward one ends before `position`."""
    return position + b"\x00"


def _encoded(attributes: Sequence[KeyAttribute], values: Sequence[AttributeValue]) -> bytes:
    pairs = zip(attributes, values, strict=False)
    return b"".join([ENCODERS[attribute.type](value[attribute.type]) for attribute, value in pairs])


def _narrowed(prefix: bytes, type_: KeyType, operator: SortOperator, operands: list[str]) -> tuple[bytes, bytes]:
    if operator == "begins_with":
        start = prefix + prefix_bytes(type_, operands[0])
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
