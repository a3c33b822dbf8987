"""Python source in the making: the codecs are written as text once, and run as ordinary functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Names:
    """The names that generated source refers to."""

    def __init__(self) -> None:
        self.known: dict[str, Any] = {}

    def of(self, value: Any, hint: str) -> str:
        """The name under which generated source finds `value`."""
        for name, there in self.known.items():
            if there is value:
                return name
        name = f"{hint}_{len(self.known)}"
        self.known[name] = value
        return name


class Source:
    """The lines of one function, and the names it refers to."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names = Names()

    def line(self, text: str) -> None:
        self.lines.append(text)

    def function(self, name: str) -> Callable[..., Any]:
        """The function, ready to be called."""
        namespace: dict[str, Any] = dict(self.names.known)
        exec("\n".join(self.lines), namespace)  # noqa: S102 - the source is made from declarations alone
        made: Callable[..., Any] = namespace[name]
        return made
