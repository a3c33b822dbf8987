"""What waits for a person, as the overview lists it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from jobtable.app import Services
from jobtable.errors import TableNotFound
from jobtable.system import declared


@dataclass(frozen=True)
class Notice:
    """One thing that waits for a person: a link, and since when."""

    title: str
    path: str
    icon: str
    since: datetime
    detail: str = ""


@dataclass(frozen=True)
class Notices:
    """What waits for a person in one system, and the page that lists all of it."""

    items: list[Notice]
    more_path: str | None = None
    more_title: str = ""
    has_more: bool = False


def list_notices(services: Services, limit: int) -> list[Notices]:
    """What waits for a person, system by system, at most `limit` of each. A system without its tables has nothing."""
    found = []
    for system, path in declared("attention"):
        try:
            notices: Notices = system.load(path)(services, limit + 1)
        except TableNotFound:  # it is not deployed here
            continue
        found.append(replace(notices, items=notices.items[:limit], has_more=len(notices.items) > limit))
    return found
