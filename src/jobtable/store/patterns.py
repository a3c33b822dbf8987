"""Access patterns: which verb answers which question of the specification, and by which index."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class AccessPattern:
    """A question that a specification asks of a table, and the verb that answers it."""

    title: str
    verb: str
    """The verb as it is called: Service.method."""
    module: str
    index: str
    """The index that it reads; "primary" for the table's own key."""


REGISTERED: list[AccessPattern] = []
"""Every access pattern of the modules that are imported."""


def access_pattern(title: str, *, index: str = "primary") -> Callable[[F], F]:
    """Register a service's method as the verb of an access pattern; the method stays as it is."""

    def register(method: F) -> F:
        answered_by(method, title, method.__module__, index=index)
        return method

    return register


def answered_by(verb: Callable[..., Any], title: str, module: str, *, index: str = "primary") -> None:
    """Register a verb that also answers a question of another module's specification."""
    REGISTERED.append(AccessPattern(title, verb.__qualname__, module, index))
