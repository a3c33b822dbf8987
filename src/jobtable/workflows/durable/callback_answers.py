"""The answers to callbacks, by the holders of their ids."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from jobtable.errors import TaskClosedError, ValueRefusedError
from jobtable.jobs.stored.entities import Job
from jobtable.workflows.durable.durable_core import DurableCore
from jobtable.workflows.durable.durable_tokens import CallbackId
from jobtable.workflows.durable.entities import DurableOperation, OperationStatus
from jobtable.workflows.durable.execution_state import Change, ExecutionState
from jobtable.workflows.durable.large_payloads import PayloadOwner, size_of
from jobtable.workflows.durable.operation_changes import after, end_operation
from jobtable.workflows.durable.operation_updates import check_error

MOST_ANSWER_BYTES = 1_048_576


class CallbackAnswers:
    """Ends callbacks. Each answer wakes the execution's job in its own transaction."""

    def __init__(self, core: DurableCore) -> None:
        self._core = core

    def succeed(self, callback_id: str, result: str | None) -> None:
        """Answer a callback with a text."""
        if size_of(result) > MOST_ANSWER_BYTES:
            raise ValueRefusedError(
                f"The result of a callback must be less than or equal to {MOST_ANSWER_BYTES} bytes."
            )
        named = self._core.tokens.read_callback_id(callback_id)
        owner = PayloadOwner(named.function, named.execution_id, named.execution)
        stored = self._core.payloads.store(result, owner)

        def act(change: Change, operation: DurableOperation) -> None:
            end_operation(change, operation, OperationStatus.SUCCEEDED, result=stored)

        self._change(named, act)

    def fail(self, callback_id: str, error: Mapping[str, Any] | None) -> None:
        """Answer a callback with an error."""
        checked = check_error(error) or {}

        def act(change: Change, operation: DurableOperation) -> None:
            end_operation(change, operation, OperationStatus.FAILED, error=checked)

        self._change(self._core.tokens.read_callback_id(callback_id), act)

    def beat(self, callback_id: str) -> None:
        """Begin the time for the next heartbeat anew."""

        def act(change: Change, operation: DurableOperation) -> None:
            change.update(operation, beat_due_at=after(change.now, operation.heartbeat_seconds))

        self._change(self._core.tokens.read_callback_id(callback_id), act, wakes=False)

    def _change(
        self, named: CallbackId, act: Callable[[Change, DurableOperation], None], *, wakes: bool = True
    ) -> None:
        store = self._core.store

        def write(state: ExecutionState | None) -> None:
            now = self._core.now()
            if state is None or state.progress.execution_id != named.execution_id:
                raise TaskClosedError("the callback is closed: its execution has ended")
            (operation,) = state.operations.values()
            if operation.status is not OperationStatus.STARTED:
                raise TaskClosedError(f"the callback is closed: it has {operation.status.lower().replace('_', ' ')}")
            due = min((at for at in (operation.due_at, operation.beat_due_at) if at is not None), default=None)
            if due is not None and due <= now:
                raise TaskClosedError("the callback is closed: it has timed out")
            change = Change(state, now)
            act(change, operation)
            with store.transaction() as tx:
                change.add_to(tx)
                if wakes:
                    self._core.jobs.add_wake(tx, store.find(Job.key(job_id=named.execution_id)))

        store.retrying(
            lambda: ExecutionState.find_with(store, named.function, named.execution, named.number),
            write,
            f"answer a callback of durable execution {named.function}/{named.execution}",
        )
