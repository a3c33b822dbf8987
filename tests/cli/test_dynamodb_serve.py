"""Clients that people use, each doing a small piece of work against `jobtable dynamodb serve`."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from aiodynamo.client import Client as AioClient
from aiodynamo.credentials import Key as AioKey
from aiodynamo.credentials import StaticCredentials
from aiodynamo.errors import ConditionalCheckFailed as AioConditionFailed
from aiodynamo.expressions import F, HashKey, RangeKey
from aiodynamo.http.aiohttp import AIOHTTP
from aiodynamo.models import KeySchema, KeySpec, KeyType, PayPerRequest
from aiohttp import ClientSession
from botocore.config import Config
from botocore.exceptions import ClientError
from mypy_boto3_dynamodb import DynamoDBClient, DynamoDBServiceResource
from mypy_boto3_dynamodbstreams import DynamoDBStreamsClient
from pynamodb.attributes import NumberAttribute, UnicodeAttribute
from pynamodb.exceptions import UpdateError
from pynamodb.models import Model
from tests.cli.conftest import ServeProcess
from yarl import URL

from jobtable.embedded.server import MOST_FILES

ACCESS_KEY, SECRET_KEY = "AKIDEXAMPLE", "the/secret+key"
REGION = "eu-central-1"
Start = Callable[..., ServeProcess]


@pytest.fixture(scope="module", params=["signed", "unsigned"])
def shared_server(request: pytest.FixtureRequest) -> Iterator[ServeProcess]:
    """A server in memory that demands signatures, and one that does not."""
    keys = ("--access-key", ACCESS_KEY, "--secret-key", SECRET_KEY) if request.param == "signed" else ()
    started = ServeProcess("--memory", *keys)
    yield started
    started.stop(signal.SIGKILL)


@pytest.fixture
def server(shared_server: ServeProcess) -> Iterator[ServeProcess]:
    """One of them, without tables."""
    yield shared_server
    client = dynamodb(shared_server.url)
    for name in client.list_tables()["TableNames"]:
        client.delete_table(TableName=name)
        client.get_waiter("table_not_exists").wait(TableName=name, WaiterConfig={"Delay": 1, "MaxAttempts": 120})
    client.close()


def options(url: str, secret_key: str = SECRET_KEY) -> dict[str, Any]:
    return {
        "endpoint_url": url,
        "region_name": REGION,
        "aws_access_key_id": ACCESS_KEY,
        "aws_secret_access_key": secret_key,
        "config": Config(retries={"total_max_attempts": 1}),
    }


def dynamodb(url: str, secret_key: str = SECRET_KEY) -> DynamoDBClient:
    client: DynamoDBClient = boto3.client("dynamodb", **options(url, secret_key))
    return client


@pytest.fixture
def client(server: ServeProcess) -> Iterator[DynamoDBClient]:
    made = dynamodb(server.url)
    yield made
    made.close()


def make_table(client: DynamoDBClient, name: str = "Jobs", **more: Any) -> None:
    client.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "N"},
        ],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        **more,
    )
    client.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 1, "MaxAttempts": 120})


def test_boto3_client(client: DynamoDBClient) -> None:
    make_table(client)
    for number in range(7):
        content = bytes([number, 255])
        client.put_item(TableName="Jobs", Item={"pk": {"S": "a"}, "sk": {"N": str(number)}, "raw": {"B": content}})
    pages = client.get_paginator("query").paginate(
        TableName="Jobs",
        KeyConditionExpression="pk = :pk",
        ExpressionAttributeValues={":pk": {"S": "a"}},
        PaginationConfig={"PageSize": 3},
    )
    found = [item for page in pages for item in page["Items"]]
    assert [item["raw"]["B"] for item in found] == [bytes([number, 255]) for number in range(7)]
    key = {"pk": {"S": "a"}, "sk": {"N": "0"}}
    updated = client.update_item(
        TableName="Jobs",
        Key=key,
        UpdateExpression="ADD runs :one",
        ConditionExpression="attribute_not_exists(runs)",
        ExpressionAttributeValues={":one": {"N": "1"}},
        ReturnValues="UPDATED_NEW",
        ReturnConsumedCapacity="TOTAL",
    )
    assert updated["Attributes"] == {"runs": {"N": "1"}}
    assert updated["ConsumedCapacity"].get("CapacityUnits") == 1
    with pytest.raises(client.exceptions.ConditionalCheckFailedException) as failed:
        client.delete_item(
            TableName="Jobs",
            Key=key,
            ConditionExpression="attribute_not_exists(runs)",
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
    response: Any = failed.value.response
    assert response["Item"]["runs"] == {"N": "1"}
    client.delete_item(TableName="Jobs", Key=key)
    assert "Item" not in client.get_item(TableName="Jobs", Key=key)
    client.delete_table(TableName="Jobs")
    client.get_waiter("table_not_exists").wait(TableName="Jobs", WaiterConfig={"Delay": 1, "MaxAttempts": 120})
    assert client.list_tables()["TableNames"] == []


def test_boto3_with_parameters_from_before_expressions(client: DynamoDBClient) -> None:
    """A lock and a queue, as they were written before there were expressions."""
    make_table(client)
    ready: Any = {"pk": {"S": "a"}, "state": {"S": "ready"}, "tries": {"N": "0"}}
    for number in "0123":
        client.put_item(TableName="Jobs", Item={**ready, "sk": {"N": number}}, Expected={"pk": {"Exists": False}})
    with pytest.raises(client.exceptions.ConditionalCheckFailedException):
        client.put_item(TableName="Jobs", Item={**ready, "sk": {"N": "3"}}, Expected={"pk": {"Exists": False}})
    first: Any = {"pk": {"S": "a"}, "sk": {"N": "0"}}
    taken = client.update_item(
        TableName="Jobs",
        Key=first,
        Expected={"state": {"Value": {"S": "ready"}}, "tries": {"ComparisonOperator": "LT", "Value": {"N": "3"}}},
        ConditionalOperator="AND",
        AttributeUpdates={
            "state": {"Value": {"S": "running"}},
            "tries": {"Action": "ADD", "Value": {"N": "1"}},
            "hosts": {"Action": "ADD", "Value": {"SS": ["h1"]}},
        },
        ReturnValues="ALL_NEW",
    )
    assert taken["Attributes"]["tries"] == {"N": "1"}
    waiting = client.get_paginator("query").paginate(
        TableName="Jobs",
        KeyConditions={
            "pk": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "a"}]},
            "sk": {"ComparisonOperator": "LE", "AttributeValueList": [{"N": "2"}]},
        },
        QueryFilter={"state": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "ready"}]}},
        AttributesToGet=["sk"],
        PaginationConfig={"PageSize": 1},
    )
    assert [item for page in waiting for item in page["Items"]] == [{"sk": {"N": "1"}}, {"sk": {"N": "2"}}]
    has_host: Any = {"hosts": {"ComparisonOperator": "CONTAINS", "AttributeValueList": [{"S": "h1"}]}}
    assert client.scan(TableName="Jobs", ScanFilter=has_host, Select="COUNT")["Count"] == 1
    client.update_item(TableName="Jobs", Key=first, AttributeUpdates={"hosts": {"Action": "DELETE"}})
    several: Any = {"Jobs": {"Keys": [first], "AttributesToGet": ["state", "hosts"]}}
    assert client.batch_get_item(RequestItems=several)["Responses"] == {"Jobs": [{"state": {"S": "running"}}]}
    client.delete_item(TableName="Jobs", Key=first, Expected={"state": {"Value": {"S": "running"}}})
    assert "Item" not in client.get_item(TableName="Jobs", Key=first, AttributesToGet=["pk"])


def test_boto3_transactions(client: DynamoDBClient) -> None:
    make_table(client)
    put: Any = {"Put": {"TableName": "Jobs", "Item": {"pk": {"S": "a"}, "sk": {"N": "1"}}}}
    check: Any = {
        "ConditionCheck": {
            "TableName": "Jobs",
            "Key": {"pk": {"S": "b"}, "sk": {"N": "1"}},
            "ConditionExpression": "attribute_exists(pk)",
        }
    }
    with pytest.raises(client.exceptions.TransactionCanceledException) as cancelled:
        client.transact_write_items(TransactItems=[put, check])
    reasons = cancelled.value.response["CancellationReasons"]
    assert [reason.get("Code") for reason in reasons] == ["None", "ConditionalCheckFailed"]
    client.transact_write_items(TransactItems=[put], ClientRequestToken="once")
    client.transact_write_items(TransactItems=[put], ClientRequestToken="once")
    answer = client.transact_get_items(
        TransactItems=[{"Get": {"TableName": "Jobs", "Key": {"pk": {"S": "a"}, "sk": {"N": "1"}}}}]
    )
    assert answer["Responses"] == [{"Item": {"pk": {"S": "a"}, "sk": {"N": "1"}}}]


def test_boto3_resource(server: ServeProcess, client: DynamoDBClient) -> None:
    make_table(client)
    resource: DynamoDBServiceResource = boto3.resource("dynamodb", **options(server.url))
    table = resource.Table("Jobs")
    with table.batch_writer() as batch:
        for number in range(60):
            batch.put_item(Item={"pk": "a", "sk": number, "tags": {"x", "y"}, "nested": {"list": [1, None, True]}})
    item = table.get_item(Key={"pk": "a", "sk": 59})["Item"]
    assert item == {"pk": "a", "sk": 59, "tags": {"x", "y"}, "nested": {"list": [1, None, True]}}
    assert table.scan(Select="COUNT")["Count"] == 60
    resource.meta.client.close()


def test_boto3_streams(server: ServeProcess, client: DynamoDBClient) -> None:
    make_table(client, StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"})
    client.put_item(TableName="Jobs", Item={"pk": {"S": "a"}, "sk": {"N": "1"}})
    client.delete_item(TableName="Jobs", Key={"pk": {"S": "a"}, "sk": {"N": "1"}})
    streams: DynamoDBStreamsClient = boto3.client("dynamodbstreams", **options(server.url))
    arn = streams.list_streams(TableName="Jobs")["Streams"][0]["StreamArn"]
    shards = streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]
    records = []
    for shard in shards:
        iterator = streams.get_shard_iterator(
            StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        records += streams.get_records(ShardIterator=iterator)["Records"]
    assert [record["eventName"] for record in records] == ["INSERT", "REMOVE"]
    streams.close()


def test_a_wrong_secret_is_refused(serve: Start) -> None:
    server = serve("--memory", "--access-key", ACCESS_KEY, "--secret-key", SECRET_KEY)
    client = dynamodb(server.url, "another secret")
    with pytest.raises(ClientError) as refused:
        client.list_tables()
    assert refused.value.response["Error"]["Code"] == "InvalidSignatureException"
    client.close()


def test_aiodynamo(server: ServeProcess) -> None:
    async def work() -> None:
        async with ClientSession() as session:
            credentials = StaticCredentials(key=AioKey(ACCESS_KEY, SECRET_KEY))
            client = AioClient(AIOHTTP(session), credentials, REGION, URL(server.url))
            schema = KeySchema(KeySpec("pk", KeyType.string), KeySpec("sk", KeyType.number))
            await client.create_table("Jobs", PayPerRequest(), schema, wait_for_active=True)
            for number in range(3):
                await client.put_item("Jobs", {"pk": "a", "sk": number, "state": "new", "raw": b"\x00\xff"})
            condition = HashKey("pk", "a") & RangeKey("sk").gte(1)
            found = [item async for item in client.query("Jobs", condition)]
            assert [item["sk"] for item in found] == [1, 2]
            assert found[0]["raw"] == b"\x00\xff"
            key = {"pk": "a", "sk": 1}
            await client.update_item("Jobs", key, F("state").set("done"), condition=F("state").equals("new"))
            with pytest.raises(AioConditionFailed):
                await client.update_item("Jobs", key, F("state").set("again"), condition=F("state").equals("new"))
            await client.delete_item("Jobs", key)
            assert [item["sk"] async for item in client.scan("Jobs")] == [0, 2]

    asyncio.run(work())


def test_pynamodb(server: ServeProcess) -> None:
    class Job(Model):
        class Meta:  # pyright: ignore[reportIncompatibleVariableOverride]  # PynamoDB asks for it
            table_name = "Jobs"
            host = server.url
            region = REGION
            aws_access_key_id = ACCESS_KEY
            aws_secret_access_key = SECRET_KEY
            billing_mode = "PAY_PER_REQUEST"

        queue = UnicodeAttribute(hash_key=True)
        number = NumberAttribute(range_key=True)
        state = UnicodeAttribute(default="new")

    Job.create_table(wait=True)
    with Job.batch_write() as batch:
        for number in range(30):
            batch.save(Job("a", number))
    assert [job.number for job in Job.query("a", Job.number.between(10, 12))] == [10, 11, 12]
    job = Job.get("a", 10)
    job.update(actions=[Job.state.set("done")], condition=Job.state == "new")
    with pytest.raises(UpdateError):
        job.update(actions=[Job.state.set("again")], condition=Job.state == "new")
    job.delete()
    assert sum(1 for _ in Job.scan()) == 29
    Job.delete_table()
    Job._connection = None


Aws = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def aws(server: ServeProcess, tmp_path: Path) -> Aws:
    """`aws dynamodb` with the server as its endpoint."""
    environment = os.environ | {
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_CONFIG_FILE": str(tmp_path / "none"),
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_PAGER": "",
    }

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        program = str(Path(sys.executable).parent / "aws")
        command = [program, "dynamodb", *arguments, "--endpoint-url", server.url, "--output", "json"]
        return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False, env=environment)

    return run


def test_aws_cli(aws: Aws) -> None:
    key = ["--key", '{"pk": {"S": "a"}}']
    name = ["--table-name", "Jobs"]
    attributes = ["--attribute-definitions", "AttributeName=pk,AttributeType=S"]
    schema = ["--key-schema", "AttributeName=pk,KeyType=HASH"]
    made = aws("create-table", *name, *attributes, *schema, "--billing-mode", "PAY_PER_REQUEST")
    assert (made.returncode, made.stderr) == (0, "")
    assert aws("put-item", *name, "--item", '{"pk": {"S": "a"}, "state": {"S": "new"}}').returncode == 0
    update = [
        "update-item",
        *name,
        *key,
        "--update-expression",
        "SET #s = :done",
        "--condition-expression",
        "#s = :new",
    ]
    update += ["--expression-attribute-names", '{"#s": "state"}']
    update += ["--expression-attribute-values", '{":done": {"S": "done"}, ":new": {"S": "new"}}']
    assert aws(*update).returncode == 0
    assert "ConditionalCheckFailedException" in aws(*update).stderr
    values = ["--expression-attribute-values", '{":pk": {"S": "a"}}']
    found = aws("query", *name, "--key-condition-expression", "pk = :pk", *values)
    assert json.loads(found.stdout)["Items"] == [{"pk": {"S": "a"}, "state": {"S": "done"}}]
    assert aws("delete-item", *name, *key).returncode == 0
    assert json.loads(aws("scan", *name).stdout)["Count"] == 0


def test_backups_with_boto3(client: DynamoDBClient) -> None:
    make_table(client)
    for number in range(5):
        client.put_item(TableName="Jobs", Item={"pk": {"S": "a"}, "sk": {"N": str(number)}})
    details = client.create_backup(TableName="Jobs", BackupName="before")["BackupDetails"]
    assert details["BackupStatus"] == "CREATING"
    arn = details["BackupArn"]
    client.delete_item(TableName="Jobs", Key={"pk": {"S": "a"}, "sk": {"N": "3"}})
    description = client.describe_backup(BackupArn=arn)["BackupDescription"]
    assert description["BackupDetails"]["BackupStatus"] == "AVAILABLE"
    assert description["BackupDetails"]["BackupCreationDateTime"] == details["BackupCreationDateTime"]
    assert description["SourceTableDetails"]["ItemCount"] == 5
    pages = client.get_paginator("list_backups").paginate(TableName="Jobs", PaginationConfig={"PageSize": 1})
    assert [summary.get("BackupArn") for page in pages for summary in page["BackupSummaries"]] == [arn]
    restored = client.restore_table_from_backup(TargetTableName="Restored", BackupArn=arn)["TableDescription"]
    assert restored["RestoreSummary"].get("SourceBackupArn") == arn
    assert restored["RestoreSummary"]["RestoreInProgress"] is True
    client.get_waiter("table_exists").wait(TableName="Restored", WaiterConfig={"Delay": 1, "MaxAttempts": 120})
    assert client.scan(TableName="Restored")["Count"] == 5
    client.delete_backup(BackupArn=arn)
    with pytest.raises(client.exceptions.BackupNotFoundException):
        client.describe_backup(BackupArn=arn)


def test_backups_with_the_aws_cli(client: DynamoDBClient, aws: Aws) -> None:
    make_table(client)
    client.put_item(TableName="Jobs", Item={"pk": {"S": "a"}, "sk": {"N": "1"}})
    made = aws("create-backup", "--table-name", "Jobs", "--backup-name", "before")
    assert (made.returncode, made.stderr) == (0, "")
    arn = json.loads(made.stdout)["BackupDetails"]["BackupArn"]
    client.delete_item(TableName="Jobs", Key={"pk": {"S": "a"}, "sk": {"N": "1"}})
    since = ["--time-range-lower-bound", "2020-01-01T00:00:00Z"]
    listed = json.loads(aws("list-backups", "--backup-type", "ALL", *since).stdout)["BackupSummaries"]
    assert [summary["BackupArn"] for summary in listed] == [arn]
    restored = aws("restore-table-from-backup", "--target-table-name", "Restored", "--backup-arn", arn)
    assert (restored.returncode, restored.stderr) == (0, "")
    assert aws("wait", "table-exists", "--table-name", "Restored").returncode == 0
    assert json.loads(aws("scan", "--table-name", "Restored").stdout)["Count"] == 1
    deleted = json.loads(aws("delete-backup", "--backup-arn", arn).stdout)["BackupDescription"]
    assert deleted["BackupDetails"]["BackupStatus"] == "DELETED"
    assert "BackupNotFoundException" in aws("describe-backup", "--backup-arn", arn).stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_data_is_there_again_after_a_restart(serve: Start, tmp_path: Path, number: signal.Signals) -> None:
    folder = tmp_path / "new" / "folder"
    first = serve("--data", str(folder))
    client = dynamodb(first.url)
    make_table(client)
    client.put_item(TableName="Jobs", Item={"pk": {"S": "a"}, "sk": {"N": "1"}})
    client.close()
    code, printed, complaints = first.stop(number)
    assert complaints == ""
    if number != signal.SIGKILL:
        assert (code, printed) == (0, "Stopped.\n")
    assert [path.name for path in folder.iterdir() if path.suffix == ".db"] == ["jobtable.db"]
    client = dynamodb(serve("--data", str(folder)).url)
    assert client.scan(TableName="Jobs")["Items"] == [{"pk": {"S": "a"}, "sk": {"N": "1"}}]
    client.close()


def test_writers_at_once_all_get_their_answers(serve: Start) -> None:
    server = serve("--memory")
    client = dynamodb(server.url)
    make_table(client)

    def work(worker: int) -> None:
        own = dynamodb(server.url)
        for _ in range(25):
            own.update_item(
                TableName="Jobs",
                Key={"pk": {"S": "counter"}, "sk": {"N": "0"}},
                UpdateExpression="ADD runs :one",
                ExpressionAttributeValues={":one": {"N": "1"}},
            )
        own.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert client.scan(TableName="Jobs")["Items"][0]["runs"] == {"N": "200"}
    client.close()


def test_boto3_statements(client: DynamoDBClient) -> None:
    make_table(client)
    for number in range(5):
        client.execute_statement(
            Statement="INSERT INTO Jobs VALUE {'pk': 'a', 'sk': ?, 'raw': ?, 'tags': <<'new'>>}",
            Parameters=[{"N": str(number)}, {"B": bytes([number, 255])}],
        )
    with pytest.raises(client.exceptions.DuplicateItemException):
        client.execute_statement(Statement="INSERT INTO Jobs VALUE {'pk': 'a', 'sk': 0}")
    found: list[Any] = []
    more: dict[str, Any] = {}
    while True:
        page = client.execute_statement(
            Statement="SELECT sk, raw FROM Jobs WHERE pk = 'a' AND sk > 0 ORDER BY sk DESC", Limit=3, **more
        )
        found += page["Items"]
        if "NextToken" not in page:
            break
        more = {"NextToken": page["NextToken"]}
    assert [item["raw"]["B"] for item in found] == [bytes([number, 255]) for number in (4, 3, 2, 1)]
    changed = client.execute_statement(
        Statement="UPDATE Jobs SET tags = set_add(tags, <<'old'>>) REMOVE raw WHERE pk = 'a' AND sk = 0"
        " RETURNING ALL NEW *"
    )
    assert changed["Items"] == [{"pk": {"S": "a"}, "sk": {"N": "0"}, "tags": {"SS": ["new", "old"]}}]
    answers = client.batch_execute_statement(
        Statements=[
            {"Statement": "DELETE FROM Jobs WHERE pk = 'a' AND sk = 1"},
            {"Statement": "UPDATE Jobs SET n = 1 WHERE pk = 'a' AND sk = 9"},
        ]
    )["Responses"]
    assert [answer.get("Error", {}).get("Code") for answer in answers] == [None, "ConditionalCheckFailed"]
    with pytest.raises(client.exceptions.TransactionCanceledException, match=r"\[None, DuplicateItem\]"):
        client.execute_transaction(
            TransactStatements=[
                {"Statement": "EXISTS(SELECT * FROM Jobs WHERE pk = 'a' AND sk = 0 AND raw IS MISSING)"},
                {"Statement": "INSERT INTO Jobs VALUE {'pk': 'a', 'sk': 2}"},
            ]
        )
    assert client.scan(TableName="Jobs", Select="COUNT")["Count"] == 4


def test_the_greeting_names_the_address_and_the_health_line_answers(serve: Start) -> None:
    server = serve("--memory")
    assert server.greeting == f"Serving DynamoDB on {server.url} (tables in memory); stop with Ctrl-C.\n"
    assert server.url.startswith("http://127.0.0.1:")
    with urllib.request.urlopen(server.url, timeout=120) as answer:
        assert answer.read().startswith(b"healthy: 127.0.0.1")


def test_it_may_have_as_many_files_open_as_its_connections_need(serve: Start) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
    try:
        server = serve("--memory")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    allowed, _ = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
    assert allowed == (MOST_FILES if before[1] == resource.RLIM_INFINITY else min(MOST_FILES, before[1]))
