"""The machine of the experiments with executions, and what its states call: all note what they did in a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jobtable.jobs.engine import Jobs
from jobtable.workflows.functions import function
from jobtable.workflows.message_handlers import Message, message_handler

ITEMS = 100
FAR_ITEMS = 4
_RETRY = [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 1, "MaxAttempts": 10}]


def _call(name: str, **members: Any) -> dict[str, Any]:
    return {
        "Type": "Task",
        "Resource": f"arn:aws:lambda:us-east-1:000000000000:function:{name}",
        "Retry": _RETRY,
        "End": True,
        **members,
    }


def _alone(name: str, state: dict[str, Any]) -> dict[str, Any]:
    return {"StartAt": name, "States": {name: state}}


_EACH = {
    "Type": "Map",
    "ItemsPath": "$.items",
    "ItemSelector": {"notes.$": "$.notes", "name.$": "$.name", "n.$": "$$.Map.Item.Value"},
    "End": True,
}
_ASK = {
    "Type": "Task",
    "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken",
    "Parameters": {
        "QueueUrl": "fault-inbox",
        "MessageBody": {"notes.$": "$.notes", "token.$": "$$.Task.Token"},
    },
    "End": True,
}
_FAR = {
    **_EACH,
    "Label": "Far",
    "ItemsPath": "$.far",
    "ItemProcessor": {
        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
        **_alone("F", _call("fault_item")),
    },
}
MACHINE = json.dumps(
    _alone(
        "P",
        {
            "Type": "Parallel",
            "Branches": [
                _alone("Each", {**_EACH, "ItemProcessor": _alone("I", _call("fault_item"))}),
                _alone("Ask", _ASK),
                _alone("W", {"Type": "Wait", "Seconds": 1, "End": True}),
                _alone("Job", _call("fault_job")),
                _alone("Far", _FAR),
            ],
            "End": True,
        },
    )
)


def note(path: str, *words: object) -> None:
    """Add a line to the notes; lines of several processes do not mix."""
    with Path(path).open("a") as file:
        file.write(f"{' '.join(map(str, words))}\n")


@function(name="fault_item", inline=True)
def fault_item(event: dict[str, Any]) -> int:
    """Runs in the process of the execution."""
    note(event["notes"], "item", event["name"], event["n"])
    number: int = event["n"]
    return number


@function(name="fault_job", timeout_seconds=60)
def fault_job(event: dict[str, Any]) -> str:
    """Runs as a job in a process of its own."""
    note(event["notes"], "job", event["name"])
    return "done"


@message_handler("fault-inbox")
def receive(message: Message, _jobs: Jobs) -> None:
    """Note a token, for the experiment to answer."""
    body = json.loads(message.body)
    note(body["notes"], "token", body["token"])
