"""Albums in a picture or a listing: `read_image` finds the text, `find_albums` what it names."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from jobtable.errors import ValueRefusedError
from jobtable.vision import Reading, Region, TextLine

UNKNOWN_ARTIST = "Unknown Artist"
"""What Discogs, too, calls an artist whom nobody names."""
LONGEST_NAME = 200
_PICTURES = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF", b"BM", b"II*\0", b"MM\0*")
_YEAR = r"(?:19|20)\d\d"
_ENTRY = re.compile(
    rf"(?P<artist>.*?\S)\s*(?:\s[-~\u2010-\u2015\u2212]\s?|\s?[\u2013\u2014]\s?)(?P<title>\S.*?)\s*[,(\[]?\s*(?P<year>{_YEAR})?\s*[)\]]?"
)
_LINE = re.compile(r"(?P<artist>.+?) [-\u2013\u2014] (?P<title>.+?)(?: \((?P<year>\d{4})\))?")
_ONLY_YEAR = re.compile(rf"\D{{0,3}}({_YEAR})\D{{0,2}}")
_ANY_YEAR = re.compile(rf"(?<!\d)({_YEAR})(?!\d)")
_LIST_NUMBER = re.compile(r"^\s*\d{1,3}\s*[.):]\s*")
_COLUMN_NAMES = {"artist", "album", "title", "year"}
_NOISE_HEIGHT = 0.3
"""Text smaller than this part of the largest on a cover is print about the record: its label, its format."""


@dataclass(frozen=True)
class FoundAlbum:
    """An album as the picture or listing names it."""

    artist: str
    title: str
    year: int | None = None
    region: Region | None = None


@dataclass(frozen=True)
class Found:
    """The albums of an image, and what could not be used."""

    albums: list[FoundAlbum]
    skipped: list[str]


def read_image(content: bytes) -> Reading | str:
    """Return the text of a picture with its geometry, or a listing as text; MissingExtraError without the extra."""
    if content.startswith(_PICTURES):
        from jobtable.vision.reader import shared_reader  # noqa: PLC0415 - it loads models, and needs the extra

        return shared_reader().read(content)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueRefusedError(f"the image is neither a picture nor text: {error}") from error


def find_albums(read: Reading | str) -> Found:
    """Return the albums that a listing, a printed list or covers name."""
    if isinstance(read, str):
        return _in_listing(read)
    rows = [_without_number(row) for row in read.rows()]
    entries = [(entry, row) for row in rows if (entry := _entry(row)) is not None]
    if len(entries) >= max(1, len(rows) // 2):
        return Found([_with_region(entry, row, read) for entry, row in entries], [])
    covers = (_on_cover(lines, read) for lines in _covers(read))
    return Found([each for each in covers if each is not None], [])


# --- listings ---------------------------------------------------------------------------------------------------------


def _in_listing(listing: str) -> Found:
    """Return the albums of a text: a line each, `Artist - Album (1973)`, or CSV with artist, album and year."""
    found = Found([], [])
    for number, row in enumerate(_rows(listing), start=1):
        if row is None:
            found.skipped.append(f"entry {number} does not have the form Artist - Album (1973)")
        elif problem := _problem(*row):
            found.skipped.append(f"entry {number}: {problem}")
        else:
            artist, title, year = (each.strip() for each in row)
            found.albums.append(FoundAlbum(artist, title, int(year) if year else None))
    return found


def _problem(artist: str, title: str, year: str) -> str | None:
    if not 0 < len(artist.strip()) <= LONGEST_NAME or not 0 < len(title.strip()) <= LONGEST_NAME:
        return f"artist and title must have from 1 to {LONGEST_NAME} characters"
    if year.strip() and not (year.strip().isdecimal() and 1900 <= int(year) <= 2100):
        return f"{year!r} is not a year from 1900 to 2100"
    return None


def _rows(listing: str) -> Iterator[tuple[str, str, str] | None]:
    """Yield artist, album and year of each entry, or None for one in another form."""
    lines = [line.strip() for line in listing.splitlines() if line.strip()]
    if lines and {"artist", "album", "year"} <= set(lines[0].lower().split(",")):
        for row in csv.DictReader([lines[0].lower(), *lines[1:]]):
            yield row["artist"] or "", row["album"] or "", row["year"] or ""
        return
    for line in lines:
        found = _LINE.fullmatch(line)
        yield None if found is None else (found["artist"], found["title"], found["year"] or "")


# --- printed lists ----------------------------------------------------------------------------------------------------


def _without_number(row: list[TextLine]) -> list[TextLine]:
    """Return a row of a list without the number that some lists print before each entry."""
    return row[1:] if len(row) > 1 and re.fullmatch(r"\W*\d{1,3}\W*", row[0].text) else row


def _entry(row: list[TextLine]) -> FoundAlbum | None:
    """Return what a row of a list says: `Artist - Album (1973)`, or columns that end with a year."""
    texts = [_LIST_NUMBER.sub("", line.text) for line in row]
    if {text.lower() for text in texts} <= _COLUMN_NAMES:
        return None
    if len(texts) == 3 and (year := _ONLY_YEAR.fullmatch(texts[2])):
        return FoundAlbum(texts[0], texts[1], int(year[1]))
    found = _ENTRY.fullmatch(" ".join(texts))
    if found is None or not re.search(r"\w", found["artist"]) or not re.search(r"\w", found["title"]):
        return None
    title = re.sub(r"[\s(\[,]+$", "", found["title"])
    return FoundAlbum(found["artist"], title, int(found["year"]) if found["year"] else None)


# --- covers -----------------------------------------------------------------------------------------------------------


def _covers(reading: Reading) -> list[list[TextLine]]:
    """Return the lines of each cover: text that is near each other, and what stands alone with the cover above it."""
    lines = [line for row in reading.rows() for line in row]
    groups: list[list[TextLine]] = []
    for line in lines:
        near = [group for group in groups if any(_is_near(line, other, reading) for other in group)]
        groups = [group for group in groups if group not in near]
        groups.append([*(each for group in near for each in group), line])
    covers = [group for group in groups if len(_phrases(group, reading)) > 1]
    if len(covers) < 2:
        return [lines]
    for group in groups:
        if group not in covers:
            min(covers, key=lambda cover: _distance(cover[0], group[0], reading)).extend(group)
    return covers


def _distance(line: TextLine, other: TextLine, reading: Reading) -> tuple[bool, float]:
    """Return how far one line is from another one, which is far if it is not below it."""
    start, end = reading.upright(line.middle), reading.upright(other.middle)
    return end.y < start.y, math.hypot(2 * (end.x - start.x), end.y - start.y)


def _is_near(line: TextLine, other: TextLine, reading: Reading) -> bool:
    reach = 2.0 * max(line.height, other.height)
    (left, top, right, bottom), (left_too, top_too, right_too, bottom_too) = (
        _box(each, reading) for each in (line, other)
    )
    apart = max(top, top_too) - min(bottom, bottom_too)
    return min(right, right_too) - max(left, left_too) > 0 and apart < reach


def _box(line: TextLine, reading: Reading) -> tuple[float, float, float, float]:
    corners = [reading.upright(each) for each in line.corners]
    across, down = [each.x for each in corners], [each.y for each in corners]
    return min(across), min(down), max(across), max(down)


@dataclass(frozen=True)
class _Phrase:
    """Lines of one size, one below the other: a title may need several."""

    text: str
    height: float
    lines: tuple[TextLine, ...]


def _phrases(lines: Iterable[TextLine], reading: Reading) -> list[_Phrase]:
    """Return the phrases of a cover from top to bottom, without small print and years."""
    there = sorted(lines, key=lambda line: reading.upright(line.middle).y)
    words = [line for line in there if re.search(r"[^\W\d_]", line.text) and not _ONLY_YEAR.fullmatch(line.text)]
    largest = max((line.height for line in words), default=0.0)
    phrases: list[list[TextLine]] = []
    for line in words:
        if line.height < _NOISE_HEIGHT * largest:
            continue
        if phrases and _continues(phrases[-1][-1], line, reading):
            phrases[-1].append(line)
        else:
            phrases.append([line])
    return [
        _Phrase(" ".join(each.text for each in phrase), max(each.height for each in phrase), tuple(phrase))
        for phrase in phrases
    ]


def _continues(line: TextLine, following: TextLine, reading: Reading) -> bool:
    _, _, _, bottom = _box(line, reading)
    _, top, _, _ = _box(following, reading)
    is_same_size = abs(math.log(line.height / following.height)) < 0.12
    return is_same_size and top - bottom < 0.6 * line.height


def _on_cover(lines: Sequence[TextLine], reading: Reading) -> FoundAlbum | None:
    """Return the album of a cover: the larger phrase is its title; of two in one size, the lower one."""
    phrases = sorted(_phrases(lines, reading), key=lambda phrase: -phrase.height)[:2]
    if not phrases:
        return None
    if len(phrases) > 1 and phrases[0].height < 1.15 * phrases[1].height:
        phrases.sort(key=lambda phrase: -reading.upright(phrase.lines[0].middle).y)
    years = [int(year) for line in lines for year in _ANY_YEAR.findall(line.text)]
    artist = re.sub(r"(?i)^by\s+", "", phrases[1].text) if len(phrases) > 1 else UNKNOWN_ARTIST
    found = FoundAlbum(artist, phrases[0].text, years[0] if years else None)
    return _with_region(found, lines, reading)


def _with_region(album: FoundAlbum, lines: Iterable[TextLine], reading: Reading) -> FoundAlbum:
    around = Region.around(corner for line in lines for corner in line.corners)
    left, top = max(0, around.x), max(0, around.y)
    right, bottom = min(reading.width, around.x + around.width), min(reading.height, around.y + around.height)
    region = Region(left, top, max(0, right - left), max(0, bottom - top))
    return FoundAlbum(album.artist[:LONGEST_NAME], album.title[:LONGEST_NAME], album.year, region)
