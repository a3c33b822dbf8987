"""ConditionExpression and FilterExpression."""

from __future__ import annotations

from typing import Literal

from jobtable.embedded.expressions.placeholders import Placeholders
from jobtable.store.backend import Item

ConditionKind = Literal["ConditionExpression", "FilterExpression"]


class Condition:
    """A compiled condition of one request."""

    top_level_names: frozenset[str]
    """The top-level attributes that the condition reads."""

    def holds(self, item: Item) -> bool:
        """Whether the item satisfies the condition; an item that does not exist is an empty one."""
        raise NotImplementedError


def compile_condition(text: str, placeholders: Placeholders, kind: ConditionKind = "ConditionExpression") -> Condition:
    """The condition, or RequestRefused."""
    raise NotImplementedError
