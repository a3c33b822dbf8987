"""Two workflows of which everything is too large for an item: a durable function and a state machine."""

from __future__ import annotations

from typing import Any

from aws_durable_execution_sdk_python import DurableContext, durable_execution
from aws_durable_execution_sdk_python.config import Duration
from aws_durable_execution_sdk_python.types import WaitForConditionCheckContext
from aws_durable_execution_sdk_python.waits import WaitForConditionConfig, WaitForConditionDecision

from jobtable.workflows.functions import function

_SIZE = 20_000


def large(label: str) -> str:
    """Return a text that only an object can hold."""
    return label * (_SIZE // len(label))


@function
def enlarge(event: dict[str, Any]) -> dict[str, Any]:
    return {"text": large(f"enlarged {event['text'][:9]} ")}


@function(name="large_child", inline=True)
@durable_execution
def large_child(event: dict[str, Any], context: DurableContext) -> str:
    return large(f"child of {event['text'][:9]} ")


@function(name="large_durable", inline=True)
@durable_execution
def large_durable(event: dict[str, Any], context: DurableContext) -> dict[str, Any]:
    def check(state: dict[str, Any], _: WaitForConditionCheckContext) -> dict[str, Any]:
        return {"polls": state["polls"] + 1, "text": large(f"poll {state['polls']} ")}

    def strategy(state: dict[str, Any], _: int) -> WaitForConditionDecision:
        if state["polls"] > 1:
            return WaitForConditionDecision.stop_polling()
        return WaitForConditionDecision.continue_waiting(Duration.from_seconds(1))

    polling = WaitForConditionConfig(wait_strategy=strategy, initial_state={"polls": 0})
    context.step(lambda _: large("step "), name="step")
    called: dict[str, Any] = context.invoke("enlarge", event, name="call")
    context.invoke("large_child", called, name="child")
    context.wait_for_condition(check, polling, name="poll")
    answer = context.create_callback(name="person").result()
    return {"answer": answer, "text": large("the end ")}


def _call(name: str, **members: Any) -> dict[str, Any]:
    return {"Type": "Task", "Resource": f"arn:aws:lambda:us-east-1:000000000000:function:{name}", **members}


INNER = {"StartAt": "Call", "States": {"Call": _call("enlarge", End=True)}}
MACHINE = {
    "StartAt": "Both",
    "States": {
        "Both": {
            "Type": "Parallel",
            "Branches": [
                {"StartAt": "Durable", "States": {"Durable": _call("large_child", End=True)}},
                {
                    "StartAt": "Nested",
                    "States": {
                        "Nested": {
                            "Type": "Task",
                            "Resource": "arn:aws:states:::states:startExecution.sync:2",
                            "Parameters": {
                                "StateMachineArn": "arn:aws:states:us-east-1:000000000000:stateMachine:inner",
                                "Input.$": "$",
                            },
                            "OutputPath": "$.Output",
                            "End": True,
                        }
                    },
                },
                {
                    "StartAt": "Event",
                    "States": {
                        "Event": {
                            "Type": "Task",
                            "Resource": "arn:aws:states:::lambda:invoke",
                            "Parameters": {
                                "FunctionName": "enlarge",
                                "InvocationType": "Event",
                                "Payload.$": "$",
                            },
                            "ResultPath": None,
                            "End": True,
                        }
                    },
                },
            ],
            "ResultSelector": {"texts.$": "$"},
            "Next": "Each",
        },
        "Each": {
            "Type": "Map",
            "Label": "Far",
            "ItemsPath": "$.texts[:1]",
            "ItemSelector": {"text": large("item ")},
            "ItemProcessor": {"ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}, **INNER},
            "Next": "Ask",
        },
        "Ask": {"Type": "Task", "Resource": "arn:aws:states:us-east-1:000000000000:activity:person", "End": True},
    },
}
INPUT = {"text": large("input ")}
ANSWER = large("answer ")
