"""Documents: how a row becomes one, in what form they are written, and a checksum that does not mind their order."""

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
    """How the rows of a table become documents of a collection."""

    table: str
    collection: str
    fields: Mapping[str, str]
    """Target names by column."""
    identity: tuple[str, ...]
    """The columns of the primary key."""
    references: Mapping[str, str]
    """The collection that a column points to, by column."""
    readings: Mapping[str, str]
    """How values are to be understood, by column."""

    @property
    def columns(self) -> list[str]:
        """The columns that are read, in order."""
        return list(self.fields)

    def document_of(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The document of a row; what is NULL is left out."""
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
    """One value as a line of text, always the same for the same value."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def read_lines(stream: BinaryIO) -> Iterator[dict[str, Any]]:
    """The values of a file of lines."""
    with stream:
        for line in stream:
            yield json.loads(line)


class Checksum:
    """The number of values and the sum of their SHA-256s: equal for the same values in any order."""

    def __init__(self) -> None:
        self.count = 0
        self._sum = 0

    def add(self, lines: Iterable[bytes]) -> None:
        """Take values in, each as its line."""
        for line in lines:
            self.count += 1
            self._sum = (self._sum + int.from_bytes(hashlib.sha256(line).digest())) % _MODULUS

    @property
    def text(self) -> str:
        """The sum as 64 hexadecimal digits."""
        return f"{self._sum:064x}"
