"""A request with its two answers, and a difference between them that is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.embedded.differential.peers import Answer


@dataclass(frozen=True)
class Case:
    """One request and its two answers."""

    operation: str
    request: dict[str, Any]
    embedded: Answer
    local: Answer


@dataclass(frozen=True)
class KnownDifference:
    """A difference that is DynamoDB Local's, why, and how it is recognised."""

    name: str
    reason: str
    matches: Callable[[Case], bool]


def same_without(case: Case, *members: str) -> bool:
    """Whether both did the same, and answered the same but for some members."""
    if case.embedded.code is not None or case.local.code is not None:
        return False
    embedded, local = (
        {name: content for name, content in answer.body.items() if name not in (*members, "members")}
        for answer in (case.embedded, case.local)
    )
    return embedded == local


def is_fragment(embedded: Any, local: Any) -> bool:
    """Whether maps and lists of the one have nothing that those of the other do not have."""
    if isinstance(embedded, dict) and isinstance(local, dict):
        return all(name in local and is_fragment(inside, local[name]) for name, inside in embedded.items())
    if isinstance(embedded, list) and isinstance(local, list):
        return all(any(is_fragment(element, other) for other in local) for element in embedded)
    return bool(embedded == local)
