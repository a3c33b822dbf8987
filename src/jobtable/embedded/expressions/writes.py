"""Writing at document paths of an item without changing the item."""

from __future__ import annotations

from typing import Any

from jobtable.embedded.expressions.paths import Path, value_at
from jobtable.embedded.values import BECOMES_TOO_DEEP, MAX_CONTAINER_DEPTH, container_depth
from jobtable.errors import RequestRefused
from jobtable.store.backend import AttributeValue, Item


def check_writable(item: Item, path: Path) -> None:
    """RequestRefused if the map or list in which the path ends is not there."""
    if len(path) > 1:
        parent = value_at(item, path[:-1])
        if parent is None or ("M" if isinstance(path[-1], str) else "L") not in parent:
            raise RequestRefused("The document path provided in the update expression is invalid for update")


def written(item: Item, writes: list[tuple[Path, AttributeValue | None]]) -> Item:
    """A new item with these values at these paths, which do not overlap; None removes what is there.

    Every index means a place in the old lists: values beyond the end of one are appended in the order of their
    indexes, and what is removed leaves no gap.
    """
    new = dict(item)
    appended: list[tuple[Path, AttributeValue]] = []
    removed: list[Path] = []
    for path, value in writes:
        if value is None:
            removed.append(path)
        else:
            _check_depth(path, value)
            if isinstance(path[-1], int) and value_at(item, path) is None:
                appended.append((path, value))
            else:
                _own_container(new, path)[path[-1]] = value
    for path, value in sorted(appended, key=lambda write: write[0]):
        _own_container(new, path).append(value)
    # From the back, so that what is still to be removed keeps its place.
    for path in sorted(removed, reverse=True):
        if value_at(item, path) is not None:
            del _own_container(new, path)[path[-1]]
    return new


def written_flat(item: Item, writes: list[tuple[Path, AttributeValue | None]]) -> Item:
    """The same for paths that are whole attributes."""
    new = dict(item)
    for (name, *_), value in writes:
        if value is None:
            new.pop(str(name), None)
        else:
            if "L" in value or "M" in value:
                _check_depth((name,), value)
            new[str(name)] = value
    return new


def _own_container(item: Item, path: Path) -> Any:
    """The dict or list in which the path ends, as a copy that only this item has."""
    container: Any = item
    for part in path[:-1]:
        [(kind, content)] = container[part].items()
        copied = content.copy()
        container[part] = {kind: copied}
        container = copied
    return container


def _check_depth(path: Path, value: AttributeValue) -> None:
    if ("L" in value or "M" in value) and len(path) - 1 + container_depth(value) > MAX_CONTAINER_DEPTH:
        raise RequestRefused(BECOMES_TOO_DEEP)
