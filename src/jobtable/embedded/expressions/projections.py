"""ProjectionExpression."""

from __future__ import annotations

from jobtable.embedded.expressions.placeholders import Placeholders
from jobtable.store.backend import Item


class Projection:
    """A compiled projection."""

    top_level_names: frozenset[str]
    """The top-level attributes that the projection reads."""

    def apply(self, item: Item) -> Item:
        """The projected part of the item, as a new dict; paths that the item does not have are left out."""
        raise NotImplementedError


def compile_projection(text: str, placeholders: Placeholders) -> Projection:
    """The projection, or RequestRefused."""
    raise NotImplementedError
