"""The faults of definitions through boto3: ValidateStateMachineDefinition, and the operations that refuse them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from tests.workflows.asl.machine_definition.faulty_definitions import Faulty, read_faulty_definitions

from jobtable.app import Services
from jobtable.embedded.server import Server, StepFunctionsProtocol

ROLE = "arn:aws:iam::000000000000:role/any"
VALID = json.dumps({"StartAt": "A", "States": {"A": {"Type": "Pass", "End": True}}})
WARNED = json.dumps({"StartAt": "A", "States": {"A": {"Type": "Pass", "Result": "$.a", "End": True}}})
LOOP = json.dumps({"StartAt": "A", "States": {"A": {"Type": "Pass", "Next": "NOPE"}}})
DEEP = '{"StartAt": ' + "[" * 100_000


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with Services.open("memory:") as services, Server(StepFunctionsProtocol(services.step_functions).respond) as server:
        made = boto3.client(
            "stepfunctions",
            endpoint_url=server.url,
            region_name="us-east-1",
            aws_access_key_id="a",
            aws_secret_access_key="b",
            config=Config(retries={"total_max_attempts": 1}, inject_host_prefix=False),
        )
        yield made
        made.close()


def validate(client: Any, definition: str, **more: Any) -> dict[str, Any]:
    answer: dict[str, Any] = client.validate_state_machine_definition(definition=definition, **more)
    del answer["ResponseMetadata"]
    return answer


@pytest.mark.parametrize("faulty", list(read_faulty_definitions()), ids=str)
def test_every_fault_reaches_the_client(client: Any, faulty: Faulty) -> None:
    found = faulty.diagnose()
    answer = validate(client, faulty.text, type=faulty.machine_type.value, severity="WARNING")

    assert answer["result"] == ("FAIL" if any(each.severity == "ERROR" for each in found) else "OK")
    assert answer["truncated"] is False
    assert [
        (each["severity"], each["code"], each["message"], each.get("location")) for each in answer["diagnostics"]
    ] == [(each.severity, each.code, each.message, each.location or None) for each in found]


def test_a_valid_definition_has_no_diagnostics(client: Any) -> None:
    assert validate(client, VALID) == {"result": "OK", "diagnostics": [], "truncated": False}


def test_warnings_are_asked_for(client: Any) -> None:
    assert validate(client, WARNED) == {"result": "OK", "diagnostics": [], "truncated": False}
    answer = validate(client, WARNED, severity="WARNING")
    assert answer["result"] == "OK"
    assert [each["code"] for each in answer["diagnostics"]] == ["PASS_RESULT_IS_STATIC"]


def test_a_fault_of_no_place_has_no_location(client: Any) -> None:
    assert validate(client, LOOP) == {
        "result": "FAIL",
        "diagnostics": [
            {
                "severity": "ERROR",
                "code": "MISSING_TRANSITION_TARGET",
                "message": "Missing 'Next' target: NOPE",
                "location": "/States/A/Next",
            },
            {"severity": "ERROR", "code": "MISSING_END_STATE", "message": "Workflow has no terminal state"},
        ],
        "truncated": False,
    }


@pytest.mark.parametrize(("most", "shown", "truncated"), [(1, 1, True), (2, 2, False), (0, 2, False), (100, 2, False)])
def test_diagnostics_are_limited(client: Any, most: int, shown: int, truncated: bool) -> None:
    answer = validate(client, LOOP, maxResults=most)
    assert (answer["result"], len(answer["diagnostics"]), answer["truncated"]) == ("FAIL", shown, truncated)


def test_a_hundred_diagnostics_are_the_most(client: Any) -> None:
    states = {f"S{number}": {"Type": "Jump"} for number in range(200)}
    answer = validate(client, json.dumps({"StartAt": "S0", "States": states}))
    assert (len(answer["diagnostics"]), answer["truncated"]) == (100, True)


def test_a_fault_is_not_hidden_by_warnings_before_it(client: Any) -> None:
    states: dict[str, Any] = {
        f"S{number}": {"Type": "Pass", "Result": "$.a", "Next": f"S{number + 1}"} for number in range(150)
    }
    states["S150"] = {"Type": "Succeed", "Assign": {}}
    answer = validate(client, json.dumps({"StartAt": "S0", "States": states}), severity="WARNING")
    assert (answer["result"], answer["truncated"]) == ("FAIL", True)


def refused(act: Callable[..., Any], **members: Any) -> tuple[str, str]:
    with pytest.raises(ClientError) as caught:
        act(**members)
    error = caught.value.response["Error"]
    return error["Code"], error["Message"]


MESSAGES = {
    "Invalid State Machine Definition: 'MISSING_TRANSITION_TARGET: Missing 'Next' target: NOPE at /States/A/Next,"
    " MISSING_END_STATE: Workflow has no terminal state at null'": LOOP,
    "Invalid State Machine Definition: 'SCHEMA_VALIDATION_FAILED: These fields are required: [States, StartAt] at"
    " /'": "{}",
    "Invalid State Machine Definition: 'SCHEMA_VALIDATION_FAILED: Field 'TimeoutSeconds' is not supported at"
    " /States/P'": json.dumps({"StartAt": "P", "States": {"P": {"Type": "Pass", "TimeoutSeconds": 5, "End": True}}}),
    "Invalid State Machine Definition: 'INVALID_JSON_DESCRIPTION: Unrecognized token 'not': was expecting (JSON"
    " String, Number, Array, Object or token 'null', 'true' or 'false')\n at [Source: (String)\"not a definition\";"
    ' line: 1, column: 4] at [Source: (String)"not a definition"; line: 1, column: 4]\'': "not a definition",
    "Invalid State Machine Definition: 'INVALID_JSON_DESCRIPTION: Document nesting depth (100001) exceeds the maximum"
    " allowed (1000) at null'": DEEP,
}


@pytest.mark.parametrize("message", MESSAGES)
def test_a_faulty_definition_makes_no_machine(client: Any, message: str) -> None:
    found = refused(client.create_state_machine, name="faulty", definition=MESSAGES[message], roleArn=ROLE)
    assert found == ("InvalidDefinition", message)
    assert "faulty" not in [each["name"] for each in client.list_state_machines()["stateMachines"]]


def test_a_faulty_definition_changes_no_machine(client: Any) -> None:
    arn = client.create_state_machine(name="good", definition=VALID, roleArn=ROLE)["stateMachineArn"]
    code, message = refused(client.update_state_machine, stateMachineArn=arn, definition=LOOP)
    assert (code, message) == ("InvalidDefinition", next(iter(MESSAGES)))
    assert client.describe_state_machine(stateMachineArn=arn)["definition"] == VALID


def test_the_type_of_a_machine_decides(client: Any) -> None:
    state = {"Type": "Task", "Resource": "arn:aws:states:us-east-1:000000000000:activity:a", "End": True}
    definition = json.dumps({"StartAt": "A", "States": {"A": state}})
    _, message = refused(client.create_state_machine, name="fast", definition=definition, roleArn=ROLE, type="EXPRESS")
    assert "Express state machine does not support Activity ARN at /States/A/Resource" in message
    client.create_state_machine(name="lasting", definition=definition, roleArn=ROLE, type="STANDARD")


def test_another_service_is_refused_by_the_name_of_its_state(client: Any) -> None:
    state = {"Type": "Task", "Resource": "arn:aws:states:::glue:startJobRun", "Parameters": {}, "End": True}
    definition = json.dumps({"StartAt": "Crawl", "States": {"Crawl": state}})
    code, message = refused(client.create_state_machine, name="glue", definition=definition, roleArn=ROLE)
    assert code == "InvalidDefinition"
    assert "The resource provided arn:aws:states:::glue:startJobRun is not recognized." in message
    assert "State 'Crawl' may call: Lambda functions" in message


def test_a_warned_definition_makes_a_machine(client: Any) -> None:
    arn = client.create_state_machine(name="warned", definition=WARNED, roleArn=ROLE)["stateMachineArn"]
    assert client.describe_state_machine(stateMachineArn=arn)["definition"] == WARNED
