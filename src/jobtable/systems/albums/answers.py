"""Answers to tasks: given with the token, once, in time, as a list of albums."""

from __future__ import annotations

import hmac
from typing import Any

from pydantic import TypeAdapter, ValidationError

from jobtable.clock import wall_time
from jobtable.errors import (
    ConditionFailedError,
    ConflictError,
    TaskClosedError,
    TokenRefusedError,
    ValueRefusedError,
    missing,
)
from jobtable.jobs.engine import Jobs
from jobtable.model import unchanged
from jobtable.systems.albums.definitions import FAIL, HumanStep, load_definition
from jobtable.systems.albums.entities import (
    AlbumData,
    Execution,
    ExecutionStatus,
    TaskStatus,
    ValidationTask,
    token_digest,
)
from jobtable.systems.albums.executions import Executions
from jobtable.systems.albums.moves import Move
from jobtable.systems.albums.service import random_token

_ANSWER = TypeAdapter(list[AlbumData])
_NAMES = {field.attribute: name for name, field in AlbumData.__codec__.fields.items()}
"""Names of fields in stored items, which an answer may use as well: albumName for album_name."""


class Answers:
    """Answers tasks of executions and times them out. A refused answer changes nothing."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._store = jobs.store
        self._executions = Executions(jobs)

    def complete(self, task_id: str, token: str, answered: Any) -> Execution:
        """Answer a task with a list of albums as JSON, and continue its execution. Of several answers one wins.

        TokenRefusedError if the token does not belong to the task, TaskClosedError if the task was answered or has
        expired, ValueRefusedError if these are not the albums that the task asks about.
        """
        task = self._get(task_id)
        if not hmac.compare_digest(token_digest(token), task.token_sha256):
            raise TokenRefusedError(f"the token does not belong to task {task_id}")
        return self._complete(task, answered)

    def complete_by_right(self, task_id: str, answered: Any) -> Execution:
        """Answer a task like `complete`, for a caller who is allowed to do so without its token."""
        return self._complete(self._get(task_id), answered)

    def _complete(self, task: ValidationTask, answered: Any) -> Execution:
        self._refuse_closed(task)
        if self._is_late(task):
            self.time_out(task)
            raise _closed(self._get(task.task_id))
        albums = _validated(task, answered)
        return self._close(task, TaskStatus.COMPLETED, albums)

    def time_out(self, task: ValidationTask) -> Execution:
        """Close a task that nobody answered in time, and continue or fail its execution as its definition says."""
        return self._close(task, TaskStatus.TIMED_OUT, None)

    def renew_token(self, task_id: str) -> str:
        """Return a new token for a pending task; the previous one becomes invalid."""
        task = self._get(task_id)
        self._refuse_closed(task)
        token = random_token()
        try:
            self._store.update(
                ValidationTask.key(task_id=task_id),
                ValidationTask.token_sha256.set(token_digest(token)),
                when=ValidationTask.status == TaskStatus.PENDING,
            )
        except ConditionFailedError:
            raise _closed(self._get(task_id)) from None
        return token

    def _get(self, task_id: str) -> ValidationTask:
        task = self._store.find(ValidationTask.key(task_id=task_id)) if task_id else None
        if task is None:
            raise missing("task", task_id)
        return task

    def _refuse_closed(self, task: ValidationTask) -> None:
        if task.status is not TaskStatus.PENDING:
            raise _closed(task)

    def _is_late(self, task: ValidationTask) -> bool:
        return wall_time(self._jobs.clock) >= task.expires_at

    def _close(self, task: ValidationTask, status: TaskStatus, albums: list[AlbumData] | None) -> Execution:
        """Close the task and move its execution in one transaction; then submit the next step."""
        execution = self._executions.records.get_execution(task.execution_id)
        if execution.status is not ExecutionStatus.WAITING:
            raise _closed(self._get(task.task_id))
        definition = self._executions.get_watch(task.execution_id).definition
        move = Move(self._store, self._jobs.clock, execution)
        move.tx.update(
            ValidationTask.key(task_id=task.task_id),
            ValidationTask.status.set(status),
            ValidationTask.validated_data.set(albums),
            ValidationTask.completed_at.set(move.now),
            when=(ValidationTask.status == TaskStatus.PENDING) & unchanged(task, ValidationTask.token_sha256),
        )
        try:
            execution = self._move(move, execution, definition, status)
        except ConflictError as error:
            raise self._reason(task, error) from error
        return self._executions.submit_step(execution, definition)

    def _move(self, move: Move, execution: Execution, definition: str, status: TaskStatus) -> Execution:
        declared = load_definition(definition)
        step = declared.step(execution.current_step)
        if status is TaskStatus.COMPLETED or not isinstance(step, HumanStep):
            return self._executions.go_on(move, execution, declared.after(step.name))
        if step.on_timeout != FAIL:
            return self._executions.go_on(move, execution, declared.after_timeout(step))
        reason = f"nobody answered step {step.name} in time"
        move.end(ExecutionStatus.FAILED, Execution.failure.set(reason))
        move.commit()
        return self._executions.records.get_execution(execution.execution_id)

    def _reason(self, task: ValidationTask, error: ConflictError) -> Exception:
        """Return why a task could not be closed: it was closed, or its token renewed, meanwhile."""
        now = self._get(task.task_id)
        if now.status is not TaskStatus.PENDING:
            return _closed(now)
        if now.token_sha256 != task.token_sha256:
            return TokenRefusedError(f"the token of task {task.task_id} was renewed")
        return error


def _closed(task: ValidationTask) -> TaskClosedError:
    if task.status is TaskStatus.TIMED_OUT:
        return TaskClosedError(f"task {task.task_id} timed out at {task.expires_at}")
    if task.status is TaskStatus.PENDING:
        return TaskClosedError(f"execution {task.execution_id} is not waiting for task {task.task_id}")
    return TaskClosedError(f"task {task.task_id} was already answered at {task.completed_at}")


def _validated(task: ValidationTask, answered: Any) -> list[AlbumData]:
    """Return the answer as albums: only those of the task, each at most once. Missing ones count as wrong."""
    try:
        albums = _ANSWER.validate_python(with_field_names(answered))
    except ValidationError as error:
        why = "; ".join(f"{'.'.join(map(str, each['loc'])) or 'answer'}: {each['msg']}" for each in error.errors()[:5])
        raise ValueRefusedError(f"the answer to task {task.task_id} must be a list of albums: {why}") from error
    asked = {album.album_index for album in task.albums}
    seen: set[int] = set()
    for album in albums:
        if album.album_index not in asked:
            raise ValueRefusedError(f"task {task.task_id} does not ask about album {album.album_index}")
        if album.album_index in seen:
            raise ValueRefusedError(f"the answer to task {task.task_id} has album {album.album_index} twice")
        seen.add(album.album_index)
    return albums


def with_field_names(answered: Any) -> Any:
    """Return an answer with its fields under their own names."""
    if not isinstance(answered, list):
        return answered
    return [
        {_NAMES.get(name, name): value for name, value in each.items()} if isinstance(each, dict) else each
        for each in answered
    ]
