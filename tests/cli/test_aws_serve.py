"""`jobtable aws serve` as a process, with boto3's clients of all services and the AWS CLI."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from tests.cli.conftest import JOBTABLE, CommandLine, ServeProcess

ACCESS_KEY, SECRET_KEY = "AKIDEXAMPLE", "the/secret+key"
AWS = Path(sys.executable).parent / "aws"
Start = Callable[..., ServeProcess]
ROLE = "arn:aws:iam::000000000000:role/any"
_PATIENCE_SECONDS = 120
FUNCTIONS = """
import os
import time
from pathlib import Path

from aws_durable_execution_sdk_python import durable_execution
from aws_durable_execution_sdk_python.config import Duration

from jobtable.workflows.functions import function


def note(event, line):
    with Path(event["effects"]).open("a") as file:
        file.write(f"{line}\\n")


@function
def greet(event):
    return f"hello {event['name']}"


@function
def pack(event):
    note(event, "packing")
    while not Path(event["effects"]).with_name("go").exists():
        time.sleep(0.02)
    note(event, "packed")
    return {"boxes": 1}


@function
@durable_execution
def order(event, context):
    context.step(lambda _: note(event, "reserved"), name="reserve")
    answer = context.wait_for_callback(lambda id, _: note(event, f"callback {id}"), name="payment")
    context.wait(Duration.from_seconds(1), name="pause")
    context.step(lambda _: note(event, "shipped"), name="ship")
    return {"paid": answer}
"""


@contextmanager
def client(server: ServeProcess, service: str, secret_key: str = SECRET_KEY) -> Iterator[Any]:
    """A client that is closed after the block."""
    found = boto3.client(
        service,
        endpoint_url=server.url,
        region_name="eu-central-1",
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=secret_key,
        config=Config(retries={"total_max_attempts": 1}, inject_host_prefix=False),
    )
    try:
        yield found
    finally:
        found.close()


def wait_until(condition: Callable[[], Any]) -> Any:
    until = time.monotonic() + _PATIENCE_SECONDS
    while not (found := condition()):
        assert time.monotonic() < until, "nothing happened"
        time.sleep(0.05)
    return found


def lines_of(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop_functions.py").write_text(FUNCTIONS)
    return tmp_path


@pytest.fixture
def start(serve: Start, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Start:
    """Start a server with the functions of the shop; what it keeps for a while is in the folder too."""
    monkeypatch.setenv("TMPDIR", str(folder))
    return lambda *arguments: serve("--import", "shop_functions", *arguments, of="aws", folder=folder)


def test_four_services_at_one_address(start: Start) -> None:
    keys = ("--access-key", ACCESS_KEY, "--secret-key", SECRET_KEY)
    server = start("--memory", *keys)
    assert server.greeting.startswith("Serving DynamoDB, Step Functions and Lambda on http://127.0.0.1:")
    assert "(kept until it stops)" in server.greeting
    with client(server, "dynamodb") as dynamodb, client(server, "dynamodbstreams") as streams:
        dynamodb.create_table(
            TableName="orders",
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
            StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"},
        )
        assert len(streams.list_streams(TableName="orders")["Streams"]) == 1
    with client(server, "stepfunctions") as states:
        definition = json.dumps({"StartAt": "A", "States": {"A": {"Type": "Pass", "Result": 1, "End": True}}})
        arn = states.create_state_machine(name="one", definition=definition, roleArn=ROLE)["stateMachineArn"]
        assert [each["stateMachineArn"] for each in states.list_state_machines()["stateMachines"]] == [arn]
        tested = states.test_state(definition='{"Type":"Pass","Result":{"a":1},"End":true}', roleArn=ROLE, input="{}")
        assert json.loads(tested["output"]) == {"a": 1}
    with client(server, "lambda") as functions:
        answer = functions.invoke(FunctionName="greet", Payload=b'{"name": "Ada"}', LogType="Tail")
        assert json.loads(answer["Payload"].read()) == "hello Ada"
    calls = {"dynamodb": "list_tables", "stepfunctions": "list_activities", "lambda": "list_functions"}
    for service, call in calls.items():
        with client(server, service, "other") as stranger, pytest.raises(ClientError, match="InvalidSignature"):
            getattr(stranger, call)()


def test_a_killed_server_goes_on_where_it_was(start: Start, folder: Path) -> None:
    data, effects = str(folder / "data"), folder / "effects"
    server = start("--data", data)
    with client(server, "lambda") as functions:
        payload = json.dumps({"effects": str(effects)})
        started = functions.invoke(FunctionName="order", InvocationType="Event", Payload=payload)
        assert started["Payload"].read() == b""
    arn = started["DurableExecutionArn"]
    wait_until(lambda: any(line.startswith("callback ") for line in lines_of(effects)))
    server.stop(signal.SIGKILL)
    server = start("--data", data, "--workers", "2")
    with client(server, "lambda") as functions:
        callback_id = lines_of(effects)[1].removeprefix("callback ")
        functions.send_durable_execution_callback_success(CallbackId=callback_id, Result=b"42 EUR")
        found = wait_until(
            lambda: (
                (described := functions.get_durable_execution(DurableExecutionArn=arn))["Status"] != "RUNNING"
                and described
            )
        )
        history = functions.get_durable_execution_history(DurableExecutionArn=arn, MaxItems=1000)["Events"]
    assert (found["Status"], json.loads(found["Result"])) == ("SUCCEEDED", {"paid": "42 EUR"})
    assert [event["EventId"] for event in history] == list(range(1, len(history) + 1))
    assert lines_of(effects) == ["reserved", f"callback {callback_id}", "shipped"]


GREET = {"Type": "Task", "Resource": "arn:aws:lambda:eu-central-1:000000000000:function:greet"}
MACHINE = {
    "StartAt": "Greet",
    "States": {
        "Greet": {**GREET, "ResultPath": "$.greeting", "Next": "Pack"},
        "Pack": {
            "Type": "Task",
            "Resource": "arn:aws:states:::lambda:invoke",
            "Parameters": {"FunctionName": "pack", "Payload.$": "$"},
            "OutputPath": "$.Payload",
            "Next": "Rest",
        },
        "Rest": {"Type": "Wait", "Seconds": 1, "Next": "Ship"},
        "Ship": {"Type": "Task", "Resource": "arn:aws:states:eu-central-1:000000000000:activity:ship", "End": True},
    },
}


def test_a_killed_server_moves_an_execution_on(start: Start, folder: Path) -> None:
    data, effects = str(folder / "data"), folder / "effects"
    server = start("--data", data)
    with client(server, "stepfunctions") as states:
        activity = states.create_activity(name="ship")["activityArn"]
        machine = states.create_state_machine(name="orders", definition=json.dumps(MACHINE), roleArn=ROLE)
        text = json.dumps({"name": "Ada", "effects": str(effects)})
        arn = states.start_execution(stateMachineArn=machine["stateMachineArn"], input=text)["executionArn"]
        wait_until(lambda: lines_of(effects))
        before = states.get_execution_history(executionArn=arn)["events"]
    server.stop(signal.SIGKILL)
    (folder / "go").touch()
    server = start("--data", data)
    with client(server, "stepfunctions") as states:
        task = states.get_activity_task(activityArn=activity)
        assert json.loads(task["input"]) == {"boxes": 1}
        states.send_task_success(taskToken=task["taskToken"], output='"shipped"')
        found = wait_until(
            lambda: (described := states.describe_execution(executionArn=arn))["status"] != "RUNNING" and described
        )
        after = states.get_execution_history(executionArn=arn)["events"]
    assert (found["status"], found["output"]) == ("SUCCEEDED", '"shipped"')
    assert after[: len(before)] == before
    assert [event["id"] for event in after] == list(range(1, len(after) + 1))
    assert [event["type"] for event in after].count("TaskStateExited") == 3
    assert set(lines_of(effects)) == {"packing", "packed"}


def test_it_stops_with_a_signal_and_leaves_no_worker(start: Start, folder: Path) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        server = start("--data", str(folder / "data"), "--workers", "2")
        with client(server, "lambda") as functions:
            assert functions.invoke(FunctionName="greet", Payload=b'{"name": "Ada"}')["Payload"].read()
        workers = children_of(server.process.pid)
        assert len(workers) == 3  # one moves executions
        code, printed, _ = server.stop(number)
        assert (code, printed) == (0, "Stopped.\n")
        assert not any(Path(f"/proc/{worker}").exists() for worker in workers)


def children_of(process: int) -> list[int]:
    found = Path(f"/proc/{process}/task/{process}/children").read_text()
    return [int(each) for each in found.split()]


def test_the_aws_cli(start: Start, folder: Path) -> None:
    server = start("--memory")
    environment = {
        **os.environ,
        "AWS_ENDPOINT_URL": server.url,
        "AWS_DEFAULT_REGION": "eu-central-1",
        "AWS_ACCESS_KEY_ID": "any",
        "AWS_SECRET_ACCESS_KEY": "any",
        "AWS_DISABLE_HOST_PREFIX_INJECTION": "true",
    }

    def aws(*arguments: str) -> Any:
        done = subprocess.run(
            [AWS, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=True
        )
        return json.loads(done.stdout) if done.stdout else None

    names = [each["FunctionName"] for each in aws("lambda", "list-functions")["Functions"]]
    assert names == ["greet", "order", "pack"]
    answer = aws("lambda", "invoke", "--function-name", "greet", "--payload", '{"name":"Ada"}', "answer.json")
    assert answer == {"StatusCode": 200, "ExecutedVersion": "$LATEST"}
    assert json.loads((folder / "answer.json").read_text()) == "hello Ada"
    tested = aws("stepfunctions", "test-state", "--definition", '{"Type":"Pass","Result":1,"End":true}')
    assert (tested["status"], tested["output"]) == ("SUCCEEDED", "1")
    machine = aws(
        *("stepfunctions", "create-state-machine", "--name", "hello", "--role-arn", ROLE),
        *("--definition", json.dumps({"StartAt": "Greet", "States": {"Greet": {**GREET, "End": True}}})),
    )
    started = aws(
        *("stepfunctions", "start-execution", "--state-machine-arn", machine["stateMachineArn"]),
        *("--input", '{"name":"Ada"}'),
    )
    named = ("--execution-arn", started["executionArn"])
    wait_until(lambda: aws("stepfunctions", "describe-execution", *named)["status"] == "SUCCEEDED")
    events = aws("stepfunctions", "get-execution-history", *named)["events"]
    assert [events[0]["type"], events[-1]["type"]] == ["ExecutionStarted", "ExecutionSucceeded"]
    assert "jobtable-workflows" in aws("dynamodb", "list-tables")["TableNames"]
    assert len(list(folder.glob("jobtable-*"))) == 1
    assert server.stop()[0] == 0
    assert not list(folder.glob("jobtable-*"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--memory", "--data", "here"), "use one of --data DIR, --memory and --store URL"),
        (("--data", "here", "--store", "file:there.db"), "use one of --data DIR, --memory and --store URL"),
        (("--store", "memory:"), "a store in memory ends with this process"),
        (("--data", "here", "--access-key", "A"), "--access-key and --secret-key must be given together"),
        (("--data", "here", "--import", "no_such_module"), "cannot import no_such_module: ModuleNotFoundError"),
    ],
)
def test_what_cannot_be_served(cli: CommandLine, arguments: tuple[str, ...], message: str) -> None:
    assert message in cli.run("aws", "serve", *arguments, code=2).output.replace("\n", " ")


def test_a_store_elsewhere(start: Start, serve: Start, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "any")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "any")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    url = serve("--memory").url.replace("http://", "dynamodb+http://")
    created = subprocess.run([str(JOBTABLE), "tables", "create", "--store", url], capture_output=True, check=False)
    assert created.returncode == 0, created.stderr
    server = start("--store", url, "--objects", f"file:{folder}/objects")
    with client(server, "lambda") as functions:
        answer = functions.invoke(FunctionName="greet", Payload=b'{"name": "Ada"}')
        assert json.loads(answer["Payload"].read()) == "hello Ada"
    with client(server, "dynamodb") as dynamodb:
        assert "jobtable-workflows" in dynamodb.list_tables()["TableNames"]
