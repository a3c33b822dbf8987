"""Durable executions, their checkpoints and callbacks through boto3's client of Lambda, over HTTP."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from mypy_boto3_lambda import LambdaClient
from tests.workflows.durable.driving import Driver
from tests.workflows.durable.lambda_serving import refused

from jobtable.workflows.durable.handler_calls import Call
from jobtable.workflows.table_and_queues import FUNCTIONS_QUEUE

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
