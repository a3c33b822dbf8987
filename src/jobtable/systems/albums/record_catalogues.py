"""Catalogues of records: where years and prices come from. Without one nothing is known, and nothing is invented.

`JOBTABLE_ALBUMS_CATALOGUE` names it: a CSV file with the columns artist, title, year, price and, optionally, source;
an SQLite file with a table `records` of these columns; or `discogs`, which also needs `JOBTABLE_DISCOGS_TOKEN`.
"""

from __future__ import annotations

import csv
import os
import re
import sqlite3
import unicodedata
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from jobtable.clock import SYSTEM_CLOCK, Clock
from jobtable.errors import JobtableError, SettingsError

CATALOGUE = "JOBTABLE_ALBUMS_CATALOGUE"
SAME = 0.82
"""Names that are as alike as this are one name, printed or read differently."""
_COLUMNS = ("artist", "title", "year", "price")


class CatalogueUnavailable(JobtableError):
    """A catalogue sent no complete answer, or allows no more requests for now."""

    retryable = True


@dataclass(frozen=True)
class Price:
    """An estimate in US dollars."""

    amount: float
    confidence: float
    """From 0 to 1: how alike the names are, less if only few copies are for sale."""
    source: str


@dataclass(frozen=True)
class Record:
    """An album as a catalogue knows it."""

    artist: str
    title: str
    year: int | None
    likeness: float
    """From 0 to 1: how alike its names and those asked for are."""
    id: str = ""


class Catalogue(Protocol):
    """Knows albums. Its errors are CatalogueUnavailable, which passes, and SettingsError, which does not."""

    name: str

    def find(self, artist: str, title: str) -> Record | None:
        """Return the album that has these names most nearly, or None if none has."""
        ...

    def price(self, record: Record) -> Price | None:
        """Return what a copy of a found album costs, or None if it is not known."""
        ...


def likeness(asked: str, known: str) -> float:
    """Return how alike two names are, from 0 to 1, whatever their case, accents and punctuation."""
    one, other = _plain(asked), _plain(known)
    if one == other:
        return 1.0
    return SequenceMatcher(None, one, other, autojunk=False).ratio()


def record_likeness(artist: str, title: str, known_artist: str, known_title: str) -> float:
    """Return how alike two albums are; 0 unless both names are."""
    alike = (likeness(artist, known_artist), likeness(title, known_title))
    return round(sum(alike) / 2, 3) if min(alike) >= SAME else 0.0


@lru_cache(maxsize=4096)
def _plain(name: str) -> str:
    letters = unicodedata.normalize("NFKD", name.casefold())
    plain = re.sub(r"[^\w]", "", "".join(each for each in letters if not unicodedata.combining(each)))
    return plain.removeprefix("the") if len(plain) > len("the") else plain


class FileCatalogue:
    """A CSV or SQLite file of one's own."""

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self._rows = _read_sqlite(path) if _is_sqlite(path) else _read_csv(path)

    def find(self, artist: str, title: str) -> Record | None:
        found: Record | None = None
        for number, row in enumerate(self._rows):
            alike = record_likeness(artist, title, row["artist"], row["title"])
            if alike > (found.likeness if found else 0.0):
                year = int(row["year"]) if row["year"] else None
                found = Record(row["artist"], row["title"], year, alike, str(number))
        return found

    def price(self, record: Record) -> Price | None:
        row = self._rows[int(record.id)]
        if not row["price"]:
            return None
        return Price(float(row["price"]), record.likeness, row.get("source") or self.name)


def _is_sqlite(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(16) == b"SQLite format 3\0"
    except OSError as error:
        raise SettingsError(f"cannot read the catalogue {path}: {error.strerror}") from error


def _read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = csv.DictReader(file)
        columns = [name.strip().lower() for name in rows.fieldnames or ()]
        return _checked(path, columns, ((value or "").strip() for row in rows for value in _values(row)))


def _values(row: Mapping[str, Any]) -> list[str | None]:
    return [value for name, value in row.items() if name is not None]


def _read_sqlite(path: Path) -> list[dict[str, str]]:
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            rows = database.execute("SELECT * FROM records")
            columns = [str(each[0]).lower() for each in rows.description]
            texts = ("" if value is None else str(value).strip() for row in rows for value in row)
            return _checked(path, columns, texts)
    except sqlite3.Error as error:
        raise SettingsError(f"cannot read the table `records` of the catalogue {path}: {error}") from error


def _checked(path: Path, columns: list[str], values: Any) -> list[dict[str, str]]:
    """Return rows by column, or raise SettingsError for a column that is missing or a number that is none."""
    if missing := [name for name in _COLUMNS if name not in columns]:
        raise SettingsError(f"the catalogue {path} has no column {missing[0]}; it needs {', '.join(_COLUMNS)}")
    flat = list(values)
    rows = [
        dict(zip(columns, flat[start : start + len(columns)], strict=True))
        for start in range(0, len(flat), len(columns))
    ]
    for number, row in enumerate(rows, start=1):
        if not re.fullmatch(r"(\d{4})?", row["year"]) or not re.fullmatch(r"(\d+(\.\d+)?)?", row["price"]):
            raise SettingsError(
                f"row {number} of the catalogue {path}: the year must have four digits and the price be a number, "
                f"not {row['year']!r} and {row['price']!r}"
            )
    return rows


def open_catalogue(environment: Mapping[str, str] = os.environ, *, clock: Clock = SYSTEM_CLOCK) -> Catalogue | None:
    """Return the catalogue that the environment names, or None."""
    named = environment.get(CATALOGUE, "")
    if not named:
        return None
    if named == "discogs":
        from jobtable.systems.albums.discogs import Discogs  # noqa: PLC0415 - loaded when it is used

        return Discogs.of(environment, clock=clock)
    path = Path(named)
    return _opened(path, path.stat().st_mtime_ns if path.exists() else 0)


@lru_cache(maxsize=4)
def _opened(path: Path, changed_at: int) -> FileCatalogue:
    """Read a file once for as long as it does not change."""
    return FileCatalogue(path)
