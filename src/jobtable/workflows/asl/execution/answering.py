"""Answers to tasks: the holders of task tokens send them, and activities are polled for tasks."""

from __future__ import annotations

import uuid
from typing import Any

from jobtable.errors import TaskClosedError, TokenRefusedError
from jobtable.store.transactions import Transaction
from jobtable.workflows.asl.entities import ActivityTask, Execution, ExecutionFrame, ExecutionStatus, TaskToken
from jobtable.workflows.asl.execution.execution_core import ExecutionCore, digest_of_token
from jobtable.workflows.asl.execution.links import link_to
from jobtable.workflows.asl.execution.signals import leave
from jobtable.workflows.asl.execution.starting import check_payload
from jobtable.workflows.durable.large_payloads import PayloadOwner

_FIRST_LOOK_SECONDS = 0.02
_LONGEST_LOOK_SECONDS = 1.0
_MOST_OFFERED = 20
"""How many of the oldest tasks a poller tries to take before it looks again."""


class TaskAnswers:
    """Takes the answers to tasks. Each wakes the execution's job in its own transaction."""

    def __init__(self, core: ExecutionCore) -> None:
        self._core = core

    def succeed(self, token: str, output: str) -> None:
        """Answer a task with JSON text."""
        check_payload(output)
        self._answer(token, "Succeeded", output)

    def fail(self, token: str, error: str | None, cause: str | None) -> None:
        """Answer a task with a failure."""
        self._answer(token, "Failed", cause, error=error)

    def beat(self, token: str) -> None:
        """Report that a worker lives."""
        self._answer(token, "Heartbeat", None)

    def _answer(self, token: str, kind: str, payload: str | None, **members: Any) -> None:
        key = TaskToken.key(sha256=digest_of_token(token))

        def act(found: TaskToken | None) -> None:
            if found is None:
                raise TokenRefusedError("there is no task with this token")
            execution, frame = self._waiting(found)
            link = link_to(execution, found.frame_id, found.visit)
            now = self._core.now()
            stored = self._core.texts.store(payload, PayloadOwner.at(link))
            with self._core.store.transaction() as tx:
                if kind != "Heartbeat":
                    tx.update(key, TaskToken.answered_at.set(now), when=TaskToken.answered_at.missing())
                tx.check(frame, ExecutionFrame.visit == found.visit)
                leave(self._core.store, tx, now, link, kind, key=str(uuid.uuid4()), payload=stored, **members)

        self._core.store.retrying(lambda: self._core.store.find(key), act, "answer a task")

    def _waiting(self, token: TaskToken) -> tuple[Execution, ExecutionFrame]:
        """Return what waits for an answer, or raise TaskClosedError."""
        keys = {"machine": token.machine, "name": token.name}
        execution = self._core.store.find(Execution.key(**keys))
        frame = self._core.store.find(ExecutionFrame.key(**keys, frame_id=token.frame_id))
        if token.answered_at is not None:
            raise TaskClosedError("the task is closed: it has been answered")
        if execution is None or execution.status is not ExecutionStatus.RUNNING:
            raise TaskClosedError("the task is closed: its execution has ended")
        if frame is None or frame.visit != token.visit:
            raise TaskClosedError("the task is closed: its execution no longer waits for it")
        return execution, frame

    # --- activities -------------------------------------------------------------------------------------------------

    def poll(self, activity: str, worker: str, wait_seconds: float) -> ActivityTask | None:
        """Take the oldest task of an activity; None if there is none within that time."""
        clock = self._core.clock
        until, pause = clock.monotonic() + wait_seconds, _FIRST_LOOK_SECONDS
        while True:
            mark = self._core.store.change_mark()
            if (task := self._take_one(activity, worker)) is not None:
                return task
            while True:
                if clock.monotonic() >= until:
                    return None
                clock.sleep(min(pause, max(until - clock.monotonic(), 0)))
                pause = min(pause * 2, _LONGEST_LOOK_SECONDS)
                if mark is None or self._core.store.change_mark() != mark:
                    break

    def _take_one(self, activity: str, worker: str) -> ActivityTask | None:
        for task in list(self._core.store.query(ActivityTask.key(activity=activity), limit=_MOST_OFFERED)):
            if self._take(task, worker):
                return task
        return None

    def _take(self, task: ActivityTask, worker: str) -> bool:
        """Take a task, unless another poller was faster; one that nobody waits for any more is deleted."""
        store = self._core.store

        def act(found: ActivityTask | None) -> bool:
            if found is None:
                return False
            token = store.get(TaskToken.key(sha256=digest_of_token(found.token)))
            try:
                execution, frame = self._waiting(token)
            except TaskClosedError:
                store.delete(found)
                return False
            with store.transaction() as tx:
                self._add_taking(tx, found, execution, frame, worker)
            return True

        return store.retrying(lambda: store.find(_key_of(task)), act, "take a task", first=task)

    def _add_taking(
        self, tx: Transaction, task: ActivityTask, execution: Execution, frame: ExecutionFrame, worker: str
    ) -> None:
        tx.delete(task, when=ActivityTask.token == task.token)
        tx.check(frame, ExecutionFrame.visit == task.visit)
        link = link_to(execution, task.frame_id, task.visit)
        details = {"workerName": worker} if worker else {}
        now = self._core.now()
        more = {"details": details, "at": now.isoformat()}
        leave(self._core.store, tx, now, link, "Started", key=str(uuid.uuid4()), **more)


def _key_of(task: ActivityTask) -> Any:
    names = ("activity", "scheduled_at", "machine", "name", "frame_id", "visit")
    return ActivityTask.key(**{name: getattr(task, name) for name in names})
