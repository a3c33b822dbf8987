"""The tasks of executions that wait for a person, as the inbox lists them."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

from jobtable.inbox.waiting_tasks import Waiting
from jobtable.jobs.verbs import JobVerbs
from jobtable.systems.albums.entities import ValidationTask
from jobtable.systems.albums.service import AlbumWorkflows


def waiting_tasks(jobs: JobVerbs, limit: int) -> Iterator[Waiting]:
    """List the pending validation tasks, oldest first."""
    return map(_waiting, AlbumWorkflows(jobs.store).list_pending_tasks(limit=limit))


def _waiting(task: ValidationTask) -> Waiting:
    count = len(task.albums)
    more = f", and {count - 1} more" if count > 1 else ""
    return Waiting(
        title=f"Check {count} album{'' if count == 1 else 's'}",
        path=f"/executions/tasks/{quote(task.task_id, safe='')}",
        icon="executions",
        since=task.created_at,
        detail=f"{task.albums[0].album_name} by {task.albums[0].artist}{more}" if count else "",
        due=task.expires_at,
    )
