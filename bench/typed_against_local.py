"""The typed store on the embedded engine against what it replaces on a laptop: boto3's tables on DynamoDB Local."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import boto3
from boto3.dynamodb.conditions import Key as KeyCondition

from bench.measure import Contender, compare, not_measured
from bench.sample import Sample, sample, samples, values
from jobtable.embedded import EmbeddedBackend
from jobtable.store.store import Store
from jobtable.store.tables import create_request
from jobtable.testing.servers import ServerUnavailable, dynamodb_local

QUERIED = 100
PEER = "boto3 on DynamoDB Local"


def run() -> None:
    try:
        with dynamodb_local(for_long=True) as url, Store(EmbeddedBackend(None)) as store:
            _compare(store, url)
    except ServerUnavailable as error:
        not_measured("typed reads against DynamoDB Local", error)


def _compare(store: Store, url: str) -> None:
    local = boto3.resource(
        "dynamodb",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="bench",
        aws_secret_access_key="bench",
    )
    table = local.create_table(**create_request(samples, samples.name))
    store.tables.create(samples)
    for step in range(QUERIED):
        store.put(sample("read", step))
        table.put_item(Item=_python_item("read", step))
    key = {"PK": "RUN#read", "SK": "STEP#000000050"}
    condition = KeyCondition("PK").eq("RUN#read")
    compare(
        "get, typed",
        Contender("jobtable", lambda: store.get(Sample.key(run_id="read", step=50))),
        Contender(PEER, lambda: table.get_item(Key=key, ConsistentRead=True)),
        targets={PEER: 40},
    )
    compare(
        f"query of {QUERIED} items, typed",
        Contender("jobtable", lambda: list(store.query(Sample.key(run_id="read")))),
        Contender(PEER, lambda: table.query(KeyConditionExpression=condition)),
        targets={PEER: 30},
    )


def _python_item(run: str, step: int) -> dict[str, Any]:
    """The record as boto3's tables take it."""
    item: dict[str, Any] = {"PK": f"RUN#{run}", "SK": f"STEP#{step:09}", "TYPE": "SAMPLE"}
    for name, value in values(run, step).items():
        item[name] = Decimal(str(value)) if isinstance(value, float) else value
    item["created_at"] = item["created_at"].isoformat()
    return item
