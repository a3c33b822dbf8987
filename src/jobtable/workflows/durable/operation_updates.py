"""The updates of a checkpoint, read from their JSON form."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NoReturn

from jobtable.errors import ValueRefusedError
from jobtable.workflows.durable.entities import OperationType
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
