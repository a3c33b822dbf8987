"""Chained invokes: what a handler's `context.invoke` starts."""

from __future__ import annotations

from typing import Any

from jobtable.jobs.stored.entities import Job
from jobtable.workflows.durable.durable_arns import FunctionTarget, read_function
from jobtable.workflows.durable.durable_core import DurableCore
from jobtable.workflows.durable.entities import DurableOperation, OperationStatus, OperationType
from jobtable.workflows.durable.execution_starts import ExecutionStarts, child_id
from jobtable.workflows.durable.execution_state import Change, ExecutionState
from jobtable.workflows.durable.operation_changes import end_operation


class ChainedInvokes:
    """Starts what operations of type CHAINED_INVOKE name."""

    def __init__(self, core: DurableCore, starts: ExecutionStarts) -> None:
        self._core = core
        self._starts = starts

    def prepare(self, change: Change, operation: DurableOperation, target: FunctionTarget) -> None:
        """Note what an operation will start, or fail it if there is no such function."""
        function = self._core.find_function(target.name)
        if function is None:
            error = {
                "ErrorMessage": f"Function not found: {operation.target}",
                "ErrorType": "ResourceNotFoundException",
            }
            end_operation(change, operation, OperationStatus.FAILED, error=error, input=None)
            return
        started_id = child_id(_link(change.state, operation))
        if function.is_durable:
            child = {"function": function.name, "name": started_id, "execution_id": started_id}
        else:
            child = {"job_id": started_id}
        change.update(operation, child=child)

    def start(self, state: ExecutionState, operation: DurableOperation) -> None:
        """Start what a stored operation names. Doing it twice is harmless."""
        if operation.status is not OperationStatus.STARTED or operation.child is None:
            return
        function = self._core.get_function(read_function(str(operation.target)).name)
        link = _link(state, operation)
        if "job_id" in operation.child:
            self._starts.submit_call(function, operation.input, operation.child["job_id"], parent=link)
        else:
            payload = self._core.payloads.read(operation.input) or "{}"
            self._starts.start(function, payload, operation.child["name"], parent=link)

    def start_missing(self, state: ExecutionState) -> None:
        """Start what a worker that died after its checkpoint did not start."""
        for operation in state.awaited_operations():
            if operation.type is OperationType.CHAINED_INVOKE and operation.child is not None:
                job_id = operation.child.get("job_id") or operation.child["execution_id"]
                if self._core.store.find(Job.key(job_id=job_id)) is None:
                    self.start(state, operation)


def _link(state: ExecutionState, operation: DurableOperation) -> dict[str, Any]:
    """Return how what an operation starts finds back to it."""
    return {
        "function": state.progress.function,
        "name": state.progress.name,
        "execution_id": state.progress.execution_id,
        "number": operation.number,
    }
