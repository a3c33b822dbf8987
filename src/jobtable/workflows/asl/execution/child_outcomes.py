"""What the state that started an execution learns of its end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from jobtable.store import Store
from jobtable.store.transactions import Transaction
from jobtable.workflows.asl.arns import Arns
from jobtable.workflows.asl.entities import Execution, ExecutionStatus
from jobtable.workflows.asl.execution.links import arn_of
from jobtable.workflows.asl.execution.signals import leave
from jobtable.workflows.asl.execution.texts import Texts
from jobtable.workflows.asl.interpreter.strand import dump
from jobtable.workflows.durable.large_payloads import PayloadOwner


def report_end(store: Store, texts: Texts, tx: Transaction, ended: Execution) -> None:
    """Leave a signal about the end of an execution for the state that waits for it, with the rest of a transaction."""
    if ended.parent is None or ended.stopped_at is None:
        return
    kind, members = signal_of_end(texts, ended, ended.parent)
    members["payload"] = texts.store(members.get("payload"), PayloadOwner.at(ended.parent))
    leave(store, tx, ended.stopped_at, ended.parent, kind, key=ended.job_id, **members)


def signal_of_end(texts: Texts, ended: Execution, link: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the kind and the members of the signal about an end; its payload is a text."""
    has_succeeded = ended.status is ExecutionStatus.SUCCEEDED
    if link["awaits"] == "child":
        if has_succeeded:
            return "Succeeded", {"payload": texts.find(ended.output, ended.output_object), "status": ended.status}
        return "Failed", {"payload": ended.cause, "error": ended.error, "status": ended.status}
    described = dump(_described(texts, ended, is_json=link["awaits"] == "end_as_json"))
    if has_succeeded:
        return "Succeeded", {"payload": described}
    return "Failed", {"payload": described, "error": "States.TaskFailed"}


def _described(texts: Texts, ended: Execution, *, is_json: bool) -> dict[str, Any]:
    """Return the members of DescribeExecution in the form of an integration."""

    def payload(text: str | None) -> Any:
        return json.loads(text) if is_json and text is not None else text

    arns = Arns(ended.region, ended.account)
    output = texts.find(ended.output, ended.output_object)
    members = {
        "Cause": ended.cause,
        "Error": ended.error,
        "ExecutionArn": arn_of(ended),
        "Input": payload(texts.find(ended.input, ended.input_object)),
        "InputDetails": {"Included": True},
        "Name": ended.name,
        "Output": payload(output),
        "OutputDetails": None if output is None else {"Included": True},
        "RedriveCount": ended.redrive_count,
        "StartDate": round(ended.started_at.timestamp() * 1000),
        "StateMachineArn": arns.machine(ended.machine),
        "Status": ended.status.value,
        "StopDate": None if ended.stopped_at is None else round(ended.stopped_at.timestamp() * 1000),
    }
    return {name: value for name, value in members.items() if value is not None}
