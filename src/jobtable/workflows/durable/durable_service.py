"""The durable service: executions of durable functions on one store, and the operations behind AWS's SDK."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any, TypeVar

from jobtable.errors import ConflictError
from jobtable.jobs.engine import Jobs
from jobtable.jobs.stored.entities import Job
from jobtable.store.queries import Query
from jobtable.workflows.asl.arns import Arns
from jobtable.workflows.durable.callback_answers import CallbackAnswers
from jobtable.workflows.durable.durable_checkpoints import DurableCheckpoints, add_end
from jobtable.workflows.durable.durable_core import DurableCore
from jobtable.workflows.durable.entities import DurableExecution, DurableOperation, DurableStatus
from jobtable.workflows.durable.execution_endings import error_of_crash
from jobtable.workflows.durable.execution_starts import ChainedInvokes, ExecutionStarts, check_json
from jobtable.workflows.durable.execution_state import Change, ExecutionState
from jobtable.workflows.durable.handler_calls import HandlerCalls
from jobtable.workflows.durable.operation_updates import check_error
from jobtable.workflows.durable.verbs import DurableVerbs, Invoked
from jobtable.workflows.functions import Function

T = TypeVar("T")
LONGEST_INVOKE_SECONDS = 900.0
_FIRST_LOOK_SECONDS = 0.005
_LONGEST_LOOK_SECONDS = 0.25
_ENDS_BETWEEN_DELETIONS = 32


class DurableService(DurableVerbs):
    """`DurableVerbs` on the store of a job engine. Any thread may use it."""

    def __init__(self, jobs: Jobs, *, arns: Arns | None = None, random: Random | None = None) -> None:
        self.core = DurableCore(jobs, arns=arns)
        self.starts = ExecutionStarts(self.core)
        chained = ChainedInvokes(self.core, self.starts)
        self.checkpoints = DurableCheckpoints(self.core, chained)
        self.calls = HandlerCalls(self.core, chained)
        self._callbacks = CallbackAnswers(self.core)
        self._random = random or Random()  # noqa: S311 - spreads load, guards nothing

    # --- executions -------------------------------------------------------------------------------------------------

    def start(self, function: str, payload: Any = None, *, name: str | None = None) -> DurableExecution:
        return self.starts.start(self._durable(function), json.dumps(payload), name)

    def start_text(self, function: str, payload: str, name: str | None = None) -> DurableExecution:
        """Start an execution with JSON as text."""
        return self.starts.start(self._durable(function), payload, name)

    def get(self, function: str, name: str) -> DurableExecution:
        return self.core.get_execution(function, name)

    def list(
        self, function: str, *, status: DurableStatus | None = None, newest_first: bool = True
    ) -> Query[DurableExecution]:
        if status is None:
            selection = DurableExecution.by_function(function=function)
        else:
            selection = DurableExecution.by_status(function=function, status=status)
        return self.core.store.query(selection, newest_first=newest_first)

    def operations(self, function: str, name: str) -> Query[DurableOperation]:
        return self.core.store.query(DurableOperation.key(function=function, execution=name))

    def history(self, function: str, name: str, *, newest_first: bool = False) -> Iterator[dict[str, Any]]:
        return self.core.events.read(self.get(function, name), newest_first=newest_first)

    def input_of(self, execution: DurableExecution) -> str | None:
        return self.core.payloads.read(execution.input)

    def output_of(self, execution: DurableExecution) -> str | None:
        return self.core.payloads.read(execution.output)

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
        found = self.core.get_function(function)
        wait_seconds = LONGEST_INVOKE_SECONDS if wait_seconds is None else wait_seconds
        invoked = self.try_invoke(found, payload, name=name, wait_seconds=wait_seconds)
        if invoked.is_late:
            what = f"job {invoked.job_id}" if invoked.execution is None else f"{function}/{invoked.execution.name}"
            raise ConflictError(f"{what} has not ended after {wait_seconds:g} s", hint="look at it later")
        return invoked

    def try_invoke(
        self,
        function: Function,
        payload: str,
        *,
        name: str | None = None,
        wait_seconds: float,
        region: str | None = None,
    ) -> Invoked:
        """Run a function and return its answer, or Lambda's error for one that took too long and goes on."""
        if function.is_durable:
            started = self.starts.start(function, payload, name, region=region)
            found = self._await(lambda: self._ended(started), wait_seconds)
            return found or _late(wait_seconds, started.execution_id, started)
        job_id = self.call_later(function, payload, max_attempts=1)
        return self._await(lambda: self._called(job_id), wait_seconds) or _late(wait_seconds, job_id)

    def call_later(self, function: Function, payload: str, *, max_attempts: int = 3) -> str:
        """Run a function that is not durable as a job, as an asynchronous call does; return the job's id."""
        check_json(payload)
        job_id = str(uuid.uuid4())
        stored = self.core.payloads.store(payload, function.name, job_id)
        self.starts.submit_call(function, stored, job_id, max_attempts=max_attempts)
        return job_id

    def _durable(self, name: str) -> Function:
        function = self.core.get_function(name)
        if not function.is_durable:
            raise ConflictError(
                f"the function {name} is not durable", hint="write @durable_execution above it, or invoke it"
            )
        return function

    def _ended(self, started: DurableExecution) -> Invoked | None:
        execution = self.get(started.function, started.name)
        if execution.status is DurableStatus.RUNNING:
            return None
        if execution.status is DurableStatus.SUCCEEDED:
            return Invoked(self.output_of(execution), execution.execution_id, execution=execution)
        error = json.dumps(error_of_invocation(execution.error))
        return Invoked(error, execution.execution_id, is_error=True, execution=execution)

    def _called(self, job_id: str) -> Invoked | None:
        job = self.core.jobs.queries.get_job(job_id)
        if not job.is_final:
            return None
        result = job.result if isinstance(job.result, Mapping) else {}
        if "payload" in result:
            return Invoked(self.core.payloads.read(result["payload"]), job_id)
        error = error_of_invocation(result.get("error") or error_of_crash(job.message))
        return Invoked(json.dumps(error), job_id, is_error=True)

    def _await(self, look: Callable[[], T | None], seconds: float) -> T | None:
        until, pause = self.core.clock.monotonic() + seconds, _FIRST_LOOK_SECONDS
        while (found := look()) is None:
            if self.core.clock.monotonic() >= until:
                return None
            self.core.clock.sleep(pause)
            pause = min(pause * 2, _LONGEST_LOOK_SECONDS)
        return found


def _late(seconds: float, job_id: str, execution: DurableExecution | None = None) -> Invoked:
    error = {"errorType": "Sandbox.Timedout", "errorMessage": f"Task timed out after {seconds:.2f} seconds"}
    return Invoked(json.dumps(error), job_id, is_error=True, is_late=True, execution=execution)


def error_of_invocation(error: Any) -> dict[str, Any]:
    """Return Lambda's JSON about the error of a function, from an ErrorObject."""
    names = {
        "ErrorMessage": "errorMessage",
        "ErrorType": "errorType",
        "ErrorData": "errorData",
        "StackTrace": "stackTrace",
    }
    return {to: error[name] for name, to in names.items() if isinstance(error, Mapping) and name in error}
