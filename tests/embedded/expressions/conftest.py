"""A genuine DynamoDB Local, spoken to in raw JSON so that also what a client would refuse gets through."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from jobtable.errors import RequestError, request_error

_CREDENTIALS = (
    "AWS4-HMAC-SHA256 Credential=test/20200101/eu-west-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0"
)


class DynamoDbLocal:
    """A table `things` (key pk), a table `sorted_things` (key pk, sk), and DynamoDB's own errors."""

    def __init__(self, url: str) -> None:
        self._url = url

    def execute(self, operation: str, **request: Any) -> Any:
        headers = {
            "X-Amz-Target": f"DynamoDB_20120810.{operation}",
            "Content-Type": "application/x-amz-json-1.0",
            "Authorization": _CREDENTIALS,
        }
        given = {name: value for name, value in request.items() if value is not None}
        try:
            with urllib.request.urlopen(
                urllib.request.Request(self._url, json.dumps(given).encode(), headers)
            ) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                body = json.load(error)
            code = body["__type"].rpartition("#")[2]
            raise request_error(code, body.get("message") or body.get("Message") or "") from error

    def put(self, item: dict[str, Any]) -> None:
        self.execute("PutItem", TableName="things", Item={"pk": {"S": "k"}, **item})

    def attributes(self) -> dict[str, Any]:
        """The item without its key."""
        item = self.execute("GetItem", TableName="things", Key={"pk": {"S": "k"}}).get("Item", {})
        return {name: value for name, value in item.items() if name != "pk"}

    def holds(self, expression: str, names: dict[str, str] | None, values: dict[str, Any] | None) -> bool:
        """Whether a condition holds for the item; nothing is changed."""
        try:
            self.execute(
                "UpdateItem",
                TableName="things",
                Key={"pk": {"S": "k"}},
                UpdateExpression="REMOVE attribute_that_is_not_there",
                ConditionExpression=expression,
                ExpressionAttributeNames=names,
                ExpressionAttributeValues=values,
            )
        except RequestError as error:
            if error.code == "ConditionalCheckFailedException":
                return False
            raise
        return True


@pytest.fixture(scope="session")
def local(dynamodb_local_url: str) -> Iterator[DynamoDbLocal]:
    server = DynamoDbLocal(dynamodb_local_url)
    for table, keys in {"things": ["pk"], "sorted_things": ["pk", "sk"]}.items():
        server.execute(
            "CreateTable",
            TableName=table,
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in keys],
            KeySchema=[
                {"AttributeName": key, "KeyType": kind} for key, kind in zip(keys, ("HASH", "RANGE"), strict=False)
            ],
        )
    yield server
    for table in ("things", "sorted_things"):
        server.execute("DeleteTable", TableName=table)
