"""Items that only the role full may read: tokens, and stored responses to other callers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from jobtable.access.entities import AccessToken, AnsweredRequest, Role
from jobtable.model import Entity, Table
from jobtable.web.guard import Caller
from jobtable.web.problems import Refused

_WITHHELD: tuple[type[Entity], ...] = (AccessToken, AnsweredRequest)


def is_withheld(entity: str, caller: Caller) -> bool:
    """Return whether the caller may not read the items of an entity."""
    return caller.role is not Role.FULL and any(entity == each.__schema__.name for each in _WITHHELD)


def refuse_withheld(table: Table, partition: Iterable[str], caller: Caller) -> None:
    """Raise Refused with 403 if a key names a partition of such items, in the table or an index.

    Such items have partitions of their own, so reads of other partitions need no filter.
    """
    if caller.role is Role.FULL:
        return
    for text in partition:
        for name, beginning in _beginnings(table):
            if text.startswith(beginning):
                raise Refused(403, f"{text[:100]!r} holds items of {name}, which only the role full may read")


def texts_in(request: Any) -> Iterator[str]:
    """Yield every text value in a request of DynamoDB's API, because any of them may be compared with a key.

    A text with another purpose that starts like such a partition is refused too, which is harmless.
    """
    if isinstance(request, dict):
        for name, value in request.items():
            if name == "S" and isinstance(value, str):
                yield value
            else:
                yield from texts_in(value)
    elif isinstance(request, list):
        for value in request:
            yield from texts_in(value)


def _beginnings(table: Table) -> Iterator[tuple[str, str]]:
    """Yield the prefixes of the partitions of such items, each with the name of its entity."""
    for entity in _WITHHELD:
        schema = entity.__schema__
        if schema.table is table:
            for key in schema.keys:
                part = key.partition[0]
                yield schema.name, part.constant or (part.template.prefix_of({}) if part.template else "")
