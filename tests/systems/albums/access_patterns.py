"""Executions of both workflow types with albums, tasks and metrics."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta

from tests.access_patterns import Question, World

from jobtable.inbox.answer_tokens import token_digest
from jobtable.model import Entity
from jobtable.store import Store
from jobtable.systems.albums.entities import (
    Album,
    AlbumData,
    Execution,
    ExecutionStatus,
    TaskStatus,
    ValidationTask,
    WorkflowMetrics,
    WorkflowType,
    workflows,
)
from jobtable.systems.albums.service import AlbumWorkflows

START = datetime(2025, 1, 15, 10, tzinfo=UTC)
STEP, DURABLE = WorkflowType.STEP_FUNCTIONS, WorkflowType.DURABLE_FUNCTIONS
RUNNING, COMPLETED = ExecutionStatus.RUNNING, ExecutionStatus.COMPLETED


def at(minute: int) -> datetime:
    """A minute of the day."""
    return START + timedelta(minutes=minute)


def execution(name: str, workflow: WorkflowType, minute: int, status: ExecutionStatus = RUNNING) -> Execution:
    """An execution that was created at some minute."""
    now = at(minute)
    return Execution(
        execution_id=name,
        workflow_type=workflow,
        image_s3_key="uploads/a.jpg",
        status=status,
        start_time=now,
        created_at=now,
        updated_at=now,
    )


def album(execution_id: str, index: int, workflow: WorkflowType = STEP) -> Album:
    """An album of an execution."""
    return Album(
        execution_id=execution_id,
        workflow_type=workflow,
        album_index=index,
        album_name="Abbey Road",
        artist="The Beatles",
        year=1969,
        created_at=at(index),
        updated_at=at(index),
    )


def task(name: str, workflow: WorkflowType, minute: int, status: TaskStatus = TaskStatus.PENDING) -> ValidationTask:
    """A task for the execution of its workflow type."""
    return ValidationTask(
        task_id=name,
        workflow_type=workflow,
        execution_id="exec-1" if workflow is STEP else "exec-2",
        status=status,
        image_s3_key="uploads/a.jpg",
        albums=[AlbumData(album_index=1, album_name="Abbey Road", artist="The Beatles", year=1969)],
        token_sha256=token_digest("secret"),
        expires_at=at(minute + 60),
        created_at=at(minute),
    )


def metrics(day: int, workflow: WorkflowType) -> WorkflowMetrics:
    """The metrics of a day in January."""
    return WorkflowMetrics(
        date=date(2025, 1, day),
        workflow_type=workflow,
        execution_count=25,
        success_count=23,
        failure_count=2,
        avg_duration_ms=45000,
        total_cost=0.15,
        avg_cost_per_execution=0.006,
        created_at=datetime(2025, 1, day, 23, 59, 59, tzinfo=UTC),
    )


def items() -> Iterator[Entity]:
    """The world."""
    yield execution("exec-1", STEP, 5)
    yield execution("exec-2", DURABLE, 1)
    yield execution("exec-3", STEP, 3)
    yield execution("exec-4", STEP, 1, COMPLETED)
    for index in (1, 2, 10):
        yield album("exec-1", index)
    yield album("exec-2", 1, DURABLE)
    yield task("task-1", STEP, 4)
    yield task("task-2", DURABLE, 2)
    yield task("task-3", STEP, 1)
    yield task("task-4", STEP, 0, TaskStatus.COMPLETED)
    for day in (14, 15, 16):
        yield metrics(day, STEP)
    yield metrics(15, DURABLE)


def _verbs(store: Store) -> AlbumWorkflows:
    return AlbumWorkflows(store)


def _with_albums(store: Store) -> list[object]:
    found = _verbs(store).get_execution_with_albums("exec-1")
    return [found.execution.execution_id, *(each.album_index for each in found.albums)]


def _compared(store: Store) -> list[object]:
    found = _verbs(store).compare_metrics(date(2025, 1, 15))
    return [each.workflow_type if each else None for each in (found.step_functions, found.durable_functions)]


def _album(store: Store) -> list[int]:
    found = _verbs(store).find_workflow_album(STEP, "exec-1", 10)
    return [found.album_index] if found else []


WORLD = World(
    name="albums",
    tables=(workflows,),
    items=items,
    questions={
        ("albums", "Get execution by ID"): Question(
            lambda s: [_verbs(s).get_execution("exec-1").execution_id], ["exec-1"]
        ),
        ("albums", "Get execution with albums"): Question(_with_albums, ["exec-1", 1, 2, 10]),
        ("albums", "List all executions by workflow type"): Question(
            lambda s: [e.execution_id for e in _verbs(s).list_executions(STEP)], ["exec-4", "exec-3", "exec-1"]
        ),
        ("albums", "List running executions"): Question(
            lambda s: [e.execution_id for e in _verbs(s).list_running_executions(STEP)], ["exec-3", "exec-1"]
        ),
        ("albums", "List executions by date range"): Question(
            lambda s: [
                e.execution_id for e in _verbs(s).list_executions_by_status(STEP, RUNNING, created=(at(0), at(3)))
            ],
            ["exec-3"],
        ),
        ("albums", "Query specific workflow execution"): Question(
            lambda s: [type(item).__name__ for item in _verbs(s).list_execution_items(STEP, "exec-1")],
            ["Album", "Album", "Album", "Execution", "ValidationTask", "ValidationTask", "ValidationTask"],
        ),
        ("albums", "Get specific album"): Question(lambda s: [_verbs(s).get_album("exec-1", 2).album_index], [2]),
        ("albums", "List all albums for execution"): Question(
            lambda s: [each.album_index for each in _verbs(s).list_albums("exec-1")], [1, 2, 10]
        ),
        ("albums", "Query albums by workflow type"): Question(
            lambda s: [each.album_index for each in _verbs(s).list_workflow_albums(STEP, "exec-1")], [1, 2, 10]
        ),
        ("albums", "Query specific album by workflow"): Question(_album, [10]),
        ("albums", "Get task by ID"): Question(lambda s: [_verbs(s).get_task("task-1").task_id], ["task-1"]),
        ("albums", "List pending tasks"): Question(
            lambda s: [t.task_id for t in _verbs(s).list_pending_tasks()], ["task-3", "task-2", "task-1"]
        ),
        ("albums", "List tasks by workflow and status"): Question(
            lambda s: [t.task_id for t in _verbs(s).list_tasks(TaskStatus.PENDING, STEP)], ["task-3", "task-1"]
        ),
        ("albums", "List tasks by date range"): Question(
            lambda s: [t.task_id for t in _verbs(s).list_tasks(TaskStatus.PENDING, created=(at(2), at(9)))],
            ["task-2", "task-1"],
        ),
        ("albums", "Find tasks by execution"): Question(
            lambda s: [t.task_id for t in _verbs(s).list_execution_tasks(DURABLE, "exec-2")], ["task-2"]
        ),
        ("albums", "Get daily metrics for workflow"): Question(
            lambda s: [_verbs(s).get_metrics(date(2025, 1, 14), STEP).date], [date(2025, 1, 14)]
        ),
        ("albums", "Compare patterns"): Question(_compared, [STEP, DURABLE]),
        ("albums", "List metrics by workflow type"): Question(
            lambda s: [m.date.day for m in _verbs(s).list_metrics(STEP)], [14, 15, 16]
        ),
        ("albums", "Query metrics by date range"): Question(
            lambda s: [
                m.date.day
                for m in _verbs(s).list_daily_metrics(
                    STEP, (datetime(2025, 1, 15, tzinfo=UTC), datetime(2025, 1, 16, tzinfo=UTC))
                )
            ],
            [15],
        ),
    },
)
