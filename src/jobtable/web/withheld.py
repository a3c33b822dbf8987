"""Items that only those may read who may do everything: the tokens, and the answers that others got."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from jobtable.access.entities import AccessToken, AnsweredRequest, Role
from jobtable.model import Entity, Table
from jobtable.web.guard import Caller
from jobtable.web.problems import Refused

_WITHHELD: tuple[type[Entity], ...] = (AccessToken, AnsweredRequest)


def is_withheld(entity: str, caller: Caller) -> bool:
    """Whether the caller may not read the items of the entity of that name."""
    return caller.role is not Role.FULL and any(entity == each.__schema__.name for each in _WITHHELD)


def refuse_withheld(table: Table, partition: Iterable[str], caller: Caller) -> None:
    """Refused with 403 where the values name a partition of such items, of the table or of an index.

    No other items stand in these partitions, and these items stand in no others, so nothing has to be left out
    of what is read elsewhere.
    """
    if caller.role is Role.FULL:
        return
    for text in partition:
        for name, beginning in _beginnings(table):
            if text.startswith(beginning):
                raise Refused(403, f"{text[:100]!r} holds items of {name}: to read them needs the role full")


def texts_in(request: Any) -> Iterator[str]:
    """Every text that a request of DynamoDB's API compares keys with, wherever it stands.

    A condition could name its values in many ways. A text that is compared with something else and begins like
    such a partition is refused as well, which costs nobody anything.
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
    """How the partitions begin in which the items stand, each with the name of its entity."""
    for entity in _WITHHELD:
        schema = entity.__schema__
        if schema.table is table:
            for key in schema.keys:
                part = key.partition[0]
                yield schema.name, part.constant or (part.template.prefix_of({}) if part.template else "")
