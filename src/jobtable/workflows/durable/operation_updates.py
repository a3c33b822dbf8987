"""The updates of a checkpoint: read from their JSON form, and checked by the rules and in the words of Lambda."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NoReturn

from jobtable.errors import ValueRefusedError
from jobtable.workflows.durable.durable_arns import FunctionTarget, read_function
from jobtable.workflows.durable.entities import DurableOperation, OperationStatus, OperationType
from jobtable.workflows.durable.large_payloads import size_of

MOST_PAYLOAD_BYTES = 262_144
MOST_INVOKE_BYTES = 1_048_576
MOST_RESULT_BYTES = 6_291_456
MOST_ERROR_BYTES = 32_768
_LONGEST_SECONDS = 31_622_400
_LONGEST_CALLBACK_SECONDS = 99_999_999
_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_NAME = re.compile(r"[\x20-\x7E]{1,256}")
_SUB_TYPE = re.compile(r"[a-zA-Z0-9_-]{1,32}")


class Action(StrEnum):
    """What an update does to its operation."""

    START = "START"
    SUCCEED = "SUCCEED"
    FAIL = "FAIL"
    RETRY = "RETRY"
    CANCEL = "CANCEL"


@dataclass(frozen=True)
class OperationUpdate:
    """One update of a checkpoint."""

    operation_id: str
    type: OperationType
    action: Action
    parent_id: str | None
    name: str | None
    sub_type: str | None
    payload: str | None
    error: Mapping[str, Any] | None
    replays_children: bool
    delay_seconds: int | None
    """Before a step's next attempt; None without StepOptions."""
    wait_seconds: int
    timeout_seconds: int
    heartbeat_seconds: int
    target: str | None
    """The function of a chained invoke; None without ChainedInvokeOptions."""

    @classmethod
    def read(cls, members: Mapping[str, Any]) -> OperationUpdate:
        """Return an update, or raise ValueRefusedError if it does not have Lambda's shape."""
        get = members.get
        callback = _options(members, "CallbackOptions")
        step = members.get("StepOptions")
        invoke = members.get("ChainedInvokeOptions")
        kind = _one_of(OperationType, members, "Type")
        return cls(
            operation_id=_text(members, "Id", _ID) or _refuse("Id", None),
            type=kind,
            action=_one_of(Action, members, "Action"),
            parent_id=_text(members, "ParentId", _ID),
            name=_text(members, "Name", _NAME),
            sub_type=_text(members, "SubType", _SUB_TYPE),
            payload=_payload(kind, get("Payload")),
            error=_error(get("Error")),
            replays_children=bool(_options(members, "ContextOptions").get("ReplayChildren", False)),
            delay_seconds=None if step is None else _seconds(step, "NextAttemptDelaySeconds", 1, _LONGEST_SECONDS, 1),
            wait_seconds=_seconds(_options(members, "WaitOptions"), "WaitSeconds", 1, _LONGEST_SECONDS, 1),
            timeout_seconds=_seconds(callback, "TimeoutSeconds", 0, _LONGEST_CALLBACK_SECONDS, 0),
            heartbeat_seconds=_seconds(callback, "HeartbeatTimeoutSeconds", 0, _LONGEST_CALLBACK_SECONDS, 0),
            target=None if invoke is None else str(_options(members, "ChainedInvokeOptions").get("FunctionName", "")),
        )


def check_error(error: object) -> Mapping[str, Any] | None:
    """Return an ErrorObject, or raise ValueRefusedError if it is none or too large."""
    return _error(error)


def _payload(kind: OperationType, payload: object) -> str | None:
    if payload is None:
        return None
    if not isinstance(payload, str):
        _refuse("Payload", payload)
    size = size_of(payload)
    if kind is OperationType.CHAINED_INVOKE:
        most, what = MOST_INVOKE_BYTES, "CHAINED_INVOKE input"
    elif kind is OperationType.EXECUTION:
        most, what = MOST_RESULT_BYTES, "Execution output"
    else:
        most, what = MOST_PAYLOAD_BYTES, f"{kind} output"
    if size > most:
        raise ValueRefusedError(f"{what} payload size must be less than or equal to {most} bytes.")
    return payload


def _error(error: object) -> Mapping[str, Any] | None:
    if error is None:
        return None
    if not isinstance(error, Mapping):
        _refuse("Error", error)
    if len(json.dumps(error)) > MOST_ERROR_BYTES:
        raise ValueRefusedError(f"Error object size must be less than {MOST_ERROR_BYTES} bytes.")
    return error


def _text(members: Mapping[str, Any], name: str, form: re.Pattern[str]) -> str | None:
    value = members.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not form.fullmatch(value):
        _refuse(name, value)
    return value


def _one_of(kind: Any, members: Mapping[str, Any], name: str) -> Any:
    try:
        return kind(members.get(name))
    except ValueError:
        _refuse(name, members.get(name))


def _options(members: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = members.get(name)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        _refuse(name, value)
    return value


def _seconds(options: object, name: str, least: int, most: int, otherwise: int) -> int:
    if not isinstance(options, Mapping):
        _refuse(name, options)
    value = options.get(name)
    if value is None:
        return otherwise
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValueRefusedError(f"{name} must be a whole number from {least} to {most}, not {value!r:.40}")
    return value


def _refuse(name: str, value: object) -> NoReturn:
    raise ValueRefusedError(f"Invalid {name} in an operation update: {value!r:.100}")


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
