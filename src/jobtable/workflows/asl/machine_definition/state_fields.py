"""The members of each type of state, and of the machines that hold states: the table that definitions are held to."""

from __future__ import annotations

from jobtable.workflows.asl.machine import Language, StateType
from jobtable.workflows.asl.machine_definition import map_checks
from jobtable.workflows.asl.machine_definition.choice_checks import RULE
from jobtable.workflows.asl.machine_definition.error_handling_checks import catch, retry
from jobtable.workflows.asl.machine_definition.findings import Check
from jobtable.workflows.asl.machine_definition.object_checks import Shape
from jobtable.workflows.asl.machine_definition.task_checks import credentials, resource, task
from jobtable.workflows.asl.machine_definition.value_checks import (
    LONGEST_SECONDS,
    anything,
    array_of,
    choice_of,
    expression_or,
    flag,
    fraction,
    function,
    jsonata,
    literal_text,
    path,
    payload,
    reference,
    reference_in_data,
    result_path,
    static,
    template,
    text,
    timestamp,
    whole,
)
from jobtable.workflows.asl.machine_definition.variable_checks import assign

_Members = dict[str, Check]

_LANGUAGES = choice_of(*(each.value for each in Language))
_NEXT = ("Next", "End")
_COMMON: _Members = {"Type": anything, "Comment": text, "QueryLanguage": _LANGUAGES}
_FORWARD: _Members = {"Next": text, "End": flag}
_ASSIGN: _Members = {"Assign": assign}
_HANDLING: _Members = {"Retry": retry, "Catch": catch}
_INPUT: _Members = {"InputPath": path}
_OUTPUT: _Members = {"OutputPath": path}
_RESULT: _Members = {"ResultSelector": payload, "ResultPath": result_path}
_NEW_OUTPUT: _Members = {"Output": jsonata}
_SECONDS = expression_or(whole(1, LONGEST_SECONDS))


def _with_path(*names: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, f"{name}Path") for name in names)


STATES: dict[StateType, Shape] = {
    StateType.PASS: Shape(
        members=_COMMON | _FORWARD | _ASSIGN,
        jsonpath=_INPUT | _OUTPUT | {"Parameters": payload, "Result": static, "ResultPath": result_path},
        jsonata=_NEW_OUTPUT,
        one_of=(_NEXT,),
    ),
    StateType.TASK: Shape(
        members=_COMMON
        | _FORWARD
        | _ASSIGN
        | _HANDLING
        | {
            "Resource": resource,
            "Credentials": credentials,
            "TimeoutSeconds": _SECONDS,
            "HeartbeatSeconds": _SECONDS,
        },
        jsonpath=_INPUT
        | _OUTPUT
        | _RESULT
        | {"Parameters": payload, "TimeoutSecondsPath": reference, "HeartbeatSecondsPath": reference},
        jsonata=_NEW_OUTPUT | {"Arguments": jsonata},
        required=("Resource",),
        one_of=(_NEXT,),
        at_most_one_of=_with_path("TimeoutSeconds", "HeartbeatSeconds"),
        also=(task,),
    ),
    StateType.CHOICE: Shape(
        members=_COMMON | _ASSIGN | {"Choices": array_of(RULE, least=1), "Default": text},
        jsonpath=_INPUT | _OUTPUT,
        jsonata=_NEW_OUTPUT,
        required=("Choices",),
    ),
    StateType.WAIT: Shape(
        members=_COMMON
        | _FORWARD
        | _ASSIGN
        | {"Seconds": expression_or(whole(0, LONGEST_SECONDS)), "Timestamp": expression_or(timestamp)},
        jsonpath=_INPUT | _OUTPUT | {"SecondsPath": reference, "TimestampPath": reference},
        jsonata=_NEW_OUTPUT,
        one_of=(_NEXT, ("SecondsPath", "Seconds", "TimestampPath", "Timestamp")),
    ),
    StateType.SUCCEED: Shape(members=_COMMON, jsonpath=_INPUT | _OUTPUT, jsonata=_NEW_OUTPUT),
    StateType.FAIL: Shape(
        members=_COMMON | {"Error": literal_text, "Cause": literal_text},
        jsonpath={"ErrorPath": function, "CausePath": function},
        at_most_one_of=_with_path("Error", "Cause"),
    ),
    StateType.PARALLEL: Shape(
        members=_COMMON | _FORWARD | _ASSIGN | _HANDLING | {"Branches": array_of(anything, least=1)},
        jsonpath=_INPUT | _OUTPUT | _RESULT | {"Parameters": payload},
        jsonata=_NEW_OUTPUT | {"Arguments": jsonata},
        required=("Branches",),
        one_of=(_NEXT,),
    ),
    StateType.MAP: Shape(
        members=_COMMON
        | _FORWARD
        | _ASSIGN
        | _HANDLING
        | {
            "ItemProcessor": anything,
            "Iterator": anything,
            "ItemSelector": template,
            "ItemReader": map_checks.ITEM_READER,
            "ItemBatcher": map_checks.ITEM_BATCHER,
            "ResultWriter": map_checks.RESULT_WRITER,
            "Label": map_checks.label,
            "MaxConcurrency": map_checks.number(0),
            "ToleratedFailureCount": map_checks.number(0),
            "ToleratedFailurePercentage": expression_or(fraction(0.0, 100.0)),
        },
        jsonpath=_INPUT
        | _OUTPUT
        | _RESULT
        | {
            "Parameters": payload,
            "ItemsPath": reference,
            "MaxConcurrencyPath": reference_in_data,
            "ToleratedFailureCountPath": reference_in_data,
            "ToleratedFailurePercentagePath": reference_in_data,
        },
        jsonata=_NEW_OUTPUT | {"Items": map_checks.items},
        one_of=(_NEXT, ("ItemProcessor", "Iterator")),
        at_most_one_of=(
            ("ItemSelector", "Parameters"),
            *_with_path("MaxConcurrency", "ToleratedFailureCount", "ToleratedFailurePercentage"),
        ),
        also=(map_checks.map_state,),
    ),
}

_MACHINE: _Members = {"Comment": text, "StartAt": text, "States": anything}
_REQUIRED = ("States", "StartAt")

MACHINE = Shape(
    members=_MACHINE
    | {"Version": choice_of("1.0"), "QueryLanguage": _LANGUAGES, "TimeoutSeconds": whole(0, LONGEST_SECONDS)},
    required=_REQUIRED,
)
BRANCH = Shape(members=_MACHINE, required=_REQUIRED)
PROCESSOR = Shape(members=_MACHINE | {"ProcessorConfig": map_checks.PROCESSOR_CONFIG}, required=_REQUIRED)
