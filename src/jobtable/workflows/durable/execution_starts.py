"""Executions and other functions start: by request, or as the chained invokes of a handler."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from jobtable.errors import AlreadyExistsError, ConflictError, ValueRefusedError
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.submit.definition import NewJob, RetryPolicy
from jobtable.workflows.durable.durable_arns import (
    FunctionTarget,
    check_execution_name,
    check_function_name,
    read_function,
)
from jobtable.workflows.durable.durable_core import DurableCore
from jobtable.workflows.durable.durable_tokens import digest_of
from jobtable.workflows.durable.entities import (
    DurableEvents,
    DurableExecution,
    DurableOperation,
    DurableProgress,
    DurableStatus,
    OperationStatus,
    OperationType,
)
from jobtable.workflows.durable.execution_state import Change, ExecutionState
from jobtable.workflows.durable.large_payloads import PayloadOwner
from jobtable.workflows.durable.operation_changes import end_operation
from jobtable.workflows.durable.operation_updates import MOST_RESULT_BYTES
from jobtable.workflows.functions import LATEST, DurableConfig, Function
from jobtable.workflows.table_and_queues import FUNCTIONS_QUEUE

_TASKS = "jobtable.workflows.durable.function_tasks"
_ENDS = "jobtable.workflows.durable.execution_endings"
_CHILDREN = uuid.UUID("c0a41f1e-94e5-5d9e-8d7d-3f5b0f0c7d11")
"""The namespace of the ids that chained invokes give to what they start."""
_NO_LIMIT = 1_000_000
"""Attempts of a job: how often a call may fail is counted by the execution, not by its job."""
_RETRY = RetryPolicy(first_delay_seconds=1, factor=2, longest_delay_seconds=30)


class ExecutionStarts:
    """Starts executions and other functions as jobs."""

    def __init__(self, core: DurableCore) -> None:
        self._core = core

    def start(
        self,
        function: Function,
        payload: str,
        name: str | None = None,
        *,
        parent: Mapping[str, Any] | None = None,
        region: str | None = None,
        client: Mapping[str, Any] | None = None,
        user: str = "local",
    ) -> DurableExecution:
        """Start an execution, or return the one that was started with this name and payload."""
        check_function_name(function.name)
        check_json(payload)
        name = name or str(uuid.uuid4())
        check_execution_name(name)
        digest = digest_of(payload)
        existing = self._find(function.name, name)
        if existing is None:
            execution = self._new(function, payload, digest, name, parent, region).replace(created_by=user)
            try:
                self._submit(function, execution, client)
            except ConflictError:
                existing = self._find(function.name, name)
                if existing is None:
                    raise
            else:
                return execution
        if existing.input_sha256 != digest:
            raise AlreadyExistsError(
                f"the durable execution {function.name}/{name} was started with another payload",
                hint="choose another name",
            )
        return existing

    def submit_call(
        self,
        function: Function,
        payload: Any,
        job_id: str,
        *,
        parent: Mapping[str, Any] | None = None,
        client: Mapping[str, Any] | None = None,
        parent_job_id: str | None = None,
        max_attempts: int = 1,
        user: str = "local",
    ) -> None:
        """Run a function that is not durable as a job; the payload is as stored."""
        self._core.jobs.submit(
            NewJob(
                name=function.name,
                task=f"{_TASKS}:{'call_function_inline' if function.is_inline else 'call_function'}",
                params={
                    "function": function.name,
                    "payload": payload,
                    "parent": parent,
                    "client": client,
                    **_version_of(function),
                },
                queue=FUNCTIONS_QUEUE,
                job_id=job_id,
                job_type="function",
                user=user,
                parent_job_id=parent_job_id,
                timeout_seconds=None if function.is_inline else function.timeout_seconds,
                max_attempts=max_attempts,
                retry=RetryPolicy(first_delay_seconds=60),
                on_end=None if parent is None else f"{_ENDS}:report_call",
            )
        )

    def delete(self, execution: DurableExecution) -> int:
        """Delete all items and objects of an ended execution; return the number of items."""
        store, function, name = self._core.store, execution.function, execution.name
        self._core.payloads.discard(PayloadOwner.of(execution))
        keys = {"function": function, "execution": name}
        count = store.batch_delete(store.query(DurableEvents.key(**keys)))
        count += store.batch_delete(store.query(DurableOperation.key(**keys)))
        same = DurableExecution.status != DurableStatus.RUNNING
        return count + store.delete(execution, when=same)

    def delete_expired(self, function: str, status: DurableStatus, *, limit: int = 20) -> int:
        """Delete executions of a function whose retention is over, the oldest first; return their number."""
        now, deleted = self._core.now(), 0
        found = DurableExecution.by_status(function=function, status=status)
        for execution in list(self._core.store.query(found, limit=limit)):
            if _is_expired(execution, now):
                self.delete(execution)
                deleted += 1
        return deleted

    def _find(self, function: str, name: str) -> DurableExecution | None:
        found = self._core.store.find(DurableExecution.key(function=function, name=name))
        if found is not None and _is_expired(found, self._core.now()):
            self.delete(found)
            return None
        return found

    def _new(
        self,
        function: Function,
        payload: str,
        digest: str,
        name: str,
        parent: Mapping[str, Any] | None,
        region: str | None,
    ) -> DurableExecution:
        config = function.durable or DurableConfig()
        execution_id = str(uuid.uuid4()) if parent is None else child_id(parent)
        return DurableExecution(
            function=function.name,
            name=name,
            execution_id=execution_id,
            version=function.version,
            region=region or self._region_of(parent),
            account=self._core.arns.account,
            input=self._core.payloads.store(payload, PayloadOwner(function.name, execution_id, name)),
            input_sha256=digest,
            started_at=self._core.clock.now(),
            timeout_seconds=config.execution_timeout_seconds,
            retention_days=config.retention_days,
            parent=None if parent is None else dict(parent),
        )

    def _region_of(self, parent: Mapping[str, Any] | None) -> str:
        """Return the region of what starts an execution."""
        if parent is None:
            return self._core.arns.region
        return self._core.get_execution(parent["function"], parent["name"]).region

    def _submit(self, function: Function, execution: DurableExecution, client: Mapping[str, Any] | None) -> None:
        job = NewJob(
            name=f"{execution.function}/{execution.name}",
            task=f"{_TASKS}:{'run_durable_inline' if function.is_inline else 'run_durable'}",
            params={
                "function": execution.function,
                "name": execution.name,
                **({} if client is None else {"client": client}),
                **_version_of(function),
            },
            queue=FUNCTIONS_QUEUE,
            job_id=execution.execution_id,
            job_type="durable execution",
            user=execution.created_by,
            timeout_seconds=None if function.is_inline else function.timeout_seconds,
            max_attempts=_NO_LIMIT,
            most_interruptions=_NO_LIMIT,
            retry=_RETRY,
            on_end=f"{_ENDS}:end_execution_with_job",
        )
        progress = DurableProgress(
            function=execution.function,
            name=execution.name,
            execution_id=execution.execution_id,
            event_count=1,
            times_out_at=self._core.now() + timedelta(seconds=execution.timeout_seconds),
        )
        started = {"type": "ExecutionStarted", "at": execution.started_at.timestamp()}
        events = DurableEvents(
            function=execution.function, execution=execution.name, first_id=1, events=json.dumps([started])
        )
        self._core.jobs.submit_together([job], execution, progress, events)


def _version_of(function: Function) -> dict[str, str]:
    """Return the parameter of a job that pins it to a version."""
    return {} if function.version == LATEST else {"version": function.version}


def child_id(parent: Mapping[str, Any]) -> str:
    """Return the id of what a chained invoke starts: the same one however often that is tried."""
    return str(uuid.uuid5(_CHILDREN, f"{parent['execution_id']}/{parent['number']}"))


def check_json(payload: str) -> None:
    """Raise ValueRefusedError unless a payload is JSON and not too large."""
    if len(payload.encode()) > MOST_RESULT_BYTES:
        raise ValueRefusedError(f"the payload has more than {MOST_RESULT_BYTES:,} bytes")
    try:
        json.loads(payload)
    except ValueError as error:
        raise ValueRefusedError(f"Could not parse request body into json: {error}") from error


def _is_expired(execution: DurableExecution, now: Any) -> bool:
    return execution.ended_at is not None and execution.ended_at + timedelta(days=execution.retention_days) < now


class ChainedInvokes:
    """Starts what operations of type CHAINED_INVOKE name."""

    def __init__(self, core: DurableCore, starts: ExecutionStarts) -> None:
        self._core = core
        self._starts = starts

    def prepare(self, change: Change, operation: DurableOperation, target: FunctionTarget) -> None:
        """Note what an operation will start, or fail it if there is no such function."""
        function = self._core.find_function(target.name, target.qualifier)
        if function is None:
            error = {
                "ErrorMessage": f"Function not found: {operation.target}",
                "ErrorType": "ResourceNotFoundException",
            }
            end_operation(change, operation, OperationStatus.FAILED, error=error, input=None)
            return
        started_id = child_id(_link(change.state, operation))
        child = {"job_id": started_id}
        if function.is_durable:
            child = {"function": function.name, "name": started_id, "execution_id": started_id}
        change.update(operation, child=child | _version_of(function))

    def start(self, state: ExecutionState, operation: DurableOperation) -> None:
        """Start what a stored operation names. Doing it twice is harmless."""
        if operation.status is not OperationStatus.STARTED or operation.child is None:
            return
        function = self._core.get_function(read_function(str(operation.target)).name, operation.child.get("version"))
        link = _link(state, operation)
        user = self._core.get_execution(state.progress.function, state.progress.name).created_by
        if "job_id" in operation.child:
            self._starts.submit_call(function, operation.input, operation.child["job_id"], parent=link, user=user)
        else:
            payload = self._core.payloads.read(operation.input) or "{}"
            self._starts.start(function, payload, operation.child["name"], parent=link, user=user)

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
