"""The five tables that every sequence of requests works on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

KeyPart = tuple[str, str]
"""The name of a key attribute, and its type."""


@dataclass(frozen=True)
class Index:
    """A secondary index: local ones repeat the table's partition attribute."""

    name: str
    partition: tuple[KeyPart, ...]
    sort: tuple[KeyPart, ...] = ()
    projection: dict[str, Any] = field(default_factory=lambda: {"ProjectionType": "ALL"})
    is_local: bool = False


@dataclass(frozen=True)
class Table:
    """A table under test."""

    name: str
    partition: KeyPart
    sort: KeyPart | None = None
    indexes: tuple[Index, ...] = ()
    stream: str | None = None

    @property
    def key_parts(self) -> tuple[KeyPart, ...]:
        return (self.partition,) if self.sort is None else (self.partition, self.sort)

    @property
    def key_types(self) -> dict[str, str]:
        """The type that each attribute used in a key must have."""
        parts = dict(self.key_parts)
        for index in self.indexes:
            parts |= dict(index.partition) | dict(index.sort)
        return parts

    def definition(self) -> dict[str, Any]:
        """The CreateTable request."""
        request: dict[str, Any] = {
            "TableName": self.name,
            "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [
                {"AttributeName": name, "AttributeType": kind} for name, kind in self.key_types.items()
            ],
            "KeySchema": _key_schema((self.partition,), self.key_parts[1:]),
        }
        for member, is_local in (("GlobalSecondaryIndexes", False), ("LocalSecondaryIndexes", True)):
            indexes = [_definition(index) for index in self.indexes if index.is_local == is_local]
            if indexes:
                request[member] = indexes
        if self.stream is not None:
            request["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": self.stream}
        return request


def _key_schema(partition: tuple[KeyPart, ...], sort: tuple[KeyPart, ...]) -> list[dict[str, str]]:
    hashes = [{"AttributeName": name, "KeyType": "HASH"} for name, _ in partition]
    return hashes + [{"AttributeName": name, "KeyType": "RANGE"} for name, _ in sort]


def _definition(index: Index) -> dict[str, Any]:
    return {
        "IndexName": index.name,
        "KeySchema": _key_schema(index.partition, index.sort),
        "Projection": index.projection,
    }


PLAIN = Table("Plain", ("pk", "S"), stream="KEYS_ONLY")
RANGED = Table(
    "Ranged",
    ("pk", "S"),
    ("sk", "S"),
    (
        Index("ByText", (("g1", "S"),), (("g2", "N"),)),
        Index("ByNumber", (("g2", "N"),), projection={"ProjectionType": "KEYS_ONLY"}),
    ),
    stream="NEW_AND_OLD_IMAGES",
)
NUMBERED = Table(
    "Numbered",
    ("pk", "N"),
    ("sk", "N"),
    (
        Index(
            "Included",
            (("g1", "S"),),
            (("sk", "N"),),
            {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["a", "b"]},
        ),
    ),
)
LOCAL = Table(
    "Local",
    ("pk", "S"),
    ("sk", "B"),
    (
        Index("LocalAll", (("pk", "S"),), (("g2", "N"),), is_local=True),
        Index("LocalKeys", (("pk", "S"),), (("g1", "S"),), {"ProjectionType": "KEYS_ONLY"}, is_local=True),
    ),
)
MULTI = Table(
    "Multi",
    ("pk", "S"),
    ("sk", "S"),
    (Index("ByFour", (("g1", "S"), ("g3", "S")), (("g2", "N"), ("sk", "S"))),),
)

TABLES = (PLAIN, RANGED, NUMBERED, LOCAL, MULTI)
TABLE_OF = {table.name: table for table in TABLES}
