"""Payloads that are too large for an item lie in the object store, and the item names their object."""

from __future__ import annotations

import hashlib
from typing import Any

from jobtable.objects import ObjectStore, object_key

ROOT = "durable"
"""The first part of every key of an execution's objects."""
_MOST_INLINE_BYTES = 16 * 1024
"""An item is read and written as a whole: what is larger makes every later change of it dearer."""


class LargePayloads:
    """The payloads of durable executions."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects

    def store(self, text: str | None, function: str, execution_id: str) -> Any:
        """Return what an item holds for a text: itself, or `{"object": key}` after its object is durable."""
        if text is None or len(text) <= _MOST_INLINE_BYTES // 4:
            return text
        content = text.encode()
        if len(content) <= _MOST_INLINE_BYTES:
            return text
        key = object_key(ROOT, function, execution_id, hashlib.sha256(content).hexdigest())
        self._objects.put(key, content)
        return {"object": key}

    def read(self, stored: Any) -> str | None:
        """Return the text that an item holds or names."""
        if isinstance(stored, dict):
            return self._objects.get(stored["object"]).decode()
        text: str | None = stored
        return text

    def discard(self, function: str, execution_id: str) -> None:
        """Delete all objects of an execution."""
        for found in list(self._objects.list(object_key(ROOT, function, execution_id))):
            self._objects.delete(found.key)


def size_of(text: str | None) -> int:
    """Return how many bytes a text has."""
    return 0 if text is None else len(text.encode())
