"""Texts that fit into boxes. A server cannot measure text, so widths are estimates on the safe side."""

from __future__ import annotations

import unicodedata

_NARROW = frozenset("iIjl.,:;'!|()[]{}ft ")
_WIDE = frozenset("mwMW@%")


def width_of(text: str, size: float = 13.0) -> float:
    """Return about how wide a text is in a font of that size."""
    return sum(map(_share, text)) * size


def _share(character: str) -> float:
    if character in _NARROW:
        return 0.36
    if character in _WIDE:
        return 0.92
    if unicodedata.east_asian_width(character) in "WF":
        return 1.05
    return 0.7 if character.isupper() else 0.58


def fit(text: str, width: float, *, lines: int = 1, size: float = 13.0) -> list[str]:
    """Return a text in at most so many lines of a width, broken between words, and with an ellipsis if it is longer."""
    left = " ".join(text.split())
    fitted: list[str] = []
    while left and len(fitted) < lines:
        end = _end_of_line(left, width, size)
        if end < len(left) and len(fitted) == lines - 1:
            end = _end_of_line(left, width - size, size, breaks_words=True)
            return [*fitted, left[:end].rstrip() + "\N{HORIZONTAL ELLIPSIS}"]
        fitted.append(left[:end].rstrip())
        left = left[end:].lstrip()
    return fitted or [""]


def _end_of_line(text: str, width: float, size: float, *, breaks_words: bool = False) -> int:
    """Return how many characters fit, at least one; if possible, only whole words."""
    used, end = 0.0, len(text)
    for number, character in enumerate(text):
        used += _share(character) * size
        if used > width:
            end = max(number, 1)
            break
    if end == len(text) or breaks_words:
        return end
    after = max(text.rfind(sign, 0, end) for sign in " -_/:,")
    return after + 1 if after > end // 3 else end
