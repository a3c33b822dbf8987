"""What the engine knows of a table: its keys, its indexes, and how they become bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from jobtable.store.backend import Item

KeyType = Literal["S", "N", "B"]


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
        raise NotImplementedError

    def position(self, key: Item) -> bytes:
        """Where an item with this (valid) primary key stands in the table: bytes that sort as the items do.

        Eight bytes of a stable hash of the partition value come first, so that a parallel scan can cut the table
        into equal ranges, then the partition value, then the sort value, both self-delimiting.
        """
        raise NotImplementedError

    def index_position(self, index: IndexSchema, item: Item) -> bytes | None:
        """Where an item stands in an index: its index key, then its table position. None: it is not in the index."""
        raise NotImplementedError

    def projected(self, index: IndexSchema, item: Item) -> Item:
        """The part of an item that an index holds."""
        raise NotImplementedError
