"""Answers to tasks: given with the token, once, in time, as a list of albums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import TypeAdapter, ValidationError

from jobtable.clock import wall_time
from jobtable.errors import (
    ConditionFailedError,
    TaskClosedError,
    TokenRefusedError,
    TransactionFailedError,
    ValueRefusedError,
    missing,
)
from jobtable.inbox.answer_tokens import check_token, random_token, token_digest
from jobtable.jobs.engine import Jobs
from jobtable.model import unchanged
from jobtable.store import TryAgain
from jobtable.systems.albums.album_executions import Executions, refuse_former
from jobtable.systems.albums.entities import (
    AlbumData,
    Execution,
    ExecutionStatus,
    TaskStatus,
    ValidationTask,
)

_ANSWER = TypeAdapter(list[AlbumData])
_NAMES = {field.attribute: name for name, field in AlbumData.__codec__.fields.items()}
"""Names of fields in stored items, which an answer may use as well: albumName for album_name."""


class Answers:
    """Answers tasks of executions. A refused answer changes nothing."""

    def __init__(self, jobs: Jobs, *, make_token: Callable[[], str] = random_token) -> None:
        self._jobs = jobs
        self._store = jobs.store
        self._executions = Executions(jobs)
        self._make_token = make_token

    def complete(self, task_id: str, token: str, answered: Any) -> Execution:
        """Answer a task with a list of albums as JSON, and continue its execution. Of several answers one wins.

        TokenRefusedError if the token does not belong to the task, TaskClosedError if the task was answered or has
        expired, ValueRefusedError if these are not the albums that the task asks about.
        """
        task = self._get(task_id)
        check_token(token, task.token_sha256, task_id)
        return self._complete(task, answered)

    def complete_by_right(self, task_id: str, answered: Any) -> Execution:
        """Answer a task like `complete`, for a caller who is allowed to do so without its token."""
        return self._complete(self._get(task_id), answered)

    def _complete(self, task: ValidationTask, answered: Any) -> Execution:
        """Record an answer, and pass it on to the workflow; the watch does that if this process dies in between."""
        self._refuse_closed(task)
        refuse_former(self._executions.find_watch(task.execution_id))
        if wall_time(self._jobs.clock) >= task.expires_at:
            self.time_out(task)
            raise _closed(self._get(task.task_id))
        albums = _validated(task, answered)
        self._store.retrying(
            lambda: self._executions.records.get_execution(task.execution_id),
            lambda execution: self._record(task, execution, albums),
            f"answer task {task.task_id}",
        )
        execution = self._executions.records.get_execution(task.execution_id)
        self._executions.resume(execution)
        return self._executions.records.get_execution(task.execution_id)

    def _record(self, task: ValidationTask, execution: Execution, albums: list[AlbumData]) -> None:
        if execution.status is not ExecutionStatus.WAITING or task.task_id not in (execution.task_ids or []):
            raise _closed(self._get(task.task_id))
        from jobtable.systems.albums.album_functions import add_closing  # noqa: PLC0415 - they read pictures

        here = unchanged(task, ValidationTask.token_sha256)
        try:
            with self._store.transaction() as tx:
                now = self._jobs.clock.now()
                add_closing(tx, task, execution, TaskStatus.COMPLETED, now, when=here, answer=albums)
        except TransactionFailedError as error:
            current = self._get(task.task_id)
            if current.status is not TaskStatus.PENDING:
                raise _closed(current) from error
            if current.token_sha256 != task.token_sha256:
                raise TokenRefusedError(f"the token of task {task.task_id} was renewed") from error
            raise TryAgain from error

    def time_out(self, task: ValidationTask) -> None:
        """Close a task that nobody answered in time; its workflow notices that by itself."""
        from jobtable.systems.albums.album_functions import time_out  # noqa: PLC0415 - they read pictures

        time_out(self._store, task, self._jobs.clock.now())

    def renew_token(self, task_id: str) -> str:
        """Return a new token for a pending task; the previous one becomes invalid."""
        task = self._get(task_id)
        self._refuse_closed(task)
        token = self._make_token()
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
