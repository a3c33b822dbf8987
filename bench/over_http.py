"""DynamoDB servers over HTTP with the same client, boto3: put, get, a query of 100 items, a transaction of 10."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING

import boto3
from botocore.exceptions import ClientError

from bench.measure import Contender, compare, not_measured
from bench.peer_servers import OURS, SERVERS
from bench.sample import Sample, sample, samples
from jobtable.store.backend import Item
from jobtable.store.tables import create_request
from jobtable.testing.servers import ServerUnavailable

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

TABLE = samples.name
QUERIED = 100
WRITTEN_TOGETHER = 10
ROUNDS = 5

Operation = Callable[["DynamoDBClient"], Callable[[], object]]


def run() -> None:
    with contextlib.ExitStack() as stack:
        clients = {}
        for name, server in SERVERS.items():
            try:
                clients[name] = _client(stack.enter_context(server()))
            except ServerUnavailable as error:
                not_measured(name, error)
        for client in clients.values():
            _load(client)
        for bench, operation in OPERATIONS.items():
            calls = {name: operation(client) for name, client in clients.items()}
            able = [Contender(name, call) for name, call in calls.items() if _is_able(name, bench, call)]
            compare(f"HTTP: {bench}", *able, rounds=ROUNDS)
        for client in clients.values():
            client.close()


def _client(url: str) -> DynamoDBClient:
    client: DynamoDBClient = boto3.client(
        "dynamodb",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="bench",
        aws_secret_access_key="bench",
    )
    return client


def _is_able(name: str, bench: str, call: Callable[[], object]) -> bool:
    try:
        call()
    except ClientError as error:
        if name == OURS:
            raise
        not_measured(f"{bench} on {name}", error)
        return False
    return True


def _item(run: str, step: int) -> Item:
    return Sample.__schema__.codec.encode(sample(run, step))


def _load(client: DynamoDBClient) -> None:
    client.create_table(**create_request(samples, TABLE))
    client.get_waiter("table_exists").wait(TableName=TABLE, WaiterConfig={"Delay": 1})
    for step in range(QUERIED):
        client.put_item(TableName=TABLE, Item=_item("read", step))


def _put(client: DynamoDBClient) -> Callable[[], object]:
    item, numbers = _item("written", 0), itertools.count()
    return lambda: client.put_item(TableName=TABLE, Item=item | {"SK": {"S": f"STEP#{next(numbers):09}"}})


def _get(client: DynamoDBClient) -> Callable[[], object]:
    key = {name: _item("read", 50)[name] for name in ("PK", "SK")}
    return lambda: client.get_item(TableName=TABLE, Key=key, ConsistentRead=True)


def _query(client: DynamoDBClient) -> Callable[[], object]:
    values = {":run": {"S": "RUN#read"}}

    def query() -> object:
        return client.query(TableName=TABLE, KeyConditionExpression="PK = :run", ExpressionAttributeValues=values)

    return query


def _transaction(client: DynamoDBClient) -> Callable[[], object]:
    item, numbers = _item("together", 0), itertools.count()

    def transact() -> object:
        items = [item | {"SK": {"S": f"STEP#{next(numbers):09}"}} for _ in range(WRITTEN_TOGETHER)]
        return client.transact_write_items(TransactItems=[{"Put": {"TableName": TABLE, "Item": one}} for one in items])

    return transact


# Reads first: what the writes add would slow down those who look through whole tables.
OPERATIONS: dict[str, Operation] = {
    "get": _get,
    f"query of {QUERIED} items": _query,
    "put": _put,
    f"transaction of {WRITTEN_TOGETHER} puts": _transaction,
}
