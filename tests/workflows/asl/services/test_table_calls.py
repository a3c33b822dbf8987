"""DynamoDB, as states ask it."""

from __future__ import annotations

import pytest
from tests.workflows.asl.services.conftest import Ask

from jobtable.store import Store
from jobtable.workflows.asl.machine import StateFault

DEFINITION = {
    "TableName": "orders",
    "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
    "BillingMode": "PAY_PER_REQUEST",
}
ORDER = {"id": {"S": "1"}, "total": {"N": "5"}}
KEY = {"id": {"S": "1"}}
SDK = "aws-sdk:dynamodb"


@pytest.fixture(autouse=True)
def orders(store: Store) -> None:
    store.backend.execute("CreateTable", DEFINITION)


@pytest.mark.parametrize("service", ["dynamodb", SDK])
def test_items_are_put_read_updated_and_deleted(ask: Ask, service: str) -> None:
    assert ask(f"{service}:putItem", TableName="orders", Item=ORDER) == {}
    assert ask(f"{service}:getItem", TableName="orders", Key=KEY) == {"Item": ORDER}
    updated = ask(
        f"{service}:updateItem",
        TableName="orders",
        Key=KEY,
        UpdateExpression="SET #t = #t + :one",
        ExpressionAttributeNames={"#t": "total"},
        ExpressionAttributeValues={":one": {"N": "1"}},
        ReturnValues="UPDATED_NEW",
    )
    assert updated == {"Attributes": {"total": {"N": "6"}}}
    assert ask(f"{service}:deleteItem", TableName="orders", Key=KEY) == {}
    assert ask(f"{service}:getItem", TableName="orders", Key=KEY) == {}


def test_what_a_state_writes_is_in_the_store(ask: Ask, store: Store) -> None:
    ask("dynamodb:putItem", TableName="orders", Item=ORDER)
    assert store.backend.execute("GetItem", {"TableName": "orders", "Key": KEY})["Item"] == ORDER


def test_every_sdk_action_is_executed(ask: Ask) -> None:
    write = {"PutRequest": {"Item": ORDER}}
    assert ask(f"{SDK}:batchWriteItem", RequestItems={"orders": [write]}) == {"UnprocessedItems": {}}
    found = ask(f"{SDK}:batchGetItem", RequestItems={"orders": {"Keys": [KEY]}})
    assert found["Responses"] == {"orders": [ORDER]}
    query = {"KeyConditionExpression": "id = :i", "ExpressionAttributeValues": {":i": {"S": "1"}}}
    assert ask(f"{SDK}:query", TableName="orders", **query)["Items"] == [ORDER]
    assert ask(f"{SDK}:scan", TableName="orders")["Count"] == 1
    put = {"Put": {"TableName": "orders", "Item": {"id": {"S": "2"}}}}
    assert ask(f"{SDK}:transactWriteItems", TransactItems=[put]) == {}
    get = {"Get": {"TableName": "orders", "Key": KEY}}
    assert ask(f"{SDK}:transactGetItems", TransactItems=[get]) == {"Responses": [{"Item": ORDER}]}
    select = "SELECT * FROM orders WHERE id = '2'"
    assert ask(f"{SDK}:executeStatement", Statement=select)["Items"] == [{"id": {"S": "2"}}]
    assert ask(f"{SDK}:batchExecuteStatement", Statements=[{"Statement": select}])["Responses"][0]["Item"]
    assert ask(f"{SDK}:executeTransaction", TransactStatements=[{"Statement": select}])["Responses"]
    assert "orders" in ask(f"{SDK}:listTables")["TableNames"]
    expiry = {"AttributeName": "until", "Enabled": True}
    assert ask(f"{SDK}:updateTimeToLive", TableName="orders", TimeToLiveSpecification=expiry)
    assert ask(f"{SDK}:describeTimeToLive", TableName="orders")["TimeToLiveDescription"]["AttributeName"] == "until"
    assert ask(f"{SDK}:updateTable", TableName="orders", DeletionProtectionEnabled=False)["TableDescription"]
    assert ask(f"{SDK}:createTable", **{**DEFINITION, "TableName": "more"})["TableDescription"]["TableName"] == "more"
    assert ask(f"{SDK}:deleteTable", TableName="more")["TableDescription"]["TableStatus"] == "DELETING"


def test_instants_of_descriptions_are_texts(ask: Ask) -> None:
    ask("dynamodb:putItem", TableName="orders", Item={"id": {"S": "1"}, "OrderDateTime": {"N": "5"}})
    table = ask(f"{SDK}:describeTable", TableName="orders")["Table"]
    assert table["CreationDateTime"].endswith("Z")
    assert ask(f"{SDK}:scan", TableName="orders")["Items"][0]["OrderDateTime"] == {"N": "5"}


FAULTS = {
    "a condition": (
        "putItem",
        {"TableName": "orders", "Item": ORDER, "ConditionExpression": "attribute_exists(id)"},
        "ConditionalCheckFailedException",
        "ConditionalCheckFailedException",
        "The conditional request failed",
    ),
    "a missing table": (
        "getItem",
        {"TableName": "none", "Key": KEY},
        "ResourceNotFoundException",
        "ResourceNotFoundException",
        "Requested resource not found",
    ),
    "an invalid key": (
        "getItem",
        {"TableName": "orders", "Key": {"other": {"S": "1"}}},
        "AmazonDynamoDBException",
        "DynamoDbException",
        "The provided key element does not match the schema",
    ),
}


@pytest.mark.parametrize(("action", "arguments", "optimized", "sdk", "message"), FAULTS.values(), ids=FAULTS)
def test_refusals_have_the_names_of_the_sdks(
    ask: Ask, action: str, arguments: dict[str, object], optimized: str, sdk: str, message: str
) -> None:
    with pytest.raises(StateFault) as first:
        ask(f"dynamodb:{action}", **arguments)
    assert first.value.error == f"DynamoDB.{optimized}"
    assert first.value.cause.startswith(message)
    assert "(Service: AmazonDynamoDBv2; Status Code: 400; Error Code: " in first.value.cause
    assert first.value.cause.endswith("; Proxy: null)")
    with pytest.raises(StateFault) as second:
        ask(f"aws-sdk:dynamodb:{action}", **arguments)
    assert second.value.error == f"DynamoDb.{sdk}"
    assert "(Service: DynamoDb, Status Code: 400, Request ID: " in second.value.cause


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"Key": KEY}, "[The field 'TableName' is required but was missing]"),
        ({"TableName": "orders"}, "[The field 'Key' is required but was missing]"),
        ({"TableName": 5, "Key": KEY}, "could not be used to start the Task"),
        ({"TableName": "orders", "Key": {"id": {"N": 5}}}, "could not be used to start the Task"),
    ],
)
def test_what_is_no_request_is_a_runtime_error(ask: Ask, arguments: dict[str, object], reason: str) -> None:
    with pytest.raises(StateFault, match="could not be used to start the Task") as caught:
        ask("dynamodb:getItem", **arguments)
    assert caught.value.error == "States.Runtime"
    assert reason in caught.value.cause
