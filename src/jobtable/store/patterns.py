"""Access patterns: which verb answers which question of the specification, and by which index."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class AccessPattern:
    """A question that a seed asks of its table, and the verb that answers it."""

    seed: str
    title: str
    verb: str
    """The verb as it is called: Service.method."""
    module: str
    index: str
    """The index that it reads; "primary" for the table's own key."""


REGISTERED: list[AccessPattern] = []
"""Every access pattern of the modules that are imported."""


def access_pattern(seed: str, title: str, *, index: str = "primary") -> Callable[[F], F]:
    """Register a service's method as the verb of an access pattern; the method stays as it is."""

    def register(method: F) -> F:
        REGISTERED.append(AccessPattern(seed, title, method.__qualname__, method.__module__, index))
        return method

    return register
