"""Texts of executions: an item holds them, or the object store if they are too large."""

from __future__ import annotations

from typing import Any

from jobtable.objects import ObjectStore
from jobtable.store import Store
from jobtable.workflows.durable.large_payloads import LargePayloads, PayloadOwner


class Texts:
    """Keeps and reads the texts of executions. Without an object store, only those in items are known."""

    def __init__(self, objects: ObjectStore | None, store: Store | None = None) -> None:
        self._payloads = None if objects is None else LargePayloads(objects, store)

    def store(self, text: str | None, owner: PayloadOwner) -> Any:
        """Return what holds a text of an execution: itself, or `{"object": key}`."""
        return text if self._payloads is None else self._payloads.store(text, owner)

    def keep(self, text: str, owner: PayloadOwner) -> tuple[str, str | None]:
        """Return the two members of an item that hold a text: it and None, or "" and the key of its object."""
        stored = self.store(text, owner)
        return ("", stored["object"]) if isinstance(stored, dict) else (text, None)

    def read(self, text: str, object_key: str | None) -> str:
        """Return the text of two such members."""
        found = self.find(text, object_key)
        if found is None:
            raise LookupError(f"nothing reads the object {object_key} here")
        return found

    def find(self, text: str | None, object_key: str | None) -> str | None:
        """Return the text of two such members; None if there is none, or none that is known here."""
        if object_key is None:
            return text
        return None if self._payloads is None else self._payloads.read({"object": object_key})

    def discard(self, owner: PayloadOwner) -> None:
        """Delete the objects of an execution."""
        if self._payloads is not None:
            self._payloads.discard(owner)
