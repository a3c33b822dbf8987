"""How a task is closed: once, by a condition on its status."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from jobtable.errors import TaskClosedError, TransactionFailedError
from jobtable.inbox.entities import InboxTask, TaskKind, TaskStatus
from jobtable.model import Update
from jobtable.store import Store, TryAgain
from jobtable.store.transactions import Transaction

LONGEST_REMARK = 2000
BY_TIME = "time"
"""Who closes a task that nobody did in time."""
_ENDS = {
    TaskStatus.ANSWERED: "answered",
    TaskStatus.ACCEPTED: "accepted",
    TaskStatus.REJECTED: "rejected",
    TaskStatus.WITHDRAWN: "withdrawn",
}


def add_closing(tx: Transaction, task: InboxTask, status: TaskStatus, by: str, now: datetime, *updates: Update) -> None:
    """Add the end of a pending task. If a workflow waits for it, the watch is due until that has learned of it."""
    waits = task.workflow is not None
    tx.update(
        task,
        InboxTask.status.set(status),
        InboxTask.closed_by.set(by),
        InboxTask.closed_at.set(now),
        InboxTask.due_at.set(now if waits else None),
        *updates,
        when=InboxTask.status == TaskStatus.PENDING,
    )


def close(
    store: Store,
    task_id: str,
    status: TaskStatus,
    by: str,
    *updates: Update,
    kind: TaskKind | None = None,
    check: Callable[[InboxTask], Any] | None = None,
) -> InboxTask:
    """Close a task, or raise TaskClosedError; of several callers one wins. `check` may refuse before."""

    def act(task: InboxTask) -> None:
        refuse_closed(task, kind)
        if check is not None:
            check(task)
        try:
            with store.transaction() as tx:
                add_closing(tx, task, status, by, store.clock.now(), *updates)
        except TransactionFailedError as error:
            raise TryAgain from error

    def read() -> InboxTask:
        return store.get(InboxTask.key(task_id=task_id))

    store.retrying(read, act, f"close task {task_id}")
    return read()


def refuse_closed(task: InboxTask, kind: TaskKind | None = None) -> None:
    """Raise TaskClosedError for a task that is closed, or that is of another kind than the act asks for."""
    if kind is not None and task.kind is not kind:
        verb = "accept or reject" if task.kind is TaskKind.PROPOSAL else "answer or reject"
        raise TaskClosedError(f"task {task.task_id} is a {task.kind}", hint=f"{verb} it")
    if task.status is TaskStatus.EXPIRED:
        raise TaskClosedError(f"task {task.task_id} expired at {task.expires_at}")
    if task.status is not TaskStatus.PENDING:
        how = _ENDS[task.status]
        raise TaskClosedError(f"task {task.task_id} was already {how} by {task.closed_by} at {task.closed_at}")
