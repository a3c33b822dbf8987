"""Where a job that belongs to something of a system is shown as part of it."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from jobtable.jobs.lifecycle.owners import owner_of
from jobtable.jobs.stored.entities import Job
from jobtable.system import system_named


@dataclass(frozen=True)
class OwnerLink:
    """The page of what a job belongs to."""

    name: str
    path: str


def owner_link(job: Job, parent: Job | None) -> OwnerLink | None:
    """Return the page of what a job under that parent belongs to; None for a job that stands alone."""
    owner = owner_of(job, parent)
    system = None if owner is None else system_named(owner.system)
    if owner is None or system is None or system.job_page is None:
        return None
    page_id = owner.id if owner.page_id is None else owner.page_id
    path = system.job_page.format(id=quote(page_id, safe=""))
    return OwnerLink(f"{system.thing or system.title} {page_id}", path) if page_id else None
