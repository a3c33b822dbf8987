"""The texts of definitions, each stored once under its digest."""

from __future__ import annotations

import hashlib

from jobtable.errors import NotFoundError
from jobtable.objects import ObjectStore, object_key
from jobtable.store import Store
from jobtable.workflows.asl.entities import MachineDefinition

ROOT = "workflows"
"""The first part of every key of a definition's object."""
MOST_ITEM_BYTES = 300_000
"""Longer texts go to the object store: an item has at most 400 KB."""


class Definitions:
    """The definitions of a store. A text never changes and is never deleted: executions name it."""

    def __init__(self, store: Store, objects: ObjectStore) -> None:
        self._store = store
        self._objects = objects

    def keep(self, text: str) -> str:
        """Store a text and return its digest."""
        content = text.encode()
        digest = hashlib.sha256(content).hexdigest()
        if self._store.find(MachineDefinition.key(sha256=digest)) is not None:
            return digest
        record = MachineDefinition(sha256=digest, text=text, created_at=self._store.clock.now())
        if len(content) > MOST_ITEM_BYTES:
            self._objects.put(_object_of(digest), content)
            record = record.replace(text=None, object_key=_object_of(digest))
        self._store.put(record)
        return digest

    def read(self, digest: str) -> str:
        """Return the text of a digest, or raise NotFoundError."""
        record = self._store.find(MachineDefinition.key(sha256=digest))
        if record is None:
            raise NotFoundError(f"there is no definition {digest}", kind="definition", key=digest)
        return self._objects.get(_object_of(digest)).decode() if record.text is None else record.text


def _object_of(digest: str) -> str:
    return object_key(ROOT, "definitions", f"{digest}.json")
