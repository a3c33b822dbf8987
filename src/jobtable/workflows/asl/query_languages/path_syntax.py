"""The parts of a JSONPath.

The dialect is the one that Step Functions uses (Jayway's): `$.a['b'][0]`, `[-1]`, `[0,2]`, `[1:3]`, `['a','b']`, `*`,
`..`, filters and functions, and in front of it `$$` for the context object or `$name` for a variable.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

ROOT = "$"
CONTEXT = "$$"
CURRENT = "@"


@dataclass(frozen=True)
class Names:
    """`.name`, `['name']` or `['one','two']`."""

    names: tuple[str, ...]
    deep: bool = False


@dataclass(frozen=True)
class Wildcard:
    """`*`: every member or element."""

    deep: bool = False


@dataclass(frozen=True)
class Indexes:
    """`[0]`, `[-1]` or `[0,2]`."""

    indexes: tuple[int, ...]
    deep: bool = False


@dataclass(frozen=True)
class Slice:
    """`[1:3]`, `[:2]` or `[-2:]`."""

    start: int | None
    stop: int | None
    deep: bool = False


@dataclass(frozen=True)
class Filter:
    """`[?(...)]`."""

    condition: Condition
    deep: bool = False


Step: TypeAlias = Names | Wildcard | Indexes | Slice | Filter


@dataclass(frozen=True)
class Call:
    """`.length()` and so on at the end of a path; arguments are values or paths."""

    name: str
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Path:
    """A parsed path."""

    text: str
    root: str
    """`$`, `$$`, `@` in a filter, or the name of a variable."""
    steps: tuple[Step, ...] = ()
    call: Call | None = None

    @property
    def is_definite(self) -> bool:
        """Whether it names at most one value; otherwise its value is a list."""
        return all(names_one(step) for step in self.steps[:-1]) and (
            not self.steps or names_one(self.steps[-1]) or _is_selection(self.steps[-1])
        )

    @property
    def is_reference(self) -> bool:
        """Whether it names exactly one place, so that a value can be put there."""
        return self.call is None and all(names_one(step) for step in self.steps)


def names_one(step: Step) -> bool:
    """Return whether a step leads to at most one value."""
    if step.deep:
        return False
    return (isinstance(step, Names) and len(step.names) == 1) or (isinstance(step, Indexes) and len(step.indexes) == 1)


def _is_selection(step: Step) -> bool:
    # `['a','b']` at the end of a path is one object with these members.
    return isinstance(step, Names) and not step.deep


@dataclass(frozen=True)
class Comparison:
    """Two operands, each a path or a value, and what relates them."""

    left: Any
    operator: str
    right: Any


@dataclass(frozen=True)
class Exists:
    """`@.a`: whether it is there."""

    path: Path


@dataclass(frozen=True)
class Every:
    """`a && b`."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True)
class Some:
    """`a || b`."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True)
class Not:
    """`!a`."""

    condition: Condition


Condition: TypeAlias = Comparison | Exists | Every | Some | Not
