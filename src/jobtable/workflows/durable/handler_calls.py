"""The calls of a handler: when one is due, what it gets, and what becomes of its answer."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

from jobtable.errors import ConditionFailedError, LeaseLostError, TransactionFailedError
from jobtable.jobs.lifecycle.leases import Lease
from jobtable.jobs.stored.entities import Job
from jobtable.workflows.durable.durable_arns import ExecutionArn
from jobtable.workflows.durable.durable_checkpoints import add_end
from jobtable.workflows.durable.durable_core import DurableCore
from jobtable.workflows.durable.durable_tokens import CheckpointToken
from jobtable.workflows.durable.entities import DurableExecution, DurableOperation, DurableStatus
from jobtable.workflows.durable.execution_starts import ChainedInvokes
from jobtable.workflows.durable.execution_state import Change, ExecutionState
from jobtable.workflows.durable.large_payloads import size_of
from jobtable.workflows.durable.operation_changes import end_what_is_due
from jobtable.workflows.durable.operation_updates import MOST_INVOKE_BYTES, MOST_RESULT_BYTES

T = TypeVar("T")
MOST_FAILURES = 5
"""How many calls in a row may fail without a checkpoint between them."""
_MOST_EMPTY_CALLS = 3
"""How many calls in a row may wait for nothing: a race inside the SDK can cause one."""
_LAST_STATUSES = 3
_PAGE_OPERATIONS = 1_000
_PAGE_BYTES = 4_000_000


@dataclass(frozen=True)
class Call:
    """A call of a handler to make now."""

    execution: DurableExecution
    arn: ExecutionArn
    token: str
    invocation: int
    operations: list[dict[str, Any]]
    """The first page, with the execution itself."""
    next_marker: str
    """Where the next page starts; empty if there is none."""
    updated_ids: list[str]
    """The operations that others changed since the last call."""
    request_id: str
    started_at: datetime


@dataclass(frozen=True)
class Pause:
    """Nothing to do until an instant, or until the job is woken."""

    until: datetime | None


@dataclass(frozen=True)
class Answered:
    """A handler returned: what the SDK makes of its result."""

    output: object
    was_asked_to_stop: bool = False
    """Whether it was told to return early, so that it may wait for nothing."""


@dataclass(frozen=True)
class Raised:
    """A handler raised, and is called again later."""

    error: Mapping[str, Any]


class HandlerCalls:
    """Prepares and concludes the calls of handlers for the worker that holds the execution's job."""

    def __init__(self, core: DurableCore, chained: ChainedInvokes) -> None:
        self._core = core
        self._chained = chained

    def begin(self, lease: Lease, function: str, name: str) -> Call | Pause | None:
        """Return the next call, or how long there is none; None if the execution has ended."""

        def act(state: ExecutionState | None) -> Call | Pause | None:
            if state is None or state.progress.execution_id != lease.job.job_id:
                return None
            change = Change(state, self._core.now())
            if self._ends_now(change, lease):
                change.commit(self._core.store, epoch=lease.epoch)
                return None
            end_what_is_due(change, change.now)
            if not self._is_due(change):
                return Pause(state.next_due())
            return self._call(change, lease)

        return self._retrying(function, name, lease, act)

    def finish(self, lease: Lease, call: Call, answer: Answered | Raised) -> Pause | None:
        """Record how a call ended; return how long the execution waits, or None if it has ended."""

        def act(state: ExecutionState | None) -> Pause | None:
            if state is None or state.progress.execution_id != lease.job.job_id:
                return None
            if state.progress.invocation != call.invocation:
                raise lease.lost()
            change = Change(state, self._core.now())
            change.progress["invoked_at"] = None
            details: dict[str, Any] = {"started": call.started_at.timestamp(), "request": call.request_id}
            if isinstance(answer, Raised):
                details["error"] = dict(answer.error)
            change.record("InvocationCompleted", **details)
            end_what_is_due(change, change.now)
            if isinstance(answer, Raised):
                self._fail(change, call.execution, answer.error)
            else:
                self._conclude(change, call.execution, answer)
            change.commit(self._core.store, epoch=lease.epoch)
            if change.is_last:
                return None
            return Pause(change.now if state.has_news() else state.next_due())

        return self._retrying(call.execution.function, call.execution.name, lease, act, call.execution.execution_id)

    def page(self, call_state: ExecutionState, after: int, most: int) -> tuple[list[DurableOperation], str]:
        """Return operations after a number, and the marker of the next page or an empty text."""
        page: list[DurableOperation] = []
        size = 0
        for operation in call_state.operations.values():
            if operation.number <= after:
                continue
            size += 1_000 + (len(operation.result) if isinstance(operation.result, str) else 300_000)
            if page and (len(page) == most or size > _PAGE_BYTES):
                return page, str(page[-1].number)
            page.append(operation)
        return page, ""

    # --- before a call ----------------------------------------------------------------------------------------------

    def _ends_now(self, change: Change, lease: Lease) -> bool:
        """End an execution that has timed out, or whose handler keeps ending its process."""
        progress = change.state.progress
        if progress.times_out_at is not None and progress.times_out_at <= change.now:
            self._end(change, DurableStatus.TIMED_OUT)
            return True
        crashes = lease.job.attempts - 1
        if crashes > progress.crashes:
            change.progress |= {"crashes": crashes, "failures": progress.failures + 1}
            if progress.failures + 1 >= MOST_FAILURES:
                ended = f"the process of the handler ended {MOST_FAILURES} times without a checkpoint"
                message = ": ".join(filter(None, [ended, self._last_failure(lease.job)]))
                error = {"ErrorType": "Runtime.ExitError", "ErrorMessage": message}
                self._end(change, DurableStatus.FAILED, error=error)
                return True
        return False

    def _last_failure(self, job: Job) -> str:
        """Return why the last attempt of a job failed; empty if its history does not say."""
        history = self._core.jobs.queries.list_statuses(job.job_id, newest_first=True).take(_LAST_STATUSES)
        said = next((each.message for each in history if each.message), "")
        return said.partition(" failed: ")[2]

    def _is_due(self, change: Change) -> bool:
        progress = change.state.progress
        if progress.retry_at is not None and progress.retry_at > change.now:
            return False
        is_first_or_again = progress.invocation == 0 or progress.invoked_at is not None or progress.retry_at is not None
        return is_first_or_again or not change.is_empty or change.state.has_news()

    def _call(self, change: Change, lease: Lease) -> Call:
        state, progress = change.state, change.state.progress
        if progress.invoked_at is not None:
            self._chained.start_missing(state)
        seen, invocation = progress.seen_revision, progress.invocation + 1
        change.progress |= {
            "invocation": invocation,
            "invoked_at": change.now,
            "lease_epoch": lease.epoch,
            "checkpoint": 0,
            "client_token": None,
            "retry_at": None,
        }
        change.is_seen = True
        change.commit(self._core.store, epoch=lease.epoch)
        execution = self._core.get_execution(progress.function, progress.name)
        page, marker = self.page(state, 0, _PAGE_OPERATIONS)
        self._core.remembered.keep(state.progress.execution_id, state)
        return Call(
            execution,
            self._core.arn_of(execution),
            self._core.tokens.checkpoint_token(CheckpointToken(execution.execution_id, invocation, 0)),
            invocation,
            [self._core.shapes.execution(execution), *self._core.shapes.operations(execution, page)],
            marker,
            [each.operation_id for each in state.since(seen)],
            str(uuid.uuid4()),
            change.now,
        )

    # --- after a call -----------------------------------------------------------------------------------------------

    def _conclude(self, change: Change, execution: DurableExecution, answer: Answered) -> None:
        output = answer.output
        status = output.get("Status") if isinstance(output, Mapping) else None
        if not isinstance(output, Mapping) or status not in ("SUCCEEDED", "FAILED", "PENDING"):
            self._refuse_output(change, f"Invalid invocation output: {output!r:.200}")
        elif status == "PENDING":
            self._suspend(change, execution, answer)
        elif status == "SUCCEEDED":
            self._succeed(change, execution, output)
        elif output.get("Result") is not None:
            self._refuse_output(change, "Cannot provide a Result for FAILED status.")
        else:
            add_end(self._core, change, execution, DurableStatus.FAILED, error=output.get("Error") or {})

    def _succeed(self, change: Change, execution: DurableExecution, output: Mapping[str, Any]) -> None:
        result = output.get("Result")
        most = MOST_RESULT_BYTES if execution.parent is None else MOST_INVOKE_BYTES
        if output.get("Error") is not None:
            self._refuse_output(change, "Cannot provide an Error for SUCCEEDED status.")
        elif result is not None and not isinstance(result, str):
            self._refuse_output(change, f"Invalid invocation output: {result!r:.200}")
        elif size_of(result) > most:
            message = f"Execution output payload size must be less than or equal to {most} bytes."
            add_end(self._core, change, execution, DurableStatus.FAILED, error={"ErrorMessage": message})
        else:
            add_end(self._core, change, execution, DurableStatus.SUCCEEDED, result)

    def _suspend(self, change: Change, execution: DurableExecution, answer: Answered) -> None:
        state, failures = change.state, change.state.progress.failures
        change.progress["failures"] = 0
        if answer.was_asked_to_stop:
            change.progress["retry_at"] = change.now
        elif change.is_waiting or state.has_news():
            return
        elif failures + 1 < _MOST_EMPTY_CALLS:
            change.progress |= {"failures": failures + 1, "retry_at": change.now + timedelta(seconds=2**failures)}
        else:
            self._refuse_output(change, "Cannot return PENDING status with no pending operations.")

    def _refuse_output(self, change: Change, message: str) -> None:
        error = {"ErrorMessage": message, "ErrorType": "InvalidParameterValueException"}
        self._end(change, DurableStatus.FAILED, error=error)

    def _fail(self, change: Change, execution: DurableExecution, error: Mapping[str, Any]) -> None:
        failures = change.state.progress.failures + 1
        if failures >= MOST_FAILURES:
            add_end(self._core, change, execution, DurableStatus.FAILED, error=error)
        else:
            change.progress |= {
                "failures": failures,
                "retry_at": change.now + timedelta(seconds=2 ** (failures - 1)),
            }

    def _end(self, change: Change, status: DurableStatus, *, error: Mapping[str, Any] | None = None) -> None:
        progress = change.state.progress
        execution = self._core.get_execution(progress.function, progress.name)
        add_end(self._core, change, execution, status, error=error)

    def _retrying(
        self,
        function: str,
        name: str,
        lease: Lease,
        act: Callable[[ExecutionState | None], T],
        execution_id: str | None = None,
    ) -> T:
        def retry_if(error: ConditionFailedError | TransactionFailedError) -> bool:
            failures = error.failures if isinstance(error, TransactionFailedError) else ()
            if any((each.verb, each.entity) == ("check", Job.__name__) for each in failures):
                raise lease.lost() from error
            return True

        try:
            return self._core.store.retrying(
                lambda: ExecutionState.find(self._core.store, function, name),
                act,
                f"move durable execution {function}/{name}",
                first=None if execution_id is None else self._core.remembered.take(execution_id),
                retry_if=retry_if,
            )
        except LeaseLostError:
            self._core.remembered.take(lease.job.job_id)
            raise
