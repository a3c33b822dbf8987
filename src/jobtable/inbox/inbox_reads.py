"""What can be read of the inbox."""

from __future__ import annotations

from jobtable.inbox.entities import InboxRule, InboxTask, TaskKind, TaskStatus
from jobtable.store import Query, Store
from jobtable.store.patterns import access_pattern


class InboxReads:
    """What can be read of the inbox of one store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @access_pattern("Get a task of the inbox")
    def get(self, task_id: str) -> InboxTask:
        """Return a task, or raise NotFoundError."""
        return self._store.get(InboxTask.key(task_id=task_id))

    @access_pattern("Tasks of the inbox by status", index="GSI1")
    def list(
        self,
        status: TaskStatus = TaskStatus.PENDING,
        *,
        kind: TaskKind | None = None,
        newest_first: bool = False,
    ) -> Query[InboxTask]:
        """List the tasks with a status by creation."""
        where = None if kind is None else InboxTask.kind == kind
        return self._store.query(InboxTask.by_status(status=status), newest_first=newest_first, where=where)

    @access_pattern("Tasks of one system by due time", index="GSI2")
    def list_of_system(
        self, system: str, status: TaskStatus = TaskStatus.PENDING, *, kind: TaskKind | None = None
    ) -> Query[InboxTask]:
        """List the tasks of a system with a status; those first that expire first."""
        where = None if kind is None else InboxTask.kind == kind
        return self._store.query(InboxTask.of_system(system=system, status=status), where=where)

    @access_pattern("Tasks that are due", index="GSI3")
    def list_due(self) -> Query[InboxTask]:
        """List the tasks of which something is left to do, by the time when it is."""
        return self._store.query(InboxTask.due())

    @access_pattern("Rules of the inbox")
    def list_rules(self) -> Query[InboxRule]:
        """List the rules that accept proposals, in no particular order."""
        return self._store.query(InboxRule.key())

    def count_pending(self, most: int) -> int:
        """Count the tasks that wait for a person, up to so many."""
        pending = self._store.values(InboxTask.by_status(status=TaskStatus.PENDING), InboxTask.status)
        return sum(1 for _ in pending.take(most))
