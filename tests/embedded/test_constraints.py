"""The constraints on requests about tables: all are told at once, before anything else is looked at."""

from __future__ import annotations

from typing import Any

import pytest
from tests.embedded.table_definitions import INVALID, Request, globals_, index, provisioned, table, units

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import RequestRefused

NAME_RULE = "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+"
SHORT_RULE = "Member must have length greater than or equal to 3"
MANY_UNITS = 10**12 + 1


def broken(*faults: tuple[str, str, str]) -> str:
    """The message for constraints: the value, where it stands, and the rule."""
    plural = "" if len(faults) == 1 else "s"
    told = "; ".join(f"Value {value} at '{path}' failed to satisfy constraint: {rule}" for value, path, rule in faults)
    return f"{len(faults)} validation error{plural} detected: {told}"


def null(path: str) -> tuple[str, str, str]:
    return "null", path, "Member must not be null"


def restore(**parameters: Any) -> Request:
    return {"SourceTableName": "none", "TargetTableName": "new", "UseLatestRestorableTime": True, **parameters}


@pytest.mark.parametrize(
    ("operation", "request_", "message"),
    [
        ("DescribeTable", {"TableName": ""}, broken(("''", "tableName", SHORT_RULE), ("''", "tableName", NAME_RULE))),
        (
            "ListTables",
            {"ExclusiveStartTableName": "a;", "Limit": 500},
            broken(
                ("'a;'", "exclusiveStartTableName", NAME_RULE),
                ("'a;'", "exclusiveStartTableName", SHORT_RULE),
                ("'500'", "limit", "Member must have value less than or equal to 100"),
            ),
        ),
        (
            "CreateTable",
            {"TableName": "ab;", "ProvisionedThroughput": {}, "LocalSecondaryIndexes": [{}]},
            broken(
                null("attributeDefinitions"),
                ("'ab;'", "tableName", NAME_RULE),
                null("provisionedThroughput.writeCapacityUnits"),
                null("provisionedThroughput.readCapacityUnits"),
                null("keySchema"),
                null("localSecondaryIndexes.1.member.indexName"),
                null("localSecondaryIndexes.1.member.keySchema"),
                null("localSecondaryIndexes.1.member.projection"),
            ),
        ),
        (
            "CreateTable",
            globals_(*[{}] * 9),
            broken(
                *(
                    null(f"globalSecondaryIndexes.{number}.member.{member}")
                    for number in (1, 2, 3)
                    for member in ("indexName", "keySchema", "projection")
                ),
                null("globalSecondaryIndexes.4.member.indexName"),
            ),
        ),
        (
            "CreateTable",
            table(KeySchema=[{"KeyType": "HASH"}, {"AttributeName": "a"}, {"AttributeName": "a", "KeyType": "SORT"}]),
            broken(
                (
                    "'[KeySchemaElement(attributeName=null, keyType=HASH), KeySchemaElement(attributeName=a,"
                    " keyType=null), KeySchemaElement(attributeName=a, keyType=SORT)]'",
                    "keySchema",
                    "Member must have length less than or equal to 2",
                ),
                null("keySchema.1.member.attributeName"),
                null("keySchema.2.member.keyType"),
                ("'SORT'", "keySchema.3.member.keyType", "Member must satisfy enum value set: [HASH, RANGE]"),
            ),
        ),
        (
            "CreateTable",
            table(
                StreamSpecification={"StreamEnabled": True, "StreamViewType": ""},
                SSESpecification={"KMSMasterKeyId": ""},
            ),
            broken(
                (
                    "''",
                    "streamSpecification.streamViewType",
                    "Member must satisfy enum value set: [OLD_IMAGE, KEYS_ONLY, NEW_AND_OLD_IMAGES, NEW_IMAGE]",
                ),
                ("''", "sSESpecification.kMSMasterKeyId", "Member must have length greater than or equal to 1"),
            ),
        ),
        (
            "UpdateTable",
            {
                "TableName": "none",
                "GlobalSecondaryIndexUpdates": [
                    {"Update": {"IndexName": "a", "ProvisionedThroughput": {}}},
                    {"Update": {"IndexName": "abc;", "ProvisionedThroughput": units(1, 0)}},
                ],
            },
            broken(
                ("'a'", "globalSecondaryIndexUpdates.1.member.update.indexName", SHORT_RULE),
                null("globalSecondaryIndexUpdates.1.member.update.provisionedThroughput.writeCapacityUnits"),
                null("globalSecondaryIndexUpdates.1.member.update.provisionedThroughput.readCapacityUnits"),
                ("'abc;'", "globalSecondaryIndexUpdates.2.member.update.indexName", NAME_RULE),
                (
                    "'0'",
                    "globalSecondaryIndexUpdates.2.member.update.provisionedThroughput.writeCapacityUnits",
                    "Member must have value greater than or equal to 1",
                ),
            ),
        ),
        (
            "RestoreTableToPointInTime",
            restore(BillingModeOverride="", ProvisionedThroughputOverride={}, LocalSecondaryIndexOverride=[{}]),
            broken(
                (
                    "''",
                    "billingModeOverride",
                    "Member must satisfy enum value set: [PROVISIONED, PAY_PER_REQUEST]",
                ),
                null("provisionedThroughputOverride.writeCapacityUnits"),
                null("provisionedThroughputOverride.readCapacityUnits"),
                null("localSecondaryIndexOverride.1.member.indexName"),
                null("localSecondaryIndexOverride.1.member.keySchema"),
                null("localSecondaryIndexOverride.1.member.projection"),
            ),
        ),
    ],
)
def test_all_broken_constraints_are_told_at_once(
    engine: EmbeddedBackend, operation: str, request_: Request, message: str
) -> None:
    with pytest.raises(RequestRefused) as caught:
        engine.execute(operation, request_)
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("operation", "request_", "message"),
    [
        (
            "CreateTable",
            provisioned(AttributeDefinitions=[], ProvisionedThroughput=units(MANY_UNITS, MANY_UNITS)),
            f"Given value {MANY_UNITS} for ReadCapacityUnits is out of bounds",
        ),
        (
            "CreateTable",
            table(BillingMode=None, AttributeDefinitions=[]),
            f"{INVALID}ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED",
        ),
        (
            "CreateTable",
            provisioned(GlobalSecondaryIndexes=[index("ggg", "b")]),
            f"{INVALID}ProvisionedThroughput is not specified for index: ggg",
        ),
        (
            "CreateTable",
            provisioned(GlobalSecondaryIndexes=[index("ggg", "a", ProvisionedThroughput=units(MANY_UNITS, 1))]),
            f"Given value {MANY_UNITS} for ReadCapacityUnits is out of bounds for index ggg",
        ),
        (
            "UpdateTable",
            {"TableName": "none", "ProvisionedThroughput": units(1, MANY_UNITS)},
            f"Given value {MANY_UNITS} for WriteCapacityUnits is out of bounds",
        ),
        (
            "UpdateTable",
            {
                "TableName": "none",
                "GlobalSecondaryIndexUpdates": [
                    {"Update": {"IndexName": "ggg", "ProvisionedThroughput": units(1, MANY_UNITS)}}
                ],
            },
            f"Given value {MANY_UNITS} for WriteCapacityUnits is out of bounds for index ggg",
        ),
        (
            "UpdateTable",
            {"TableName": "none", "BillingMode": "PROVISIONED"},
            f"{INVALID}ProvisionedThroughput must be specified when BillingMode is PROVISIONED",
        ),
        (
            "UpdateTable",
            {"TableName": "none", "GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "abc"}}] * 2},
            f"{INVALID}Only one global secondary index update per index is allowed simultaneously. Index: abc",
        ),
        (
            "UpdateTable",
            {
                "TableName": "none",
                "TableClass": "STANDARD",
                "GlobalSecondaryIndexUpdates": [{"Update": {"IndexName": "ggg", "WarmThroughput": {}}}],
            },
            f"{INVALID}WarmThroughput must have at least one of ReadUnitsPerSecond or WriteUnitsPerSecond specified for"
            " index: ggg",
        ),
    ],
)
def test_units_come_before_keys_and_requests_before_tables(
    engine: EmbeddedBackend, operation: str, request_: Request, message: str
) -> None:
    with pytest.raises(RequestRefused) as caught:
        engine.execute(operation, request_)
    assert caught.value.message == message
