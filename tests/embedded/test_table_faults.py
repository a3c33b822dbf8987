"""Faults of table operations, in the words of the service."""

from __future__ import annotations

from typing import Any

import pytest
from tests.embedded.table_definitions import (
    BROKEN,
    INVALID,
    Request,
    definitions,
    globals_,
    include,
    index,
    keys,
    locals_,
    provisioned,
    table,
    units,
    update,
)

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import RequestError


def time_to_live(**specification: Any) -> Request:
    return {"TableName": "tab", "TimeToLiveSpecification": specification}


NO_UNITS = (
    f"{INVALID}Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST"
)
ACTIONS = "GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, GlobalSecondaryIndexUpdate.Delete"


def stream(**specification: Any) -> Request:
    return {"TableName": "tab", "StreamSpecification": specification}


def not_defined(keys_: str, attributes: str) -> str:
    return (
        f"{INVALID}Some index key attributes are not defined in AttributeDefinitions. Keys: [{keys_}],"
        f" AttributeDefinitions: [{attributes}]"
    )


FAULTS: list[tuple[str, Request, str]] = [
    ("CreateTable", table(), "Table already exists: tab"),
    ("DescribeTable", {"TableName": "none"}, "Requested resource not found: Table: none not found"),
    ("DescribeTable", {}, "The parameter 'TableName' is required but was not present in the request"),
    (
        "DeleteTable",
        {"TableName": "x"},
        f"{BROKEN}'x' at 'tableName' failed to satisfy constraint: Member must have length greater than or equal to 3",
    ),
    (
        "ListTables",
        {"Limit": 101},
        f"{BROKEN}'101' at 'limit' failed to satisfy constraint: Member must have value less than or equal to 100",
    ),
    (
        "CreateTable",
        table(AttributeDefinitions=None),
        f"{BROKEN}null at 'attributeDefinitions' failed to satisfy constraint: Member must not be null",
    ),
    (
        "CreateTable",
        table(AttributeDefinitions=[{}]),
        "2 validation errors detected: Value null at 'attributeDefinitions.1.member.attributeType' failed to satisfy"
        " constraint: Member must not be null; Value null at 'attributeDefinitions.1.member.attributeName' failed to"
        " satisfy constraint: Member must not be null",
    ),
    (
        "CreateTable",
        table(AttributeDefinitions=definitions("a", kind="BOOL")),
        f"{BROKEN}'BOOL' at 'attributeDefinitions.1.member.attributeType' failed to satisfy constraint: Member must"
        " satisfy enum value set: [B, N, S]",
    ),
    (
        "CreateTable",
        table(AttributeDefinitions=definitions("a", "a")),
        "Attribute Name is duplicated: a",
    ),
    (
        "CreateTable",
        table(AttributeDefinitions=definitions("a", "b")),
        f"{INVALID}Number of attributes in KeySchema does not exactly match number of attributes defined in"
        " AttributeDefinitions",
    ),
    (
        "CreateTable",
        globals_(index("ggg", "a"), AttributeDefinitions=definitions("a", "b")),
        f"{INVALID}Some AttributeDefinitions are not used. AttributeDefinitions: [a, b], keys used: [a]",
    ),
    ("CreateTable", table(KeySchema=keys("b")), not_defined("b", "a")),
    (
        "CreateTable",
        table(KeySchema=keys("a", "b"), AttributeDefinitions=definitions("a", "c")),
        not_defined("a, b", "a, c"),
    ),
    *(
        ("CreateTable", wrong, "Invalid KeySchema: Some index key attribute have no definition")
        for wrong in (table(AttributeDefinitions=[]), table(KeySchema=keys("a", "a")))
    ),
    (
        "CreateTable",
        table(TableName=None),
        "The parameter 'TableName' is required but was not present in the request",
    ),
    (
        "CreateTable",
        table(TableName="ta"),
        f"{BROKEN}'ta' at 'tableName' failed to satisfy constraint: Member must have length greater than or equal to 3",
    ),
    (
        "CreateTable",
        table(TableName="t!b"),
        f"{BROKEN}'t!b' at 'tableName' failed to satisfy constraint: Member must satisfy regular expression pattern:"
        " [a-zA-Z0-9_.-]+",
    ),
    (
        "CreateTable",
        table(LocalSecondaryIndexes=[index("ll", "a", "b")], GlobalSecondaryIndexes=[index("gg", "c")]),
        "2 validation errors detected: Value 'gg' at 'globalSecondaryIndexes.1.member.indexName' failed to satisfy"
        " constraint: Member must have length greater than or equal to 3; Value 'll' at"
        " 'localSecondaryIndexes.1.member.indexName' failed to satisfy constraint: Member must have length greater than"
        " or equal to 3",
    ),
    (
        "CreateTable",
        table(StreamSpecification={"StreamEnabled": False, "StreamViewType": "NEW_IMAGE"}),
        f"{INVALID}Table is being created with a stream disabled, UpdateViewType should not be specified",
    ),
    (
        "CreateTable",
        table(StreamSpecification={"StreamEnabled": True}),
        f"{INVALID}Table is being created with a stream enabled, UpdateViewType is required",
    ),
    (
        "CreateTable",
        table(KeySchema=keys("a", "b")),
        "Invalid KeySchema: Some index key attribute have no definition",
    ),
    (
        "CreateTable",
        table(KeySchema=[{"AttributeName": "x" * 256, "KeyType": "HASH"}]),
        f"{BROKEN}'{'x' * 256}' at 'keySchema.1.member.attributeName' failed to satisfy constraint: Member must have"
        " length less than or equal to 255",
    ),
    (
        "CreateTable",
        table(KeySchema=[]),
        f"{BROKEN}'[]' at 'keySchema' failed to satisfy constraint: Member must have length greater than or equal to 1",
    ),
    (
        "CreateTable",
        table(KeySchema=keys("a", "bc")),
        f"{BROKEN}'[KeySchemaElement(attributeName=a, keyType=HASH), KeySchemaElement(attributeName=b, keyType=RANGE),"
        " KeySchemaElement(attributeName=c, keyType=RANGE)]' at 'keySchema' failed to satisfy constraint: Member must"
        " have length less than or equal to 2",
    ),
    (
        "CreateTable",
        table(KeySchema=keys("", "a")),
        "Invalid KeySchema: The first KeySchemaElement is not a HASH key type",
    ),
    (
        "CreateTable",
        table(KeySchema=keys("ab"), AttributeDefinitions=definitions("a", "b")),
        "Invalid KeySchema: The second KeySchemaElement is not a RANGE key type",
    ),
    (
        "CreateTable",
        table(KeySchema=keys("a", "a"), AttributeDefinitions=definitions("a", "b")),
        "Both the Hash Key and the Range Key element in the KeySchema have the same name",
    ),
    *(
        (
            "CreateTable",
            globals_(wrong, AttributeDefinitions=definitions("a", "b")),
            "The KeySchema contains multiple key attributes with the same name",
        )
        for wrong in (index("ggg", "aa"), index("ggg", "ab", "a"))
    ),
    (
        "CreateTable",
        globals_(
            index("ggg", "a") | {"KeySchema": [*keys("a", "b"), *keys("c")]}, AttributeDefinitions=definitions(*"abc")
        ),
        f"{INVALID}All HASH key attributes must precede RANGE key attributes in the KeySchema",
    ),
    *(
        (
            "CreateTable",
            globals_(wrong, AttributeDefinitions=definitions(*"abcdef")),
            f"{INVALID}The KeySchema exceeds the maximum allowed number of {kind} key attributes",
        )
        for kind, wrong in (("HASH", index("ggg", "abcde")), ("RANGE", index("ggg", "a", "bcdef")))
    ),
    (
        "CreateTable",
        table(KeySchema=keys("aa"), AttributeDefinitions=definitions("a", "b")),
        "Both the Hash Key and the Range Key element in the KeySchema have the same name",
    ),
    ("CreateTable", globals_(index("ggg", "", "b")), not_defined("b", "a")),
    ("CreateTable", table(ProvisionedThroughput=units(1, 1)), NO_UNITS),
    (
        "CreateTable",
        table(BillingMode=None),
        f"{INVALID}ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED",
    ),
    (
        "CreateTable",
        provisioned(ProvisionedThroughput=units(0, 1)),
        f"{BROKEN}'0' at 'provisionedThroughput.readCapacityUnits' failed to satisfy constraint: Member must have value"
        " greater than or equal to 1",
    ),
    (
        "CreateTable",
        globals_(index("ggg", "a", ProvisionedThroughput=units(1, 1))),
        f"{INVALID}ProvisionedThroughput should not be specified for index: ggg when BillingMode is PAY_PER_REQUEST",
    ),
    (
        "CreateTable",
        provisioned(GlobalSecondaryIndexes=[index("ggg", "a")]),
        f"{INVALID}ProvisionedThroughput is not specified for index: ggg",
    ),
    ("CreateTable", globals_(), f"{INVALID}List of GlobalSecondaryIndexes is empty"),
    ("CreateTable", table(LocalSecondaryIndexes=[]), f"{INVALID}List of LocalSecondaryIndexes is empty"),
    ("CreateTable", globals_(index("ggg", "b")), not_defined("b", "a")),
    (
        "CreateTable",
        globals_(index("g!g", "a")),
        f"{BROKEN}'g!g' at 'globalSecondaryIndexes.1.member.indexName' failed to satisfy constraint: Member must"
        " satisfy regular expression pattern: [a-zA-Z0-9_.-]+",
    ),
    ("CreateTable", globals_(index("ggg", "a"), index("ggg", "a")), f"{INVALID}Duplicate index name: ggg"),
    ("CreateTable", globals_(index("ggg", "a", Projection={})), f"{INVALID}Unknown ProjectionType: null"),
    (
        "CreateTable",
        globals_(index("ggg", "a", Projection={"ProjectionType": "SOME"})),
        f"{BROKEN}'SOME' at 'globalSecondaryIndexes.1.member.projection.projectionType' failed to satisfy constraint:"
        " Member must satisfy enum value set: [ALL, INCLUDE, KEYS_ONLY]",
    ),
    (
        "CreateTable",
        globals_(index("ggg", "a", Projection={"ProjectionType": "INCLUDE"})),
        f"{INVALID}ProjectionType is INCLUDE, but NonKeyAttributes is not specified",
    ),
    (
        "CreateTable",
        globals_(index("ggg", "a", Projection={"ProjectionType": "ALL", "NonKeyAttributes": ["x"]})),
        f"{INVALID}ProjectionType is ALL, but NonKeyAttributes is specified",
    ),
    (
        "CreateTable",
        globals_(index("ggg", "a", Projection={"ProjectionType": "INCLUDE", "NonKeyAttributes": [None]})),
        "Attribute name must be specified.",
    ),
    (
        "CreateTable",
        globals_(index("ggg", "a", Projection=include("x", "x"))),
        f"{INVALID}Duplicate element in NonKeyAttributes: x",
    ),
    (
        "CreateTable",
        globals_(index("ggg", "a", Projection=include())),
        f"{BROKEN}'[]' at 'globalSecondaryIndexes.1.member.projection.nonKeyAttributes' failed to satisfy constraint:"
        " Member must have length greater than or equal to 1",
    ),
    (
        "CreateTable",
        globals_(index("ggg", "a", Projection=include(*"abcdefghijklmnopqrstu"))),
        f"{BROKEN}'[{', '.join('abcdefghijklmnopqrstu')}]' at 'globalSecondaryIndexes.1.member.projection"
        ".nonKeyAttributes' failed to satisfy constraint: Member must have length less than or equal to 20",
    ),
    (
        "CreateTable",
        table(LocalSecondaryIndexes=[index("lll", "a", "a")]),
        f"{INVALID}Table KeySchema does not have a range key, which is required when specifying a LocalSecondaryIndex",
    ),
    (
        "CreateTable",
        locals_(index("lll", "a")),
        f"{INVALID}Index KeySchema does not have a range key for index: lll",
    ),
    (
        "CreateTable",
        locals_(index("lll", "b", "a")),
        f"{INVALID}Index KeySchema does not have the same leading hash key as table KeySchema for index: lll. index"
        " hash key: b, table hash key: a",
    ),
    (
        "CreateTable",
        table(TableClass="standard"),
        "Invalid table-class parameter provided. Please try again with a valid table-class value: [STANDARD,"
        " STANDARD_INFREQUENT_ACCESS].",
    ),
    (
        "UpdateTable",
        {"TableName": "none"},
        "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates,"
        " SSESpecification, ReplicaUpdates, MultiAccountReplicaReady, ReplicaTransitRoleArn, MultiRegionConsistency,"
        " DeletionProtectionEnabled, OnDemandThroughput, WarmThroughput or TableClass is required",
    ),
    ("UpdateTable", {"TableName": "tab", "ProvisionedThroughput": units(3, 3)}, NO_UNITS),
    ("UpdateTable", update({}), f"{INVALID}One of {ACTIONS} must not be null"),
    (
        "UpdateTable",
        update({"Create": index("ggg", "a"), "Delete": {"IndexName": "other"}}),
        f"{INVALID}Only one global secondary index action is allowed per GlobalSecondaryIndexUpdate object",
    ),
    (
        "UpdateTable",
        update({"Create": index("ggg", "a")}),
        f"{INVALID}AttributeDefinitions is not specified for index: ggg",
    ),
    ("UpdateTable", update({"Create": index("ggg", "a")}, AttributeDefinitions=[]), not_defined("a", "")),
    (
        "UpdateTable",
        update({"Create": index("ggg", "a", ProvisionedThroughput=units(1, 1))}, AttributeDefinitions=definitions("a")),
        f"{INVALID}Neither ReadCapacityUnits nor WriteCapacityUnits can be specified for index: ggg when BillingMode is"
        " PAY_PER_REQUEST",
    ),
    (
        "UpdateTable",
        {"TableName": "tab", "BillingMode": "PROVISIONED"},
        f"{INVALID}ProvisionedThroughput must be specified when BillingMode is PROVISIONED",
    ),
    (
        "UpdateTable",
        {"TableName": "tab", "BillingMode": "PAY_PER_REQUEST", "ProvisionedThroughput": units(1, 1)},
        f"{INVALID}ProvisionedThroughput cannot be specified when BillingMode is PAY_PER_REQUEST",
    ),
    ("UpdateTable", stream(StreamEnabled=False), "Table has no stream to disable: TableName: tab"),
    (
        "UpdateTable",
        stream(StreamEnabled=False, StreamViewType="NEW_IMAGE"),
        f"{INVALID}If stream is being disabled, then UpdateViewType must not be specified",
    ),
    (
        "UpdateTable",
        stream(StreamEnabled=True),
        f"{INVALID}If stream is being enabled then UpdateViewType is required",
    ),
    (
        "UpdateTable",
        stream(),
        f"{BROKEN}null at 'streamSpecification.streamEnabled' failed to satisfy constraint: Member must not be null",
    ),
    (
        "UpdateTable",
        stream(StreamEnabled=True, StreamViewType="ALL"),
        f"{BROKEN}'ALL' at 'streamSpecification.streamViewType' failed to satisfy constraint: Member must satisfy enum"
        " value set: [OLD_IMAGE, KEYS_ONLY, NEW_AND_OLD_IMAGES, NEW_IMAGE]",
    ),
    (
        "UpdateTable",
        update({"Create": index("ggg", "a")}, AttributeDefinitions=definitions("a", kind="N")),
        f"{INVALID}Attributes cannot be redefined. Please check that your attribute has the same type as previously"
        " defined. Existing schema: Schema:[SchemaElement: key{a:S:HASH}] New schema: Schema:[SchemaElement:"
        " key{a:N:HASH}]",
    ),
    (
        "UpdateTimeToLive",
        time_to_live(AttributeName="x" * 256, Enabled=True),
        f"1 validation error detected: Value '{'x' * 256}' at 'timeToLiveSpecification.attributeName' failed to satisfy"
        " constraint: Member must have length less than or equal to 255",
    ),
    (
        "UpdateTimeToLive",
        time_to_live(),
        "2 validation errors detected: Value null at 'timeToLiveSpecification.attributeName' failed to satisfy"
        " constraint: Member must not be null; Value null at 'timeToLiveSpecification.enabled' failed to satisfy"
        " constraint: Member must not be null",
    ),
]


@pytest.mark.parametrize(("operation", "request_", "message"), FAULTS)
def test_faults_have_the_words_of_the_service(
    engine: EmbeddedBackend, operation: str, request_: Request, message: str
) -> None:
    engine.execute("CreateTable", table())
    with pytest.raises(RequestError) as caught:
        engine.execute(operation, request_)
    assert caught.value.message == message
