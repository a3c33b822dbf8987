"""What was made of an expression is kept for the next request that has the same one."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from itertools import chain
from typing import TypeAlias, TypeVar

T = TypeVar("T")

Names: TypeAlias = tuple[tuple[str, str], ...]
"""The entries of ExpressionAttributeNames, as a key for caches."""

MOST_TREES = 128
"""Trees that are kept of each kind of expression. The longest takes half a megabyte."""
_MOST_KEPT = 1024
_LONGEST_KEPT = 1024
"""Characters of an expression and its names: it may have 4 KB and they 2 MB, a thousand of which fill the memory."""


def remembered(make: Callable[[str, Names], T]) -> Callable[[str, Names], T]:
    """The same function, which gives what it gave before where text and names are not too long."""
    known = lru_cache(maxsize=_MOST_KEPT)(make)

    @wraps(make)
    def find(text: str, names: Names) -> T:
        return known(text, names) if is_short(names, text) else make(text, names)

    return find


def is_short(names: Names, text: str = "") -> bool:
    """Whether what is made of the names, and of the text that uses them, may be kept."""
    return len(text) + sum(map(len, chain.from_iterable(names))) <= _LONGEST_KEPT
