"""Where moto is wrong: what the documentation says, how to see it in two outcomes, and a machine that shows it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.workflows.asl.differential.moto_interpreter import Outcome

Definition = dict[str, Any]
END = {"Type": "Succeed"}


@dataclass(frozen=True)
class Reason:
    """One fault of moto."""

    name: str
    documented: str
    """What the documentation says, or what Step Functions was seen to do where that says nothing."""
    explains: Callable[[Outcome, Outcome, Definition], bool]
    """Whether it is the reason why ours, the first, and moto's outcome of a definition differ."""
    states: Definition
    """The states of a machine that shows it; the first one starts."""
    input: Any = field(default_factory=dict)


def _has(outcome: Outcome, part: str) -> bool:
    return part in (outcome.cause or "")


def _rules(value: Any) -> Iterator[Definition]:
    """Find the comparisons in a definition."""
    if isinstance(value, dict):
        if "Variable" in value:
            yield value
        for member in value.values():
            yield from _rules(member)
    elif isinstance(value, list):
        for element in value:
            yield from _rules(element)


def _compares_booleans_as_numbers(definition: Definition) -> bool:
    return any(
        any(name.startswith("Numeric") for name in rule) and {"$.flag", "$.o.k"} & {str(each) for each in rule.values()}
        for rule in _rules(definition)
    )


REASONS = [
    Reason(
        "a rule whose Variable finds nothing",
        "A Choice state whose Variable does not exist fails the execution with States.Runtime; only IsPresent may ask.",
        lambda ours, moto, _: (
            _has(ours, "condition path references an invalid value") and ours.error == "States.Runtime"
        ),
        {
            "C": {"Type": "Choice", "Choices": [{"Variable": "$.x", "NumericEquals": 1, "Next": "S"}], "Default": "S"},
            "S": END,
        },
    ),
    Reason(
        "values of different types compared",
        "A comparison whose values are of different types does not match; it does not fail.",
        lambda ours, moto, _: _has(moto, "Expected type bool") or _has(moto, "not supported between instances"),
        {
            "C": {
                "Type": "Choice",
                "Choices": [{"Variable": "$.a", "BooleanEqualsPath": "$.a", "Next": "S"}],
                "Default": "S",
            },
            "S": END,
        },
        {"a": 1},
    ),
    Reason(
        "a range with a negative step",
        "The increment of States.ArrayRange may be any integer but 0.",
        lambda ours, moto, _: _has(moto, "Expected step argument to be non negative"),
        {"P": {"Type": "Pass", "Parameters": {"a.$": "States.ArrayRange(3, 1, -1)"}, "Next": "S"}, "S": END},
    ),
    Reason(
        "items that are no array in JSONPath",
        "States.QueryEvaluationError is for JSONata; a Map state in JSONPath fails with States.Runtime.",
        lambda ours, moto, _: moto.error == "States.QueryEvaluationError" and _has(ours, "must point to array"),
        {
            "M": {
                "Type": "Map",
                "ItemsPath": "$.n",
                "ItemProcessor": {"StartAt": "S", "States": {"S": END}},
                "End": True,
            }
        },
        {"n": 1},
    ),
    Reason(
        "items that are not there",
        "Step Functions reports States.ReferencePathConflict.",
        lambda ours, moto, _: ours.error == "States.ReferencePathConflict" and moto.error == "States.Runtime",
        {
            "M": {
                "Type": "Map",
                "ItemsPath": "$.n",
                "ItemProcessor": {"StartAt": "S", "States": {"S": END}},
                "End": True,
            }
        },
    ),
    Reason(
        "a ResultPath that does not fit the input",
        "A ResultPath that cannot be applied to the state's input fails with States.ResultPathMatchFailure.",
        lambda ours, moto, _: ours.error == "States.ResultPathMatchFailure" and _has(ours, "Unable to apply step"),
        {"P": {"Type": "Pass", "Result": 1, "ResultPath": "$.a", "Next": "S"}, "S": END},
        5,
    ),
    Reason(
        "a runtime error inside a branch or an iteration",
        "States.Runtime always fails the execution: nothing retries or catches it, nor do the states around it fail.",
        lambda ours, moto, _: ours.error == "States.Runtime" and "ExecutionFailed" in ours.events,
        {
            "M": {
                "Type": "Map",
                "ItemProcessor": {"StartAt": "B", "States": {"B": {"Type": "Succeed", "OutputPath": "$.missing"}}},
                "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "S"}],
                "Next": "S",
            },
            "S": END,
        },
        [{}],
    ),
    Reason(
        "a number compared with a boolean",
        "A comparison whose values are of different types does not match: false is not 0.",
        lambda ours, moto, definition: _compares_booleans_as_numbers(definition) and ours.error != "States.Runtime",
        {
            "C": {
                "Type": "Choice",
                "Choices": [{"Variable": "$.n", "NumericEqualsPath": "$.flag", "Next": "F"}],
                "Default": "S",
            },
            "S": END,
            "F": {"Type": "Fail"},
        },
        {"n": 0, "flag": False},
    ),
    Reason(
        "an array placed at an element of an array",
        "ResultPath puts the whole result at its place; an array stays one element.",
        lambda ours, moto, definition: '"ResultPath": "$.list[0]"' in json.dumps(definition) and ours.error is None,
        {"P": {"Type": "Pass", "Result": [1], "ResultPath": "$.list[0]", "Next": "S"}, "S": END},
        {"list": [0]},
    ),
    Reason(
        "the count of redrives",
        "The context object has Execution.RedriveCount, 0 without a redrive.",
        lambda ours, moto, _: _has(moto, "Execution.RedriveCount"),
        {"P": {"Type": "Pass", "Parameters": {"n.$": "$$.Execution.RedriveCount"}, "Next": "S"}, "S": END},
    ),
    Reason(
        "a fault of moto inside a branch or an iteration",
        "A state inside them fails as it does outside; moto says of its faults there that the error name is invalid.",
        lambda ours, moto, _: _has(moto, "Custom Error Names MUST NOT begin with the prefix 'States.'"),
        {
            "M": {
                "Type": "Map",
                "ItemProcessor": {
                    "StartAt": "B",
                    "States": {
                        "B": {"Type": "Pass", "Parameters": {"a.$": "States.ArrayRange(3, 1, -1)"}, "End": True},
                    },
                },
                "End": True,
            },
        },
        [{}],
    ),
]
