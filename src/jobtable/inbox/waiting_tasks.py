"""What waits for a person, of the inbox itself and of the systems that keep tasks of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from urllib.parse import quote

from jobtable.errors import TableNotFound
from jobtable.inbox.entities import InboxTask, TaskStatus
from jobtable.jobs.verbs import JobVerbs
from jobtable.system import declared


@dataclass(frozen=True)
class Waiting:
    """One task that waits for a person: a link, since when, and until when."""

    title: str
    path: str
    icon: str
    since: datetime
    detail: str = ""
    due: datetime | None = None
    system: str = ""
    task_id: str | None = None
    """Of a task of the inbox itself; None if the page at the path answers it."""


def list_waiting(jobs: JobVerbs, limit: int) -> list[Waiting]:
    """Return what waits for a person, the oldest first; at most `limit`, of which no source can take all.

    A system without its tables has nothing that waits.
    """
    found = [each for source in _sources(jobs, limit) for each in source]
    return sorted(found, key=lambda each: each.since)[:limit]


def _sources(jobs: JobVerbs, limit: int) -> Iterator[list[Waiting]]:
    pending = jobs.store.query(InboxTask.by_status(status=TaskStatus.PENDING), limit=limit)
    yield [waiting_task(task) for task in pending]
    for system, path in declared("inbox"):
        try:
            yield [replace(each, system=system.name) for each in system.load(path)(jobs, limit)]
        except TableNotFound:  # it is not deployed here
            continue


def waiting_task(task: InboxTask) -> Waiting:
    """Return a task of the inbox as it is listed with those of the systems."""
    return Waiting(
        task.title,
        f"/inbox/{quote(task.task_id, safe='')}",
        "inbox",
        task.created_at,
        task.reason or task.text,
        task.expires_at,
        task.system,
        task.task_id,
    )
