"""Signals: what happened is left for an execution, whose job is woken in the same transaction."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from jobtable.jobs.lifecycle.waking import add_wake
from jobtable.jobs.stored.entities import Job
from jobtable.store import Store
from jobtable.store.transactions import Transaction
from jobtable.workflows.asl.entities import Execution, ExecutionSignal, ExecutionStatus, MachineType
from jobtable.workflows.asl.execution.links import execution_id, task_id
from jobtable.workflows.functions import LATEST

FUNCTION_UNKNOWN = "Lambda.Unknown"
_MOST_ERROR = 256
_MOST_CAUSE = 32_768
"""Characters of an error and of its cause, as in Step Functions."""
_CAUSE_MEMBERS = {"ErrorMessage": "errorMessage", "ErrorType": "errorType", "StackTrace": "stackTrace"}


def leave(
    store: Store,
    tx: Transaction,
    now: datetime,
    link: Mapping[str, Any],
    kind: str,
    *,
    key: str,
    payload: Any = None,
    **members: Any,
) -> None:
    """Leave a signal for a visit with the rest of a transaction; nothing if its execution has ended.

    A payload is as stored: a text, JSON for an output, or `{"object": key}`. `key` makes the signal's id unique.
    """
    execution = store.find(Execution.key(machine=link["machine"], name=link["name"]))
    if execution is None or execution_id(execution) != link["execution_id"]:
        return
    if execution.status is not ExecutionStatus.RUNNING:
        return
    object_key: str | None = None
    if isinstance(payload, Mapping):
        object_key, payload = payload["object"], None
    if kind == "Failed":
        members["error"] = cut_error(members.get("error"))
    if payload is not None:
        members |= {"cause": cut_cause(payload)} if kind == "Failed" else {"output": json.loads(payload)}
    tx.put(signal_item(execution, now, link, kind, key=key, members=members, payload_object=object_key))
    add_wake(store, tx, store.find(Job.key(job_id=execution.job_id)))


def signal_item(
    execution: Execution,
    now: datetime,
    link: Mapping[str, Any],
    kind: str,
    *,
    key: str,
    members: Mapping[str, Any],
    payload_object: str | None = None,
) -> ExecutionSignal:
    """Return the item of a signal; ids sort by time."""
    return ExecutionSignal(
        machine=execution.machine,
        name=execution.name,
        signal_id=f"{now.strftime('%Y%m%dT%H%M%S.%f')}-{key}",
        kind=kind,
        members=json.dumps({"frame_id": link["frame_id"], "visit": link["visit"], **members}),
        payload_object=payload_object,
        at=now,
    )


def report_function(
    store: Store,
    tx: Transaction,
    now: datetime,
    link: Mapping[str, Any],
    *,
    payload: Any = None,
    error: Mapping[str, Any] | None = None,
) -> None:
    """Leave what a function returned, as stored, or the ErrorObject that it ended with."""
    key = task_id(link)
    if error is not None:
        name = error.get("ErrorType") or FUNCTION_UNKNOWN
        leave(store, tx, now, link, "Failed", key=key, payload=cause_of(error), error=name)
    else:
        is_whole = not link.get("has_token")
        more = {"version": link["version"]} if is_whole and link.get("version", LATEST) != LATEST else {}
        kind = "Succeeded" if is_whole else "Submitted"
        leave(store, tx, now, link, kind, key=key, payload="null" if payload is None else payload, **more)


def report_start(store: Store, link: Mapping[str, Any], now: datetime) -> None:
    """Leave that a function has started, for an execution that has a history."""

    def act(execution: Execution | None) -> None:
        if execution is None or execution.type is MachineType.EXPRESS:
            return
        with store.transaction() as tx:
            leave(store, tx, now, link, "Started", key=f"{task_id(link)}-start", at=now.isoformat())

    key = Execution.key(machine=link["machine"], name=link["name"])
    store.retrying(lambda: store.find(key), act, f"report the start of a function to {link['machine']}/{link['name']}")


def cause_of(error: Mapping[str, Any]) -> str | None:
    """Return Lambda's JSON about an error, which a state that fails has as its cause."""
    return json.dumps({to: error[name] for name, to in _CAUSE_MEMBERS.items() if name in error})


def cut_error(text: str | None) -> str | None:
    """Return what Step Functions keeps of the name of an error."""
    return None if text is None else text[:_MOST_ERROR]


def cut_cause(text: str | None) -> str | None:
    """Return what Step Functions keeps of a cause."""
    return None if text is None else text[:_MOST_CAUSE]
