"""The records of album workflows: executions, their albums, tasks for people, and daily metrics."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from itertools import islice
from typing import Self

from jobtable.errors import missing
from jobtable.inbox.answer_tokens import random_token, token_digest
from jobtable.jobs.engine import Jobs
from jobtable.model import Entity
from jobtable.store import Query, Store
from jobtable.store.patterns import access_pattern
from jobtable.systems.albums.entities import (
    Album,
    Execution,
    ExecutionStatus,
    TaskStatus,
    ValidationTask,
    WorkflowMetrics,
    WorkflowType,
)

Span = tuple[datetime, datetime]
"""A time span, both ends included."""


@dataclass(frozen=True)
class ExecutionWithAlbums:
    """An execution, and its albums by index."""

    execution: Execution
    albums: list[Album]


@dataclass(frozen=True)
class MetricsComparison:
    """The metrics of both workflow types for one day; None if a type has none."""

    step_functions: WorkflowMetrics | None
    durable_functions: WorkflowMetrics | None


class AlbumWorkflows:
    """Stores and reads executions of both workflow types, with their albums, tasks and metrics."""

    def __init__(self, store: Store, *, make_token: Callable[[], str] = random_token) -> None:
        self._store = store
        self._make_token = make_token

    @classmethod
    def of(cls, jobs: Jobs) -> Self:
        """Make the service on the store of the jobs."""
        return cls(jobs.store)

    # --- executions -------------------------------------------------------------------------------------------------

    def add_execution(self, execution: Execution) -> None:
        """Store a new execution, or raise AlreadyExistsError."""
        self._store.add(execution)

    @access_pattern("Get execution by ID")
    def get_execution(self, execution_id: str) -> Execution:
        """Return an execution, or raise NotFoundError."""
        return self._store.get(Execution.key(execution_id=execution_id))

    @access_pattern("Get execution with albums")
    def get_execution_with_albums(self, execution_id: str) -> ExecutionWithAlbums:
        """Return an execution with its albums, with one query, or raise NotFoundError."""
        execution: Execution | None = None
        albums: list[Album] = []
        for item in self._store.collection(Execution.key(execution_id=execution_id)):
            if isinstance(item, Execution):
                execution = item
            elif isinstance(item, Album):
                albums.append(item)
        if execution is None:
            raise missing("execution", execution_id)
        return ExecutionWithAlbums(execution, _by_index(albums))

    @access_pattern("List all executions by workflow type", index="GSI1")
    def list_executions(self, workflow_type: WorkflowType) -> Query[Execution]:
        """List the executions of a workflow type, by status and then by creation."""
        return self._store.query(Execution.by_status(workflow_type=workflow_type))

    @access_pattern("List running executions", index="GSI1")
    def list_running_executions(self, workflow_type: WorkflowType) -> Query[Execution]:
        """List the running executions of a workflow type, oldest first."""
        return self.list_executions_by_status(workflow_type, ExecutionStatus.RUNNING)

    @access_pattern("List executions by date range", index="GSI1")
    def list_executions_by_status(
        self,
        workflow_type: WorkflowType,
        status: ExecutionStatus,
        *,
        created: Span | None = None,
        newest_first: bool = False,
    ) -> Query[Execution]:
        """List the executions of a workflow type with a status, oldest first, optionally within a time span."""
        selected = Execution.by_status(workflow_type=workflow_type, status=status)
        return self._store.query(selected, between=created, newest_first=newest_first)

    def list_newest_executions(
        self, workflow_type: WorkflowType | None = None, status: ExecutionStatus | None = None, *, limit: int
    ) -> list[Execution]:
        """List the newest executions, optionally of one workflow type or status."""
        types = list(WorkflowType) if workflow_type is None else [workflow_type]
        statuses = list(ExecutionStatus) if status is None else [status]
        keys = [Execution.by_status(workflow_type=t, status=s) for t in types for s in statuses]
        found = [each for key in keys for each in self._store.query(key, newest_first=True, limit=limit)]
        # By id, because an execution may move to another status meanwhile.
        once = {execution.execution_id: execution for execution in found}.values()
        return sorted(once, key=lambda execution: execution.created_at, reverse=True)[:limit]

    @access_pattern("Query specific workflow execution", index="GSI2")
    def list_execution_items(self, workflow_type: WorkflowType, execution_id: str) -> Query[Entity]:
        """List everything of an execution: albums by index, the execution, tasks."""
        return self._store.collection(Execution.by_execution(workflow_type=workflow_type, execution_id=execution_id))

    # --- albums -----------------------------------------------------------------------------------------------------

    def put_albums(self, albums: Iterable[Album]) -> int:
        """Store albums, each on its own, and return their number."""
        return self._store.batch_put(albums)

    @access_pattern("Get specific album")
    def get_album(self, execution_id: str, album_index: int) -> Album:
        """Return an album of an execution, or raise NotFoundError."""
        return self._store.get(Album.key(execution_id=execution_id, album_index=album_index))

    @access_pattern("List all albums for execution")
    def list_albums(self, execution_id: str) -> list[Album]:
        """List the current albums of an execution by index."""
        return _by_index(self._store.query(Album.key(execution_id=execution_id)))

    @access_pattern("Query albums by workflow type", index="GSI2")
    def list_workflow_albums(self, workflow_type: WorkflowType, execution_id: str) -> Query[Album]:
        """List the albums of an execution by index, from the secondary index."""
        return self._store.query(Album.by_execution(workflow_type=workflow_type, execution_id=execution_id))

    @access_pattern("Query specific album by workflow", index="GSI2")
    def find_workflow_album(self, workflow_type: WorkflowType, execution_id: str, album_index: int) -> Album | None:
        """Return an album of an execution of a workflow type, or None."""
        selection = Album.by_execution(workflow_type=workflow_type, execution_id=execution_id, sort_value=album_index)
        return self._store.query(selection).first()

    # --- tasks ------------------------------------------------------------------------------------------------------

    def create_task(self, task: ValidationTask) -> str:
        """Store a new task and return its token, of which only a digest is stored."""
        token = self._make_token()
        self._store.add(task.replace(token_sha256=token_digest(token)))
        return token

    @access_pattern("Get task by ID")
    def get_task(self, task_id: str) -> ValidationTask:
        """Return a task, or raise NotFoundError."""
        return self._store.get(ValidationTask.key(task_id=task_id))

    @access_pattern("List pending tasks", index="GSI1")
    def list_pending_tasks(self, *, limit: int | None = None) -> Iterator[ValidationTask]:
        """List the tasks of both workflow types that wait for an answer, oldest first; at most `limit`."""
        return self.list_tasks(TaskStatus.PENDING, limit=limit)

    @access_pattern("List tasks by workflow and status", index="GSI1")
    @access_pattern("List tasks by date range", index="GSI1")
    def list_tasks(
        self,
        status: TaskStatus,
        workflow_type: WorkflowType | None = None,
        *,
        created: Span | None = None,
        limit: int | None = None,
    ) -> Iterator[ValidationTask]:
        """List the tasks with a status, oldest first, optionally of one workflow type or within a time span.

        With `limit`, at most that many are read of each type.
        """
        types = list(WorkflowType) if workflow_type is None else [workflow_type]
        queries = (
            self._store.query(ValidationTask.by_status(workflow_type=each, status=status), between=created, limit=limit)
            for each in types
        )
        return islice(heapq.merge(*queries, key=lambda task: task.created_at), limit)

    @access_pattern("Find tasks by execution", index="GSI2")
    def list_execution_tasks(self, workflow_type: WorkflowType, execution_id: str) -> Query[ValidationTask]:
        """List the tasks of an execution."""
        return self._store.query(ValidationTask.by_execution(workflow_type=workflow_type, execution_id=execution_id))

    # --- metrics ----------------------------------------------------------------------------------------------------

    def put_metrics(self, metrics: WorkflowMetrics) -> WorkflowMetrics:
        """Store the metrics of a day and replace earlier ones."""
        self._store.put(metrics)
        return metrics

    @access_pattern("Get daily metrics for workflow")
    def get_metrics(self, day: date, workflow_type: WorkflowType) -> WorkflowMetrics:
        """Return the metrics of a workflow type for a day, or raise NotFoundError."""
        return self._store.get(WorkflowMetrics.key(date=day, workflow_type=workflow_type))

    @access_pattern("Compare patterns")
    def compare_metrics(self, day: date) -> MetricsComparison:
        """Return the metrics of both workflow types for a day, with one query."""
        found = {metrics.workflow_type: metrics for metrics in self._store.query(WorkflowMetrics.key(date=day))}
        return MetricsComparison(
            step_functions=found.get(WorkflowType.STEP_FUNCTIONS),
            durable_functions=found.get(WorkflowType.DURABLE_FUNCTIONS),
        )

    @access_pattern("List metrics by workflow type", index="GSI1")
    def list_metrics(self, workflow_type: WorkflowType) -> Query[WorkflowMetrics]:
        """List the metrics of a workflow type, by period and then oldest first."""
        return self._store.query(WorkflowMetrics.by_period(workflow_type=workflow_type))

    @access_pattern("Query metrics by date range", index="GSI1")
    def list_daily_metrics(self, workflow_type: WorkflowType, created: Span) -> Query[WorkflowMetrics]:
        """List the daily metrics of a workflow type within a time span, oldest first."""
        return self._store.query(
            WorkflowMetrics.by_period(workflow_type=workflow_type, status="daily"), between=created
        )


def _by_index(albums: Iterable[Album]) -> list[Album]:
    return sorted(albums, key=lambda album: album.album_index)
