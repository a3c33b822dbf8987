"""Album workflows: executions, the albums they find, tasks for people, daily metrics."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import Body as JsonBody
from fastapi import Query
from pydantic import BaseModel, Field

from jobtable.errors import ValueRefusedError
from jobtable.systems.albums.entities import (
    Album,
    AlbumData,
    Execution,
    ExecutionStatus,
    TaskStatus,
    ValidationTask,
    WorkflowMetrics,
    WorkflowType,
)
from jobtable.systems.albums.service import ExecutionWithAlbums, MetricsComparison
from jobtable.systems.albums.web.dependencies import TheAlbums
from jobtable.web.api.parts import Body, Id, Written, api_router
from jobtable.web.dependencies import Day, Instant, PageOf, Paging, TheStore, path_id
from jobtable.web.guard import READ, WRITE, allow
from jobtable.web.idempotency import CreationRoute

router = api_router("albums")
creation = api_router("albums", CreationRoute)

ExecutionId = Annotated[str, path_id("exec-2f1c")]
TaskId = Annotated[str, path_id("task-77aa")]


class NewExecution(Body):
    """An execution to record."""

    execution_id: Id = Field(examples=["exec-2f1c"])
    workflow_type: WorkflowType
    image_s3_key: str = Field(min_length=1, examples=["albums/shelf.jpg"])
    current_step: str | None = None


MOST_ALBUMS = 10_000
"""More than one item has room for: how many it can be, the store says."""


class NewTask(Body):
    """A question to a person."""

    task_id: Id = Field(examples=["task-77aa"])
    execution_id: Id = Field(examples=["exec-2f1c"])
    workflow_type: WorkflowType
    image_s3_key: str = Field(min_length=1, examples=["albums/shelf.jpg"])
    albums: list[AlbumData] = Field(max_length=MOST_ALBUMS)
    expires_in_seconds: float = Field(86400, gt=0, le=366 * 86400)


class TaskView(BaseModel):
    """A task without the digest of its token."""

    task_id: str
    execution_id: str
    workflow_type: WorkflowType
    status: TaskStatus
    image_s3_key: str
    albums: list[AlbumData]
    validated_data: list[AlbumData] | None
    created_at: Instant
    expires_at: Instant
    completed_at: Instant | None


class CreatedTask(TaskView):
    """A new task. Its token, with which it is answered, is shown this once."""

    token: str


def _view(task: ValidationTask) -> TaskView:
    return TaskView.model_validate(task, from_attributes=True)


def _span(created_from: Instant | None, created_until: Instant | None) -> tuple[Instant, Instant] | None:
    if created_from is None and created_until is None:
        return None
    if created_from is None or created_until is None:
        raise ValueRefusedError("a span of time has two ends: give created_from and created_until")
    return created_from, created_until


CreatedFrom = Annotated[Instant | None, Query(description="Created then or later; needs created_until.")]
CreatedUntil = Annotated[Instant | None, Query(description="Created then or earlier; needs created_from.")]


# --- executions and albums ---------------------------------------------------------------------------------------


@creation.post("/executions", status_code=201)
@allow(WRITE)
def add_execution(body: NewExecution, albums: TheAlbums, store: TheStore) -> Execution:
    """Record a new execution that runs from now on."""
    now = store.clock.now()
    execution = Execution(**body.model_dump(), start_time=now, created_at=now, updated_at=now)
    albums.add_execution(execution)
    return execution


@router.get("/executions")
@allow(READ)
def list_executions(
    workflow_type: WorkflowType,
    albums: TheAlbums,
    paging: Paging,
    status: ExecutionStatus | None = None,
    created_from: CreatedFrom = None,
    created_until: CreatedUntil = None,
) -> PageOf[Execution]:
    """The executions of a workflow type by status and creation; of one status, and then of a span of time."""
    created = _span(created_from, created_until)
    if status is None:
        if created is not None:
            raise ValueRefusedError("executions of a span of time are found by their status: give status as well")
        return paging.page(albums.list_executions(workflow_type))
    return paging.page(albums.list_executions_by_status(workflow_type, status, created=created))


@router.get("/executions/{execution_id}")
@allow(READ)
def get_execution(execution_id: ExecutionId, albums: TheAlbums) -> ExecutionWithAlbums:
    """An execution with its albums."""
    return albums.get_execution_with_albums(execution_id)


@router.put("/executions/{execution_id}/albums")
@allow(WRITE)
def put_albums(
    execution_id: ExecutionId, found: Annotated[list[Album], JsonBody(max_length=500)], albums: TheAlbums
) -> Written:
    """Store albums of an execution, each in place of the one that is there."""
    for album in found:
        if album.execution_id != execution_id:
            raise ValueRefusedError(f"an album of execution {album.execution_id} is not one of {execution_id}")
    return Written(count=albums.put_albums(found))


@router.get("/executions/{execution_id}/albums")
@allow(READ)
def list_albums(execution_id: ExecutionId, albums: TheAlbums) -> list[Album]:
    """The albums of an execution by their index."""
    return albums.list_albums(execution_id)


@router.get("/executions/{execution_id}/albums/{album_index}")
@allow(READ)
def get_album(execution_id: ExecutionId, album_index: int, albums: TheAlbums) -> Album:
    """One album of an execution."""
    return albums.get_album(execution_id, album_index)


@router.get("/executions/{execution_id}/tasks")
@allow(READ)
def list_execution_tasks(
    execution_id: ExecutionId, workflow_type: WorkflowType, albums: TheAlbums, paging: Paging
) -> PageOf[TaskView]:
    """The tasks of an execution."""
    page = paging.page(albums.list_execution_tasks(workflow_type, execution_id))
    return PageOf(items=[_view(task) for task in page.items], cursor=page.cursor)


# --- tasks -----------------------------------------------------------------------------------------------------------


@router.post("/tasks", status_code=201)
@allow(WRITE)
def create_task(body: NewTask, albums: TheAlbums, store: TheStore) -> CreatedTask:
    """Ask a person. The token that answers the task is in this answer and nowhere else."""
    now = store.clock.now()
    task = ValidationTask(
        **body.model_dump(exclude={"expires_in_seconds"}),
        token_sha256="",
        created_at=now,
        expires_at=now + timedelta(seconds=body.expires_in_seconds),
    )
    token = albums.create_task(task)
    return CreatedTask(token=token, **_view(task).model_dump())


@router.get("/tasks")
@allow(READ)
def list_tasks(
    workflow_type: WorkflowType, store: TheStore, paging: Paging, status: TaskStatus = TaskStatus.PENDING
) -> PageOf[TaskView]:
    """The tasks of a workflow type with a status, oldest first."""
    page = paging.page(store.query(ValidationTask.by_status(workflow_type=workflow_type, status=status)))
    return PageOf(items=[_view(task) for task in page.items], cursor=page.cursor)


@router.get("/tasks/{task_id}")
@allow(READ)
def get_task(task_id: TaskId, albums: TheAlbums) -> TaskView:
    """One task."""
    return _view(albums.get_task(task_id))


# --- metrics ---------------------------------------------------------------------------------------------------------


@router.put("/workflow-metrics")
@allow(WRITE)
def put_metrics(metrics: WorkflowMetrics, albums: TheAlbums) -> WorkflowMetrics:
    """Store a day's metrics in place of earlier ones."""
    albums.put_metrics(metrics)
    return metrics


@router.get("/workflow-metrics")
@allow(READ)
def list_workflow_metrics(
    workflow_type: WorkflowType,
    albums: TheAlbums,
    paging: Paging,
    created_from: CreatedFrom = None,
    created_until: CreatedUntil = None,
) -> PageOf[WorkflowMetrics]:
    """The metrics of a workflow type, oldest first; of a span of time only the daily ones."""
    created = _span(created_from, created_until)
    if created is None:
        return paging.page(albums.list_metrics(workflow_type))
    return paging.page(albums.list_daily_metrics(workflow_type, created))


@router.get("/workflow-metrics/{day}")
@allow(READ)
def compare_metrics(day: Day, albums: TheAlbums) -> MetricsComparison:
    """The metrics of both workflow types for a day, side by side."""
    return albums.compare_metrics(day)
