"""Which updates a checkpoint may make: the rules and the words of Lambda."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jobtable.errors import ValueRefusedError
from jobtable.workflows.durable.durable_arns import FunctionTarget, read_function
from jobtable.workflows.durable.entities import DurableOperation, OperationStatus, OperationType
from jobtable.workflows.durable.operation_updates import Action, OperationUpdate

_ACTIONS: Mapping[OperationType, frozenset[Action]] = {
    OperationType.STEP: frozenset({Action.START, Action.SUCCEED, Action.FAIL, Action.RETRY}),
    OperationType.CONTEXT: frozenset({Action.START, Action.SUCCEED, Action.FAIL}),
    OperationType.WAIT: frozenset({Action.START, Action.CANCEL}),
    OperationType.CALLBACK: frozenset({Action.START}),
    OperationType.CHAINED_INVOKE: frozenset({Action.START}),
    OperationType.EXECUTION: frozenset({Action.SUCCEED, Action.FAIL}),
}
_STARTED_TWICE = {
    OperationType.CONTEXT: "Cannot start a CONTEXT that already exist.",
    OperationType.WAIT: "Cannot start a WAIT that already exist.",
    OperationType.CALLBACK: "Cannot start a CALLBACK that already exist.",
    OperationType.CHAINED_INVOKE: "Cannot start a CHAINED_INVOKE operation that already exists.",
}
_OPEN_STEP = frozenset({OperationStatus.STARTED, OperationStatus.READY})


def check_batch(updates: Sequence[OperationUpdate], known: Mapping[str, DurableOperation]) -> None:
    """Refuse a batch whose updates contradict each other, or name parents that are no contexts."""
    ends = [update for update in updates if update.type is OperationType.EXECUTION]
    if len(ends) > 1:
        raise ValueRefusedError("Cannot checkpoint multiple EXECUTION updates.")
    if ends and updates[-1] is not ends[0]:
        raise ValueRefusedError("EXECUTION checkpoint must be the last update.")
    started: dict[str, OperationUpdate] = {}
    seen: dict[str, OperationUpdate] = {}
    for update in updates:
        before = seen.get(update.operation_id)
        if before is not None and not _may_follow(before, update):
            raise ValueRefusedError("Cannot checkpoint multiple operations with the same ID.")
        _check_parent(update, known, started)
        if update.action is Action.START:
            started[update.operation_id] = update
        seen[update.operation_id] = update


def check_update(update: OperationUpdate, current: DurableOperation | None) -> None:
    """Refuse an update that its operation, as it is now, does not allow."""
    if update.action not in _ACTIONS[update.type]:
        raise ValueRefusedError("Invalid action for the given operation type.")
    if current is not None:
        _check_same(update, current)
    if update.action is Action.FAIL and update.payload is not None:
        raise ValueRefusedError("Cannot provide a Payload for FAIL action.")
    if update.action is Action.SUCCEED and update.error is not None:
        raise ValueRefusedError("Cannot provide an Error for SUCCEED action.")
    if update.type is OperationType.STEP:
        _check_step(update, current)
    elif update.action is Action.START and current is not None:
        raise ValueRefusedError(_STARTED_TWICE[update.type])
    elif update.action is Action.CANCEL:
        if current is None or current.status is not OperationStatus.STARTED:
            raise ValueRefusedError("Cannot cancel a WAIT that does not exist or has already completed.")
    elif update.type is OperationType.CONTEXT and current is not None and current.status is not OperationStatus.STARTED:
        raise ValueRefusedError("Invalid current CONTEXT state to close.")


def check_target(update: OperationUpdate, region: str, account: str) -> FunctionTarget:
    """Return the function that a chained invoke names, or refuse it."""
    if update.target is None:
        raise ValueRefusedError("Update for CHAINED_INVOKE operation requires ChainedInvokeOptions.")
    target = read_function(update.target)
    if target.account is not None and target.account != account:
        raise ValueRefusedError("Cannot start a CHAINED_INVOKE on a function in another account.")
    if target.region is not None and target.region != region:
        raise ValueRefusedError("Cannot start a CHAINED_INVOKE on a function in another region.")
    return target


def _check_step(update: OperationUpdate, current: DurableOperation | None) -> None:
    if update.action is Action.RETRY and update.delay_seconds is None:
        raise ValueRefusedError("Invalid StepOptions for the given action.")
    if update.action is Action.RETRY and update.error is not None and update.payload is not None:
        raise ValueRefusedError("Cannot provide both error and payload to RETRY a STEP.")
    if current is None:
        return
    if update.action is Action.START:
        if current.status is not OperationStatus.READY:
            raise ValueRefusedError("Invalid current STEP state to start.")
    elif current.status not in _OPEN_STEP:
        what = "re-attempt" if update.action is Action.RETRY else "close"
        raise ValueRefusedError(f"Invalid current STEP state to {what}.")


def _check_same(update: OperationUpdate, current: DurableOperation) -> None:
    """Refuse an update of another operation under the same id: the handler took another path than before."""
    pairs = (
        ("operation type", update.type, current.type),
        ("operation subtype", update.sub_type, current.sub_type),
        ("operation name", update.name, current.name),
        ("parent operation id", update.parent_id, current.parent_id),
    )
    for what, now, before in pairs:
        if now is not None and now != before:
            raise ValueRefusedError(
                f"Inconsistent {what}. Operation {current.operation_id} was {before} and is now {now}: the handler is "
                "not deterministic; it must start the same operations in the same order at every replay"
            )


def _may_follow(before: OperationUpdate, update: OperationUpdate) -> bool:
    may_end_at_once = before.type in (OperationType.STEP, OperationType.CONTEXT)
    return may_end_at_once and before.action is Action.START and update.action is not Action.START


def _check_parent(
    update: OperationUpdate, known: Mapping[str, DurableOperation], started: Mapping[str, OperationUpdate]
) -> None:
    if update.parent_id is None:
        return
    parent = started.get(update.parent_id) or known.get(update.parent_id)
    if parent is None or parent.type is not OperationType.CONTEXT:
        raise ValueRefusedError("Invalid parent operation id.")
