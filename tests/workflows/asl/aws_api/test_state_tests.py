"""TestState through boto3: its levels of inspection, mocks, and what it refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mypy_boto3_stepfunctions import SFNClient
from tests.workflows.asl.aws_api import answer_shapes
from tests.workflows.asl.aws_api.refusing import ROLE, refused

TASK: dict[str, Any] = {
    "Type": "Task",
    "Resource": "arn:aws:states:::lambda:invoke",
    "Parameters": {"FunctionName": "charge", "Payload.$": "$.order"},
    "ResultSelector": {"paid.$": "$.Payload.sum"},
    "ResultPath": "$.bill",
    "OutputPath": "$.bill",
    "Retry": [{"ErrorEquals": ["Busy"], "IntervalSeconds": 2, "MaxAttempts": 2, "BackoffRate": 3}],
    "Catch": [{"ErrorEquals": ["Refused"], "ResultPath": "$.why", "Next": "Tell"}],
    "Next": "Ship",
}
INPUT = json.dumps({"order": {"n": 1}})


def run(states: SFNClient, definition: Any, **members: Any) -> Any:
    request = {"definition": json.dumps(definition), "roleArn": ROLE, **members}
    found: dict[str, Any] = dict(states.test_state(**request))
    found.pop("ResponseMetadata")
    return found


def texts(shown: dict[str, Any]) -> dict[str, Any]:
    """The values of an inspection, parsed where they are JSON."""
    return {name: json.loads(value) if isinstance(value, str) else value for name, value in shown.items()}


def test_the_level_decides_what_is_shown(states: SFNClient) -> None:
    mock = {"result": json.dumps({"Payload": {"sum": 9}}), "fieldValidationMode": "NONE"}
    told = run(states, TASK, input=INPUT, mock=mock)
    assert told == {"status": "SUCCEEDED", "output": '{"paid":9}', "nextState": "Ship"}
    debug = run(states, TASK, input=INPUT, mock=mock, inspectionLevel="DEBUG")
    assert texts(debug["inspectionData"]) == {
        "input": {"order": {"n": 1}},
        "afterInputPath": {"order": {"n": 1}},
        "afterParameters": {"FunctionName": "charge", "Payload": {"n": 1}},
        "result": {"Payload": {"sum": 9}},
        "afterResultSelector": {"paid": 9},
        "afterResultPath": {"order": {"n": 1}, "bill": {"paid": 9}},
    }


@pytest.mark.parametrize(
    ("error", "retries", "expected"),
    [
        ("Busy", 0, {"status": "RETRIABLE", "details": {"retryIndex": 0, "retryBackoffIntervalSeconds": 2}}),
        ("Busy", 1, {"status": "RETRIABLE", "details": {"retryIndex": 0, "retryBackoffIntervalSeconds": 6}}),
        ("Busy", 2, {"status": "FAILED", "details": {"retryIndex": 0}}),
        ("Refused", 0, {"status": "CAUGHT_ERROR", "details": {"catchIndex": 0}, "nextState": "Tell"}),
        ("Other", 0, {"status": "FAILED"}),
    ],
)
def test_a_mocked_error_is_retried_caught_or_fails(
    states: SFNClient, error: str, retries: int, expected: dict[str, Any]
) -> None:
    mock = {"errorOutput": {"error": error, "cause": "because"}}
    configuration = {"retrierRetryCount": retries}
    found = run(states, TASK, input=INPUT, mock=mock, stateConfiguration=configuration, inspectionLevel="DEBUG")
    assert (found["error"], found["cause"]) == (error, "because")
    assert found["status"] == expected["status"]
    assert found.get("nextState") == expected.get("nextState")
    assert found["inspectionData"].get("errorDetails") == expected.get("details")
    if expected["status"] == "CAUGHT_ERROR":
        assert json.loads(found["output"])["why"] == {"Error": error, "Cause": "because"}


def test_a_state_of_a_whole_machine_is_tested_with_variables(states: SFNClient) -> None:
    machine = {
        "QueryLanguage": "JSONata",
        "StartAt": "First",
        "States": {
            "First": {"Type": "Pass", "Next": "Second"},
            "Second": {
                "Type": "Pass",
                "Assign": {"sum": "{% $sum + 1 %}"},
                "Output": "{% $states.input.n * $sum %}",
                "End": True,
            },
        },
    }
    found = run(states, machine, stateName="Second", input='{"n":3}', variables='{"sum":4}', inspectionLevel="TRACE")
    assert (found["status"], found["output"]) == ("SUCCEEDED", "12")
    assert json.loads(found["inspectionData"]["variables"]) == {"sum": 5}
    assert refused(states.test_state, definition=json.dumps(machine), stateName="Third") == (
        "ValidationException",
        "State not found in definition",
    )


@pytest.mark.parametrize(
    ("definition", "text", "expected"),
    [
        ({"Type": "Succeed"}, '{"a":1}', {"status": "SUCCEEDED", "output": '{"a":1}'}),
        ({"Type": "Fail", "Error": "E", "Cause": "C"}, "{}", {"status": "FAILED", "error": "E", "cause": "C"}),
        (
            {"Type": "Wait", "Seconds": 3600, "Next": "N"},
            "{}",
            {"status": "SUCCEEDED", "output": "{}", "nextState": "N"},
        ),
        (
            {"Type": "Choice", "Choices": [{"Variable": "$.n", "NumericEquals": 1, "Next": "One"}], "Default": "Else"},
            '{"n":1}',
            {"status": "SUCCEEDED", "output": '{"n":1}', "nextState": "One"},
        ),
        (
            {"Type": "Choice", "Choices": [{"Variable": "$.n", "NumericEquals": 1, "Next": "One"}]},
            '{"n":2}',
            {"status": "FAILED", "error": "States.Runtime"},
        ),
    ],
)
def test_every_state_without_a_task_can_be_tested(
    states: SFNClient, definition: dict[str, Any], text: str, expected: dict[str, Any]
) -> None:
    found = run(states, definition, input=text)
    assert expected.items() <= found.items()


def test_a_map_and_a_parallel_are_tested_with_a_mock(states: SFNClient) -> None:
    processor = {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}
    mapped = {
        "Type": "Map",
        "ItemsPath": "$.items",
        "ItemProcessor": {**processor, "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}},
        "MaxConcurrency": 2,
        "ToleratedFailureCount": 1,
        "End": True,
    }
    told = run(states, mapped, input='{"items":[1,2]}', mock={"result": "[3,4]"}, inspectionLevel="DEBUG")
    assert (told["status"], told["output"]) == ("SUCCEEDED", "[3,4]")
    assert told["inspectionData"]["maxConcurrency"] == 2
    failed = run(
        states,
        mapped,
        input='{"items":[1,2]}',
        mock={"result": "[3,4]"},
        stateConfiguration={"mapIterationFailureCount": 2},
    )
    assert (failed["status"], failed["error"]) == ("FAILED", "States.ExceedToleratedFailureThreshold")
    other = {"StartAt": "Q", "States": {"Q": {"Type": "Succeed"}}}
    parallel = {"Type": "Parallel", "Branches": [processor, other], "End": True}
    assert run(states, parallel, mock={"result": "[1,2]"})["output"] == "[1,2]"
    error = refused(states.test_state, definition=json.dumps(parallel), mock={"result": "[1]"})
    assert error[0] == "ValidationException"
    assert refused(states.test_state, definition=json.dumps(parallel))[0] == "InvalidDefinition"


@pytest.mark.parametrize(
    ("members", "code", "message"),
    [
        ({"definition": "{"}, "InvalidDefinition", "Invalid State Machine Definition: '"),
        ({"definition": '{"Type":"Pass"}'}, "InvalidDefinition", "Invalid State Machine Definition: '"),
        ({"input": "{"}, "InvalidExecutionInput", "Invalid State Machine Execution Input: '"),
        ({"variables": "[]"}, "ValidationException", "The field 'variables' must be a JSON object"),
        ({"context": "{}"}, "ValidationException", "A Context object can only be specified when a mock is specified"),
        (
            {"stateConfiguration": {"mapIterationFailureCount": 1}},
            "ValidationException",
            "The field 'mapIterationFailureCount' of stateConfiguration is only supported for Map states.",
        ),
        (
            {"stateConfiguration": {"errorCausedByState": "P"}},
            "ValidationException",
            "errorCausedByState is only supported with a mocked error of a Map or Parallel state.",
        ),
        ({"mock": {}}, "ValidationException", "State type 'Pass' is not supported when a mock is specified"),
    ],
)
def test_a_test_is_refused(states: SFNClient, members: dict[str, Any], code: str, message: str) -> None:
    request = {"definition": '{"Type":"Pass","End":true}', "roleArn": ROLE, **members}
    error = refused(states.test_state, **request)
    assert error[0] == code
    assert error[1].startswith(message)


def test_the_iterations_of_a_map_are_shown(states: SFNClient) -> None:
    processor: dict[str, Any] = {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}
    mapped: dict[str, Any] = {
        "Type": "Map",
        "ItemReader": {
            "Resource": "arn:aws:states:::s3:getObject",
            "ReaderConfig": {"InputType": "JSON", "ItemsPointer": "/rows", "MaxItems": 3},
            "Parameters": {"Bucket": "shop", "Key": "rows.json"},
        },
        "ItemSelector": {"n.$": "$$.Map.Item.Value", "at.$": "$$.Map.Item.Index"},
        "ItemBatcher": {"MaxItemsPerBatch": 2},
        "ItemProcessor": {**processor, "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}},
        "End": True,
    }
    told = run(
        states,
        mapped,
        mock={"result": "[]"},
        stateConfiguration={"mapItemReaderData": json.dumps({"rows": [7, 8, 9, 10]})},
        inspectionLevel="DEBUG",
    )
    shown = texts(told["inspectionData"])
    selected = [{"n": 7, "at": 0}, {"n": 8, "at": 1}, {"n": 9, "at": 2}]
    assert shown["afterItemsPointer"] == [7, 8, 9]
    assert shown["afterItemSelector"] == selected
    assert shown["afterItemBatcher"] == [{"Items": selected[:2]}, {"Items": selected[2:]}]
    broken = run(states, mapped, mock={"result": "[]"}, stateConfiguration={"mapItemReaderData": "{}"})
    assert (broken["status"], broken["error"]) == ("FAILED", "States.ItemReaderFailed")


# --- mocked results and the forms of answers --------------------------------------------------------------------------


def task(resource: str) -> dict[str, Any]:
    return {"Type": "Task", "Resource": f"arn:aws:states:::{resource}", "Parameters": {}, "End": True}


START = {"StateMachineArn": "arn:aws:states:us-east-1:000000000000:stateMachine:other"}
STARTING: dict[str, Any] = {**task("states:startExecution"), "Parameters": START}
INVOKING: dict[str, Any] = {**task("lambda:invoke"), "Parameters": {"FunctionName": "charge"}}
STORED: dict[str, Any] = {**task("aws-sdk:s3:getObject"), "Parameters": {"Bucket": "b", "Key": "k"}}
READING: dict[str, Any] = {**task("dynamodb:getItem"), "Parameters": {"TableName": "t", "Key": {"id": {"S": "a"}}}}
SENDING: dict[str, Any] = {**task("sqs:sendMessage"), "Parameters": {"QueueUrl": "q", "MessageBody": "b"}}
ASKING: dict[str, Any] = {
    **task("sqs:sendMessage.waitForTaskToken"),
    "Parameters": {"QueueUrl": "q", "MessageBody": {"token.$": "$$.Task.Token"}},
}
LOCAL: dict[str, Any] = {"Type": "Task", "Resource": "arn:aws:lambda:us-east-1:000000000000:function:f", "End": True}
MISSING = "Required field 'ExecutionArn' is missing"


@pytest.mark.parametrize(
    ("definition", "result", "modes", "fault"),
    [
        (INVOKING, {"StatusCode": "200"}, "STRICT PRESENT", "Field 'StatusCode' must be a number"),
        (INVOKING, {"Payload": {"sum": 9}}, "STRICT PRESENT", "Field 'Payload' must be a string"),
        (STARTING, {}, "STRICT", MISSING),
        (STARTING, {"executionArn": "a", "startDate": "b"}, "STRICT", MISSING),
        (STARTING, {"ExecutionArn": "a", "StartDate": True}, "STRICT PRESENT", "Field 'StartDate' must be a string"),
        (STARTING, {"ExecutionArn": 7, "StartDate": "b"}, "STRICT PRESENT", "Field 'ExecutionArn' must be a string"),
        (
            READING,
            {"ConsumedCapacity": {"CapacityUnits": "123.45"}},
            "STRICT PRESENT",
            "Field 'CapacityUnits' must be a number",
        ),
        (READING, {"Item": {"n": {"L": [{"BOOL": "yes"}]}}}, "STRICT PRESENT", "Field 'BOOL' must be a boolean"),
        (READING, {"Item": {"n": {"L": {}}}}, "STRICT PRESENT", "Field 'L' must be an array"),
        (READING, {"Item": "all"}, "STRICT PRESENT", "Field 'Item' must be an object"),
        (STORED, {"ContentLength": "9000"}, "STRICT PRESENT", "Field 'ContentLength' must be a number"),
        (STORED, {"StorageClass": "Papyrus"}, "STRICT PRESENT", "Field 'StorageClass' is not an expected value"),
        (SENDING, {"MessageId": 1}, "STRICT PRESENT", "Field 'MessageId' must be a string"),
    ],
)
def test_a_mocked_result_has_the_form_of_its_service(
    states: SFNClient, definition: Any, result: Any, modes: str, fault: str
) -> None:
    for mode in ("STRICT", "PRESENT", "NONE"):
        mock: Any = {"result": json.dumps(result), "fieldValidationMode": mode}
        request: dict[str, Any] = {"definition": json.dumps(definition), "mock": mock}
        if mode in modes.split():
            message = f"Mock result schema validation error: {fault}"
            assert refused(states.test_state, **request) == ("ValidationException", message), mode
        else:
            assert states.test_state(**request)["status"] == "SUCCEEDED", mode


@pytest.mark.parametrize(
    ("definition", "result"),
    [
        (INVOKING, {"Payload": "text", "SdkHttpMetadata": {"HttpStatusCode": 200}, "random": [1]}),
        (STARTING, {"ExecutionArn": "a", "StartDate": "2026-01-01T00:00:00Z"}),
        (SENDING, {"MD5OfMessageBody": {"as": "AWS does not know it"}, "MessageId": "m"}),
        (ASKING, {"whatever": "the holder of the token answers"}),
        (LOCAL, 7),
    ],
)
def test_a_mocked_result_comes_out_as_it_was_written(states: SFNClient, definition: Any, result: Any) -> None:
    told = states.test_state(definition=json.dumps(definition), mock={"result": json.dumps(result, indent=1)})
    assert (told["status"], told["output"]) == ("SUCCEEDED", json.dumps(result, indent=1))


def test_a_mocked_result_is_json_and_a_task_without_a_mock_has_a_role(states: SFNClient) -> None:
    definition = json.dumps(INVOKING)
    mock: Any = {"result": "not JSON", "fieldValidationMode": "NONE"}
    assert refused(states.test_state, definition=definition, mock=mock) == (
        "ValidationException",
        "Mocked result must be valid JSON",
    )
    assert refused(states.test_state, definition=definition) == (
        "ValidationException",
        "RoleArn must be specified when testing a Task state",
    )


def test_the_forms_of_answers_are_those_of_boto3() -> None:
    assert json.loads(answer_shapes.FILE.read_text()) == answer_shapes.described()


# --- errors from inside a Map or Parallel -----------------------------------------------------------------------------

WITHIN: dict[str, Any] = {
    "Type": "Map",
    "ItemsPath": "$.items",
    "ItemProcessor": {
        "ProcessorConfig": {"Mode": "INLINE"},
        "StartAt": "Retried",
        "States": {
            "Retried": {
                "Type": "Task",
                "Resource": LOCAL["Resource"],
                "Retry": [{"ErrorEquals": ["Busy"], "IntervalSeconds": 5, "MaxAttempts": 1}],
                "Next": "Both",
            },
            "Both": {
                "Type": "Parallel",
                "Branches": [{"StartAt": "Deep", "States": {"Deep": {**LOCAL}}}],
                "Catch": [{"ErrorEquals": ["Lost"], "ResultPath": "$.why", "Next": "Found"}],
                "End": True,
            },
            "Found": {"Type": "Pass", "End": True},
        },
    },
    "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "After"}],
    "End": True,
}


@pytest.mark.parametrize(
    ("inside", "error", "expected", "details"),
    [
        ("Retried", "Busy", ("RETRIABLE", None), {"retryIndex": 0, "retryBackoffIntervalSeconds": 5}),
        ("Retried", "Other", ("CAUGHT_ERROR", "After"), {"catchIndex": 0}),
        ("Deep", "Lost", ("CAUGHT_ERROR", "Found"), {"catchIndex": 0}),
        ("Deep", "Busy", ("CAUGHT_ERROR", "After"), {"catchIndex": 0}),
        (None, "Busy", ("CAUGHT_ERROR", "After"), {"catchIndex": 0}),
    ],
)
def test_a_mocked_error_comes_from_a_state_inside(
    states: SFNClient, inside: str | None, error: str, expected: tuple[str, str | None], details: dict[str, int]
) -> None:
    told = run(
        states,
        WITHIN,
        input='{"items":[1]}',
        mock={"errorOutput": {"error": error, "cause": "because"}},
        stateConfiguration={} if inside is None else {"errorCausedByState": inside},
        inspectionLevel="DEBUG",
    )
    assert (told["status"], told.get("nextState")) == expected
    assert told["inspectionData"]["errorDetails"] == details
    assert (told["error"], told["cause"]) == (error, "because")


def test_a_state_that_is_not_inside_causes_no_error(states: SFNClient) -> None:
    request: dict[str, Any] = {
        "definition": json.dumps(WITHIN),
        "input": '{"items":[1]}',
        "mock": {"errorOutput": {"error": "Busy"}},
        "stateConfiguration": {"errorCausedByState": "Nowhere"},
    }
    assert refused(states.test_state, **request) == (
        "ValidationException",
        "The state 'Nowhere' of errorCausedByState is not inside the state 'StateName'.",
    )
