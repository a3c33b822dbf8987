"""An execution as it was read, and a change of it: operations and events that are written together or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from jobtable.jobs.stored.entities import Job
from jobtable.jobs.stored.field_types import Status
from jobtable.store import Store
from jobtable.store.transactions import Transaction, grouped
from jobtable.workflows.durable.entities import (
    DurableEvents,
    DurableOperation,
    DurableProgress,
    OperationStatus,
    OperationType,
)

MOST_OPERATIONS = 3_000
MOST_STORED_BYTES = 100_000_000
_MOST_OPERATIONS_TOGETHER = 60
_BYTES_BESIDE = 500
"""The size of an operation without its payloads."""
_MOST_PAGES = 10
"""How many items the events of one transaction take at most; each has a tenth of what a transaction holds."""
_TIMED = frozenset(
    {
        (OperationType.WAIT, OperationStatus.STARTED),
        (OperationType.STEP, OperationStatus.PENDING),
        (OperationType.CALLBACK, OperationStatus.STARTED),
    }
)
"""What an instant may change."""
_AWAITED = _TIMED | {(OperationType.CHAINED_INVOKE, OperationStatus.STARTED)}


@dataclass
class ExecutionState:
    """The operations of a running execution, all or some, as of one revision."""

    progress: DurableProgress
    operations: dict[str, DurableOperation] = field(default_factory=dict)
    """By id, in the order in which they were started."""
    awaited: set[str] = field(default_factory=set)
    """The ids of the operations that end by an instant, an answer or another execution."""

    @classmethod
    def find(cls, store: Store, function: str, name: str) -> ExecutionState | None:
        """Read an execution, or return None if it does not exist or has ended."""
        # The progress first: if something changes while the rest is read, its revision is the older one.
        progress = store.find(DurableProgress.key(function=function, name=name))
        if progress is None:
            return None
        state = cls(progress)
        for operation in store.query(DurableOperation.key(function=function, execution=name)):
            state.take(operation)
        return state

    @classmethod
    def find_with(cls, store: Store, function: str, name: str, number: int) -> ExecutionState | None:
        """Read an execution with one operation alone."""
        progress = store.find(DurableProgress.key(function=function, name=name))
        operation = store.find(DurableOperation.key(function=function, execution=name, number=number))
        if progress is None or operation is None:
            return None
        state = cls(progress)
        state.take(operation)
        return state

    def take(self, operation: DurableOperation) -> None:
        """Replace an operation."""
        self.operations[operation.operation_id] = operation
        if (operation.type, operation.status) in _AWAITED:
            self.awaited.add(operation.operation_id)
        else:
            self.awaited.discard(operation.operation_id)

    def awaited_operations(self) -> list[DurableOperation]:
        """Return the operations that end by themselves or by others, in order."""
        return sorted((self.operations[each] for each in self.awaited), key=lambda operation: operation.number)

    def since(self, revision: int) -> list[DurableOperation]:
        """Return the operations that changed after a revision."""
        return [each for each in self.operations.values() if each.revision > revision]

    def has_news(self) -> bool:
        """Return whether an operation has changed without the handler's knowledge."""
        return any(each.revision > self.progress.seen_revision for each in self.operations.values())

    def next_due(self) -> datetime | None:
        """Return when the execution must be looked at next, or None if it waits for no instant."""
        dues = [at for each in self.awaited_operations() for at in (each.due_at, each.beat_due_at)]
        dues += [self.progress.times_out_at, self.progress.retry_at]
        return min((at for at in dues if at is not None), default=None)


class Change:
    """A change of an execution in memory, until it is written."""

    def __init__(self, state: ExecutionState, now: datetime) -> None:
        self.state = state
        self.now = now
        self.progress: dict[str, Any] = {}
        """The members of the progress item to change."""
        self.beside: list[Callable[[Transaction], None]] = []
        """What else is written in the last transaction."""
        self.is_last = False
        """Whether the execution ends with it."""
        self.is_seen = False
        """Whether the handler learns of all operations, as they are after the change."""
        self._changed: dict[str, DurableOperation] = {}
        self._added = 0
        self._events: list[tuple[str | None, dict[str, Any]]] = []

    # --- operations and events --------------------------------------------------------------------------------------

    def find(self, operation_id: str) -> DurableOperation | None:
        """Return an operation as it will be."""
        return self._changed.get(operation_id) or self.state.operations.get(operation_id)

    def add(self, operation_id: str, **members: Any) -> DurableOperation:
        """Start a new operation."""
        self._added += 1
        progress = self.state.progress
        operation = DurableOperation(
            function=progress.function,
            execution=progress.name,
            number=progress.operation_count + self._added,
            operation_id=operation_id,
            revision=0,
            started_at=self.now,
            **members,
        )
        self._changed[operation_id] = operation
        return operation

    def update(self, operation: DurableOperation, **members: Any) -> DurableOperation:
        """Change an operation."""
        changed = operation.model_copy(update=members)
        self._changed[operation.operation_id] = changed
        return changed

    def record(self, event_type: str, operation: DurableOperation | None = None, **details: Any) -> None:
        """Add an event to the history."""
        event = {"type": event_type, "at": self.now.timestamp(), **details}
        if operation is not None:
            event["operation"] = operation.number
        self._events.append((None if operation is None else operation.operation_id, event))

    @property
    def is_empty(self) -> bool:
        """Whether no operation changes and nothing is recorded."""
        return not (self._changed or self._events)

    @property
    def is_waiting(self) -> bool:
        """Whether some operation will end by an instant, an answer or another execution, or has just ended so."""
        return bool(self.state.awaited or self._changed)

    @property
    def operation_count(self) -> int:
        """How many operations there will be."""
        return self.state.progress.operation_count + self._added

    # --- writing ----------------------------------------------------------------------------------------------------

    def commit(self, store: Store, *, epoch: int | None = None) -> None:
        """Write the change in as few transactions as it fits in, usually one, and bring the state up to date.

        Raises TransactionFailedError if the execution has changed, or if the lease of this epoch is no longer held.
        Each transaction holds on its own: after a crash between two, the rest was not done and is done again.
        """
        groups = list(grouped(self._changed.values(), _MOST_OPERATIONS_TOGETHER, _size_of)) or [[]]
        events = self._events_by_group(groups)
        revision = self.state.progress.revision + len(groups)
        for place, group in enumerate(groups):
            tx = store.transaction()
            stamped = [each.model_copy(update={"revision": revision}) for each in group]
            after = self._write(tx, stamped, events[place], is_final=place == len(groups) - 1)
            if epoch is not None:
                tx.check(Job.key(job_id=after.execution_id), _runs_under(epoch))
            tx.commit()
            self.state.progress = after
            for operation in stamped:
                self.state.take(operation)

    def add_to(self, tx: Transaction) -> None:
        """Add a change of a few operations to a transaction."""
        revision = self.state.progress.revision + 1
        stamped = [each.model_copy(update={"revision": revision}) for each in self._changed.values()]
        self._write(tx, stamped, [event for _, event in self._events], is_final=True)

    def _write(
        self, tx: Transaction, group: list[DurableOperation], events: list[dict[str, Any]], *, is_final: bool
    ) -> DurableProgress:
        before = self.state.progress
        members: dict[str, Any] = {
            "revision": before.revision + 1,
            "operation_count": max((each.number for each in group), default=0),
            "event_count": before.event_count + len(events),
            "stored_bytes": before.stored_bytes + sum(map(_size_of, group)),
        }
        members["operation_count"] = max(before.operation_count, members["operation_count"])
        if is_final:
            members |= self.progress
            if self.is_seen:
                members["seen_revision"] = members["revision"]
        after = before.model_copy(update=members)
        same = (DurableProgress.revision == before.revision) & (DurableProgress.execution_id == before.execution_id)
        if is_final and self.is_last:
            tx.delete(before, when=same)
        else:
            tx.put(after, when=same)
        for operation in group:
            tx.put(operation)
        for first, page in _pages(events, before.event_count + 1):
            tx.add(DurableEvents(function=before.function, execution=before.name, first_id=first, events=page))
        if is_final:
            for write in self.beside:
                write(tx)
        return after

    def _events_by_group(self, groups: list[list[DurableOperation]]) -> list[list[dict[str, Any]]]:
        """Return the events of each group; those of no operation come last."""
        places = {each.operation_id: place for place, group in enumerate(groups) for each in group}
        events: list[list[dict[str, Any]]] = [[] for _ in groups]
        for operation_id, event in self._events:
            events[places.get(operation_id or "", len(groups) - 1)].append(event)
        return events


def _runs_under(epoch: int) -> Any:
    return (Job.lease_epoch == epoch) & (Job.status == Status.RUNNING) & Job.lease_seconds.exists()


def _size_of(operation: DurableOperation) -> int:
    error = 0 if operation.error is None else len(json.dumps(operation.error))
    texts = (operation.result, operation.input)
    return _BYTES_BESIDE + error + sum(len(each) for each in texts if isinstance(each, str))


def _pages(events: list[dict[str, Any]], first_id: int) -> Iterator[tuple[int, str]]:
    """Yield the events in texts that each fit into an item, with the id of the first."""
    texts = [json.dumps(event, separators=(",", ":")) for event in events]
    start = 0
    for group in grouped(range(len(texts)), len(texts) or 1, lambda place: len(texts[place]) * _MOST_PAGES):
        yield first_id + start, f"[{','.join(texts[place] for place in group)}]"
        start += len(group)
