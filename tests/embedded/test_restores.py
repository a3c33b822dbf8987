"""Point-in-time recovery: any second that is kept comes back exactly."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.embedded.storage.consistency import inconsistencies

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import RequestError, RequestRefused
from jobtable.testing import FakeClock

DAY = 86_400
Request = dict[str, Any]

BY_GROUP: Request = {
    "IndexName": "by_group",
    "KeySchema": [{"AttributeName": "group", "KeyType": "HASH"}],
    "Projection": {"ProjectionType": "ALL"},
}
DEFINITIONS: Request = {
    "AttributeDefinitions": [
        {"AttributeName": "id", "AttributeType": "S"},
        {"AttributeName": "group", "AttributeType": "S"},
    ]
}
TABLE: Request = {
    "TableName": "tab",
    **DEFINITIONS,
    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
    "GlobalSecondaryIndexes": [BY_GROUP],
    "BillingMode": "PAY_PER_REQUEST",
}


def opened(clock: FakeClock) -> EmbeddedBackend:
    backend = EmbeddedBackend(None, clock=clock)
    backend.execute("CreateTable", TABLE)
    return backend


@pytest.fixture
def backend(clock: FakeClock) -> Iterator[EmbeddedBackend]:
    made = opened(clock)
    yield made
    made.close()


def switch(backend: EmbeddedBackend, *, enabled: bool = True, **others: Any) -> Request:
    specification = {"PointInTimeRecoveryEnabled": enabled, **others}
    request = {"TableName": "tab", "PointInTimeRecoverySpecification": specification}
    description: Request = backend.execute("UpdateContinuousBackups", request)["ContinuousBackupsDescription"]
    recovery: Request = description["PointInTimeRecoveryDescription"]
    return recovery


def put(backend: EmbeddedBackend, name: str, text: str) -> None:
    item = {"id": {"S": name}, "group": {"S": text}, "text": {"S": text}}
    backend.execute("PutItem", {"TableName": "tab", "Item": item})


def delete(backend: EmbeddedBackend, name: str) -> None:
    backend.execute("DeleteItem", {"TableName": "tab", "Key": {"id": {"S": name}}})


def items(backend: EmbeddedBackend, table: str = "tab", **others: Any) -> dict[str, Request]:
    found = backend.execute("Scan", {"TableName": table, **others})["Items"]
    return {item["id"]["S"]: item for item in found}


def restore(backend: EmbeddedBackend, **others: Any) -> Request:
    request = {"SourceTableName": "tab", "TargetTableName": "restored", **others}
    description: Request = backend.execute("RestoreTableToPointInTime", request)["TableDescription"]
    return description


@given(
    before=st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["1", "2", ""])), max_size=5),
    after=st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(["1", "2", "3", ""])), max_size=15),
    seconds=st.integers(0, 15),
)
@settings(max_examples=40)
def test_every_second_comes_back_exactly(
    before: list[tuple[str, str]], after: list[tuple[str, str]], seconds: int
) -> None:
    clock = FakeClock()
    backend = opened(clock)
    for name, text in before:
        put(backend, name, text) if text else delete(backend, name)
    switch(backend)
    started = int(clock.seconds())
    states = [items(backend)]
    for name, text in after:
        clock.advance(1)
        put(backend, name, text) if text else delete(backend, name)
        states.append(items(backend))
    clock.advance(1)
    wanted = min(seconds, len(after))
    described = restore(backend, RestoreDateTime=started + wanted)
    assert items(backend, "restored") == states[wanted]
    assert items(backend, "restored", IndexName="by_group") == states[wanted]
    assert described["ItemCount"] == len(states[wanted])
    assert inconsistencies(backend._storage) == []
    assert items(backend) == states[-1], "the source is untouched"
    backend.close()


def test_what_can_be_restored_is_described(backend: EmbeddedBackend, clock: FakeClock) -> None:
    description = backend.execute("DescribeContinuousBackups", {"TableName": "tab"})["ContinuousBackupsDescription"]
    assert description == {
        "ContinuousBackupsStatus": "ENABLED",
        "PointInTimeRecoveryDescription": {"PointInTimeRecoveryStatus": "DISABLED"},
    }
    enabled = clock.seconds()
    switch(backend, RecoveryPeriodInDays=2)
    clock.advance(DAY)
    described = backend.execute("DescribeContinuousBackups", {"TableName": "tab"})["ContinuousBackupsDescription"]
    assert described["PointInTimeRecoveryDescription"] == {
        "PointInTimeRecoveryStatus": "ENABLED",
        "RecoveryPeriodInDays": 2,
        "EarliestRestorableDateTime": enabled,
        "LatestRestorableDateTime": enabled + DAY,
    }
    clock.advance(2 * DAY)
    assert switch(backend)["EarliestRestorableDateTime"] == enabled + DAY
    assert switch(backend, enabled=False) == {"PointInTimeRecoveryStatus": "DISABLED"}
    assert switch(backend)["RecoveryPeriodInDays"] == 35


def test_the_second_in_which_recovery_is_enabled_is_told_as_a_whole(backend: EmbeddedBackend, clock: FakeClock) -> None:
    second = clock.seconds()
    clock.advance(0.75)
    assert switch(backend, RecoveryPeriodInDays=2)["EarliestRestorableDateTime"] == second
    clock.advance(0.123456)
    assert restore(backend, UseLatestRestorableTime=True)["RestoreSummary"]["RestoreDateTime"] == second + 0.873
    restore(backend, RestoreDateTime=second, TargetTableName="earliest")
    clock.advance(3 * DAY)
    told = backend.execute("DescribeContinuousBackups", {"TableName": "tab"})["ContinuousBackupsDescription"]
    times = told["PointInTimeRecoveryDescription"]
    assert times["EarliestRestorableDateTime"] == second + DAY + 0.873
    assert times["LatestRestorableDateTime"] == second + 3 * DAY + 0.873


def test_only_what_is_kept_can_be_restored(backend: EmbeddedBackend, clock: FakeClock) -> None:
    with pytest.raises(RequestError) as refused:
        restore(backend, UseLatestRestorableTime=True)
    assert refused.value.code == "PointInTimeRecoveryUnavailableException"
    switch(backend, RecoveryPeriodInDays=1)
    started = clock.seconds()
    put(backend, "a", "1")
    clock.advance(DAY)
    put(backend, "a", "2")
    clock.advance(DAY)
    put(backend, "a", "3")
    backend._storage.keep_up()
    for moment in (started, started + DAY - 5, clock.seconds() + 60):
        with pytest.raises(RequestError) as refused:
            restore(backend, RestoreDateTime=moment)
        assert refused.value.code == "InvalidRestoreTimeException"
    restore(backend, RestoreDateTime=started + DAY + 5)
    assert items(backend, "restored")["a"]["text"] == {"S": "2"}


def test_a_longer_period_does_not_bring_back_what_is_gone(backend: EmbeddedBackend, clock: FakeClock) -> None:
    switch(backend, RecoveryPeriodInDays=1)
    started = clock.seconds()
    for day in range(20):
        put(backend, "a", str(day))
        clock.advance(DAY)
        backend._storage.keep_up()
    assert switch(backend, RecoveryPeriodInDays=35)["EarliestRestorableDateTime"] == started + 19 * DAY
    for days in (5.5, 18.5):
        with pytest.raises(RequestError) as refused:
            restore(backend, RestoreDateTime=started + days * DAY)
        assert refused.value.code == "InvalidRestoreTimeException"
    clock.advance(DAY)
    restore(backend, RestoreDateTime=started + 19 * DAY + 5)
    assert items(backend, "restored")["a"]["text"] == {"S": "19"}


def test_a_period_is_thirty_five_days_unless_it_is_said(backend: EmbeddedBackend) -> None:
    assert switch(backend, RecoveryPeriodInDays=7)["RecoveryPeriodInDays"] == 7
    assert switch(backend)["RecoveryPeriodInDays"] == 35


@pytest.mark.parametrize("specification", [{}, {"RecoveryPeriodInDays": 7}])
def test_recovery_is_not_switched_off_by_saying_nothing(backend: EmbeddedBackend, specification: Request) -> None:
    switch(backend)
    request = {"TableName": "tab", "PointInTimeRecoverySpecification": specification}
    with pytest.raises(RequestRefused, match=r"pointInTimeRecoveryEnabled' .* must not be null"):
        backend.execute("UpdateContinuousBackups", request)
    description = backend.execute("DescribeContinuousBackups", {"TableName": "tab"})["ContinuousBackupsDescription"]
    assert description["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] == "ENABLED"


def test_the_latest_state_and_the_options_of_the_restored_table(backend: EmbeddedBackend, clock: FakeClock) -> None:
    switch(backend)
    put(backend, "a", "1")
    description = restore(
        backend,
        UseLatestRestorableTime=True,
        GlobalSecondaryIndexOverride=[],
        BillingModeOverride="PROVISIONED",
        ProvisionedThroughputOverride={"ReadCapacityUnits": 2, "WriteCapacityUnits": 3},
    )
    assert items(backend, "restored") == items(backend)
    assert "GlobalSecondaryIndexes" not in description
    assert description["ProvisionedThroughput"]["WriteCapacityUnits"] == 3
    assert description["RestoreSummary"]["SourceTableArn"].endswith(":table/tab")
    assert (description["TableStatus"], description["RestoreSummary"]["RestoreInProgress"]) == ("CREATING", True)
    described = backend.execute("DescribeTable", {"TableName": "restored"})["Table"]
    assert described["TableStatus"] == "ACTIVE"
    assert "RestoreSummary" not in described


def test_a_restored_table_has_the_units_that_are_asked_for(backend: EmbeddedBackend) -> None:
    switch(backend)
    backend.execute("UpdateTable", {"TableName": "tab", "SSESpecification": {"Enabled": True}})
    backend.execute("UpdateTable", {"TableName": "tab", "OnDemandThroughput": {"MaxReadRequestUnits": 5}})
    units = {"ReadCapacityUnits": 9, "WriteCapacityUnits": 8}
    provisioned = restore(
        backend,
        UseLatestRestorableTime=True,
        BillingModeOverride="PROVISIONED",
        ProvisionedThroughputOverride={"ReadCapacityUnits": 2, "WriteCapacityUnits": 3},
        GlobalSecondaryIndexOverride=[{**BY_GROUP, "ProvisionedThroughput": units}],
        SSESpecificationOverride={"Enabled": False},
    )
    assert provisioned["GlobalSecondaryIndexes"][0]["ProvisionedThroughput"].items() >= units.items()
    assert "SSEDescription" not in provisioned
    assert "OnDemandThroughput" not in provisioned
    backend.execute("UpdateTable", {"TableName": "restored", "DeletionProtectionEnabled": True})
    backend.execute(
        "UpdateContinuousBackups",
        {"TableName": "restored", "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True}},
    )
    again = restore(
        backend,
        SourceTableName="restored",
        TargetTableName="again",
        UseLatestRestorableTime=True,
        BillingModeOverride="PAY_PER_REQUEST",
        OnDemandThroughputOverride={"MaxWriteRequestUnits": 60},
    )
    assert again["GlobalSecondaryIndexes"][0]["ProvisionedThroughput"]["ReadCapacityUnits"] == 0
    assert again["OnDemandThroughput"] == {"MaxWriteRequestUnits": 60}
    as_it_was = restore(backend, TargetTableName="same", UseLatestRestorableTime=True)
    assert as_it_was["OnDemandThroughput"] == {"MaxReadRequestUnits": 5}
    assert as_it_was["SSEDescription"]["Status"] == "ENABLED"


@pytest.mark.parametrize(
    ("others", "code"),
    [
        ({"TargetTableName": "tab", "UseLatestRestorableTime": True}, "TableAlreadyExistsException"),
        ({"SourceTableName": "none", "UseLatestRestorableTime": True}, "TableNotFoundException"),
        ({"TargetTableName": "x", "UseLatestRestorableTime": True}, "ValidationException"),
        ({}, "ValidationException"),
        ({"RestoreDateTime": "yesterday"}, "SerializationException"),
        (
            {"UseLatestRestorableTime": True, "GlobalSecondaryIndexOverride": [{"IndexName": "x"}]},
            "ValidationException",
        ),
        ({"UseLatestRestorableTime": True, "BillingModeOverride": "PROVISIONED"}, "ValidationException"),
        (
            {
                "UseLatestRestorableTime": True,
                "BillingModeOverride": "PROVISIONED",
                "ProvisionedThroughputOverride": {"ReadCapacityUnits": 2, "WriteCapacityUnits": 3},
            },
            "ValidationException",
        ),
        ({"UseLatestRestorableTime": True, "VectorIndexOverride": [{"IndexName": "v"}]}, "ValidationException"),
    ],
)
def test_a_restore_that_cannot_be_is_refused(backend: EmbeddedBackend, others: Request, code: str) -> None:
    switch(backend)
    with pytest.raises(RequestError) as refused:
        restore(backend, **others)
    assert refused.value.code == code
    assert backend.execute("ListTables", {})["TableNames"] == ["tab"]


def test_a_restored_table_is_of_the_standard_class(backend: EmbeddedBackend) -> None:
    switch(backend)
    backend.execute("UpdateTable", {"TableName": "tab", "TableClass": "STANDARD_INFREQUENT_ACCESS"})
    assert "TableClassSummary" not in restore(backend, UseLatestRestorableTime=True)


def test_an_index_can_have_another_name_in_the_restored_table(backend: EmbeddedBackend) -> None:
    switch(backend)
    put(backend, "a", "1")
    renamed = {**BY_GROUP, "IndexName": "by_text"}
    description = restore(backend, UseLatestRestorableTime=True, GlobalSecondaryIndexOverride=[renamed])
    assert [index["IndexName"] for index in description["GlobalSecondaryIndexes"]] == ["by_text"]
    assert items(backend, "restored", IndexName="by_text") == items(backend)


def test_two_restored_indexes_have_two_names(backend: EmbeddedBackend) -> None:
    again = {**BY_GROUP, "IndexName": "again"}
    backend.execute(
        "UpdateTable", {"TableName": "tab", **DEFINITIONS, "GlobalSecondaryIndexUpdates": [{"Create": again}]}
    )
    switch(backend)
    with pytest.raises(RequestRefused, match="Duplicate index name: again"):
        restore(backend, UseLatestRestorableTime=True, GlobalSecondaryIndexOverride=[again, again])


UNITS = {"ReadCapacityUnits": 2, "WriteCapacityUnits": 3}
PROVISIONED: Request = {"BillingModeOverride": "PROVISIONED", "ProvisionedThroughputOverride": UNITS}
NO_SUCH_INDEX = (
    "Index by_group does not match a secondary index that existed in the source table and cannot be created during the"
    " restore operation"
)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            {"ProvisionedThroughputOverride": UNITS},
            "Cannot override ProvisionedThroughput unless BillingMode is PROVISIONED",
        ),
        (
            {"BillingModeOverride": "PAY_PER_REQUEST", "ProvisionedThroughputOverride": UNITS},
            "Cannot override ProvisionedThroughput if BillingMode is overridden to PAY_PER_REQUEST",
        ),
        (
            {
                "BillingModeOverride": "PAY_PER_REQUEST",
                "GlobalSecondaryIndexOverride": [{**BY_GROUP, "ProvisionedThroughput": UNITS}],
            },
            "Cannot override ProvisionedThroughput if BillingMode is overridden to PAY_PER_REQUEST for index by_group",
        ),
        (
            {"BillingModeOverride": "PROVISIONED", "GlobalSecondaryIndexOverride": []},
            "Must override ProvisionedThroughput if BillingMode is overridden to PROVISIONED",
        ),
        (PROVISIONED, "Must specify provisioned throughput for index by_group"),
        (
            {**PROVISIONED, "GlobalSecondaryIndexOverride": [BY_GROUP]},
            "Must specify provisioned throughput for index by_group",
        ),
        (
            {**PROVISIONED, "OnDemandThroughputOverride": {"MaxWriteRequestUnits": 5}},
            "Cannot override MaxWriteRequestUnits for OnDemandThroughput unless BillingModeOverride is PAY_PER_REQUEST",
        ),
        (
            {
                **PROVISIONED,
                "GlobalSecondaryIndexOverride": [
                    {**BY_GROUP, "ProvisionedThroughput": UNITS, "OnDemandThroughput": {"MaxReadRequestUnits": 5}}
                ],
            },
            "Cannot override MaxReadRequestUnits for OnDemandThroughput unless BillingModeOverride is PAY_PER_REQUEST"
            " for index by_group",
        ),
        (
            {"GlobalSecondaryIndexOverride": [{**BY_GROUP, "WarmThroughput": {"ReadUnitsPerSecond": 20_000}}]},
            "Cannot override WarmThroughput for index by_group",
        ),
        (
            {"GlobalSecondaryIndexOverride": [{**BY_GROUP, "Projection": {"ProjectionType": "KEYS_ONLY"}}]},
            NO_SUCH_INDEX,
        ),
        (
            {
                "GlobalSecondaryIndexOverride": [
                    {**BY_GROUP, "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}]},
                ]
            },
            NO_SUCH_INDEX,
        ),
        ({"GlobalSecondaryIndexOverride": [{**BY_GROUP, "IndexName": "new"}, BY_GROUP]}, NO_SUCH_INDEX),
    ],
)
def test_what_a_restore_cannot_change_is_refused(backend: EmbeddedBackend, overrides: Request, message: str) -> None:
    switch(backend)
    with pytest.raises(RequestRefused) as refused:
        restore(backend, UseLatestRestorableTime=True, **overrides)
    assert refused.value.message == f"Invalid Request: {message}"
    assert backend.execute("ListTables", {})["TableNames"] == ["tab"]


LATEST: Request = {"UseLatestRestorableTime": True}
NO_RECOVERY = ("PointInTimeRecoveryUnavailableException", "Point in time recovery is not enabled for table 'tab'")


@pytest.mark.parametrize(
    ("is_enabled", "others", "code", "message"),
    [
        (
            False,
            {},
            "ValidationException",
            "Invalid Request: Either one of RestoreDateTime or UseLatestRestorableTime must be specified, but not both",
        ),
        (
            False,
            {**LATEST, "RestoreDateTime": 1},
            "ValidationException",
            "Invalid Request: Both RestoreDateTime and UseLatestRestorableTime cannot be set for point-in-time restore"
            " request. Please specify either RestoreDateTime time or UseLatestRestorableTime",
        ),
        (
            False,
            {**LATEST, "SourceTableArn": "arn:aws:dynamodb:ddblocal:000000000000:table/tab"},
            "ValidationException",
            "Must provide exactly one of: sourceTableArn, sourceTableName",
        ),
        (
            False,
            {**LATEST, "SourceTableName": None},
            "ValidationException",
            "The parameter 'TableName' is required but was not present in the request",
        ),
        (
            False,
            {**LATEST, "SourceTableName": None, "SourceTableArn": "tab"},
            "ValidationException",
            "One or more parameter values were invalid: ARNs must start with 'arn:': tab",
        ),
        (
            False,
            {**LATEST, "SourceTableName": None, "SourceTableArn": "arn:aws:s3:::tab"},
            "ValidationException",
            "sourceTableArn is not a valid ARN",
        ),
        (
            False,
            {**LATEST, "SourceTableName": None, "SourceTableArn": "arn:aws:dynamodb:ddblocal:123456789012:table/tab"},
            "ValidationException",
            "This action is only supported by accounts that match the resource owner\u2019s account.",
        ),
        (
            False,
            {**LATEST, "SourceTableName": None, "SourceTableArn": "arn:aws:dynamodb:eu-north-1:000000000000:table/tab"},
            "ValidationException",
            "Invalid Request: sseSpecificationOverride must be provided for cross-region restores",
        ),
        (
            False,
            {**LATEST, "TargetTableName": "no name"},
            "ValidationException",
            "1 validation error detected: Value 'no name' at 'targetTableName' failed to satisfy constraint: Member"
            " must satisfy regular expression pattern: [a-zA-Z0-9_.-]+",
        ),
        (False, {**LATEST, "TargetTableName": "tab"}, *NO_RECOVERY),
        (False, {"RestoreDateTime": 1}, *NO_RECOVERY),
        (
            True,
            {"RestoreDateTime": 1.5, "TargetTableName": "tab"},
            "InvalidRestoreTimeException",
            "RestoreDateTime '1970-01-01T00:00:01Z' must be within EarliestRestorableDateTime '2025-01-01T00:00:00Z'"
            " and LatestRestorableDateTime '2025-01-01T00:00:05Z'",
        ),
        (True, {**LATEST, "TargetTableName": "tab"}, "TableAlreadyExistsException", "Table already exists: tab"),
    ],
)
def test_the_faults_of_a_restore_are_found_in_the_order_of_the_service(
    backend: EmbeddedBackend, clock: FakeClock, is_enabled: bool, others: Request, code: str, message: str
) -> None:
    switch(backend, enabled=is_enabled)
    clock.advance(5)
    with pytest.raises(RequestError) as refused:
        restore(backend, **others)
    assert (refused.value.code, refused.value.message) == (code, message)


@pytest.mark.parametrize("moment", [-1, 1e12, 1e300, 10**400, float("nan")])
def test_a_time_outside_of_the_calendar_cannot_be_restored(backend: EmbeddedBackend, moment: float) -> None:
    switch(backend)
    with pytest.raises(RequestError) as refused:
        restore(backend, RestoreDateTime=moment)
    assert refused.value.code == "InvalidRestoreTimeException"


def test_a_period_is_not_given_to_what_is_switched_off(backend: EmbeddedBackend) -> None:
    switch(backend)
    with pytest.raises(RequestRefused, match="Invalid Request: Cannot specify RecoveryPeriodInDays when disabling"):
        switch(backend, enabled=False, RecoveryPeriodInDays=7)
    description = backend.execute("DescribeContinuousBackups", {"TableName": "tab"})["ContinuousBackupsDescription"]
    assert description["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] == "ENABLED"


@pytest.mark.parametrize("days", [0, 36, "2"])
def test_a_recovery_period_is_one_to_thirty_five_days(backend: EmbeddedBackend, days: Any) -> None:
    with pytest.raises(RequestRefused):
        switch(backend, RecoveryPeriodInDays=days)


def test_switching_recovery_of_an_unknown_table(backend: EmbeddedBackend) -> None:
    request = {"TableName": "none", "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True}}
    for operation in ("DescribeContinuousBackups", "UpdateContinuousBackups"):
        with pytest.raises(RequestError) as refused:
            backend.execute(operation, request)
        assert refused.value.code == "TableNotFoundException"
