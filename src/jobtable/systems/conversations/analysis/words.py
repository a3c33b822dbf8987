"""The words of a text: what embeddings and keywords count."""

from __future__ import annotations

import re

from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

_APOSTROPHE = "\u2019"  # as word processors write it
_WORD = re.compile(rf"[^\W\d_](?:[\w'{_APOSTROPHE}-]*\w)?")
_FRAGMENTS = frozenset({"don", "doesn", "isn", "aren", "won", "ll", "ve", "re", "didn", "wouldn", "couldn", "shouldn"})


def words_of(text: str) -> list[str]:
    """The words of a text that carry meaning, in lower case: none that only hold English sentences together."""
    found = (match.group().lower().replace(_APOSTROPHE, "'").removesuffix("'s") for match in _WORD.finditer(text))
    return [word for word in found if len(word) > 1 and not _is_empty(word)]


def _is_empty(word: str) -> bool:
    return word in ENGLISH_STOP_WORDS or word.partition("'")[0] in ENGLISH_STOP_WORDS | _FRAGMENTS
