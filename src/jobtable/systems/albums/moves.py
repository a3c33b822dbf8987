"""The moves of executions: from step to step, to a person and back, to the end."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta

from jobtable.clock import Clock, wall_time
from jobtable.errors import ConflictError, TransactionFailedError, ValueRefusedError
from jobtable.model import Update
from jobtable.store import Store, requests
from jobtable.systems.albums.definitions import AnyStep, HumanStep
from jobtable.systems.albums.entities import (
    Album,
    AlbumData,
    Execution,
    ExecutionStatus,
    ExecutionWatch,
    ValidationTask,
    WorkflowType,
    token_digest,
)

LOOK_AGAIN = timedelta(seconds=10)
"""How often the watch checks on the job of a running execution."""
DELIVER_WITHIN = timedelta(minutes=1)
"""The watch sends a question that was not sent by then, because the process that should send it has died."""
_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True)
class AskedTask:
    """A new task and the token that answers it, which is not stored."""

    task: ValidationTask
    token: str
    sender: str | None
    """`module:function` that sends both to a person; None if a person finds the task without it."""


class Move:
    """One move of an execution, in one transaction with the watch over it.

    It fails if the execution has moved since it was read. More actions may be added to `tx`.
    """

    def __init__(self, store: Store, clock: Clock, execution: Execution) -> None:
        self.tx = store.transaction()
        self.now = clock.now()
        self._wall = wall_time(clock)
        """The base of due times, because others compare them with their own wall clocks."""
        self._execution = execution
        self._watch = ExecutionWatch.key(execution_id=execution.execution_id)

    def go_on(self, step: AnyStep | None, *updates: Update, albums: list[Album], token: str) -> AskedTask | None:
        """Enter a step, or complete the execution if there is none. Return the question if a person is asked.

        ValueRefusedError if there are more albums than an answer can hold.
        """
        if step is None:
            self.end(ExecutionStatus.COMPLETED, *updates)
            return None
        if isinstance(step, HumanStep):
            question = self._ask(step, albums, token, updates)
            asked = question.task
            due = (ExecutionWatch.due_at.set(self._due(step, asked)), ExecutionWatch.task_id.set(asked.task_id))
            self.tx.update(self._watch, *due)
            return question
        self._update(ExecutionStatus.RUNNING, Execution.current_step.set(step.name), *updates)
        watched = [ExecutionWatch.due_at.set(self._wall + LOOK_AGAIN)]
        seen = self._execution
        if seen.status is ExecutionStatus.WAITING or seen.workflow_type is WorkflowType.STEP_FUNCTIONS:
            watched.append(ExecutionWatch.job_step.set(step.name))
        self.tx.update(self._watch, *watched)
        return None

    def _ask(self, step: HumanStep, albums: list[Album], token: str, updates: tuple[Update, ...]) -> AskedTask:
        execution = self._execution
        task = ValidationTask(
            task_id=str(uuid.uuid4()),
            execution_id=execution.execution_id,
            workflow_type=execution.workflow_type,
            image_s3_key=execution.image_s3_key,
            albums=[as_data(album) for album in albums],
            token_sha256=token_digest(token),
            expires_at=self._wall + step.expires_in,
            created_at=self.now,
        )
        _refuse_unanswerable(task)
        self.tx.add(task)
        asked = Execution.task_ids.set([*(execution.task_ids or []), task.task_id])
        self._update(ExecutionStatus.WAITING, Execution.current_step.set(step.name), asked, *updates)
        return AskedTask(task, token, step.deliver)

    def _due(self, step: HumanStep, task: ValidationTask) -> datetime:
        """Return when to check on a task: when it expires or, if it must be sent, when that should be done."""
        return task.expires_at if step.deliver is None else min(task.expires_at, self._wall + DELIVER_WITHIN)

    def retry(
        self, step: AnyStep, definition: str, last_task_id: str | None, *, albums: list[Album], token: str
    ) -> AskedTask | None:
        """Start the next attempt of a failed execution at the step that failed; a person is asked again."""
        seen = self._execution
        updates = (
            Execution.attempt.set((seen.attempt or 1) + 1),
            Execution.attempt_started_at.set(self.now),
            Execution.earlier_ms.set(seen.duration_ms or 0),
            Execution.end_time.set(None),
            Execution.duration_ms.set(None),
            Execution.failure.set(None),
        )
        question, due_at = None, self._wall + LOOK_AGAIN
        if isinstance(step, HumanStep):
            question = self._ask(step, albums, token, updates)
            due_at = self._due(step, question.task)
        else:
            self._update(ExecutionStatus.RUNNING, *updates)
        self.tx.add(
            ExecutionWatch(
                execution_id=seen.execution_id,
                workflow_type=seen.workflow_type,
                due_at=due_at,
                definition=definition,
                job_step=step.name,
                task_id=last_task_id if question is None else question.task.task_id,
            )
        )
        return question

    def end(self, status: ExecutionStatus, *updates: Update) -> None:
        """End the execution."""
        seen = self._execution
        duration = (self.now - (seen.attempt_started_at or seen.start_time)) // _MILLISECOND
        took = (seen.earlier_ms or 0) + max(0, duration)
        self._update(status, Execution.end_time.set(self.now), Execution.duration_ms.set(took), *updates)
        self.tx.delete(self._watch)

    def _update(self, status: ExecutionStatus, *updates: Update) -> None:
        seen = self._execution
        here = (Execution.status == seen.status) & (Execution.current_step == seen.current_step)
        here &= Execution.attempt.missing() if seen.attempt is None else Execution.attempt == seen.attempt
        here &= Execution.deleted_at.missing()
        changes = (Execution.status.set(status), Execution.updated_at.set(self.now), *updates)
        self.tx.update(Execution.key(execution_id=seen.execution_id), *changes, when=here)

    def commit(self) -> None:
        """Make the move, or raise ConflictError and change nothing."""
        try:
            self.tx.commit()
        except TransactionFailedError as error:
            seen = self._execution
            raise ConflictError(
                f"execution {seen.execution_id} is no longer {seen.status} at step {seen.current_step}: {error}"
            ) from error


def _refuse_unanswerable(task: ValidationTask) -> None:
    """Raise ValueRefusedError if the question and its answer do not fit into one item."""
    try:
        requests.put(task.replace(validated_data=task.albums), None)
    except ValueRefusedError as error:
        raise ValueRefusedError(
            f"execution {task.execution_id} has {len(task.albums):,} albums, too many for one question; "
            f"split them into several executions ({error})"
        ) from error


def as_data(album: Album) -> AlbumData:
    """Return the data of an album that a person sees."""
    return AlbumData(**{name: getattr(album, name) for name in AlbumData.model_fields})
