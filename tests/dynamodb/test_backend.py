"""The cloud backend, against the genuine DynamoDB Local and against servers that misbehave."""

from __future__ import annotations

import base64
import functools
import json
import subprocess
import sys
import threading
import uuid
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import botocore.session
import pytest

from jobtable.dynamodb.backend import DynamoDBBackend
from jobtable.errors import (
    AccessDenied,
    BackendUnavailable,
    ConditionalCheckFailed,
    ConnectionUrlError,
    RequestError,
    RequestRefused,
    TableNotFound,
    Throttled,
    TransactionCanceled,
)
from jobtable.settings import Settings
from jobtable.store.backend import Item
from jobtable.testing.servers import free_port

connected = functools.partial(DynamoDBBackend, "eu-central-1", access_key="local", secret_key="local")


@pytest.fixture(scope="module")
def backend(dynamodb_local_url: str) -> Iterator[DynamoDBBackend]:
    backend = connected(endpoint_url=dynamodb_local_url)
    yield backend
    backend.close()


@pytest.fixture
def table(backend: DynamoDBBackend) -> Iterator[str]:
    name = f"t-{uuid.uuid4()}"
    backend.execute(
        "CreateTable",
        {
            "TableName": name,
            "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
            "BillingMode": "PAY_PER_REQUEST",
            "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        },
    )
    yield name
    backend.execute("DeleteTable", {"TableName": name})


def text(data: bytes) -> str:
    return base64.b64encode(data).decode()


ITEM: Item = {
    "id": {"S": "a"},
    "n": {"N": "12345678901234567890.123456789"},
    "b": {"B": text(bytes(range(256)))},
    "bs": {"BS": [text(b"\x00"), text(b"\xff\xfe")]},
    "nested": {"M": {"list": {"L": [{"B": text(b"deep")}, {"NULL": True}, {"BOOL": False}]}}},
    "B": {"M": {"B": {"S": "attributes named like a type"}}},
    "empty": {"B": ""},
}


def test_every_type_comes_back_as_it_was_sent(backend: DynamoDBBackend, table: str) -> None:
    request = {"TableName": table, "Item": ITEM}
    sent = json.dumps(request)
    assert backend.execute("PutItem", request) == {}
    assert json.dumps(request) == sent
    found = backend.execute("GetItem", {"TableName": table, "Key": {"id": {"S": "a"}}, "ConsistentRead": True})
    assert found.keys() == {"Item"}
    found["Item"]["bs"]["BS"].sort()
    assert found["Item"] == {**ITEM, "bs": {"BS": sorted(ITEM["bs"]["BS"])}}


def test_batches_and_transactions_come_back_as_they_were_sent(backend: DynamoDBBackend, table: str) -> None:
    items: list[Item] = [{"id": {"S": name}, "b": {"B": text(name.encode())}} for name in ("x", "y")]
    keys = [{"id": item["id"]} for item in items]
    backend.execute("BatchWriteItem", {"RequestItems": {table: [{"PutRequest": {"Item": item}} for item in items]}})
    found = backend.execute("BatchGetItem", {"RequestItems": {table: {"Keys": keys}}})["Responses"][table]
    assert sorted(found, key=str) == sorted(items, key=str)
    gets = [{"Get": {"TableName": table, "Key": key}} for key in keys]
    found = backend.execute("TransactGetItems", {"TransactItems": gets})["Responses"]
    assert [answer["Item"] for answer in found] == items


def test_stream_records_hold_binary_as_text_and_times_as_numbers(backend: DynamoDBBackend, table: str) -> None:
    backend.execute("PutItem", {"TableName": table, "Item": ITEM})
    description = backend.execute("DescribeTable", {"TableName": table})["Table"]
    assert isinstance(description["CreationDateTime"], int | float)
    arn = description["LatestStreamArn"]
    shards = backend.execute("DescribeStream", {"StreamArn": arn})["StreamDescription"]["Shards"]
    iterator = backend.execute(
        "GetShardIterator",
        {"StreamArn": arn, "ShardId": shards[0]["ShardId"], "ShardIteratorType": "TRIM_HORIZON"},
    )["ShardIterator"]
    [record] = backend.execute("GetRecords", {"ShardIterator": iterator})["Records"]
    assert record["dynamodb"]["NewImage"]["b"] == ITEM["b"]
    assert isinstance(record["dynamodb"]["ApproximateCreationDateTime"], int | float)


def test_a_failed_condition_carries_the_item(backend: DynamoDBBackend, table: str) -> None:
    backend.execute("PutItem", {"TableName": table, "Item": ITEM})
    with pytest.raises(ConditionalCheckFailed) as raised:
        backend.execute(
            "PutItem",
            {
                "TableName": table,
                "Item": {"id": {"S": "a"}},
                "ConditionExpression": "attribute_not_exists(id)",
                "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            },
        )
    assert raised.value.message == "The conditional request failed"
    assert raised.value.details["Item"]["b"] == ITEM["b"]


def test_a_cancelled_transaction_carries_its_reasons(backend: DynamoDBBackend, table: str) -> None:
    put = {"Put": {"TableName": table, "Item": {"id": {"S": "new"}}}}
    check = {"ConditionCheck": {"TableName": table, "Key": {"id": {"S": "x"}}}}
    check["ConditionCheck"]["ConditionExpression"] = "attribute_exists(id)"
    with pytest.raises(TransactionCanceled) as raised:
        backend.execute("TransactWriteItems", {"TransactItems": [put, check]})
    assert [reason["Code"] for reason in raised.value.details["CancellationReasons"]] == [
        "None",
        "ConditionalCheckFailed",
    ]
    assert "ResponseMetadata" not in raised.value.details


def test_the_service_judges_requests(backend: DynamoDBBackend, table: str) -> None:
    with pytest.raises(RequestRefused) as raised:
        backend.execute("PutItem", {"TableName": table, "Item": {"other": {"S": "a"}}})
    assert raised.value.code == "ValidationException"
    with pytest.raises(RequestRefused):
        backend.execute("PutItem", {"TableName": table, "Item": {"id": {"Z": "a"}}})
    with pytest.raises(TableNotFound):
        backend.execute("GetItem", {"TableName": "no-such-table", "Key": {"id": {"S": "a"}}})


def test_an_unknown_operation_and_text_that_is_no_json_are_refused(backend: DynamoDBBackend, table: str) -> None:
    with pytest.raises(RequestRefused, match="FlyToTheMoon"):
        backend.execute("FlyToTheMoon", {})
    with pytest.raises(RequestRefused, match="PutItem"):
        backend.execute("PutItem", {"TableName": table, "Item": {"id": {"S": "\ud800"}}})


def test_many_threads_share_one_backend(backend: DynamoDBBackend, table: str) -> None:
    def increment(_: int) -> None:
        backend.execute(
            "UpdateItem",
            {
                "TableName": table,
                "Key": {"id": {"S": "counter"}},
                "UpdateExpression": "ADD hits :one",
                "ExpressionAttributeValues": {":one": {"N": "1"}},
            },
        )

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(increment, range(100)))
    found = backend.execute("GetItem", {"TableName": table, "Key": {"id": {"S": "counter"}}})
    assert found["Item"]["hits"] == {"N": "100"}


class ScriptedServer:
    """Answers each request with the next of its answers, and keeps what it was sent."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, str]] = []
        self.sent: list[bytes] = []
        self.checksum: str | None = None
        self.is_released = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                outer.sent.append(self.rfile.read(int(self.headers["Content-Length"])))
                if not outer.answers:
                    outer.is_released.wait()
                    return
                status, answer = outer.answers.pop(0)
                self.send_response(status)
                self.send_header("Content-Length", str(len(answer.encode())))
                if outer.checksum is not None:
                    self.send_header("x-amz-crc32", outer.checksum)
                self.end_headers()
                self.wfile.write(answer.encode())

            def log_request(self, code: object = "-", size: object = "-") -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    @property
    def bodies(self) -> list[dict[str, object]]:
        return [json.loads(body) for body in self.sent]


@pytest.fixture
def scripted() -> Iterator[ScriptedServer]:
    scripted = ScriptedServer()
    thread = threading.Thread(target=scripted.server.serve_forever, args=(0.01,))
    thread.start()
    yield scripted
    scripted.is_released.set()
    scripted.server.shutdown()
    thread.join()
    scripted.server.server_close()


def error_body(code: str, message: str = "no") -> str:
    return json.dumps({"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": message})


def test_every_operation_of_the_api_is_sent(scripted: ScriptedServer) -> None:
    session = botocore.session.Session()
    names = [name for api in ("dynamodb", "dynamodbstreams") for name in session.get_service_model(api).operation_names]
    scripted.answers = [(200, "{}")] * len(names)
    backend = connected(endpoint_url=scripted.url)
    for name in names:
        backend.execute(name, {"name": name, "ClientRequestToken": "token"})
    assert scripted.bodies == [{"name": name, "ClientRequestToken": "token"} for name in names]
    backend.close()


@pytest.mark.parametrize(
    ("status", "code"), [(400, "ProvisionedThroughputExceededException"), (500, "InternalServerError")]
)
def test_throttling_and_failures_are_tried_again_if_asked_for(scripted: ScriptedServer, status: int, code: str) -> None:
    scripted.answers = [(status, error_body(code)), (200, '{"Item": {}}')]
    backend = connected(endpoint_url=scripted.url, max_attempts=3)
    assert backend.execute("GetItem", {"TableName": "t"}) == {"Item": {}}
    assert scripted.bodies == [{"TableName": "t"}] * 2
    backend.close()


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ((400, error_body("ThrottlingException")), Throttled),
        ((500, error_body("SomethingNew")), BackendUnavailable),
        ((502, "<html>Bad Gateway</html>"), BackendUnavailable),
        ((200, "<html>Hello</html>"), BackendUnavailable),
        ((200, "[]"), BackendUnavailable),
        ((400, error_body("UnrecognizedClientException")), AccessDenied),
        ((400, error_body("SomethingNew")), RequestError),
        ((404, "<html>Not here</html>"), RequestError),
    ],
)
def test_an_error_answer_becomes_an_error_of_the_tree(
    scripted: ScriptedServer, answer: tuple[int, str], expected: type[RequestError]
) -> None:
    scripted.answers = [answer]
    backend = connected(endpoint_url=scripted.url)
    with pytest.raises(RequestError) as raised:
        backend.execute("GetItem", {"TableName": "t"})
    assert type(raised.value) is expected
    backend.close()


def test_a_write_is_sent_once_because_it_may_have_taken_effect(scripted: ScriptedServer) -> None:
    scripted.answers = [(500, error_body("InternalServerError")), (200, "{}")]
    backend = connected(endpoint_url=scripted.url)
    with pytest.raises(BackendUnavailable):
        backend.execute("UpdateItem", {"TableName": "t"})
    assert len(scripted.bodies) == 1
    backend.close()


def test_a_damaged_answer_is_no_answer(scripted: ScriptedServer) -> None:
    scripted.answers = [(200, '{"Item": {"a": {"N": "1"}}}')]
    scripted.checksum = str(zlib.crc32(b'{"Item": {"a": {"N": "2"}}}'))
    backend = connected(endpoint_url=scripted.url)
    with pytest.raises(BackendUnavailable, match="checksum"):
        backend.execute("GetItem", {"TableName": "t"})
    backend.close()


def test_a_transaction_that_is_tried_again_keeps_its_token(scripted: ScriptedServer) -> None:
    scripted.answers = [(500, error_body("InternalServerError")), (200, "{}"), (200, "{}")]
    backend = connected(endpoint_url=scripted.url, max_attempts=3)
    backend.execute("TransactWriteItems", {"TransactItems": []})
    backend.execute("TransactWriteItems", {"TransactItems": [], "ClientRequestToken": "mine"})
    first, again, own = (body["ClientRequestToken"] for body in scripted.bodies)
    assert first == again
    assert own == "mine"
    backend.close()


def test_no_server_is_an_error_that_names_the_endpoint() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    backend = connected(endpoint_url=url)
    with pytest.raises(BackendUnavailable, match=url):
        backend.execute("ListTables", {})
    backend.close()


def test_a_server_that_never_answers_is_an_error_that_names_the_endpoint(scripted: ScriptedServer) -> None:
    backend = connected(endpoint_url=scripted.url, read_timeout=0.2)
    with pytest.raises(BackendUnavailable, match=scripted.url):
        backend.execute("ListTables", {})
    backend.close()


def test_a_connection_that_has_died_is_given_up_while_leases_last() -> None:
    backend = connected()
    config: Any = backend._clients[0].meta.config  # its types leave out what a client was given
    assert 3 * config.read_timeout <= Settings().lease_seconds
    backend.close()


@pytest.fixture
def _no_aws_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")


@pytest.mark.usefixtures("_no_aws_settings")
def test_missing_credentials_and_regions_say_what_to_do(scripted: ScriptedServer) -> None:
    backend = DynamoDBBackend(None, endpoint_url=scripted.url)
    with pytest.raises(AccessDenied, match=rf"{scripted.url}.*AWS_ACCESS_KEY_ID"):
        backend.execute("ListTables", {})
    backend.close()
    with pytest.raises(ConnectionUrlError, match="AWS_REGION"):
        DynamoDBBackend(None)


@pytest.mark.usefixtures("_no_aws_settings")
@pytest.mark.parametrize(("status", "expected"), [(403, AccessDenied), (503, BackendUnavailable)])
def test_a_role_that_is_not_given_says_why(
    scripted: ScriptedServer, status: int, expected: type[RequestError], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "config"
    keys = "aws_access_key_id = a\naws_secret_access_key = b\n"
    role = "role_arn = arn:aws:iam::123456789012:role/work\nsource_profile = person\n"
    settings.write_text(f"[profile person]\n{keys}[profile worker]\n{role}")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(settings))
    monkeypatch.setenv("AWS_PROFILE", "worker")
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", scripted.url)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    error = "<Error><Code>Refused</Code><Message>person may not be worker</Message></Error>"
    scripted.answers = [(status, f"<ErrorResponse>{error}</ErrorResponse>")]
    backend = DynamoDBBackend("eu-central-1")
    with pytest.raises(expected, match="person may not be worker"):
        backend.execute("ListTables", {})
    backend.close()


def test_a_profile_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "no-such-profile")
    with pytest.raises(ConnectionUrlError, match="no-such-profile"):
        DynamoDBBackend(None)


@pytest.mark.parametrize("module", ["jobtable.dynamodb.backend", "jobtable.objects.s3"])
def test_without_boto3_the_error_says_what_to_install(module: str) -> None:
    script = f"""
import sys
sys.modules["boto3"] = sys.modules["botocore"] = None
try:
    import {module}
except Exception as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("ConnectionUrlError")
    assert "jobtable[aws]" in done.stdout


@pytest.mark.parametrize(("region", "endpoint"), [("no region", None), ("eu-central-1", "not a url")])
def test_a_region_or_endpoint_that_makes_no_sense_is_refused(region: str, endpoint: str | None) -> None:
    with pytest.raises(ConnectionUrlError, match=endpoint or region):
        DynamoDBBackend(region, endpoint_url=endpoint)


def test_close_may_be_called_twice() -> None:
    backend = connected()
    backend.close()
    backend.close()
