"""Payloads that are too large for an item lie in the object store, and the item names their object.

The objects of an execution lie in one folder. A record under the execution's id says whose folder it is, so that
`objects sweep` finds the items that may name an object.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jobtable.objects import ObjectStore, object_key
from jobtable.store import Store
from jobtable.workflows.durable.entities import DurableExecution, PayloadFolder

ROOT = "durable"
"""The first part of every key of an execution's objects."""
_MOST_INLINE_BYTES = 16 * 1024
"""An item is read and written as a whole: what is larger makes every later change of it dearer."""
_MOST_NOTED = 1_000


@dataclass(frozen=True)
class PayloadOwner:
    """Whose a payload is: an execution's, or that of the job of one call, which is found by its id alone."""

    function: str
    owner_id: str
    name: str | None = None
    machine: str | None = None

    @classmethod
    def of(cls, execution: DurableExecution) -> PayloadOwner:
        """Return a durable execution as an owner."""
        return cls(execution.function, execution.execution_id, execution.name)

    @classmethod
    def at(cls, link: Mapping[str, Any]) -> PayloadOwner:
        """Return the execution at the end of a link, such as what called a function."""
        return cls(link["function"], link["execution_id"], link["name"], link.get("machine"))

    @property
    def prefix(self) -> str:
        """The start of the keys of its objects."""
        return object_key(ROOT, self.function, self.owner_id)


class LargePayloads:
    """The payloads of executions. Without a store they can only be read."""

    def __init__(self, objects: ObjectStore, store: Store | None = None) -> None:
        self._objects = objects
        self._store = store
        self._noted: set[str] = set()

    def store(self, text: str | None, owner: PayloadOwner) -> Any:
        """Return what an item holds for a text: itself, or `{"object": key}` after its object is durable."""
        if text is None or len(text) <= _MOST_INLINE_BYTES // 4:
            return text
        content = text.encode()
        if len(content) <= _MOST_INLINE_BYTES:
            return text
        self._note(owner)
        key = f"{owner.prefix}/{hashlib.sha256(content).hexdigest()}"
        self._objects.put(key, content)
        return {"object": key}

    def _note(self, owner: PayloadOwner) -> None:
        """Store whose folder it is, once in this process."""
        if owner.name is None or owner.owner_id in self._noted:
            return
        assert self._store is not None
        self._store.put(
            PayloadFolder(owner_id=owner.owner_id, function=owner.function, machine=owner.machine, name=owner.name)
        )
        if len(self._noted) == _MOST_NOTED:
            self._noted.clear()
        self._noted.add(owner.owner_id)

    def read(self, stored: Any) -> str | None:
        """Return the text that an item holds or names."""
        if isinstance(stored, dict):
            return self._objects.get(stored["object"]).decode()
        text: str | None = stored
        return text

    def discard(self, owner: PayloadOwner) -> None:
        """Delete all objects of an execution."""
        for found in list(self._objects.list(owner.prefix)):
            self._objects.delete(found.key)
        assert self._store is not None
        self._store.delete(PayloadFolder.key(owner_id=owner.owner_id))


def size_of(text: str | None) -> int:
    """Return how many bytes a text has."""
    return 0 if text is None else len(text.encode())
