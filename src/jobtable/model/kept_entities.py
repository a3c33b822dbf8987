"""Items that are read again and again.

Pages that refresh, workers that poll and programs that follow others read the same items many times. What an item's
JSON means depends on nothing else, so the entity that it gave is kept under the bytes, and copied when they come again.
There is nothing to invalidate: an item that has changed has other bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_MOST_KEPT = 1024
"""Entities of one class; when there are more, all are forgotten."""
_LARGEST_KEPT = 4096
"""Bytes of an item; of larger ones the copy would not save much."""
_MOST_SEEN = 2 * _MOST_KEPT
"""Items that were read once and may come again. A program that reads more than these in turn finds none of them kept
when it comes round, so it should not pay for keeping them."""


class Memory:
    """The entities of one class that were read more than once, by the JSON of their items."""

    def __init__(self, decode: Callable[[list[bytes]], list[Any]], copy: Callable[[Any], Any]) -> None:
        self._decode = decode
        self._copy = copy
        self._kept: dict[bytes, Any] = {}
        self._seen: set[int] = set()
        self._seen_count = 0

    def entity(self, body: bytes) -> Any:
        """What `decode` gives for the item; every caller gets an entity of its own."""
        kept = self._kept.get(body)
        if kept is not None:
            return self._copy(kept)
        decoded = self._decode([body])
        if self._comes_again(body):
            self._keep([body], decoded)
        return decoded[0]

    def entities(self, bodies: list[bytes]) -> list[Any]:
        """The same for several items. Those that were read together mostly come again together, or not at all."""
        if not bodies:
            return []
        kept = self._kept
        if bodies[0] not in kept and bodies[-1] not in kept:
            return self._decode_new(bodies)
        found = [kept.get(body) for body in bodies]
        new = [body for body, entity in zip(bodies, found, strict=True) if entity is None]
        if not new:
            return [self._copy(entity) for entity in found]
        rest = iter(self._decode_new(new))
        return [next(rest) if entity is None else self._copy(entity) for entity in found]

    def _decode_new(self, bodies: list[bytes]) -> list[Any]:
        decoded = self._decode(bodies)
        if self._comes_again(bodies[0], len(bodies)):
            self._keep(bodies, decoded)
        return decoded

    def _comes_again(self, body: bytes, count: int = 1) -> bool:
        """Whether an item, the first of `count`, was read before: most of what is read once never comes again."""
        mark = hash(body)
        if mark in self._seen:
            return True
        self._seen_count += count
        if self._seen_count > _MOST_SEEN:
            self._seen, self._seen_count = set(), count
        self._seen.add(mark)
        return False

    def _keep(self, bodies: list[bytes], entities: list[Any]) -> None:
        for body, entity in zip(bodies, entities, strict=True):
            if len(body) <= _LARGEST_KEPT:
                if len(self._kept) >= _MOST_KEPT:
                    self._kept = {}
                self._kept[body] = self._copy(entity)
