"""Document paths: the place of a value in an item."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from jobtable.errors import RequestRefused
from jobtable.store.backend import AttributeValue, Item

Path: TypeAlias = tuple[str | int, ...]
"""An attribute name, then names of map members and indexes of list elements. In an AST a name may be a #placeholder."""

PathTree: TypeAlias = "dict[str | int, PathTree | None]"  # paths that share their beginnings; None ends one

Values: TypeAlias = Mapping[str, AttributeValue]  # the values of a request, by their :names
Computed: TypeAlias = Callable[[Item, Values], AttributeValue | None]
"""A value that depends on an item and on the values of the request; None where it is missing."""

MAX_PATH_LENGTH = 32
MAX_INDEX = 2**31 - 1


class InvalidExpression(Exception):
    """A fault of an expression; becomes "Invalid <parameter>: <reason>"."""

    def refused(self, parameter: str) -> RequestRefused:
        """Return the error for the request, whose parameter ("FilterExpression", ...) holds the expression."""
        return RequestRefused(f"Invalid {parameter}: {self}")


def resolved(path: Path, names: Mapping[str, str]) -> Path:
    """Replace the placeholders of a path; InvalidExpression if one is undefined, or the path too long."""
    check_length(path)
    parts: list[str | int] = []
    for part in path:
        if isinstance(part, str) and part[0] == "#":
            name = names.get(part)
            if name is None:
                raise InvalidExpression(
                    f"An expression attribute name used in the document path is not defined; attribute name: {part}"
                )
            parts.append(name)
        else:
            parts.append(part)
    return tuple(parts)


def check_length(path: Path) -> None:
    """Raise InvalidExpression if a path has more levels than an item can have."""
    if len(path) > MAX_PATH_LENGTH:
        raise InvalidExpression(f"The document path has too many nesting levels; nesting levels: {len(path)}")


def value_at(item: Item, path: Path) -> AttributeValue | None:
    """Return the value at a (resolved) path, or None."""
    members: Any = item
    value: Any = members.get(path[0])
    for part in path[1:]:
        if value is None:
            return None
        if isinstance(part, str):
            members = value.get("M")
            value = None if members is None else members.get(part)
        else:
            elements = value.get("L")
            value = elements[part] if elements is not None and part < len(elements) else None
    found: AttributeValue | None = value
    return found


def shown(path: Path) -> str:
    """Format the path as DynamoDB's messages do."""
    return f"[{', '.join(part if isinstance(part, str) else f'[{part}]' for part in path)}]"


def tree_of(paths_from_last: Iterable[Path]) -> PathTree:
    """Make a tree of (resolved) paths, or raise InvalidExpression if two overlap or disagree about a type.

    DynamoDB takes the paths from the last to the first, which decides what its message names.
    """
    tree: PathTree = {}
    seen: list[Path] = []
    for path in paths_from_last:
        for other in seen:
            _check_apart(path, other)
        seen.append(path)
        branch: Any = tree
        for part in path[:-1]:
            branch = branch.setdefault(part, {})
        branch[path[-1]] = None
    return tree


def _check_apart(path: Path, other: Path) -> None:
    for here, there in zip(path, other, strict=False):
        if here != there:
            if isinstance(here, str) == isinstance(there, str):
                return
            raise _not_apart("conflict", path, other)
    raise _not_apart("overlap", path, other)


def _not_apart(verb: str, path: Path, other: Path) -> InvalidExpression:
    return InvalidExpression(
        f"Two document paths {verb} with each other; must remove or rewrite one of these paths; "
        f"path one: {shown(path)}, path two: {shown(other)}"
    )


def part_of(item: Item, tree: PathTree) -> Item:
    """Return the part of the item that the paths name; lists keep the named elements, in order."""
    found: Any = {}
    members: Any = item
    for name, branch in tree.items():
        value = members.get(name)
        if value is not None:
            part = value if branch is None else _part_of_value(value, branch)
            if part is not None:
                found[name] = part
    result: Item = found
    return result


def _part_of_value(value: AttributeValue, tree: PathTree) -> AttributeValue | None:
    if "M" in value:
        members = part_of(value["M"], tree)
        return {"M": members} if members else None
    if "L" in value:
        elements = value["L"]
        kept = []
        for index in sorted(index for index in tree if isinstance(index, int) and index < len(elements)):
            branch = tree[index]
            part = elements[index] if branch is None else _part_of_value(elements[index], branch)
            if part is not None:
                kept.append(part)
        return {"L": kept} if kept else None
    return None
