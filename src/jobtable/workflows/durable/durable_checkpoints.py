"""Checkpoints: a handler records what its operations did, and learns what others did to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jobtable.errors import ConditionFailedError, TokenRefusedError, TransactionFailedError, ValueRefusedError
from jobtable.jobs.stored.entities import Job
from jobtable.workflows.durable.durable_arns import ExecutionArn
from jobtable.workflows.durable.durable_core import DurableCore
from jobtable.workflows.durable.durable_tokens import CheckpointToken
from jobtable.workflows.durable.entities import (
    DurableExecution,
    DurableStatus,
    OperationType,
)
from jobtable.workflows.durable.execution_endings import end_execution
from jobtable.workflows.durable.execution_starts import ChainedInvokes
from jobtable.workflows.durable.execution_state import MOST_OPERATIONS, MOST_STORED_BYTES, Change, ExecutionState
from jobtable.workflows.durable.large_payloads import PayloadOwner, size_of
from jobtable.workflows.durable.operation_changes import apply_update, end_what_is_due
from jobtable.workflows.durable.operation_updates import (
    MOST_INVOKE_BYTES,
    Action,
    OperationUpdate,
    check_batch,
    check_target,
    check_update,
)

INVALID_TOKEN = "Invalid checkpoint token"  # noqa: S105 - AWS's words, by which its SDK knows that a new call may help


@dataclass(frozen=True)
class CheckpointAnswer:
    """What a handler learns from a checkpoint."""

    token: str | None
    """For the next checkpoint; None if there can be none."""
    operations: list[dict[str, Any]]
    """Those that changed since it was told last."""


class DurableCheckpoints:
    """Makes checkpoints: each is one transaction under the job's lease and the token of the one before."""

    def __init__(self, core: DurableCore, chained: ChainedInvokes) -> None:
        self._core = core
        self._chained = chained

    def checkpoint(
        self,
        arn: ExecutionArn,
        token_text: str,
        updates: Sequence[Mapping[str, Any]] = (),
        client_token: str | None = None,
    ) -> CheckpointAnswer:
        """Record updates and return the operations that the handler does not know yet.

        Raises TokenRefusedError if the token is not the latest, and ValueRefusedError for updates that are refused;
        then nothing is recorded.
        """
        token = self._core.tokens.read_checkpoint_token(token_text)
        parsed = [OperationUpdate.read(each) for each in updates]

        def act(state: ExecutionState | None) -> CheckpointAnswer:
            if state is not None and client_token is not None and _is_repeated(state, token, client_token):
                return self._answer(state, token.checkpoint + 1, state.progress.client_revision)
            _check_token(state, token)
            assert state is not None
            return self._record(state, arn, token, parsed, client_token)

        return self._core.store.retrying(
            lambda: ExecutionState.find(self._core.store, arn.function, arn.name),
            act,
            f"checkpoint durable execution {arn.function}/{arn.name}",
            first=self._core.remembered.take(token.execution_id) if parsed else None,
            retry_if=_refuse_lost_lease,
        )

    def read_state(self, arn: ExecutionArn, token_text: str) -> ExecutionState:
        """Return the operations of an execution to its handler, which has the latest token."""
        token = self._core.tokens.read_checkpoint_token(token_text)
        state = ExecutionState.find(self._core.store, arn.function, arn.name)
        _check_token(state, token)
        assert state is not None
        return state

    def _record(
        self,
        state: ExecutionState,
        arn: ExecutionArn,
        token: CheckpointToken,
        updates: Sequence[OperationUpdate],
        client_token: str | None,
    ) -> CheckpointAnswer:
        seen = state.progress.seen_revision
        change = Change(state, self._core.now())
        if state.progress.times_out_at is not None and state.progress.times_out_at <= change.now:
            self._end(change, arn, DurableStatus.TIMED_OUT)
            change.commit(self._core.store)
            raise TokenRefusedError(INVALID_TOKEN)
        check_batch(updates, state.operations)
        started = [each for update in updates if (each := self._apply(change, arn, update)) is not None]
        end_what_is_due(change, change.now)
        if change.operation_count > MOST_OPERATIONS or state.progress.stored_bytes > MOST_STORED_BYTES:
            return self._exceed_quota(state, arn)
        if change.is_empty and not change.is_last and not state.has_news():
            self._core.remembered.keep(state.progress.execution_id, state)
            return self._answer(state, token.checkpoint, seen)
        change.is_seen = True
        change.progress |= {
            "checkpoint": token.checkpoint + 1,
            "failures": 0,
            "client_token": client_token,
            "client_revision": seen,
        }
        change.commit(self._core.store, epoch=state.progress.lease_epoch)
        if change.is_last:
            return CheckpointAnswer(None, [])
        for operation_id in started:
            self._chained.start(state, state.operations[operation_id])
        self._core.remembered.keep(state.progress.execution_id, state)
        return self._answer(state, token.checkpoint + 1, seen)

    def _apply(self, change: Change, arn: ExecutionArn, update: OperationUpdate) -> str | None:
        """Apply one update; return the id of its operation if that is a chained invoke to start."""
        current = change.find(update.operation_id)
        check_update(update, current)
        if update.type is OperationType.EXECUTION:
            is_success = update.action is Action.SUCCEED
            status = DurableStatus.SUCCEEDED if is_success else DurableStatus.FAILED
            self._end(change, arn, status, update.payload, update.error)
            return None
        if update.type is not OperationType.CHAINED_INVOKE:
            apply_update(change, update, self._core.payloads)
            return None
        target = check_target(update, arn.region, arn.account)
        operation = apply_update(change, update, self._core.payloads)
        self._chained.prepare(change, operation, target)
        return operation.operation_id

    def _end(
        self,
        change: Change,
        arn: ExecutionArn,
        status: DurableStatus,
        output: str | None = None,
        error: Mapping[str, Any] | None = None,
    ) -> None:
        execution = self._core.get_execution(arn.function, arn.name)
        if execution.parent is not None and size_of(output) > MOST_INVOKE_BYTES:
            raise ValueRefusedError(
                f"Execution output payload size must be less than or equal to {MOST_INVOKE_BYTES} bytes."
            )
        add_end(self._core, change, execution, status, output, error)

    def _exceed_quota(self, state: ExecutionState, arn: ExecutionArn) -> CheckpointAnswer:
        what = f"{MOST_OPERATIONS:,} operations, or {MOST_STORED_BYTES:,} bytes of results"
        message = f"A durable execution has at most {what}"
        change = Change(state, self._core.now())
        error = {"ErrorMessage": message, "ErrorType": "ServiceQuotaExceededException"}
        self._end(change, arn, DurableStatus.FAILED, error=error)
        change.commit(self._core.store)
        return CheckpointAnswer(None, [])

    def _answer(self, state: ExecutionState, checkpoint: int, seen: int) -> CheckpointAnswer:
        progress = state.progress
        next_token = CheckpointToken(progress.execution_id, progress.invocation, checkpoint)
        changed = state.since(seen)
        return CheckpointAnswer(
            self._core.tokens.checkpoint_token(next_token), self._core.shapes.operations(progress, changed)
        )


def add_end(
    core: DurableCore,
    change: Change,
    execution: DurableExecution,
    status: DurableStatus,
    output: str | None = None,
    error: Mapping[str, Any] | None = None,
) -> None:
    """Let an execution end with a change, with its output as text."""
    stored = for_parent = core.payloads.store(output, PayloadOwner.of(execution))
    if execution.parent is not None:
        for_parent = core.payloads.store(output, PayloadOwner.at(execution.parent))
    end_execution(core.store, change, execution, status, output=stored, output_for_parent=for_parent, error=error)


def _is_repeated(state: ExecutionState, token: CheckpointToken, client_token: str) -> bool:
    progress = state.progress
    latest = (progress.execution_id, progress.invocation, progress.checkpoint - 1)
    return client_token == progress.client_token and latest == (
        token.execution_id,
        token.invocation,
        token.checkpoint,
    )


def _check_token(state: ExecutionState | None, token: CheckpointToken) -> None:
    if state is None or state.progress.invoked_at is None:
        raise TokenRefusedError(INVALID_TOKEN)
    progress = state.progress
    if token != CheckpointToken(progress.execution_id, progress.invocation, progress.checkpoint):
        raise TokenRefusedError(INVALID_TOKEN)


def _refuse_lost_lease(error: ConditionFailedError | TransactionFailedError) -> bool:
    """Return true, so that a changed execution is read again; raise if the job has another worker."""
    failures = error.failures if isinstance(error, TransactionFailedError) else ()
    if any((each.verb, each.entity) == ("check", Job.__name__) for each in failures):
        raise TokenRefusedError(INVALID_TOKEN) from error
    return True
