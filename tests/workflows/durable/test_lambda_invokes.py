"""Functions that are invoked and described through boto3's client of Lambda, over HTTP."""

from __future__ import annotations

import base64
import json
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from mypy_boto3_lambda import LambdaClient
from tests.registered_functions import only_functions_of
from tests.workflows.durable.driving import Driver
from tests.workflows.durable.lambda_serving import (
    ACCESS_KEY,
    REGION,
    SECRET_KEY,
    lambda_client,
    lambda_served,
    refused,
)

from jobtable.app import Services
from jobtable.embedded.server import SignatureCheck
from jobtable.workflows.durable.entities import DurableStatus
from jobtable.workflows.functions import DurableConfig, function


@function(name="slow_durable", durable=DurableConfig(execution_timeout_seconds=901, retention_days=3))
def slow_durable(event: Any, context: Any) -> None:
    """Never called: its settings are what counts."""


@function(name="talkative", inline=True, timeout_seconds=30, memory_mb=256)
def talkative(event: Any, context: Any) -> dict[str, Any]:
    print("said", event)
    client = context.client_context
    custom = None if client is None else (client.custom, client.client.app_title)
    return {"event": event, "custom": custom, "left": context.get_remaining_time_in_millis() <= 30_000}


# --- Invoke ---------------------------------------------------------------------------------------------------------


def test_a_function_answers(client: LambdaClient, worker: Driver) -> None:
    answer = client.invoke(FunctionName="double", Payload=b'{"n": 21}')
    assert (answer["StatusCode"], answer["ExecutedVersion"]) == (200, "$LATEST")
    assert json.loads(answer["Payload"].read()) == 42
    assert not {"FunctionError", "DurableExecutionArn"} & set(answer)


def test_a_function_that_raises_answers_with_its_error(client: LambdaClient, worker: Driver) -> None:
    answer = client.invoke(FunctionName=f"arn:aws:lambda:{REGION}:000000000000:function:broken_function")
    assert (answer["StatusCode"], answer["FunctionError"]) == (200, "Unhandled")
    about = json.loads(answer["Payload"].read())
    assert (about["errorType"], about["errorMessage"]) == ("LookupError", "nothing there")


def test_the_end_of_the_log_comes_with_the_answer(client: LambdaClient, worker: Driver) -> None:
    answer = client.invoke(FunctionName="talkative", LogType="Tail")
    assert json.loads(answer["Payload"].read()) == {"event": {}, "custom": None, "left": True}
    lines = base64.b64decode(answer["LogResult"]).decode().splitlines()
    assert lines[0].startswith("START RequestId: ")
    assert lines[0].endswith(" Version: $LATEST")
    assert lines[-1].startswith("END RequestId: ")


def test_a_function_learns_of_its_client(client: LambdaClient, worker: Driver) -> None:
    about = base64.b64encode(json.dumps({"custom": {"a": 1}, "client": {"app_title": "shop"}}).encode()).decode()
    answer = client.invoke(FunctionName="talkative", ClientContext=about)
    assert json.loads(answer["Payload"].read())["custom"] == [{"a": 1}, "shop"]
    for wrong in ("!", base64.b64encode(b"[]").decode()):
        error = refused(client.invoke, FunctionName="talkative", ClientContext=wrong)
        assert error[:2] == ("InvalidRequestContentException", 400)


def test_a_durable_function_answers_when_its_execution_ends(
    client: LambdaClient, worker: Driver, tmp_path: Path
) -> None:
    payload = json.dumps({"effects": str(tmp_path / "effects")})
    answer = client.invoke(FunctionName="waits:$LATEST", Payload=payload, DurableExecutionName="first")
    assert json.loads(answer["Payload"].read()) == "waited"
    arn = answer["DurableExecutionArn"]
    assert arn.startswith(f"arn:aws:lambda:{REGION}:000000000000:function:waits:$LATEST/durable-execution/first/")
    again = client.invoke(FunctionName="waits", Payload=payload, DurableExecutionName="first")
    assert (json.loads(again["Payload"].read()), again["DurableExecutionArn"]) == ("waited", arn)
    assert (tmp_path / "effects").read_text().splitlines() == ["before", "after"]
    error = refused(client.invoke, FunctionName="waits", Payload=b"{}", DurableExecutionName="first")
    assert error[:2] == ("DurableExecutionAlreadyStartedException", 409)


def test_a_durable_function_that_fails_answers_with_its_error(
    client: LambdaClient, worker: Driver, tmp_path: Path
) -> None:
    payload = json.dumps({"effects": str(tmp_path / "effects")})
    answer = client.invoke(FunctionName="failing_execution", Payload=payload)
    assert answer["FunctionError"] == "Unhandled"
    assert json.loads(answer["Payload"].read())["errorMessage"] == "the handler gives up"


def test_what_an_execution_invokes_is_in_its_region(client: LambdaClient, worker: Driver, tmp_path: Path) -> None:
    answer = client.invoke(FunctionName="invoking", Payload=json.dumps({"effects": str(tmp_path / "effects")}))
    assert json.loads(answer["Payload"].read())["child"] == 5
    history = client.get_durable_execution_history(DurableExecutionArn=answer["DurableExecutionArn"])["Events"]
    started = [each["ChainedInvokeStartedDetails"] for each in history if "ChainedInvokeStartedDetails" in each]
    child = next(each["DurableExecutionArn"] for each in started if "DurableExecutionArn" in each)
    found = client.get_durable_execution(DurableExecutionArn=child)
    assert (found["DurableExecutionArn"], found["Status"]) == (child, "SUCCEEDED")
    assert child.startswith(f"arn:aws:lambda:{REGION}:")


def test_an_event_starts_a_function_and_does_not_wait(client: LambdaClient, driver: Driver, tmp_path: Path) -> None:
    payload = json.dumps({"effects": str(tmp_path / "effects")})
    answer = client.invoke(FunctionName="one_step", InvocationType="Event", Payload=payload)
    assert (answer["StatusCode"], answer["Payload"].read()) == (202, b"")
    execution = client.get_durable_execution(DurableExecutionArn=answer["DurableExecutionArn"])
    assert execution["Status"] == "RUNNING"
    plain = client.invoke(FunctionName="double", InvocationType="Event", Payload=b'{"n": 1}')
    assert (plain["StatusCode"], plain["Payload"].read()) == (202, b"")
    assert driver.run_to_end("one_step", execution["DurableExecutionName"]).status is DurableStatus.SUCCEEDED


def test_a_dry_run_starts_nothing(client: LambdaClient, driver: Driver) -> None:
    answer = client.invoke(FunctionName="double", InvocationType="DryRun", Payload=b'{"n": 1}')
    assert (answer["StatusCode"], answer["Payload"].read()) == (204, b"")
    assert not driver.work_once()


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (
            {"FunctionName": "nobody"},
            (
                "ResourceNotFoundException",
                404,
                f"Function not found: arn:aws:lambda:{REGION}:000000000000:function:nobody",
            ),
        ),
        ({"FunctionName": "double", "Payload": b"{"}, ("InvalidRequestContentException", 400, "Could not parse")),
        ({"FunctionName": "double", "Payload": b"\xff"}, ("InvalidRequestContentException", 400, "The body is not")),
        (
            {"FunctionName": "double", "Payload": b'"' + b"x" * 6_291_456 + b'"'},
            ("RequestTooLargeException", 413, "Request must be smaller than 6291456 bytes"),
        ),
        (
            {"FunctionName": "double", "InvocationType": "Event", "Payload": b'"' + b"x" * 1_048_576 + b'"'},
            ("RequestTooLargeException", 413, "1048578 byte payload is too large for the Event invocation type"),
        ),
        (
            {"FunctionName": "double", "DurableExecutionName": "named"},
            ("InvalidParameterValueException", 400, "DurableExecutionName cannot be used: double is not a durable"),
        ),
        (
            {"FunctionName": "double:live", "Qualifier": "test"},
            ("InvalidParameterValueException", 400, "The derived qualifier from the function name does not match"),
        ),
        (
            {"FunctionName": "slow_durable"},
            ("InvalidParameterValueException", 400, "You cannot synchronously invoke a durable function"),
        ),
        ({"FunctionName": "double", "InvocationType": "Later"}, ("ValidationException", 400, "1 validation error")),
    ],
)
def test_an_invocation_is_refused(client: LambdaClient, request_: dict[str, Any], error: tuple[str, int, str]) -> None:
    code, status, message = refused(client.invoke, **request_)
    assert (code, status) == error[:2]
    assert message.startswith(error[2])


# --- functions ------------------------------------------------------------------------------------------------------


def test_functions_are_described(client: LambdaClient) -> None:
    found = client.get_function_configuration(FunctionName="talkative")
    assert (found["Timeout"], found["MemorySize"]) == (30, 256)
    assert found["Handler"] == f"{__name__}.talkative"
    assert found["FunctionArn"] == f"arn:aws:lambda:{REGION}:000000000000:function:talkative"
    assert "DurableConfig" not in set(found)
    durable = client.get_function(FunctionName="slow_durable", Qualifier="$LATEST")["Configuration"]
    assert durable["DurableConfig"] == {"ExecutionTimeout": 901, "RetentionPeriodInDays": 3}
    assert refused(client.get_function, FunctionName="nobody")[:2] == ("ResourceNotFoundException", 404)


def test_all_functions_are_listed_in_pages(client: LambdaClient, services: Services) -> None:
    with only_functions_of("tests.workflows.durable.handlers", __name__):
        client.get_function(FunctionName="double")  # publishes what is registered here
    names = [each["FunctionName"] for each in client.list_functions()["Functions"]]
    assert {"double", "talkative", "waits"} <= set(names)
    assert names == sorted(names)
    pages = client.get_paginator("list_functions").paginate(PaginationConfig={"PageSize": 4})
    paged = [[each["FunctionName"] for each in page["Functions"]] for page in pages]
    assert len(paged) > 3
    assert [name for page in paged for name in page] == names
    assert refused(client.list_functions, Marker="abc")[:2] == ("InvalidParameterValueException", 400)


# --- the protocol ---------------------------------------------------------------------------------------------------


def test_requests_must_be_signed_for_lambda_if_there_is_a_key(services: Services) -> None:
    arn = f"arn:aws:lambda:{REGION}:000000000000:function:double"
    with (
        lambda_served(services, SignatureCheck(ACCESS_KEY, SECRET_KEY, service="lambda")) as url,
        closing(lambda_client(url)) as client,
        closing(lambda_client(url, secret_key="other")) as stranger,
    ):
        assert client.get_function(FunctionName=arn)["Configuration"]["FunctionName"] == "double"
        missing = f"{arn}:$LATEST/durable-execution/a/b"
        assert refused(client.get_durable_execution, DurableExecutionArn=missing)[0] == "ResourceNotFoundException"
        assert refused(stranger.get_function, FunctionName="double")[:2] == ("InvalidSignatureException", 403)


def test_other_operations_of_lambda_say_that_they_are_not_there(client: LambdaClient) -> None:
    code, status, message = refused(client.delete_function, FunctionName="double")
    assert (code, status) == ("UnknownOperationException", 404)
    assert message == "Lambda's DELETE /2015-03-31/functions/double is not available here"


def test_pages_of_web_sites_cannot_invoke(client: LambdaClient) -> None:
    url = f"{client.meta.endpoint_url}/2015-03-31/functions"
    with pytest.raises(OSError, match="403"):
        urlopen(Request(url, headers={"Origin": "https://example.com"}), timeout=30)
