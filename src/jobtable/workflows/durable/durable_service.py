"""The durable service: executions of durable functions on one store, and the operations behind AWS's SDK."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

from jobtable.errors import ConflictError, missing
from jobtable.jobs.engine import Jobs
from jobtable.jobs.stored.entities import Job
from jobtable.workflows.asl.arns import Arns
from jobtable.workflows.durable.callback_answers import CallbackAnswers
from jobtable.workflows.durable.durable_checkpoints import DurableCheckpoints, add_end
from jobtable.workflows.durable.durable_core import DurableCore
from jobtable.workflows.durable.durable_reads import DurableReads
from jobtable.workflows.durable.entities import DurableExecution, DurableOperation, DurableStatus
from jobtable.workflows.durable.execution_endings import error_of_crash
from jobtable.workflows.durable.execution_starts import ChainedInvokes, ExecutionStarts, check_json
from jobtable.workflows.durable.execution_state import Change, ExecutionState
from jobtable.workflows.durable.handler_calls import HandlerCalls
from jobtable.workflows.durable.large_payloads import PayloadOwner
from jobtable.workflows.durable.operation_updates import check_error
from jobtable.workflows.durable.verbs import (
    LONGEST_INVOKE_SECONDS,
    Called,
    DurableVerbs,
    Invoked,
    refuse_late,
    wait_for,
)
from jobtable.workflows.functions import Function

_ENDS_BETWEEN_DELETIONS = 32


class DurableService(DurableReads, DurableVerbs):
    """`DurableVerbs` on the store of a job engine. Any thread may use it."""

    def __init__(self, jobs: Jobs, *, arns: Arns | None = None, random: Random | None = None) -> None:
        super().__init__(jobs.store, jobs.objects)
        self.core = DurableCore(jobs, arns=arns)
        self.starts = ExecutionStarts(self.core)
        chained = ChainedInvokes(self.core, self.starts)
        self.checkpoints = DurableCheckpoints(self.core, chained)
        self.calls = HandlerCalls(self.core, chained)
        self._callbacks = CallbackAnswers(self.core)
        self._random = random or Random()  # noqa: S311 - spreads load, guards nothing

    # --- executions -------------------------------------------------------------------------------------------------

    def start(
        self, function: str, payload: Any = None, *, name: str | None = None, user: str = "local"
    ) -> DurableExecution:
        return self.starts.start(self._durable(function), json.dumps(payload), name, user=user)

    def start_text(self, function: str, payload: str, name: str | None = None) -> DurableExecution:
        """Start an execution with JSON as text."""
        return self.starts.start(self._durable(function), payload, name)

    def history(
        self, function: str, name: str, *, newest_first: bool = False, after: int = 0
    ) -> Iterator[dict[str, Any]]:
        return self.core.events.read(self.get(function, name), newest_first=newest_first, after=after)

    def callback_id(self, operation: DurableOperation) -> str:
        return self.core.shapes.callback_id(self.get(operation.function, operation.execution), operation.number)

    def stop(self, function: str, name: str, *, error: Mapping[str, Any] | None = None) -> DurableExecution:
        stop_error = check_error(error) or {"ErrorMessage": "Execution stopped by user request"}
        store = self.core.store

        def act(state: ExecutionState | None) -> None:
            if state is None:
                return
            change = Change(state, self.core.now())
            add_end(self.core, change, self.get(function, name), DurableStatus.STOPPED, error=stop_error)
            job_id = state.progress.execution_id
            change.beside.append(lambda tx: self.core.jobs.add_wake(tx, store.find(Job.key(job_id=job_id))))
            change.commit(store)

        store.retrying(
            lambda: ExecutionState.find(store, function, name), act, f"stop durable execution {function}/{name}"
        )
        return self.get(function, name)

    def delete(self, function: str, name: str) -> int:
        execution = self.get(function, name)
        if execution.status is DurableStatus.RUNNING:
            raise ConflictError(f"the durable execution {function}/{name} is running", hint="stop it first")
        return self.starts.delete(execution)

    def delete_some_expired(self, function: str) -> None:
        """Now and then delete executions whose retention is over; called after each end."""
        if self._random.randrange(_ENDS_BETWEEN_DELETIONS) == 0:
            for status in DurableStatus:
                if status is not DurableStatus.RUNNING:
                    self.starts.delete_expired(function, status)

    # --- callbacks --------------------------------------------------------------------------------------------------

    def succeed_callback(self, callback_id: str, result: str | None = None) -> None:
        self._callbacks.succeed(callback_id, result)

    def fail_callback(self, callback_id: str, error: Mapping[str, Any] | None = None) -> None:
        self._callbacks.fail(callback_id, error)

    def beat_callback(self, callback_id: str) -> None:
        self._callbacks.beat(callback_id)

    # --- functions --------------------------------------------------------------------------------------------------

    def invoke(
        self, function: str, payload: str = "null", *, name: str | None = None, wait_seconds: float | None = None
    ) -> Invoked:
        seconds = LONGEST_INVOKE_SECONDS if wait_seconds is None else wait_seconds
        called = self.call(function, payload, name=name)
        return self._wait(called, function, seconds) or refuse_late(called, function, seconds)

    def try_invoke(
        self,
        function: Function,
        payload: str,
        *,
        name: str | None = None,
        wait_seconds: float,
        region: str | None = None,
        client: Mapping[str, Any] | None = None,
    ) -> Invoked:
        """Run a function and return its answer, or Lambda's error for one that took too long and goes on."""
        called = self._call(function, payload, name, region, client)
        return self._wait(called, function.name, wait_seconds) or _late(wait_seconds, called)

    def call(self, function: str, payload: str = "null", *, name: str | None = None, user: str = "local") -> Called:
        return self._call(self.core.get_function(function), payload, name, user=user)

    def _call(
        self,
        function: Function,
        payload: str,
        name: str | None,
        region: str | None = None,
        client: Mapping[str, Any] | None = None,
        user: str = "local",
    ) -> Called:
        if not function.is_durable:
            return Called(self.call_later(function, payload, client=client, max_attempts=1, user=user))
        started = self.starts.start(function, payload, name, region=region, client=client, user=user)
        return Called(started.execution_id, started)

    def _wait(self, called: Called, function: str, seconds: float) -> Invoked | None:
        return wait_for(lambda: self.find_answer(function, called.job_id), seconds, self.core.clock)

    def find_answer(self, function: str, job_id: str) -> Invoked | None:
        job = self.core.jobs.queries.get_job(job_id)
        params = job.definition.params
        if params.get("function") != function:
            raise missing(f"call of function {function}", job_id)
        return self._ended(self.get(function, params["name"])) if "name" in params else self._called(job)

    def call_later(
        self,
        function: Function,
        payload: str,
        *,
        client: Mapping[str, Any] | None = None,
        max_attempts: int = 3,
        user: str = "local",
    ) -> str:
        """Run a function that is not durable as a job, as an asynchronous call does; return the job's id."""
        check_json(payload)
        job_id = str(uuid.uuid4())
        stored = self.core.payloads.store(payload, PayloadOwner(function.name, job_id))
        self.starts.submit_call(function, stored, job_id, client=client, max_attempts=max_attempts, user=user)
        return job_id

    def _durable(self, name: str) -> Function:
        function = self.core.get_function(name)
        if not function.is_durable:
            raise ConflictError(
                f"the function {name} is not durable", hint="write @durable_execution above it, or invoke it"
            )
        return function

    def _ended(self, execution: DurableExecution) -> Invoked | None:
        if execution.status is DurableStatus.RUNNING:
            return None
        if execution.status is DurableStatus.SUCCEEDED:
            return Invoked(self.output_of(execution), execution.execution_id, execution=execution)
        error = json.dumps(error_of_invocation(execution.error))
        return Invoked(error, execution.execution_id, is_error=True, execution=execution)

    def _called(self, job: Job) -> Invoked | None:
        if not job.is_final:
            return None
        result = job.result if isinstance(job.result, Mapping) else {}
        if "payload" in result:
            return Invoked(self.core.payloads.read(result["payload"]), job.job_id)
        error = error_of_invocation(result.get("error") or error_of_crash(job.message))
        return Invoked(json.dumps(error), job.job_id, is_error=True)


def _late(seconds: float, called: Called) -> Invoked:
    error = {"errorType": "Sandbox.Timedout", "errorMessage": f"Task timed out after {seconds:.2f} seconds"}
    return Invoked(json.dumps(error), called.job_id, is_error=True, is_late=True, execution=called.execution)


def error_of_invocation(error: Any) -> dict[str, Any]:
    """Return Lambda's JSON about the error of a function, from an ErrorObject."""
    names = {
        "ErrorMessage": "errorMessage",
        "ErrorType": "errorType",
        "ErrorData": "errorData",
        "StackTrace": "stackTrace",
    }
    return {to: error[name] for name, to in names.items() if isinstance(error, Mapping) and name in error}
