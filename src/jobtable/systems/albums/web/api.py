"""Album workflows: executions, their albums, tasks for people, daily metrics."""

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
from jobtable.systems.albums.service import AlbumWorkflows
from jobtable.web.api.route_parts import Body, Id, Written, api_router
from jobtable.web.api.verb_routes import add_verbs
from jobtable.web.guard import READ, WRITE, allow
from jobtable.web.idempotency import CreationRoute
from jobtable.web.injection import Day, Instant, PageOf, Paging, TheStore, path_id, service

router = api_router("albums")
creation = api_router("albums", CreationRoute)

TheAlbums = Annotated[AlbumWorkflows, service(AlbumWorkflows)]
ExecutionId = Annotated[str, path_id("exec-2f1c")]
TaskId = Annotated[str, path_id("task-77aa")]


class NewExecution(Body):
    """An execution to record."""

    execution_id: Id = Field(examples=["exec-2f1c"])
    workflow_type: WorkflowType
    image_s3_key: str = Field(min_length=1, examples=["albums/shelf.jpg"])
    current_step: str | None = None


MOST_ALBUMS = 10_000
"""A bound on requests; the store rejects what does not fit into one item."""


class NewTask(Body):
    """A task for a person."""

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
    """A new task and its token, which is needed to answer it and is shown only this once."""

    token: str


def _view(task: ValidationTask) -> TaskView:
    return TaskView.model_validate(task, from_attributes=True)


def _views(page: PageOf[ValidationTask]) -> PageOf[TaskView]:
    return PageOf(items=[_view(task) for task in page.items], cursor=page.cursor)


def _span(created_from: Instant | None, created_until: Instant | None) -> tuple[Instant, Instant] | None:
    if created_from is None and created_until is None:
        return None
    if created_from is None or created_until is None:
        raise ValueRefusedError("a time span needs both created_from and created_until")
    return created_from, created_until


CreatedFrom = Annotated[Instant | None, Query(description="Created at this time or later; needs created_until.")]
CreatedUntil = Annotated[Instant | None, Query(description="Created at this time or earlier; needs created_from.")]


# --- executions and albums ---------------------------------------------------------------------------------------


@creation.post("/executions", status_code=201)
@allow(WRITE)
def add_execution(body: NewExecution, albums: TheAlbums, store: TheStore) -> Execution:
    """Record a new execution that starts now."""
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
    """List the executions of a workflow type by status and creation, optionally of one status and time span."""
    created = _span(created_from, created_until)
    if status is None:
        if created is not None:
            raise ValueRefusedError("a time span of executions also needs a status")
        return paging.page(albums.list_executions(workflow_type))
    return paging.page(albums.list_executions_by_status(workflow_type, status, created=created))


@router.put("/executions/{execution_id}/albums")
@allow(WRITE)
def put_albums(
    execution_id: ExecutionId, found: Annotated[list[Album], JsonBody(max_length=500)], albums: TheAlbums
) -> Written:
    """Store albums of an execution and replace those with the same index."""
    for album in found:
        if album.execution_id != execution_id:
            raise ValueRefusedError(f"an album names execution {album.execution_id}, not {execution_id}")
    return Written(count=albums.put_albums(found))


@router.get("/executions/{execution_id}/tasks")
@allow(READ)
def list_execution_tasks(
    execution_id: ExecutionId, workflow_type: WorkflowType, albums: TheAlbums, paging: Paging
) -> PageOf[TaskView]:
    """List the tasks of an execution."""
    return _views(paging.page(albums.list_execution_tasks(workflow_type, execution_id)))


# --- tasks -----------------------------------------------------------------------------------------------------------


@router.post("/tasks", status_code=201)
@allow(WRITE)
def create_task(body: NewTask, albums: TheAlbums, store: TheStore) -> CreatedTask:
    """Create a task for a person. Only this response contains the token that answers it."""
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
    """List the tasks of a workflow type with a status, oldest first."""
    return _views(paging.page(store.query(ValidationTask.by_status(workflow_type=workflow_type, status=status))))


@router.get("/tasks/{task_id}")
@allow(READ)
def get_task(task_id: TaskId, albums: TheAlbums) -> TaskView:
    """Return a task."""
    return _view(albums.get_task(task_id))


# --- metrics ---------------------------------------------------------------------------------------------------------


@router.get("/workflow-metrics")
@allow(READ)
def list_workflow_metrics(
    workflow_type: WorkflowType,
    albums: TheAlbums,
    paging: Paging,
    created_from: CreatedFrom = None,
    created_until: CreatedUntil = None,
) -> PageOf[WorkflowMetrics]:
    """List the metrics of a workflow type, oldest first; within a time span only the daily ones."""
    created = _span(created_from, created_until)
    if created is None:
        return paging.page(albums.list_metrics(workflow_type))
    return paging.page(albums.list_daily_metrics(workflow_type, created))


add_verbs(
    router,
    TheAlbums,
    {"execution_id": ExecutionId, "day": Day},
    ("get_execution", "GET /executions/{execution_id}", AlbumWorkflows.get_execution_with_albums),
    ("list_albums", "GET /executions/{execution_id}/albums", AlbumWorkflows.list_albums),
    ("get_album", "GET /executions/{execution_id}/albums/{album_index}", AlbumWorkflows.get_album),
    ("put_metrics", "PUT /workflow-metrics", AlbumWorkflows.put_metrics),
    ("compare_metrics", "GET /workflow-metrics/{day}", AlbumWorkflows.compare_metrics),
)
