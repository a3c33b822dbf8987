"""DynamoDB servers over HTTP: a get, a query of 100 items, a put and a transaction of 10 puts.

Each is measured with two clients, the same for every server: boto3, as people use it, and a bare HTTP connection,
because boto3 itself takes longer than a fast server. All servers keep their tables in memory, as the peers do by
default; our own on disk, where every write is durable, stands among the peers.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import boto3
from botocore import xform_name
from pydantic_core import to_json

from bench.measure import Contender, compare, not_measured
from bench.peer_servers import OURS, SERVERS
from bench.sample import Sample, sample, samples
from jobtable.store.backend import Item, Request
from jobtable.store.tables import create_request
from jobtable.testing.servers import ServerUnavailable

QUERIED = 100
WRITTEN_TOGETHER = 10
ROUNDS = 5

Send = Callable[[str, Request], object]


class Refused(Exception):
    """A server's answer is an error."""


def run() -> None:
    with contextlib.ExitStack() as stack:
        urls = {}
        for name, server in SERVERS.items():
            try:
                urls[name] = stack.enter_context(server())
            except ServerUnavailable as error:
                not_measured(name, error)
        for url in urls.values():
            _load(stack.enter_context(bare_http(url)))
        for bench, (operation, requests) in BENCHES.items():
            for client, connect in CLIENTS.items():
                sends = {name: stack.enter_context(connect(url)) for name, url in urls.items()}
                _compare(f"HTTP, {client}: {bench}", operation, requests, sends)


def _compare(bench: str, operation: str, requests: Callable[[], Iterator[Request]], sends: dict[str, Send]) -> None:
    able = []
    for name, send in sends.items():
        contender = Contender(name, _sending(send, operation, requests()))
        try:
            contender.call()
        except Exception as error:
            if name == OURS:
                raise
            not_measured(f"{bench} on {name}", error)
        else:
            able.append(contender)
    compare(bench, *able, rounds=ROUNDS)


def _sending(send: Send, operation: str, requests: Iterator[Request]) -> Callable[[], object]:
    return lambda: send(operation, next(requests))


@contextlib.contextmanager
def with_boto3(url: str) -> Iterator[Send]:
    client: Any = boto3.client(
        "dynamodb",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="bench",
        aws_secret_access_key="bench",
    )
    yield lambda operation, request: getattr(client, xform_name(operation))(**request)
    client.close()


@contextlib.contextmanager
def bare_http(url: str) -> Iterator[Send]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc)
    credential = "bench/20260101/us-east-1/dynamodb/aws4_request"
    headers = {
        "Content-Type": "application/x-amz-json-1.0",
        "Authorization": f"AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders=host, Signature=0",
        "X-Amz-Date": "20260101T000000Z",
    }

    def send(operation: str, request: Request) -> bytes:
        target = {"X-Amz-Target": f"DynamoDB_20120810.{operation}"}
        connection.request("POST", "/", to_json(request), headers | target)
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise Refused(f"{answer.status} {body[:200].decode()}")
        return body

    yield send
    connection.close()


def _load(send: Send) -> None:
    send("CreateTable", create_request(samples, samples.name))
    for step in range(QUERIED):
        send("PutItem", {"TableName": samples.name, "Item": _item("read", step)})


def _item(run: str, step: int) -> Item:
    return Sample.__schema__.codec.encode(sample(run, step))


_numbers = itertools.count()


def _new_item() -> Item:
    return _item("written", 0) | {"SK": {"S": f"STEP#{next(_numbers):09}"}}


def get() -> Iterator[Request]:
    key = {name: _item("read", 50)[name] for name in ("PK", "SK")}
    return itertools.repeat({"TableName": samples.name, "Key": key, "ConsistentRead": True})


def query() -> Iterator[Request]:
    values = {":run": {"S": "RUN#read"}}
    condition = {"KeyConditionExpression": "PK = :run", "ExpressionAttributeValues": values}
    return itertools.repeat({"TableName": samples.name, **condition})


def put() -> Iterator[Request]:
    while True:
        yield {"TableName": samples.name, "Item": _new_item()}


def transaction() -> Iterator[Request]:
    while True:
        puts = [{"Put": {"TableName": samples.name, "Item": _new_item()}} for _ in range(WRITTEN_TOGETHER)]
        yield {"TransactItems": puts}


CLIENTS = {"boto3": with_boto3, "bare client": bare_http}

# Reads first: what the writes add would slow down those who look through whole tables.
BENCHES = {
    "get": ("GetItem", get),
    f"query of {QUERIED} items": ("Query", query),
    "put": ("PutItem", put),
    f"transaction of {WRITTEN_TOGETHER} puts": ("TransactWriteItems", transaction),
}
