"""The tasks that a person should answer."""

from __future__ import annotations

from urllib.parse import quote

from jobtable.app import Services
from jobtable.systems.albums.entities import ValidationTask
from jobtable.systems.albums.service import AlbumWorkflows
from jobtable.web.notices import Notice, Notices


def waiting_tasks(services: Services, limit: int) -> Notices:
    """The pending validation tasks, oldest first."""
    pending = services.get(AlbumWorkflows).list_pending_tasks(limit=limit)
    return Notices([_notice(task) for task in pending], "/executions/tasks", "all tasks")


def _notice(task: ValidationTask) -> Notice:
    count = len(task.albums)
    more = f", and {count - 1} more" if count > 1 else ""
    detail = f"{task.albums[0].album_name} by {task.albums[0].artist}{more}" if count else ""
    title = f"Check {count} album{'' if count == 1 else 's'}"
    return Notice(title, f"/executions/tasks/{quote(task.task_id, safe='')}", "executions", task.created_at, detail)
