"""On-demand backups: what they keep and tell of a table, and which requests about them are refused."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.embedded.storage.consistency import inconsistencies
from tests.embedded.table_definitions import BROKEN, INVALID, include, index, keys, units

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import RequestError
from jobtable.testing import FakeClock

DAY = 86_400
Request = dict[str, Any]

PREFIX = "arn:aws:dynamodb:ddblocal:000000000000:table/tab"
UNKNOWN = f"{PREFIX}/backup/01576616366715-b4e58d3a"
NAMES = ("a", "b", "c")
DEFINITIONS = [{"AttributeName": name, "AttributeType": "S"} for name in NAMES]
BY_C = index("by_c", "c")
LOCAL = {**index("local", "a", "c"), "Projection": include("n")}
TABLE: Request = {
    "TableName": "tab",
    "AttributeDefinitions": DEFINITIONS,
    "KeySchema": keys("a", "b"),
    "GlobalSecondaryIndexes": [BY_C],
    "LocalSecondaryIndexes": [LOCAL],
    "BillingMode": "PAY_PER_REQUEST",
}
PLAIN: Request = {
    "TableName": "plain",
    "AttributeDefinitions": DEFINITIONS[:1],
    "KeySchema": keys("a"),
    "ProvisionedThroughput": units(3, 4),
}


@pytest.fixture
def backend(clock: FakeClock) -> Iterator[EmbeddedBackend]:
    made = EmbeddedBackend(None, clock=clock)
    made.execute("CreateTable", TABLE)
    for number in range(3):
        put(made, number)
    yield made
    assert inconsistencies(made._storage) == []
    made.close()


def put(backend: EmbeddedBackend, number: int, text: str = "x", table: str = "tab") -> None:
    item = {"a": {"S": str(number)}, "b": {"S": "0"}, "c": {"S": text}, "n": {"N": str(number)}}
    backend.execute("PutItem", {"TableName": table, "Item": item})


def items(backend: EmbeddedBackend, table: str = "tab", **others: Any) -> list[Request]:
    found: list[Request] = backend.execute("Scan", {"TableName": table, **others})["Items"]
    return sorted(found, key=lambda item: str(item["a"]["S"]))


def back_up(backend: EmbeddedBackend, table: str = "tab", name: str = "first") -> str:
    """Make a backup; gives its ARN."""
    details = backend.execute("CreateBackup", {"TableName": table, "BackupName": name})["BackupDetails"]
    return str(details["BackupArn"])


def described(backend: EmbeddedBackend, arn: str) -> Request:
    description: Request = backend.execute("DescribeBackup", {"BackupArn": arn})["BackupDescription"]
    return description


def listed(backend: EmbeddedBackend, **others: Any) -> list[str]:
    return [summary["BackupArn"] for summary in backend.execute("ListBackups", others)["BackupSummaries"]]


def restore(backend: EmbeddedBackend, arn: str, target: str = "restored", **others: Any) -> Request:
    request = {"TargetTableName": target, "BackupArn": arn, **others}
    description: Request = backend.execute("RestoreTableFromBackup", request)["TableDescription"]
    return description


def switch_recovery(backend: EmbeddedBackend, *, enabled: bool = True) -> None:
    specification = {"PointInTimeRecoveryEnabled": enabled}
    backend.execute("UpdateContinuousBackups", {"TableName": "tab", "PointInTimeRecoverySpecification": specification})


def table_described(backend: EmbeddedBackend, name: str) -> Request:
    description: Request = backend.execute("DescribeTable", {"TableName": name})["Table"]
    return description


def give_everything(backend: EmbeddedBackend) -> None:
    """Switch on what a table can have beside its keys and indexes."""
    stream = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
    for change in (
        {"StreamSpecification": stream},
        {"SSESpecification": {"Enabled": True}},
        {"OnDemandThroughput": {"MaxReadRequestUnits": 100}},
        {"TableClass": "STANDARD_INFREQUENT_ACCESS"},
        {"DeletionProtectionEnabled": True},
    ):
        backend.execute("UpdateTable", {"TableName": "tab", **change})
    ttl = {"Enabled": True, "AttributeName": "until"}
    backend.execute("UpdateTimeToLive", {"TableName": "tab", "TimeToLiveSpecification": ttl})


def refusal(backend: EmbeddedBackend, operation: str, request: Request) -> tuple[str, str]:
    with pytest.raises(RequestError) as refused:
        backend.execute(operation, request)
    return refused.value.code, refused.value.message


def test_a_backup_is_described_when_it_is_made(backend: EmbeddedBackend, clock: FakeClock) -> None:
    created = int(clock.seconds() * 1000) / 1000
    details = backend.execute("CreateBackup", {"TableName": "tab", "BackupName": "first"})["BackupDetails"]
    arn = details["BackupArn"]
    found = re.fullmatch(re.escape(PREFIX) + r"/backup/(\d{14})-[0-9a-f]{8}", arn)
    assert found is not None
    assert int(found[1]) == round(created * 1000)
    assert details == {
        "BackupArn": arn,
        "BackupName": "first",
        "BackupSizeBytes": table_described(backend, "tab")["TableSizeBytes"],
        "BackupStatus": "CREATING",
        "BackupType": "USER",
        "BackupCreationDateTime": created,
    }
    description = described(backend, arn)
    assert description["BackupDetails"] == details | {"BackupStatus": "AVAILABLE"}


def test_a_backup_tells_of_its_table_as_it_was(backend: EmbeddedBackend) -> None:
    give_everything(backend)
    table = table_described(backend, "tab")
    arn = back_up(backend)
    put(backend, 7)
    removed = {"Delete": {"IndexName": "by_c"}}
    backend.execute("UpdateTable", {"TableName": "tab", "GlobalSecondaryIndexUpdates": [removed]})
    description = described(backend, arn)
    assert description["SourceTableDetails"] == {
        "TableName": "tab",
        "TableId": table["TableId"],
        "TableArn": PREFIX,
        "TableSizeBytes": table["TableSizeBytes"],
        "KeySchema": keys("a", "b"),
        "TableCreationDateTime": table["CreationDateTime"],
        "ProvisionedThroughput": units(0, 0),
        "OnDemandThroughput": {"MaxReadRequestUnits": 100},
        "ItemCount": 3,
        "BillingMode": "PAY_PER_REQUEST",
    }
    assert description["SourceTableFeatureDetails"] == {
        "LocalSecondaryIndexes": [LOCAL],
        "GlobalSecondaryIndexes": [BY_C | {"ProvisionedThroughput": units(0, 0)}],
        "StreamDescription": {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
        "TimeToLiveDescription": {"TimeToLiveStatus": "ENABLED", "AttributeName": "until"},
        "SSEDescription": table["SSEDescription"],
    }


def test_a_backup_of_a_plain_table_tells_of_no_features(backend: EmbeddedBackend) -> None:
    backend.execute("CreateTable", PLAIN)
    description = described(backend, back_up(backend, "plain"))
    assert description["SourceTableFeatureDetails"] == {}
    details = description["SourceTableDetails"]
    assert (details["BillingMode"], details["ProvisionedThroughput"]) == ("PROVISIONED", units(3, 4))
    assert (details["ItemCount"], description["BackupDetails"]["BackupSizeBytes"]) == (0, 0)


def test_a_table_is_named_by_its_arn_as_well(backend: EmbeddedBackend) -> None:
    arn = back_up(backend, PREFIX)
    assert listed(backend, TableName=PREFIX) == [arn]


def test_a_restored_table_has_the_items_of_the_backup(backend: EmbeddedBackend) -> None:
    before = items(backend)
    arn = back_up(backend)
    put(backend, 0, "changed")
    put(backend, 8)
    backend.execute("DeleteItem", {"TableName": "tab", "Key": {"a": {"S": "1"}, "b": {"S": "0"}}})
    restore(backend, arn)
    assert items(backend, "restored") == before
    assert items(backend, "restored", IndexName="by_c") == before
    assert table_described(backend, "restored")["ItemCount"] == 3
    put(backend, 9, table="restored")
    restore(backend, arn, "again")
    assert items(backend, "again") == before, "the backup is what it was"


def test_the_answer_of_a_restore_tells_that_it_has_begun(backend: EmbeddedBackend, clock: FakeClock) -> None:
    arn = back_up(backend)
    created = described(backend, arn)["BackupDetails"]["BackupCreationDateTime"]
    clock.advance(100)
    answer = restore(backend, arn)
    summary = {"SourceBackupArn": arn, "SourceTableArn": PREFIX, "RestoreDateTime": created}
    assert answer["TableStatus"] == "CREATING"
    assert answer["RestoreSummary"] == summary | {"RestoreInProgress": True}
    assert ["IndexStatus" in index for index in answer["GlobalSecondaryIndexes"]] == [False]
    table = table_described(backend, "restored")
    assert table["TableStatus"] == "ACTIVE"
    assert "RestoreSummary" not in table
    assert table["CreationDateTime"] == clock.seconds()
    assert table["TableId"] != table_described(backend, "tab")["TableId"]


def test_what_a_restore_brings_back_and_what_not(backend: EmbeddedBackend) -> None:
    """As in the service: keys, indexes, billing, encryption; but neither tags nor what is switched on beside."""
    give_everything(backend)
    backend.execute("TagResource", {"ResourceArn": PREFIX, "Tags": [{"Key": "k", "Value": "v"}]})
    switch_recovery(backend)
    source = table_described(backend, "tab")
    restore(backend, back_up(backend))
    table = table_described(backend, "restored")
    for kept in ("KeySchema", "AttributeDefinitions", "OnDemandThroughput", "SSEDescription"):
        assert table[kept] == source[kept]
    assert table["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    assert [one["IndexName"] for one in table["GlobalSecondaryIndexes"]] == ["by_c"]
    assert [one["Projection"] for one in table["LocalSecondaryIndexes"]] == [include("n")]
    assert table["DeletionProtectionEnabled"] is False
    assert not {"StreamSpecification", "LatestStreamArn", "TableClassSummary"} & table.keys()
    named = {"TableName": "restored"}
    assert backend.execute("DescribeTimeToLive", named)["TimeToLiveDescription"] == {"TimeToLiveStatus": "DISABLED"}
    assert backend.execute("ListTagsOfResource", {"ResourceArn": table["TableArn"]})["Tags"] == []
    continuous = backend.execute("DescribeContinuousBackups", named)["ContinuousBackupsDescription"]
    assert continuous["PointInTimeRecoveryDescription"] == {"PointInTimeRecoveryStatus": "DISABLED"}


def test_a_restored_table_has_what_the_request_asks_for_instead(backend: EmbeddedBackend) -> None:
    arn = back_up(backend)
    restore(backend, arn, "bare", GlobalSecondaryIndexOverride=[], LocalSecondaryIndexOverride=[])
    bare = table_described(backend, "bare")
    assert not {"GlobalSecondaryIndexes", "LocalSecondaryIndexes"} & bare.keys()
    assert bare["AttributeDefinitions"] == DEFINITIONS[:2]
    renamed = {**BY_C, "IndexName": "new", "ProvisionedThroughput": units(5, 6)}
    restore(
        backend,
        arn,
        "provisioned",
        BillingModeOverride="PROVISIONED",
        ProvisionedThroughputOverride=units(1, 2),
        GlobalSecondaryIndexOverride=[renamed],
        SSESpecificationOverride={"Enabled": True},
    )
    provisioned = table_described(backend, "provisioned")
    assert provisioned["ProvisionedThroughput"].items() >= units(1, 2).items()
    (new,) = provisioned["GlobalSecondaryIndexes"]
    assert (new["IndexName"], new["ProvisionedThroughput"]["ReadCapacityUnits"]) == ("new", 5)
    assert items(backend, "provisioned", IndexName="new") == items(backend)
    assert provisioned["SSEDescription"]["Status"] == "ENABLED"
    restore(backend, arn, "limited", OnDemandThroughputOverride={"MaxWriteRequestUnits": 7})
    assert table_described(backend, "limited")["OnDemandThroughput"] == {"MaxWriteRequestUnits": 7}


def test_a_backup_outlives_its_table(backend: EmbeddedBackend) -> None:
    before = items(backend)
    arn = back_up(backend)
    id_ = described(backend, arn)["SourceTableDetails"]["TableId"]
    backend.execute("DeleteTable", {"TableName": "tab"})
    assert listed(backend, TableName="tab") == [arn]
    backend.execute("CreateTable", TABLE)
    second = back_up(backend)
    assert listed(backend, TableName="tab") == [arn, second]
    assert described(backend, arn)["SourceTableDetails"]["TableId"] == id_
    assert described(backend, second)["SourceTableDetails"]["TableId"] != id_
    restore(backend, arn)
    assert items(backend, "restored") == before
    backend.execute("DeleteTable", {"TableName": "tab"})
    restore(backend, arn, "tab")
    assert items(backend, "tab") == before


def test_a_deleted_backup_is_gone(backend: EmbeddedBackend) -> None:
    arn = back_up(backend)
    description = described(backend, arn)
    deleted = backend.execute("DeleteBackup", {"BackupArn": arn})["BackupDescription"]
    description["BackupDetails"]["BackupStatus"] = "DELETED"
    assert deleted == description
    gone = ("BackupNotFoundException", f"Backup not found: {arn}")
    for operation in ("DescribeBackup", "DeleteBackup", "RestoreTableFromBackup"):
        assert refusal(backend, operation, {"BackupArn": arn, "TargetTableName": "restored"}) == gone
    assert listed(backend) == []
    assert backend._storage.query("SELECT count(*) FROM sqlite_schema WHERE name GLOB 'items_*'") == [(1,)]


def test_backups_of_one_name_are_several(backend: EmbeddedBackend) -> None:
    assert len({back_up(backend) for _ in range(5)}) == 5
    assert len(listed(backend)) == 5


def test_backups_are_listed_in_the_order_of_their_creation(backend: EmbeddedBackend, clock: FakeClock) -> None:
    backend.execute("CreateTable", PLAIN)
    made = []
    for table in ("tab", "plain", "tab", "tab", "plain"):
        made.append(back_up(backend, table, f"of-{table}"))
        clock.advance(0.001)
    assert listed(backend) == made
    assert listed(backend, TableName="plain") == [made[1], made[4]]
    assert listed(backend, TableName="none") == []
    (summary,) = backend.execute("ListBackups", {"TableName": "plain", "Limit": 1})["BackupSummaries"]
    source = table_described(backend, "plain")
    assert summary == {
        **{name: source[name] for name in ("TableName", "TableId", "TableArn")},
        **described(backend, made[1])["BackupDetails"],
    }


def test_backups_come_in_pages(backend: EmbeddedBackend) -> None:
    made = [back_up(backend) for _ in range(7)]
    request: Request = {"Limit": 3}
    pages = []
    while True:
        page = backend.execute("ListBackups", request)
        pages.append([summary["BackupArn"] for summary in page["BackupSummaries"]])
        if "LastEvaluatedBackupArn" not in page:
            break
        request["ExclusiveStartBackupArn"] = page["LastEvaluatedBackupArn"]
    assert pages == [made[:3], made[3:6], made[6:]]
    assert "LastEvaluatedBackupArn" not in backend.execute("ListBackups", {"Limit": 7})
    backend.execute("DeleteBackup", {"BackupArn": made[2]})
    assert listed(backend, ExclusiveStartBackupArn=made[2]) == made[3:], "where a list goes on need not be there"
    assert listed(backend, ExclusiveStartBackupArn=UNKNOWN) == [*made[:2], *made[3:]]


def test_a_page_has_at_most_a_hundred_backups(backend: EmbeddedBackend) -> None:
    for _ in range(101):
        back_up(backend)
    page = backend.execute("ListBackups", {})
    assert len(page["BackupSummaries"]) == 100
    assert page["LastEvaluatedBackupArn"] == page["BackupSummaries"][-1]["BackupArn"]


def test_backups_of_a_time_are_listed(backend: EmbeddedBackend, clock: FakeClock) -> None:
    arn = back_up(backend)
    created = described(backend, arn)["BackupDetails"]["BackupCreationDateTime"]
    later = created + 0.001
    for bounds, is_listed in (
        ({"TimeRangeLowerBound": created}, True),
        ({"TimeRangeLowerBound": later}, False),
        ({"TimeRangeUpperBound": created}, False),
        ({"TimeRangeUpperBound": later}, True),
        ({"TimeRangeLowerBound": created, "TimeRangeUpperBound": created}, False),
        ({"TimeRangeLowerBound": 0, "TimeRangeUpperBound": 10**15}, True),
        ({"TimeRangeLowerBound": -1, "TimeRangeUpperBound": 10**400}, True),
    ):
        assert listed(backend, **bounds) == ([arn] if is_listed else [])
    assert listed(backend, TimeRangeLowerBound=later, ExclusiveStartBackupArn=UNKNOWN) == []


@pytest.mark.parametrize("operation", ["DescribeBackup", "DeleteBackup"])
def test_a_backup_is_found_whatever_the_region_of_its_arn(backend: EmbeddedBackend, operation: str) -> None:
    arn = back_up(backend).replace(":ddblocal:", ":eu-central-1:")
    answer = backend.execute(operation, {"BackupArn": arn})["BackupDescription"]
    assert answer["BackupDetails"]["BackupArn"] == arn


ARN_FAULTS = [
    (None, "ValidationException", f"{BROKEN}null at 'backupArn' failed to satisfy constraint: Member must not be null"),
    ("", "ValidationException", "Invalid Backup ARN"),
    ("x" * 48, "ValidationException", "Invalid Backup ARN"),
    (PREFIX, "ValidationException", "Invalid Backup ARN"),
    (f"{PREFIX}/backup/latest", "ValidationException", "Invalid Backup ARN"),
    (UNKNOWN.replace("000000000000", "123456789012"), "AccessDeniedException", "Access is denied"),
    (UNKNOWN.replace("ddblocal", ""), "AccessDeniedException", "Access is denied"),
    (UNKNOWN.replace("arn:aws:", "arn:aws-cn:"), "ValidationException", "Invalid Request: BackupArn is not valid"),
    (UNKNOWN.replace(":dynamodb:", ":s3:"), "ValidationException", "Invalid Request: BackupArn is not valid"),
    (UNKNOWN, "BackupNotFoundException", f"Backup not found: {UNKNOWN}"),
    (5, "SerializationException", "NUMBER_VALUE cannot be converted to String"),
]


@pytest.mark.parametrize("operation", ["DescribeBackup", "DeleteBackup", "RestoreTableFromBackup"])
@pytest.mark.parametrize(("arn", "code", "message"), ARN_FAULTS)
def test_what_names_no_backup_is_refused(
    backend: EmbeddedBackend, operation: str, arn: Any, code: str, message: str
) -> None:
    request = {} if arn is None else {"BackupArn": arn}
    assert refusal(backend, operation, request | {"TargetTableName": "restored"}) == (code, message)


@pytest.mark.parametrize(
    ("request_", "code", "message"),
    [
        ({}, "ValidationException", "The parameter 'TableName' is required but was not present in the request"),
        (
            {"TableName": "tab"},
            "ValidationException",
            f"{BROKEN}null at 'backupName' failed to satisfy constraint: Member must not be null",
        ),
        (
            {"TableName": "tab", "BackupName": "ab"},
            "ValidationException",
            f"{BROKEN}'ab' at 'backupName' failed to satisfy constraint: Member must have length greater than or equal"
            " to 3",
        ),
        (
            {"TableName": "tab", "BackupName": "a" * 256},
            "ValidationException",
            f"{BROKEN}'{'a' * 256}' at 'backupName' failed to satisfy constraint: Member must have length less than or"
            " equal to 255",
        ),
        (
            {"TableName": "tab", "BackupName": "a name"},
            "ValidationException",
            f"{BROKEN}'a name' at 'backupName' failed to satisfy constraint: Member must satisfy regular expression"
            " pattern: [a-zA-Z0-9_.-]+",
        ),
        (
            {"TableName": "x", "BackupName": "y"},
            "ValidationException",
            "2 validation errors detected: Value 'x' at 'tableName' failed to satisfy constraint: Member must have"
            " length greater than or equal to 3; Value 'y' at 'backupName' failed to satisfy constraint: Member must"
            " have length greater than or equal to 3",
        ),
        (
            {"TableName": "tab", "BackupName": ""},
            "ValidationException",
            "2 validation errors detected: Value '' at 'backupName' failed to satisfy constraint: Member must satisfy"
            " regular expression pattern: [a-zA-Z0-9_.-]+; Value '' at 'backupName' failed to satisfy constraint:"
            " Member must have length greater than or equal to 3",
        ),
        ({"TableName": "none", "BackupName": "first"}, "TableNotFoundException", "Table not found: none"),
        (
            {"TableName": "tab", "BackupName": True},
            "SerializationException",
            "TRUE_VALUE cannot be converted to String",
        ),
    ],
)
def test_a_backup_that_cannot_be_made_is_refused(
    backend: EmbeddedBackend, request_: Request, code: str, message: str
) -> None:
    assert refusal(backend, "CreateBackup", request_) == (code, message)
    assert listed(backend) == []


@pytest.mark.parametrize("name", ["abc", "a" * 255, "A.b_c-9"])
def test_names_of_backups(backend: EmbeddedBackend, name: str) -> None:
    assert described(backend, back_up(backend, name=name))["BackupDetails"]["BackupName"] == name


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (
            {"Limit": 0},
            f"{BROKEN}'0' at 'limit' failed to satisfy constraint: Member must have value greater than or equal to 1",
        ),
        (
            {"Limit": 101},
            f"{BROKEN}'101' at 'limit' failed to satisfy constraint: Member must have value less than or equal to 100",
        ),
        (
            {"BackupType": "user"},
            f"{BROKEN}'user' at 'backupType' failed to satisfy constraint: Member must satisfy enum value set: [USER,"
            " SYSTEM, AWS_BACKUP, ALL]",
        ),
        (
            {"TableName": "x"},
            f"{BROKEN}'x' at 'tableName' failed to satisfy constraint: Member must have length greater than or equal"
            " to 3",
        ),
        (
            {"ExclusiveStartBackupArn": "arn:aws:short"},
            f"{BROKEN}'arn:aws:short' at 'exclusiveStartBackupArn' failed to satisfy constraint: Member must have"
            " length greater than or equal to 37",
        ),
        ({"ExclusiveStartBackupArn": PREFIX}, "Invalid Backup ARN"),
        (
            {"ExclusiveStartBackupArn": UNKNOWN.replace("ddblocal", "eu-central-1")},
            "Invalid Request: The supplied ExclusiveStartBackupArn does not match the region",
        ),
        (
            {"TimeRangeLowerBound": 5, "TimeRangeUpperBound": 4.999},
            f"{INVALID}Time range lower bound must be less than or equal to upper bound",
        ),
    ],
)
def test_a_list_that_cannot_be_is_refused(backend: EmbeddedBackend, request_: Request, message: str) -> None:
    assert refusal(backend, "ListBackups", request_) == ("ValidationException", message)


@pytest.mark.parametrize(
    "request_", [{"TimeRangeLowerBound": "now"}, {"TimeRangeUpperBound": True}, {"Limit": "5"}, {"BackupType": 1}]
)
def test_a_list_with_members_of_other_types_is_refused(backend: EmbeddedBackend, request_: Request) -> None:
    assert refusal(backend, "ListBackups", request_)[0] == "SerializationException"


NO_INDEX = "does not match a secondary index that existed in the source table and cannot be created during the restore"


@pytest.mark.parametrize(
    ("others", "code", "message"),
    [
        (
            {"TargetTableName": None},
            "ValidationException",
            "The parameter 'TargetTableName' is required but was not present in the request",
        ),
        (
            {"TargetTableName": ""},
            "ValidationException",
            "TableName must be at least 3 characters long and at most 255 characters long",
        ),
        (
            {"BillingModeOverride": "FREE"},
            "ValidationException",
            f"{BROKEN}'FREE' at 'billingModeOverride' failed to satisfy constraint: Member must satisfy enum value set:"
            " [PROVISIONED, PAY_PER_REQUEST]",
        ),
        ({"VectorIndexOverride": [{"IndexName": "v"}]}, "ValidationException", None),
        ({"TargetTableName": "tab"}, "TableAlreadyExistsException", "Table already exists: tab"),
        (
            {"TargetTableName": "tab", "BackupArn": UNKNOWN},
            "BackupNotFoundException",
            f"Backup not found: {UNKNOWN}",
        ),
        (
            {"TargetTableName": "tab", "ProvisionedThroughputOverride": units(1, 1)},
            "TableAlreadyExistsException",
            "Table already exists: tab",
        ),
        (
            {"ProvisionedThroughputOverride": units(1, 1)},
            "ValidationException",
            "Invalid Request: Cannot override ProvisionedThroughput unless BillingMode is PROVISIONED",
        ),
        (
            {"OnDemandThroughputOverride": {"MaxReadRequestUnits": 0, "MaxWriteRequestUnits": 0}},
            "ValidationException",
            "Invalid Request: Requested MaxReadRequestUnits for OnDemandThroughput is outside of valid range",
        ),
        (
            {"GlobalSecondaryIndexOverride": [index("new", "b")]},
            "ValidationException",
            f"Invalid Request: Index new {NO_INDEX} operation",
        ),
    ],
)
def test_a_restore_that_cannot_be_is_refused(
    backend: EmbeddedBackend, others: Request, code: str, message: str | None
) -> None:
    request = {"TargetTableName": "restored", "BackupArn": back_up(backend)} | others
    given = {name: value for name, value in request.items() if value is not None}
    found = refusal(backend, "RestoreTableFromBackup", given)
    assert found == (code, message or found[1])
    assert backend.execute("ListTables", {})["TableNames"] == ["tab"]


def test_a_restore_into_another_region_is_told_what_it_lacks(backend: EmbeddedBackend) -> None:
    request = {"TargetTableName": "restored", "BackupArn": back_up(backend).replace("ddblocal", "eu-central-1")}
    message = "Invalid Request: sseSpecificationOverride must be provided for cross-region restores"
    assert refusal(backend, "RestoreTableFromBackup", request) == ("ValidationException", message)
    backend.execute("RestoreTableFromBackup", request | {"SSESpecificationOverride": {"Enabled": True}})
    assert items(backend, "restored") == items(backend)


def test_a_table_that_could_be_recovered_leaves_a_backup(backend: EmbeddedBackend, clock: FakeClock) -> None:
    switch_recovery(backend)
    put(backend, 5)
    before = items(backend)
    backend.execute("DeleteTable", {"TableName": "tab"})
    assert listed(backend) == listed(backend, BackupType="AWS_BACKUP") == []
    (arn,) = listed(backend, BackupType="SYSTEM", TableName="tab")
    assert listed(backend, BackupType="ALL") == [arn]
    details = described(backend, arn)["BackupDetails"]
    assert arn.endswith("-00000000")
    created = details["BackupCreationDateTime"]
    assert details["BackupName"] == "tab$DeletedTableBackup"
    assert (details["BackupType"], details["BackupStatus"]) == ("SYSTEM", "AVAILABLE")
    assert details["BackupExpiryDateTime"] == created + 35 * DAY
    code, message = refusal(backend, "DeleteBackup", {"BackupArn": arn})
    assert code == "ValidationException"
    assert message.startswith(
        f"Invalid Request: User is not allowed to delete the system backup with arn {arn}. It will automatically"
        " expire on "
    )
    clock.advance(34 * DAY)
    backend._storage.keep_up()
    restore(backend, arn)
    assert items(backend, "restored", IndexName="by_c") == before
    clock.advance(DAY)
    assert listed(backend, BackupType="ALL") == []
    assert refusal(backend, "DescribeBackup", {"BackupArn": arn})[0] == "BackupNotFoundException"
    backend._storage.keep_up()
    assert backend._storage.query("SELECT id FROM backups") == []
    assert backend._storage.query("SELECT count(*) FROM sqlite_schema WHERE name GLOB 'items_*'") == [(1,)]


def test_a_table_without_recovery_leaves_nothing(backend: EmbeddedBackend) -> None:
    switch_recovery(backend)
    switch_recovery(backend, enabled=False)
    backend.execute("DeleteTable", {"TableName": "tab"})
    assert listed(backend, BackupType="ALL") == []


def test_tables_of_one_name_that_are_deleted_at_once_leave_a_backup_each(backend: EmbeddedBackend) -> None:
    for _ in range(3):
        switch_recovery(backend)
        backend.execute("DeleteTable", {"TableName": "tab"})
        backend.execute("CreateTable", TABLE)
    assert len(set(listed(backend, BackupType="SYSTEM"))) == 3


def test_a_file_from_before_backups_can_have_them(tmp_path: Path) -> None:
    path = tmp_path / "older.db"
    older = EmbeddedBackend(path)
    older.execute("CreateTable", TABLE)
    put(older, 1)
    older.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DROP TABLE backups")
        connection.execute("UPDATE tables SET record = json_remove(CAST(record AS TEXT), '$.is_backed_up')")
        connection.execute("UPDATE meta SET value = 5 WHERE name = 'format'")
    backend = EmbeddedBackend(path)
    restore(backend, back_up(backend))
    assert items(backend, "restored") == items(backend)
    backend.close()


def test_backups_are_there_again_when_the_file_is_opened_again(tmp_path: Path) -> None:
    backend = EmbeddedBackend(tmp_path / "tables.db")
    backend.execute("CreateTable", TABLE)
    put(backend, 1)
    arn = back_up(backend)
    backend.close()
    again = EmbeddedBackend(tmp_path / "tables.db")
    assert listed(again) == [arn]
    restore(again, arn)
    assert items(again, "restored") == items(again)
    again.close()


def test_a_damaged_backup_is_found(backend: EmbeddedBackend) -> None:
    back_up(backend)
    storage = backend._storage
    ((id_,),) = storage.query("SELECT id FROM backups")
    (stored,) = storage.query(f"SELECT * FROM items_{id_} LIMIT 1")
    position = (stored[0],)
    storage.write(lambda some: some.connection.execute(f"DELETE FROM items_{id_} WHERE position = ?", position))
    found = inconsistencies(storage)
    assert any("the counters say" in problem for problem in found)
    assert any("of table tab: it had 3 items" in problem for problem in found)
    storage.write(lambda some: some.connection.execute(f"INSERT INTO items_{id_} VALUES (?, ?, ?)", stored))
