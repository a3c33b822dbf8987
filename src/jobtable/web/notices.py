"""Tasks that wait for a person, as the overview lists them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from jobtable.app import Services
from jobtable.errors import TableNotFound
from jobtable.system import declared


@dataclass(frozen=True)
class Notice:
    """One task that waits for a person: a link, and since when."""

    title: str
    path: str
    icon: str
    since: datetime
    detail: str = ""


@dataclass(frozen=True)
class Notices:
    """The tasks of one system that wait for a person, and the page that lists all of them."""

    items: list[Notice]
    more_path: str | None = None
    more_title: str = ""
    has_more: bool = False


def list_notices(services: Services, limit: int) -> list[Notices]:
    """Return what waits for a person, at most `limit` of each system, skipping systems without their tables."""
    found = []
    for system, path in declared("attention"):
        try:
            notices: Notices = system.load(path)(services, limit + 1)
        except TableNotFound:  # it is not deployed here
            continue
        found.append(replace(notices, items=notices.items[:limit], has_more=len(notices.items) > limit))
    return found
