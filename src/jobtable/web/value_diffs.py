"""Two values side by side, with what differs marked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import NamedTuple

from jobtable.model import Json
from jobtable.web.formats import NOTHING, pretty

_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
_MOST_COMPARED = 2000
"""Words or lines of a side; more are shown as removed and added as a whole."""


class Piece(NamedTuple):
    """A piece of a text, and whether the other side lacks it."""

    text: str
    differs: bool


@dataclass(frozen=True)
class ValueDiff:
    """What a field is, and what it should be."""

    field: str
    before: list[Piece]
    after: list[Piece]


def diff_of(field: str, before: Json, after: Json) -> ValueDiff:
    """Compare two values: short texts by their words, others line by line."""
    if before is None or after is None:
        return ValueDiff(field, _whole(before), _whole(after))
    one, other = _text(before), _text(after)
    split = str.splitlines if "\n" in one + other else None
    left = one.splitlines(keepends=True) if split else _WORDS.findall(one)
    right = other.splitlines(keepends=True) if split else _WORDS.findall(other)
    if max(len(left), len(right)) > _MOST_COMPARED:
        return ValueDiff(field, _whole(before), _whole(after))
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    codes = matcher.get_opcodes()
    return ValueDiff(
        field,
        list(_pieces((left[a:b], tag != "equal") for tag, a, b, _, _ in codes)),
        list(_pieces((right[a:b], tag != "equal") for tag, _, _, a, b in codes)),
    )


def _pieces(parts: Iterator[tuple[list[str], bool]]) -> Iterator[Piece]:
    for words, differs in parts:
        if words:
            yield Piece("".join(words), differs)


def _whole(value: Json) -> list[Piece]:
    return [Piece(NOTHING, differs=False)] if value is None else [Piece(_text(value), differs=True)]


def _text(value: Json) -> str:
    return value if isinstance(value, str) else pretty(value)
