"""Lambda's operations through boto3's client over HTTP."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from botocore.exceptions import ClientError
from mypy_boto3_lambda import LambdaClient
from tests.workflows.durable.driving import Driver
from tests.workflows.durable.lambda_serving import (
    ACCESS_KEY,
    REGION,
    SECRET_KEY,
    lambda_client,
    lambda_served,
    working,
)

from jobtable.app import Services
from jobtable.embedded.server import SignatureCheck
from jobtable.workflows.durable.entities import DurableStatus
from jobtable.workflows.durable.handler_calls import Call
from jobtable.workflows.functions import DurableConfig, function
from jobtable.workflows.tables import FUNCTIONS_QUEUE


@function(name="slow_durable", durable=DurableConfig(execution_timeout_seconds=901, retention_days=3))
def slow_durable(event: Any, context: Any) -> None:
    """Never called: its settings are what counts."""


@function(name="talkative", inline=True, timeout_seconds=30, memory_mb=256)
def talkative(event: Any, context: Any) -> dict[str, Any]:
    print("said", event)
    client = context.client_context
    custom = None if client is None else (client.custom, client.client.app_title)
    return {"event": event, "custom": custom, "left": context.get_remaining_time_in_millis() <= 30_000}


@pytest.fixture
def client(services: Services) -> Iterator[LambdaClient]:
    with lambda_served(services) as url, closing(lambda_client(url)) as client:
        yield client


@pytest.fixture
def worker(driver: Driver) -> Iterator[Driver]:
    with working(driver):
        yield driver


def refused(call: Any, **request: Any) -> tuple[str, int, str]:
    with pytest.raises(ClientError) as error:
        call(**request)
    response: Any = error.value.response
    return response["Error"]["Code"], response["ResponseMetadata"]["HTTPStatusCode"], response["Error"]["Message"]


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
    answer = client.invoke(FunctionName="waits:live", Payload=payload, DurableExecutionName="first")
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
    client.get_function(FunctionName="double")  # publishes what is registered here
    names = [each["FunctionName"] for each in client.list_functions()["Functions"]]
    assert {"double", "talkative", "waits"} <= set(names)
    assert names == sorted(names)
    pages = client.get_paginator("list_functions").paginate(PaginationConfig={"PageSize": 4})
    paged = [[each["FunctionName"] for each in page["Functions"]] for page in pages]
    assert len(paged) > 3
    assert [name for page in paged for name in page] == names
    assert refused(client.list_functions, Marker="abc")[:2] == ("InvalidParameterValueException", 400)


# --- executions -----------------------------------------------------------------------------------------------------


def start(client: LambdaClient, name: str, effects: Path, execution: str) -> str:
    answer = client.invoke(
        FunctionName=name,
        InvocationType="Event",
        Payload=json.dumps({"effects": str(effects)}),
        DurableExecutionName=execution,
    )
    assert answer["Payload"].read() == b""
    return answer["DurableExecutionArn"]


def test_an_execution_is_described(client: LambdaClient, driver: Driver, tmp_path: Path) -> None:
    arn = start(client, "steps_in_order", tmp_path / "effects", "run")
    before = datetime.now(UTC) - timedelta(minutes=1)
    driver.run_to_end("steps_in_order")
    found = client.get_durable_execution(DurableExecutionArn=arn)
    assert (found["DurableExecutionName"], found["Status"], found["Result"]) == ("run", "SUCCEEDED", "[0, 1, 2, 3, 4]")
    assert before < found["StartTimestamp"] <= found["EndTimestamp"]
    assert json.loads(found["InputPayload"]) == {"effects": str(tmp_path / "effects")}
    assert found["DurableConfig"] == {"ExecutionTimeout": 31_622_400, "RetentionPeriodInDays": 14}
    bare = client.get_durable_execution(DurableExecutionArn=arn, IncludeExecutionData=False)
    assert bare["ExecutionDataIncluded"] is False
    assert not {"Result", "InputPayload", "Error"} & set(bare)
    other = arn[:-4] + "0000"
    code, status, message = refused(client.get_durable_execution, DurableExecutionArn=other)
    assert (code, status, message) == ("ResourceNotFoundException", 404, f"Durable execution not found: {other}")


def test_a_history_comes_in_pages_either_way_round(client: LambdaClient, driver: Driver, tmp_path: Path) -> None:
    arn = start(client, "mapped", tmp_path / "effects", "run")
    driver.run_to_end("mapped")
    pages = client.get_paginator("get_durable_execution_history").paginate(
        DurableExecutionArn=arn, PaginationConfig={"PageSize": 7}
    )
    events = [event for page in pages for event in page["Events"]]
    assert [event["EventId"] for event in events] == list(range(1, len(events) + 1))
    assert all(isinstance(event["EventTimestamp"], datetime) for event in events)
    step = next(event for event in events if event["EventType"] == "StepSucceeded")
    assert step["StepSucceededDetails"]["Result"]["Truncated"] is False
    newest = client.get_durable_execution_history(DurableExecutionArn=arn, ReverseOrder=True, MaxItems=5)
    assert newest["Events"] == events[:-6:-1]
    rest = client.get_durable_execution_history(
        DurableExecutionArn=arn, ReverseOrder=True, MaxItems=1000, Marker=newest["NextMarker"]
    )
    assert newest["Events"] + rest["Events"] == events[::-1]
    bare = client.get_durable_execution_history(DurableExecutionArn=arn, IncludeExecutionData=False)["Events"]
    assert [each["ExecutionStartedDetails"]["Input"] for each in bare[:1]] == [{"Truncated": True}]
    error = refused(client.get_durable_execution_history, DurableExecutionArn=arn, Marker="first")
    assert error[:2] == ("InvalidParameterValueException", 400)


def test_executions_are_listed_and_filtered_in_pages(client: LambdaClient, driver: Driver, tmp_path: Path) -> None:
    names = [f"run-{number}" for number in range(5)]
    arns = [start(client, "one_step", tmp_path / name, name) for name in names]
    driver.run_to_end("one_step", "run-4")
    start(client, "one_step", tmp_path / "late", "late")

    def listed(**filters: Any) -> list[str]:
        pages = client.get_paginator("list_durable_executions_by_function").paginate(
            FunctionName="one_step", PaginationConfig={"PageSize": 2}, **filters
        )
        return [each["DurableExecutionName"] for page in pages for each in page["DurableExecutions"]]

    assert listed() == ["late", *names[::-1]]
    assert listed(ReverseOrder=True) == [*names, "late"]
    assert listed(Statuses=["RUNNING"]) == ["late"]
    assert listed(Statuses=["RUNNING", "SUCCEEDED"]) == ["late", *names[::-1]]
    assert listed(Statuses=["FAILED"]) == []
    assert listed(DurableExecutionName="run-3") == ["run-3"]
    started = client.get_durable_execution(DurableExecutionArn=arns[2])["StartTimestamp"]
    around = timedelta(milliseconds=1)
    assert listed(StartedAfter=started + around, ReverseOrder=True) == ["run-3", "run-4", "late"]
    assert listed(StartedBefore=started - around, ReverseOrder=True) == ["run-0", "run-1"]
    page = client.list_durable_executions_by_function(FunctionName="one_step", MaxItems=2)
    other = {"FunctionName": "waits", "Marker": page["NextMarker"]}
    assert refused(client.list_durable_executions_by_function, **other)[0] == "InvalidParameterValueException"
    assert refused(client.list_durable_executions_by_function, FunctionName="nobody")[1] == 404


def test_an_execution_is_stopped(client: LambdaClient, driver: Driver, tmp_path: Path) -> None:
    arn = start(client, "callback", tmp_path / "effects", "run")
    driver.work_once()
    stopped = client.stop_durable_execution(DurableExecutionArn=arn, Error={"ErrorMessage": "no longer wanted"})
    found = client.get_durable_execution(DurableExecutionArn=arn)
    assert (found["Status"], found["Error"]) == ("STOPPED", {"ErrorMessage": "no longer wanted"})
    assert found["EndTimestamp"] == stopped["StopTimestamp"]
    again = client.stop_durable_execution(DurableExecutionArn=arn)
    assert again["StopTimestamp"] == stopped["StopTimestamp"]


# --- checkpoints ----------------------------------------------------------------------------------------------------


@pytest.fixture
def called(client: LambdaClient, driver: Driver, tmp_path: Path) -> Call:
    """A call of a handler, which has made no checkpoint yet."""
    start(client, "steps_in_order", tmp_path / "effects", "run")
    (lease,) = driver.jobs.claim(FUNCTIONS_QUEUE, limit=1, instance_id="worker", lease_seconds=30)
    begun = driver.service.calls.begin(lease, "steps_in_order", "run")
    assert isinstance(begun, Call)
    return begun


def step(action: Any, number: int = 1, **members: Any) -> Any:
    return {"Id": f"step-{number}", "Type": "STEP", "SubType": "Step", "Action": action, **members}


def test_a_checkpoint_is_made_with_each_token_once(client: LambdaClient, called: Call) -> None:
    arn = str(called.arn)
    first = client.checkpoint_durable_execution(
        DurableExecutionArn=arn, CheckpointToken=called.token, Updates=[step("START", Name="one")], ClientToken="c1"
    )
    (operation,) = first["NewExecutionState"]["Operations"]
    assert (operation["Id"], operation["Status"], operation["Name"]) == ("step-1", "STARTED", "one")
    again = client.checkpoint_durable_execution(
        DurableExecutionArn=arn, CheckpointToken=called.token, Updates=[step("START", Name="one")], ClientToken="c1"
    )
    assert again["CheckpointToken"] == first["CheckpointToken"]
    assert again["NewExecutionState"] == first["NewExecutionState"]
    for token in (called.token, "A" * len(called.token)):
        error = refused(
            client.checkpoint_durable_execution,
            DurableExecutionArn=arn,
            CheckpointToken=token,
            Updates=[step("SUCCEED", Payload="1")],
        )
        assert error == ("InvalidParameterValueException", 400, "Invalid checkpoint token")


def test_a_state_is_read_in_pages_by_its_handler_alone(client: LambdaClient, called: Call) -> None:
    arn = str(called.arn)
    updates = [step("SUCCEED", number, Payload=str(number)) for number in range(1, 6)]
    made = client.checkpoint_durable_execution(DurableExecutionArn=arn, CheckpointToken=called.token, Updates=updates)
    pages = client.get_paginator("get_durable_execution_state").paginate(
        DurableExecutionArn=arn, CheckpointToken=made["CheckpointToken"], PaginationConfig={"PageSize": 2}
    )
    found = [[each["Id"] for each in page["Operations"]] for page in pages]
    assert found == [[called.execution.execution_id, "step-1", "step-2"], ["step-3", "step-4"], ["step-5"]]
    error = refused(client.get_durable_execution_state, DurableExecutionArn=arn, CheckpointToken=called.token)
    assert error == ("InvalidParameterValueException", 400, "Invalid checkpoint token")


def test_a_handler_that_took_another_path_is_refused_by_name(client: LambdaClient, called: Call) -> None:
    arn = str(called.arn)
    made = client.checkpoint_durable_execution(
        DurableExecutionArn=arn, CheckpointToken=called.token, Updates=[step("START", Name="reserve")]
    )
    code, status, message = refused(
        client.checkpoint_durable_execution,
        DurableExecutionArn=arn,
        CheckpointToken=made["CheckpointToken"],
        Updates=[step("SUCCEED", Name="charge", Payload="1")],
    )
    assert (code, status) == ("InvalidParameterValueException", 400)
    assert "step-1 was reserve and is now charge: the handler is not deterministic" in message


def test_a_last_checkpoint_has_no_next_token(client: LambdaClient, called: Call) -> None:
    end: Any = {"Id": called.execution.execution_id, "Type": "EXECUTION", "Action": "SUCCEED", "Payload": '"done"'}
    arn = str(called.arn)
    made = client.checkpoint_durable_execution(DurableExecutionArn=arn, CheckpointToken=called.token, Updates=[end])
    assert "CheckpointToken" not in set(made)
    assert client.get_durable_execution(DurableExecutionArn=arn)["Result"] == '"done"'


# --- callbacks ------------------------------------------------------------------------------------------------------


def callback_of(client: LambdaClient, driver: Driver, effects: Path, handler: str) -> tuple[str, str]:
    """Run a handler until it waits for its callback; return the ARN of the execution and the id."""
    arn = start(client, handler, effects, "run")
    while not effects.exists() or "callback " not in effects.read_text():
        assert driver.work_once()
    while driver.work_once():
        pass
    return arn, next(line for line in effects.read_text().splitlines() if "callback " in line).split()[1]


def test_a_callback_is_answered_once(client: LambdaClient, driver: Driver, tmp_path: Path) -> None:
    arn, callback_id = callback_of(client, driver, tmp_path / "effects", "callback")
    client.send_durable_execution_callback_heartbeat(CallbackId=callback_id)
    client.send_durable_execution_callback_success(CallbackId=callback_id, Result=b"granted")
    for call in (client.send_durable_execution_callback_success, client.send_durable_execution_callback_heartbeat):
        assert refused(call, CallbackId=callback_id)[:2] == ("CallbackTimeoutException", 400)
    driver.run_to_end("callback")
    result = client.get_durable_execution(DurableExecutionArn=arn)["Result"]
    assert json.loads(result) == {"answer": "granted"}
    assert refused(client.send_durable_execution_callback_failure, CallbackId=callback_id)[0].startswith("Callback")


def test_a_callback_fails(client: LambdaClient, driver: Driver, tmp_path: Path) -> None:
    arn, callback_id = callback_of(client, driver, tmp_path / "effects", "failed_callback")
    client.send_durable_execution_callback_failure(
        CallbackId=callback_id, Error={"ErrorMessage": "refused", "ErrorType": "Refused"}
    )
    driver.run_to_end("failed_callback")
    assert "refused" in client.get_durable_execution(DurableExecutionArn=arn)["Result"]


def test_a_forged_callback_id_is_refused(client: LambdaClient, driver: Driver, tmp_path: Path) -> None:
    _, callback_id = callback_of(client, driver, tmp_path / "effects", "callback")
    content = bytearray(base64.b64decode(callback_id))
    content[0] ^= 1
    for forged in (base64.b64encode(content).decode(), "AAAA", base64.b64encode(b"x" * 200).decode()):
        error = refused(client.send_durable_execution_callback_success, CallbackId=forged)
        assert error == ("InvalidParameterValueException", 400, "Invalid callback id")


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
