"""Executions with many albums and tasks, and many of them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

from tests.systems.albums import access_patterns as albums
from tests.web.crowd import at

from jobtable.app import Services
from jobtable.model import Entity
from jobtable.systems.albums.entities import ExecutionStatus, TaskStatus, WorkflowMetrics, WorkflowType
from jobtable.systems.albums.service import AlbumWorkflows

STEP = WorkflowType.STEP_FUNCTIONS
IDS = {"album_index": "3", "comparison_id": "none", "day": "2025-01-01", "execution_id": "exec-1", "task_id": "task"}
"""What paths of routes say, by the name of the parameter."""
ASKED: dict[str, list[str]] = {
    "/api/v1/executions": ["workflow_type=step-functions"],
    "/api/v1/executions/{execution_id}/tasks": ["workflow_type=step-functions"],
    "/api/v1/tasks": ["workflow_type=step-functions"],
    "/api/v1/workflow-metrics": ["workflow_type=step-functions"],
}
"""Queries of routes, beside what their paths say."""
WHOLE: dict[str, str] = {
    "/api/v1/executions/{execution_id}": "an execution with all its albums",
    "/api/v1/executions/{execution_id}/albums": "as above",
    "/executions/{execution_id}": "an execution with all its albums",
}
"""What is asked for as a whole, and is as large as it is."""


def fill(services: Services, count: int) -> None:
    """Write so many of everything."""
    services.get(AlbumWorkflows)  # with its table
    for entity in _albums(count):
        services.store.put(entity)  # kinds that share their keys are put one by one


def _albums(count: int) -> Iterator[Entity]:
    yield albums.execution("exec-1", STEP, 0)
    for n in range(count):
        yield albums.album("exec-1", n)
        for kind in WorkflowType:
            for status in (ExecutionStatus.COMPLETED, ExecutionStatus.FAILED):
                now = at(n)
                made = albums.execution(f"exec-{kind}-{status}-{n}", kind, 0, status)
                yield made.replace(created_at=now, updated_at=now, start_time=now)
            for task_status in TaskStatus:
                yield albums.task(
                    "task" if (n, kind) == (0, STEP) else f"t-{kind}-{task_status}-{n}", kind, n, task_status
                )
            yield WorkflowMetrics(
                **{**albums.metrics(1, kind).model_dump(), "date": date(2000, 1, 1) + timedelta(days=n)}
            ).replace(created_at=at(n))
