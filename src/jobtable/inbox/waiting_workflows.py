"""The workflows that wait for answers: found by their token's digest, and told the outcome."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from jobtable.errors import NotFoundError, TaskClosedError, TokenRefusedError
from jobtable.inbox.answer_tokens import token_digest
from jobtable.inbox.entities import InboxTask, TaskStatus
from jobtable.jobs.engine import Jobs
from jobtable.workflows.asl.entities import Execution, ExecutionFrame, ExecutionStatus, TaskToken
from jobtable.workflows.asl.execution import links
from jobtable.workflows.asl.execution.executions import executions_of
from jobtable.workflows.durable.durable_tokens import CallbackId, DurableTokens
from jobtable.workflows.durable.entities import DurableExecution, DurableOperation, OperationStatus

_FIRST_LOOK = timedelta(seconds=30)


class WaitingWorkflows:
    """State machines and durable functions that wait for a person."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._store = jobs.store

    @cached_property
    def _tokens(self) -> DurableTokens:
        return DurableTokens(self._store)

    def find(self, token: str) -> dict[str, Any]:
        """Return what to store of a task token or callback id: its address, without what opens it."""
        if self._store.find(TaskToken.key(sha256=token_digest(token))) is not None:
            return {"sha256": token_digest(token)}
        try:
            return vars(self._tokens.read_callback_id(token))
        except TokenRefusedError:
            raise TokenRefusedError("no workflow of this store waits with this token") from None

    @staticmethod
    def next_look(created_at: datetime, now: datetime, expires_at: datetime) -> datetime:
        """Return when to see whether a workflow still waits: the longer it has waited, the less often."""
        return min(expires_at, now + max(_FIRST_LOOK, now - created_at))

    def still_waits(self, task: InboxTask) -> bool:
        """Return whether the workflow of a question still waits for its answer."""
        if "sha256" in task.workflow:
            at = self._store.find(TaskToken.key(sha256=task.workflow["sha256"]))
            return at is not None and at.answered_at is None and self._frame_waits(at)
        named = CallbackId(**task.workflow)
        execution = self._store.find(DurableExecution.key(function=named.function, name=named.execution))
        operation = self._store.find(
            DurableOperation.key(function=named.function, execution=named.execution, number=named.number)
        )
        if execution is None or execution.execution_id != named.execution_id or execution.ended_at is not None:
            return False
        return operation is not None and operation.status is OperationStatus.STARTED

    def _frame_waits(self, at: TaskToken) -> bool:
        execution = self._store.find(Execution.key(machine=at.machine, name=at.name))
        frame = self._store.find(ExecutionFrame.key(machine=at.machine, name=at.name, frame_id=at.frame_id))
        if execution is None or execution.status is not ExecutionStatus.RUNNING:
            return False
        return frame is not None and frame.visit == at.visit

    def tell(self, task: InboxTask) -> str | None:
        """Answer the workflow of a closed question; return why it did not want to know. Repeating it is harmless."""
        if task.status is TaskStatus.WITHDRAWN:
            return None
        try:
            if "sha256" in task.workflow:
                self._tell_machine(task)
            else:
                self._tell_durable(task)
        except (TaskClosedError, NotFoundError) as error:
            return None if self._was_told(task) else f"its workflow did not take it: {error}"
        return None

    def _was_told(self, task: InboxTask) -> bool:
        """Return whether the workflow has an answer: as a rule this one, from a process that died before it said so."""
        if "sha256" in task.workflow:
            at = self._store.find(TaskToken.key(sha256=task.workflow["sha256"]))
            return at is not None and at.answered_at is not None
        named = CallbackId(**task.workflow)
        key = DurableOperation.key(function=named.function, execution=named.execution, number=named.number)
        operation = self._store.find(key)
        return operation is not None and operation.status in (OperationStatus.SUCCEEDED, OperationStatus.FAILED)

    def _tell_machine(self, task: InboxTask) -> None:
        at = self._store.get(TaskToken.key(sha256=task.workflow["sha256"]))
        execution = self._store.get(Execution.key(machine=at.machine, name=at.name))
        token = self._tokens.task_token(links.execution_id(execution), at.frame_id, at.visit)
        executions = executions_of(self._jobs)
        if task.status is TaskStatus.ANSWERED:
            executions.succeed(token, json.dumps(task.answer))
        else:
            executions.fail(token, *_failure(task))

    def _tell_durable(self, task: InboxTask) -> None:
        from jobtable.workflows.durable.function_tasks import service_of  # noqa: PLC0415 - loads the durable service

        callback_id = self._tokens.callback_id(CallbackId(**task.workflow))
        service = service_of(self._jobs)
        if task.status is TaskStatus.ANSWERED:
            service.succeed_callback(callback_id, json.dumps(task.answer))
        else:
            error, cause = _failure(task)
            service.fail_callback(callback_id, {"ErrorType": error, "ErrorMessage": cause})


def _failure(task: InboxTask) -> tuple[str, str]:
    """Return the error name and the cause of a question that was not answered."""
    if task.status is TaskStatus.EXPIRED:
        return str(task.expired_error), f"nobody answered task {task.task_id} in time"
    return str(task.rejected_error), task.remark or f"{task.closed_by} rejected task {task.task_id}"
