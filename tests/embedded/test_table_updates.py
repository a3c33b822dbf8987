"""UpdateTable: which changes go together, and what is told of those that cannot be made."""

from __future__ import annotations

from typing import Any

import pytest
from tests.embedded.table_definitions import (
    BROKEN,
    CHANGES,
    INVALID,
    Request,
    definitions,
    globals_,
    index,
    last_refusal,
    locals_,
    provisioned,
    table,
    units,
    update,
)

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import RequestError, RequestRefused
from jobtable.testing import FakeClock

HIGHER_LIMITS = "Refer to the Amazon DynamoDB Developer Guide for current limits and how to request higher limits."


def unchanged(named: str, again: str) -> str:
    return (
        f"The provisioned throughput for the {named} will not change. The requested value equals the current value."
        f" Current ReadCapacityUnits provisioned for {again}: 1. Requested ReadCapacityUnits: 1. Current"
        f" WriteCapacityUnits provisioned for {again}: 2. Requested WriteCapacityUnits: 2. {HIGHER_LIMITS}"
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ProvisionedThroughput": units(1, 2)}, unchanged("table", "the table")),
        ({"BillingMode": "PROVISIONED", "ProvisionedThroughput": units(1, 2)}, unchanged("table", "the table")),
        (
            update({"Update": {"IndexName": "ggg", "ProvisionedThroughput": units(1, 2)}}),
            unchanged("index ggg", "index ggg"),
        ),
        (
            update({"Update": {"IndexName": "ggg"}}),
            f"{INVALID}Both ReadCapacityUnits and WriteCapacityUnits must be specified for index: ggg",
        ),
        (
            update({"Create": index("new", "a")}, AttributeDefinitions=definitions("a")),
            f"{INVALID}Both ReadCapacityUnits and WriteCapacityUnits must be specified for index: new",
        ),
        (
            {"ProvisionedThroughput": units(40_001, 1)},
            "The requested ReadCapacityUnits, 40001, is above the per table maximum for the account in ddblocal. Per"
            f" table maximum: 40000. {HIGHER_LIMITS}",
        ),
        (
            update({"Update": {"IndexName": "ggg", "ProvisionedThroughput": units(1, 50_000)}}),
            "The requested WriteCapacityUnits for index ggg, 50000, is above the per index maximum for the account in"
            f" ddblocal. Per table maximum: 40000. {HIGHER_LIMITS}",
        ),
        (update({"Delete": {"IndexName": "none"}}), "Requested resource not found: Index none for table tab"),
        (update({"Delete": {"IndexName": "lll"}}), "Cannot delete an index that is not a GlobalSecondaryIndex: lll"),
        (
            update({"Update": {"IndexName": "lll", "ProvisionedThroughput": units(3, 3)}}),
            "Cannot update an index that is not a GlobalSecondaryIndex: lll",
        ),
        (
            update({"Create": index("lll", "b")}, AttributeDefinitions=[]),
            "Attempting to create an index which already exists",
        ),
    ],
)
def test_a_table_with_units_and_indexes_tells_faults_in_the_words_of_the_service(
    engine: EmbeddedBackend, change: Request, message: str
) -> None:
    of_index = {"GlobalSecondaryIndexes": [index("ggg", "b", ProvisionedThroughput=units(1, 2))]}
    created = locals_(index("lll", "a", "b"), BillingMode="PROVISIONED", ProvisionedThroughput=units(1, 2), **of_index)
    engine.execute("CreateTable", created)
    with pytest.raises(RequestError) as caught:
        engine.execute("UpdateTable", {"TableName": "tab", **change})
    assert caught.value.message == message
    is_limit = "maximum" in message
    assert (caught.value.code == "LimitExceededException") == is_limit


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"ProvisionedThroughput": units(1, 0)},
            f"{BROKEN}'0' at 'provisionedThroughput.writeCapacityUnits' failed to satisfy constraint: Member must have"
            " value greater than or equal to 1",
        ),
        (
            {"BillingMode": ""},
            f"{BROKEN}'' at 'billingMode' failed to satisfy constraint: Member must satisfy enum value set:"
            " [PROVISIONED, PAY_PER_REQUEST]",
        ),
        (
            {"DeletionProtectionEnabled": True, "AttributeDefinitions": [{"AttributeName": "a"}]},
            f"{BROKEN}null at 'attributeDefinitions.1.member.attributeType' failed to satisfy constraint: Member must"
            " not be null",
        ),
        (
            update({"Delete": {}}),
            f"{BROKEN}null at 'globalSecondaryIndexUpdates.1.member.delete.indexName' failed to satisfy constraint:"
            " Member must not be null",
        ),
        (
            update({"Update": {"IndexName": "ggg", "ProvisionedThroughput": {"WriteCapacityUnits": 1}}}),
            f"{BROKEN}null at 'globalSecondaryIndexUpdates.1.member.update.provisionedThroughput.readCapacityUnits'"
            " failed to satisfy constraint: Member must not be null",
        ),
        (
            update({"Update": {"IndexName": "ggg", "WarmThroughput": {}}}),
            f"{INVALID}WarmThroughput must have at least one of ReadUnitsPerSecond or WriteUnitsPerSecond specified for"
            " index: ggg",
        ),
        (
            update({"Update": {"IndexName": "ggg", "WarmThroughput": {"ReadUnitsPerSecond": None}}}),
            f"{INVALID}WarmThroughput must have at least one of ReadUnitsPerSecond or WriteUnitsPerSecond specified for"
            " index: ggg",
        ),
    ],
)
def test_a_wrong_shape_is_told_before_the_table_is_looked_for(
    engine: EmbeddedBackend, change: Request, message: str
) -> None:
    with pytest.raises(RequestRefused) as caught:
        engine.execute("UpdateTable", {"TableName": "none", **change})
    assert caught.value.message == message


def test_units_of_an_index_are_given_with_those_of_the_table(engine: EmbeddedBackend) -> None:
    engine.execute("CreateTable", globals_(index("ggg", "a")))
    switch: Request = {"TableName": "tab", **CHANGES["provisioned"]}
    with pytest.raises(RequestRefused, match="ProvisionedThroughput must be specified for index: ggg"):
        engine.execute("UpdateTable", switch)
    change = {"Update": {"IndexName": "ggg", "ProvisionedThroughput": units(3, 3)}}
    with pytest.raises(RequestRefused, match="The only Updates for index: ggg when TableThroughputMode is PAY_PER_REQ"):
        engine.execute("UpdateTable", update(change))
    engine.execute("UpdateTable", {**switch, **update(change)})


def test_changes_of_units_are_told_once_there_are_any() -> None:
    clock = FakeClock()
    engine = EmbeddedBackend(None, clock=clock)
    of_index = index("ggg", "a", ProvisionedThroughput=units(1, 1))
    created = provisioned(ProvisionedThroughput=units(3, 3), GlobalSecondaryIndexes=[of_index])
    first = engine.execute("CreateTable", created)["TableDescription"]
    assert first["ProvisionedThroughput"] == {"NumberOfDecreasesToday": 0, **units(3, 3)}
    assert first["GlobalSecondaryIndexes"][0]["ProvisionedThroughput"] == {"NumberOfDecreasesToday": 0, **units(1, 1)}

    def changed(read: int) -> Any:
        request = {"TableName": "tab", "ProvisionedThroughput": units(read, 3)}
        return engine.execute("UpdateTable", request)["TableDescription"]["ProvisionedThroughput"]

    assert changed(4) == {"LastIncreaseDateTime": clock.seconds(), "NumberOfDecreasesToday": 0, **units(4, 3)}
    assert [changed(read)["NumberOfDecreasesToday"] for read in (2, 1, 9)] == [1, 2, 2]
    on_demand = engine.execute("UpdateTable", {"TableName": "tab", **CHANGES["on demand"]})["TableDescription"]
    assert on_demand["ProvisionedThroughput"]["NumberOfDecreasesToday"] == 2
    assert on_demand["GlobalSecondaryIndexes"][0]["ProvisionedThroughput"]["NumberOfDecreasesToday"] == 1
    clock.advance(86_400)
    described = engine.execute("DescribeTable", {"TableName": "tab"})["Table"]["ProvisionedThroughput"]
    assert described["NumberOfDecreasesToday"] == 0
    engine.close()


def test_a_table_has_at_most_twenty_global_indexes(engine: EmbeddedBackend) -> None:
    engine.execute("CreateTable", globals_(*(index(f"g{number:02}", "a") for number in range(20))))
    with pytest.raises(RequestError, match="global secondary indexes exceeds per-table limit of 20") as caught:
        engine.execute("UpdateTable", update({"Create": index("new", "a")}, AttributeDefinitions=definitions("a")))
    assert caught.value.code == "LimitExceededException"


@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        ("encryption", "class", "Server-Side Encryption modification must be the only operation in the request"),
        ("class", "protection", "TableClass modification must be the only operation in the request"),
        ("protection", "warm", "DeletionProtection modification must be the only operation in the request"),
        ("protection", "on demand", "DeletionProtection modification must be the only operation in the request"),
        ("protection", "new index", "DeletionProtection modification must be the only operation in the request"),
        ("protection", "no index", "List of GlobalSecondaryIndexUpdates is empty"),
        ("limit", "warm", "OnDemandThroughput can only be combined with BillingMode in an UpdateTable request"),
        ("limit", "stream", "OnDemandThroughput can only be combined with BillingMode in an UpdateTable request"),
        ("warm", "stream", "WarmThroughput must be the only operation in the request"),
        ("warm", "new index", "Create global secondary index cannot be specified when updating WarmThroughput"),
        ("stream", "units", "You cannot modify stream status while updating table IOPS"),
        ("stream", "provisioned", "You cannot modify stream status while updating table IOPS"),
        ("new index", "units", "You cannot create or delete index while updating table IOPS"),
        ("old index", "units", "You cannot create or delete index while updating table IOPS"),
        ("new index", "stream", "You cannot create or delete index while changing stream status"),
    ],
)
def test_changes_that_do_not_go_together_are_refused(
    engine: EmbeddedBackend, one: str, other: str, message: str
) -> None:
    """DynamoDB Local makes them all."""
    engine.execute("CreateTable", globals_(index("old", "a")))
    before = engine.execute("DescribeTable", {"TableName": "tab"})
    with pytest.raises(RequestRefused) as caught:
        engine.execute("UpdateTable", {"TableName": "tab", **CHANGES[one], **CHANGES[other]})
    assert caught.value.message == INVALID + message
    assert engine.execute("DescribeTable", {"TableName": "tab"}) == before


@pytest.mark.parametrize("other", ["limit", "stream", "new index"])
def test_billing_by_requests_goes_together_with_other_changes(engine: EmbeddedBackend, other: str) -> None:
    engine.execute("CreateTable", provisioned())
    engine.execute("UpdateTable", {"TableName": "tab", **CHANGES["on demand"], **CHANGES[other]})
    described = engine.execute("DescribeTable", {"TableName": "tab"})["Table"]
    assert described["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    assert {"OnDemandThroughput", "StreamSpecification", "GlobalSecondaryIndexes"} & described.keys()


KEY = {"SSEType": "KMS", "KMSMasterKeyId": "arn:aws:kms:ddblocal:000000000000:key/mine"}


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({}, None),
        ({"Enabled": False}, None),
        ({"Enabled": True}, "alias/aws/dynamodb"),
        ({"SSEType": "KMS"}, "alias/aws/dynamodb"),
        ({"SSEType": "KMS", "KMSMasterKeyId": "mine"}, "key/mine"),
        ({"SSEType": "KMS", "KMSMasterKeyId": "alias/mine"}, "alias/mine"),
        (KEY, "key/mine"),
    ],
)
def test_encryption_is_described_with_its_key(engine: EmbeddedBackend, given: Request, key: str | None) -> None:
    created = engine.execute("CreateTable", table(SSESpecification=given))["TableDescription"]
    arn = f"arn:aws:kms:ddblocal:000000000000:{key}"
    described = {"Status": "ENABLED", "SSEType": "KMS", "KMSMasterKeyArn": arn}
    assert created.get("SSEDescription") == (described if key else None)


@pytest.mark.parametrize(
    ("before", "given", "message"),
    [
        ({}, {"Enabled": False, "SSEType": "KMS"}, "SSEType can not be specified if Enabled is false"),
        (
            {},
            {"Enabled": False, "KMSMasterKeyId": "mine"},
            "KMSMasterKeyId can not be specified if Enabled is false",
        ),
        ({}, {"Enabled": True, "SSEType": "AES256"}, "SSEType AES256 is not supported"),
        ({}, {"Enabled": True, "KMSMasterKeyId": "m"}, "SSEType KMS is required if KMSMasterKeyId is specified"),
        ({}, {"Enabled": False}, "Table is already encrypted by default"),
        (
            KEY,
            KEY,
            "Table is already encrypted with given KMSMasterKeyId. Use KMSMasterKeyId parameter if you want to change"
            " Master Key",
        ),
    ],
)
def test_encryption_that_cannot_be_or_would_not_change_is_refused(
    engine: EmbeddedBackend, before: Request, given: Request, message: str
) -> None:
    engine.execute("CreateTable", table(SSESpecification=before))
    with pytest.raises(RequestRefused) as caught:
        engine.execute("UpdateTable", {"TableName": "tab", "SSESpecification": given})
    assert caught.value.message == INVALID + message


def test_the_same_key_by_another_name_than_its_arn_is_a_change(engine: EmbeddedBackend) -> None:
    engine.execute("CreateTable", table(SSESpecification=KEY))
    named = {"TableName": "tab", "SSESpecification": KEY | {"KMSMasterKeyId": "mine"}}
    described = engine.execute("UpdateTable", named)["TableDescription"]
    assert described["SSEDescription"]["KMSMasterKeyArn"] == KEY["KMSMasterKeyId"]


NOT_WITH_UNITS = "cannot be specified when the table BillingMode is PROVISIONED"


@pytest.mark.parametrize(
    ("requests", "message"),
    [
        (
            [table(OnDemandThroughput={"MaxReadRequestUnits": -1})],
            f"{INVALID}Requested MaxReadRequestUnits for OnDemandThroughput for table is outside of valid range",
        ),
        (
            [globals_(index("ggg", "a", OnDemandThroughput={"MaxWriteRequestUnits": 0}))],
            f"{INVALID}Requested MaxWriteRequestUnits for OnDemandThroughput for index : ggg is outside of valid range",
        ),
        (
            [provisioned(OnDemandThroughput={"MaxReadRequestUnits": 5})],
            f"{INVALID}MaxReadRequestUnits for OnDemandThroughput cannot be specified when table BillingMode is"
            " PROVISIONED.",
        ),
        (
            [table(), {"OnDemandThroughput": {"MaxWriteRequestUnits": -2}}],
            f"{INVALID}Requested MaxWriteRequestUnits for OnDemandThroughput for table is outside of valid range",
        ),
        (
            [table(), {"OnDemandThroughput": {"MaxReadRequestUnits": 40_001}}],
            "Subscriber limit exceeded: Requested MaxReadRequestUnits for OnDemandThroughput for table exceeds"
            " TableMaxReadCapacityUnits of the account in region ddblocal",
        ),
        (
            [provisioned(), {"OnDemandThroughput": {"MaxReadRequestUnits": 5}}],
            f"{INVALID}MaxReadRequestUnits for OnDemandThroughput {NOT_WITH_UNITS}",
        ),
        (
            [
                provisioned(GlobalSecondaryIndexes=[index("ggg", "a", ProvisionedThroughput=units(1, 1))]),
                update({"Update": {"IndexName": "ggg", "OnDemandThroughput": {"MaxWriteRequestUnits": 5}}}),
            ],
            f"{INVALID}MaxWriteRequestUnits for OnDemandThroughput for index : ggg {NOT_WITH_UNITS}",
        ),
    ],
)
def test_limits_on_demand_that_cannot_be_are_refused(
    engine: EmbeddedBackend, requests: list[Request], message: str
) -> None:
    assert last_refusal(engine, requests) == message


ONLY_LIMITS = (
    f"{INVALID}The only Updates for index: ggg when TableThroughputMode is PAY_PER_REQUEST can be to"
    " OnDemandThroughput, WarmThroughput"
)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, ONLY_LIMITS),
        ({"OnDemandThroughput": {}}, ONLY_LIMITS),
        (
            {"OnDemandThroughput": {"MaxReadRequestUnits": 0}},
            f"{INVALID}Requested MaxReadRequestUnits for OnDemandThroughput for index : ggg is outside of valid range",
        ),
    ],
)
def test_an_index_is_not_updated_with_nothing(engine: EmbeddedBackend, change: Request, message: str) -> None:
    engine.execute("CreateTable", globals_(index("ggg", "a", OnDemandThroughput={}, WarmThroughput={})))
    with pytest.raises(RequestRefused) as caught:
        engine.execute("UpdateTable", update({"Update": {"IndexName": "ggg", **change}}))
    assert caught.value.message == message


@pytest.mark.parametrize("name", ["OnDemandThroughput", "WarmThroughput"])
def test_throughput_that_says_nothing_is_none(engine: EmbeddedBackend, name: str) -> None:
    created = engine.execute("CreateTable", {**table(), name: {}})["TableDescription"]
    assert name not in created
    with pytest.raises(RequestRefused, match="At least one of ProvisionedThroughput, BillingMode"):
        engine.execute("UpdateTable", {"TableName": "tab", name: {}})
    changed = engine.execute("UpdateTable", {"TableName": "tab", name: {}, **CHANGES["class"]})["TableDescription"]
    assert changed["TableClassSummary"]["TableClass"] == "STANDARD_INFREQUENT_ACCESS"


def test_nothing_of_one_billing_is_left_in_the_other(engine: EmbeddedBackend) -> None:
    limit = {"MaxReadRequestUnits": 5}
    engine.execute("CreateTable", globals_(index("ggg", "a", OnDemandThroughput=limit), OnDemandThroughput=limit))
    of_index = {"Update": {"IndexName": "ggg", "ProvisionedThroughput": units(3, 3)}}
    switch: Request = {**CHANGES["provisioned"], **update(of_index)}
    described = engine.execute("UpdateTable", switch)["TableDescription"]
    assert "OnDemandThroughput" not in described | described["GlobalSecondaryIndexes"][0]
    back = engine.execute("UpdateTable", {"TableName": "tab", **CHANGES["on demand"]})["TableDescription"]
    assert back["GlobalSecondaryIndexes"][0].get("ProvisionedThroughput", units(0, 0)).items() >= units(0, 0).items()
    engine.execute("UpdateTable", switch)
