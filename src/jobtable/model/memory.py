"""Items that are read again and again.

Pages that refresh, workers that poll and programs that follow others read the same items many times. What an item's
JSON means depends on nothing else, so the entity that it gave is kept under the bytes, and copied when they come again.
There is nothing to invalidate: an item that has changed has other bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic_core import from_json

_MOST_KEPT = 1024
"""Entities of one class; when there are more, all are forgotten."""
_LARGEST_KEPT = 4096
"""Bytes of an item; of larger ones the copy would not save much."""
_MOST_SEEN = 2 * _MOST_KEPT
"""Items that were read once and may come again. Who goes round among more than these reads each as if for the first
time, and should not pay for keeping them."""


class Memory:
    """The entities of one class that were read more than once, by the JSON of their items."""

    def __init__(self, decode: Callable[[dict[str, Any]], Any], copy: Callable[[Any], Any]) -> None:
        self._decode = decode
        self._copy = copy
        self._kept: dict[bytes, Any] = {}
        self._seen: set[int] = set()

    def entity(self, body: bytes) -> Any:
        """What `decode` gives for the item; every caller gets an entity of its own."""
        kept = self._kept.get(body)
        if kept is not None:
            return self._copy(kept)
        entity = self._decode(from_json(body, cache_strings="keys"))
        self._note(body, entity)
        return entity

    def entities(self, bodies: list[bytes]) -> list[Any]:
        """The same for several items."""
        found = [self._kept.get(body) for body in bodies]
        new = [body for body, kept in zip(bodies, found, strict=True) if kept is None]
        # One call parses all of them.
        items = iter(from_json(b"[" + b",".join(new) + b"]", cache_strings="keys"))
        entities = []
        for body, kept in zip(bodies, found, strict=True):
            if kept is not None:
                entities.append(self._copy(kept))
            else:
                entity = self._decode(next(items))
                self._note(body, entity)
                entities.append(entity)
        return entities

    def _note(self, body: bytes, entity: Any) -> None:
        """Keep an entity when it comes for the second time: most of what is read once never comes again."""
        if len(body) > _LARGEST_KEPT:
            return
        mark = hash(body)
        if mark not in self._seen:
            if len(self._seen) >= _MOST_SEEN:
                self._seen = set()
            self._seen.add(mark)
            return
        if len(self._kept) >= _MOST_KEPT:
            self._kept = {}
        self._kept[body] = self._copy(entity)
