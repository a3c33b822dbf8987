"""AttributesToGet."""

from __future__ import annotations

from jobtable.embedded.expressions import Projection
from jobtable.embedded.older.comparisons import check_name
from jobtable.embedded.wordings import INVALID
from jobtable.errors import RequestRefused
from jobtable.store.backend import Request


class AttributesToGet(Projection):
    """A projection on whole attributes."""

    __slots__ = ()

    parameter = "AttributesToGet"


def attributes_to_get(request: Request) -> Projection | None:
    """The projection, or RequestRefused; None if the request wants no attributes in particular."""
    names = request.get("AttributesToGet")
    if names is None:
        return None
    seen: set[str] = set()
    for name in names:
        check_name(name)
        if name in seen:
            raise RequestRefused(f"{INVALID}Duplicate value in attribute name: {name}")
        seen.add(name)
    return AttributesToGet(dict.fromkeys(names), frozenset())
