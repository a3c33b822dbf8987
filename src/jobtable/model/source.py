"""Python source in the making: the codecs are written as text once, and run as ordinary functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
        self._indent = ""

    def line(self, text: str) -> None:
        self.lines.append(self._indent + text)

    @contextmanager
    def inside(self, text: str) -> Iterator[None]:
        """Begin a loop or a condition; the lines of the block stand in it."""
        self.line(text)
        outside, self._indent = self._indent, self._indent + "    "
        yield
        self._indent = outside

    def function(self, name: str) -> Callable[..., Any]:
        """The function, ready to be called."""
        namespace: dict[str, Any] = dict(self.names.known)
        exec("\n".join(self.lines), namespace)  # noqa: S102 - the source is made from declarations alone
        made: Callable[..., Any] = namespace[name]
        return made
