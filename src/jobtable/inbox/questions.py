"""Questions: asked by a workflow or a program, answered by a person, once, in time, as their schema says."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from jobtable.clock import wall_time
from jobtable.errors import (
    AlreadyExistsError,
    ConditionFailedError,
    TaskClosedError,
    ValueRefusedError,
)
from jobtable.inbox import delivery
from jobtable.inbox.answer_tokens import check_token, random_token, token_digest
from jobtable.inbox.closing import BY_TIME, LONGEST_REMARK, close, refuse_closed
from jobtable.inbox.entities import InboxTask, TaskKind, TaskStatus
from jobtable.inbox.schema_checks import check_answer, check_schema
from jobtable.inbox.waiting_workflows import WaitingWorkflows
from jobtable.jobs.engine import Jobs
from jobtable.model import Json
from jobtable.store import TryAgain

WORKFLOWS = "workflows"
"""The system of the questions of workflows."""
LONGEST_WAIT = timedelta(days=366)
_TIMEOUT = "States.Timeout"
TEXT: Mapping[str, Any] = {"type": "string", "minLength": 1}
"""The schema of an answer for which the question names none."""


@dataclass(frozen=True)
class Question:
    """What a person is asked."""

    title: str
    text: str = ""
    schema: Json = None
    """The JSON schema of the answer; without it and without choices, the answer is a text."""
    choices: Sequence[Json] = ()
    answer_within: timedelta = timedelta(days=7)
    on_expiry: Literal["fail", "timeout"] = "fail"
    """With what the workflow goes on if nobody answers: the error `expired_error`, or a timeout."""
    rejected_error: str = "Rejected"
    expired_error: str = "Expired"
    deliver: str | None = None
    """The function `module:NAME`, called with the task and its token, that sends both to a person."""
    about: str | None = None
    """The path of the page of what it is about."""
    system: str = WORKFLOWS

    @property
    def answer_schema(self) -> Json:
        """The schema that every answer must meet."""
        if self.choices and self.schema is not None:
            raise ValueRefusedError("a question has a schema or choices, not both")
        if self.choices:
            return {"enum": list(self.choices)}
        return dict(TEXT) if self.schema is None else self.schema


@dataclass(frozen=True)
class Asked:
    """A question in the inbox, and the token that answers it, which is stored nowhere."""

    task: InboxTask
    token: str


class Questions:
    """Questions on one job engine. Safe to use from any thread and process."""

    def __init__(self, jobs: Jobs) -> None:
        self._store = jobs.store
        self._workflows = WaitingWorkflows(jobs)

    def ask(
        self,
        question: Question,
        *,
        by: str = "local",
        workflow_token: str | None = None,
        task_id: str | None = None,
    ) -> Asked:
        """Store a question, and deliver it if it names a function for that. `workflow_token` is what waits for it.

        Asked again with the same id, the pending question gets a new token, because the first may not have been sent.
        """
        schema = question.answer_schema
        check_schema(schema)
        if not timedelta(seconds=1) <= question.answer_within <= LONGEST_WAIT:
            raise ValueRefusedError(
                f"the time for an answer is from a second to {LONGEST_WAIT.days} days, not {question.answer_within}"
            )
        if question.deliver is not None:
            delivery.load_sender(question.deliver)
        token = random_token()
        workflow = None if workflow_token is None else self._workflows.find(workflow_token)
        expires_at = wall_time(self._store.clock) + question.answer_within
        now = self._store.clock.now()
        task = InboxTask(
            task_id=task_id or str(uuid.uuid4()),
            kind=TaskKind.QUESTION,
            system=question.system,
            title=question.title,
            text=question.text,
            about=question.about,
            created_at=now,
            created_by=by,
            expires_at=expires_at,
            due_at=expires_at if workflow is None else self._workflows.next_look(now, now, expires_at),
            answer_schema=schema,
            token_sha256=token_digest(token),
            deliver=question.deliver,
            workflow=workflow,
            rejected_error=question.rejected_error,
            expired_error=_TIMEOUT if question.on_expiry == "timeout" else question.expired_error,
        )
        try:
            self._store.add(task)
        except AlreadyExistsError:
            task = self._store.get(InboxTask.key(task_id=task.task_id))
            if task.status is not TaskStatus.PENDING or not self._give_token(task, token):
                return Asked(task, token)
        return Asked(self._delivered(task, token), token)

    def _delivered(self, task: InboxTask, token: str) -> InboxTask:
        problem = None if task.deliver is None else delivery.deliver(task.deliver, task, token)
        if problem is None:
            return task
        return self._store.update(InboxTask.key(task_id=task.task_id), InboxTask.delivery_problem.set(problem))

    def _give_token(self, task: InboxTask, token: str) -> bool:
        """Replace the token of a pending question; return whether it is pending."""
        pending = InboxTask.status == TaskStatus.PENDING
        digest = InboxTask.token_sha256.set(token_digest(token))
        try:
            self._store.update(InboxTask.key(task_id=task.task_id), digest, when=pending)
        except ConditionFailedError:
            return False
        return True

    def renew_token(self, task_id: str) -> str:
        """Return a new token for a pending question; the previous one becomes invalid."""
        task = self._store.get(InboxTask.key(task_id=task_id))
        refuse_closed(task, TaskKind.QUESTION)
        token = random_token()
        if not self._give_token(task, token):
            refuse_closed(self._store.get(InboxTask.key(task_id=task_id)))
        return token

    # --- answers ----------------------------------------------------------------------------------------------------

    def answer(self, task_id: str, answer: Json, *, by: str = "local", token: str | None = None) -> InboxTask:
        """Answer a question; the workflow that waits for it goes on. Of several answers one wins.

        ValueRefusedError if the answer does not meet the schema, TaskClosedError if the question is closed,
        TokenRefusedError for a token of another question. Without a token, the caller's own rights count.
        """

        def check(task: InboxTask) -> None:
            if token is not None:
                check_token(token, task.token_sha256, task_id)
            self._refuse_late(task)
            check_answer(answer, task.answer_schema, task_id)

        closed = close(
            self._store,
            task_id,
            TaskStatus.ANSWERED,
            by,
            InboxTask.answer.set(answer),
            kind=TaskKind.QUESTION,
            check=check,
        )
        return self._passed_on(closed)

    def reject(
        self, task_id: str, *, by: str = "local", remark: str | None = None, token: str | None = None
    ) -> InboxTask:
        """Reject a proposal, or refuse to answer a question: its workflow gets the error that it names."""
        if remark is not None and len(remark) > LONGEST_REMARK:
            raise ValueRefusedError(f"a remark has at most {LONGEST_REMARK:,} characters")

        def check(task: InboxTask) -> None:
            if token is not None:
                check_token(token, task.token_sha256, task_id)

        said = InboxTask.remark.set(remark)
        return self._passed_on(close(self._store, task_id, TaskStatus.REJECTED, by, said, check=check))

    def withdraw(self, task_id: str, *, by: str = "local") -> InboxTask:
        """Withdraw a proposal, or a question that no workflow waits for."""

        def check(task: InboxTask) -> None:
            if task.workflow is not None and self._workflows.still_waits(task):
                raise TaskClosedError(f"a workflow waits for task {task_id}", hint="reject it")

        return self._passed_on(close(self._store, task_id, TaskStatus.WITHDRAWN, by, check=check))

    def _refuse_late(self, task: InboxTask) -> None:
        if wall_time(self._store.clock) >= task.expires_at:
            self.look_at(task)
            refuse_closed(self._store.get(InboxTask.key(task_id=task.task_id)))
            raise TryAgain

    # --- what is due ------------------------------------------------------------------------------------------------

    def look_at(self, task: InboxTask) -> InboxTask:
        """Do what is due: expire a task, withdraw a question of a workflow that has ended, pass an outcome on."""
        now = wall_time(self._store.clock)
        if task.status is TaskStatus.PENDING:
            if now >= task.expires_at:
                return self._passed_on(self._close_if_pending(task, TaskStatus.EXPIRED))
            if task.workflow is not None and not self._workflows.still_waits(task):
                return self._passed_on(self._close_if_pending(task, TaskStatus.WITHDRAWN))
            due = (
                task.expires_at
                if task.workflow is None
                else self._workflows.next_look(task.created_at, now, task.expires_at)
            )
            return self._due_again(task, due)
        return self._passed_on(task)

    def _close_if_pending(self, task: InboxTask, status: TaskStatus) -> InboxTask:
        try:
            return close(self._store, task.task_id, status, BY_TIME if status is TaskStatus.EXPIRED else "its workflow")
        except TaskClosedError:
            return self._store.get(InboxTask.key(task_id=task.task_id))

    def _passed_on(self, task: InboxTask) -> InboxTask:
        """Tell the workflow how its question was closed. The watch does that if this process dies before."""
        if task.workflow is None or task.due_at is None or task.status is TaskStatus.PENDING:
            return task
        problem = self._workflows.tell(task)
        return self._due_again(task, None, problem)

    def _due_again(self, task: InboxTask, due: Any, problem: str | None = None) -> InboxTask:
        """Set when to look again, unless the task has changed meanwhile, which sets its own time."""
        told = () if problem is None else (InboxTask.problem.set(problem),)
        try:
            same = (InboxTask.status == task.status) & (InboxTask.due_at == task.due_at)
            return self._store.update(InboxTask.key(task_id=task.task_id), InboxTask.due_at.set(due), *told, when=same)
        except ConditionFailedError:
            return self._store.get(InboxTask.key(task_id=task.task_id))
