"""Documents: how rows become documents, how they are written, and a checksum that ignores their order."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from jobtable.systems.journeys.example.rule_book import interpret

_MODULUS = 1 << 256


@dataclass(frozen=True)
class TableMapping:
    """How the rows of a table become the documents of a collection."""

    table: str
    collection: str
    fields: Mapping[str, str]
    """Target names by column."""
    identity: tuple[str, ...]
    """The columns of the primary key."""
    references: Mapping[str, str]
    """The referenced collection, by column."""
    readings: Mapping[str, str]
    """How to interpret values, by column."""

    @property
    def columns(self) -> list[str]:
        """The columns to read, in order."""
        return list(self.fields)

    def document_of(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the document of a row, without NULLs."""
        document: dict[str, Any] = {"@type": self.collection, "id": "-".join(str(row[name]) for name in self.identity)}
        for column, target in self.fields.items():
            value = row[column]
            if value is None or column in self.identity:
                continue
            if column in self.references:
                document[target] = {"id": str(value), "@referredType": self.references[column]}
            else:
                document[target] = interpret(self.readings.get(column), value)
        return document


def to_line(value: Mapping[str, Any]) -> bytes:
    """Return a value as a line of text, always the same for equal values."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def read_lines(stream: BinaryIO) -> Iterator[dict[str, Any]]:
    """Yield the values of a file of lines."""
    with stream:
        for line in stream:
            yield json.loads(line)


class Checksum:
    """The number of values and the sum of their SHA-256s, which is equal for the same values in any order."""

    def __init__(self) -> None:
        self.count = 0
        self._sum = 0

    def add(self, lines: Iterable[bytes]) -> None:
        """Add values, each as its line."""
        for line in lines:
            self.count += 1
            self._sum = (self._sum + int.from_bytes(hashlib.sha256(line).digest())) % _MODULUS

    @property
    def text(self) -> str:
        """The sum as 64 hexadecimal digits."""
        return f"{self._sum:064x}"
