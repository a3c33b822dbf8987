"""State machines of the tests."""

from __future__ import annotations

import json
from typing import Any

STATES = "arn:aws:states:us-east-1:000000000000"


def one(**fields: Any) -> str:
    """The definition of a machine of one state."""
    return json.dumps({"StartAt": "Do", "States": {"Do": {**fields, "End": True}}})


ADD = one(Type="Task", Resource="arn:aws:lambda:us-east-1:000000000000:function:add")
WAIT = one(Type="Wait", Seconds=86_400)
PASS = one(Type="Pass", Result={"done": True})
PACK = one(Type="Task", Resource=f"{STATES}:activity:pack-orders", HeartbeatSeconds=600)
FAIL = json.dumps({"StartAt": "Do", "States": {"Do": {"Type": "Fail", "Error": "Lost", "Cause": "nobody knows"}}})
MAP = json.dumps(
    {
        "StartAt": "Each",
        "States": {
            "Each": {
                "Type": "Map",
                "Label": "Each",
                "ItemProcessor": {
                    "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
                    "StartAt": "Do",
                    "States": {"Do": {"Type": "Pass", "End": True}},
                },
                "End": True,
            }
        },
    }
)
