"""The words of texts and clusters, and cluster names made of them."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

_MOST_WORDS = 10
_WORDS_IN_A_NAME = 3
_APOSTROPHE = "\u2019"  # as word processors write it
_WORD = re.compile(rf"[^\W\d_](?:[\w'{_APOSTROPHE}-]*\w)?")
_FRAGMENTS = frozenset({"don", "doesn", "isn", "aren", "won", "ll", "ve", "re", "didn", "wouldn", "couldn", "shouldn"})


@dataclass(frozen=True)
class ClusterWords:
    """The words of one cluster with their scores, strongest first."""

    frequent: list[tuple[str, float]]
    """The most frequent ones, with their counts."""
    telling: list[tuple[str, float]]
    """Those that distinguish it from other clusters, by class-based TF-IDF."""


def words_of_clusters(clusters: Sequence[Sequence[str]]) -> list[ClusterWords]:
    """Find the words of each cluster of one layer, given the texts of each.

    Class-based TF-IDF treats a cluster as one long text: a word's share of it, times how rare the word is overall.
    """
    counted = [Counter(word for text in texts for word in words_of(text)) for texts in clusters]
    everywhere = sum(counted, Counter[str]())
    average_length = sum(everywhere.values()) / max(1, len(clusters))
    return [
        ClusterWords(
            frequent=_strongest({word: float(times) for word, times in words.items()}),
            telling=_strongest(_scores(words, everywhere, average_length)),
        )
        for words in counted
    ]


def _scores(words: Counter[str], everywhere: Counter[str], average_length: float) -> dict[str, float]:
    total = sum(words.values())
    return {
        word: round(times / total * math.log1p(average_length / everywhere[word]), 6) for word, times in words.items()
    }


def _strongest(scores: dict[str, float]) -> list[tuple[str, float]]:
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[:_MOST_WORDS]


def name_topic(words: Sequence[tuple[str, float]]) -> str:
    """Make a name from keywords, strongest first, without two forms of the same word."""
    chosen: list[str] = []
    for word, _ in words:
        if not any(_same_stem(word, other) for other in chosen):
            chosen.append(word)
        if len(chosen) == _WORDS_IN_A_NAME:
            break
    return ", ".join(chosen).capitalize() if chosen else "Without words"


def _same_stem(one: str, other: str) -> bool:
    shorter, longer = sorted((one, other), key=len)
    return (
        len(shorter) > 2 and longer.startswith(shorter[: max(3, len(shorter) - 1)]) and len(longer) - len(shorter) < 5
    )


def words_of(text: str) -> list[str]:
    """Return the meaningful words of a text in lower case, without English stop words."""
    found = (match.group().lower().replace(_APOSTROPHE, "'").removesuffix("'s") for match in _WORD.finditer(text))
    return [word for word in found if len(word) > 1 and not _is_empty(word)]


def _is_empty(word: str) -> bool:
    return word in ENGLISH_STOP_WORDS or word.partition("'")[0] in ENGLISH_STOP_WORDS | _FRAGMENTS
