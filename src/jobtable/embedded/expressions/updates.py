"""UpdateExpression."""

from __future__ import annotations

from jobtable.embedded.expressions.placeholders import Placeholders
from jobtable.store.backend import Item


class Update:
    """A compiled update of one request."""

    top_level_names: frozenset[str]
    """The top-level attributes that the update writes (those that it only reads are not among them)."""

    def apply(self, item: Item) -> Item:
        """The item after the update, as a new dict; RequestRefused where it cannot be applied to this item."""
        raise NotImplementedError

    def updated_part(self, item: Item) -> Item:
        """What ReturnValues UPDATED_OLD (of the old item) and UPDATED_NEW (of the new one) return."""
        raise NotImplementedError


def compile_update(text: str, placeholders: Placeholders) -> Update:
    """The update, or RequestRefused."""
    raise NotImplementedError
