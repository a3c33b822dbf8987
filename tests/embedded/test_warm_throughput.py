"""What tables and indexes are ready for, and the units that they have."""

from __future__ import annotations

import pytest
from tests.embedded.table_definitions import (
    CHANGES,
    INVALID,
    Request,
    definitions,
    globals_,
    index,
    last_refusal,
    provisioned,
    table,
    units,
    update,
)

from jobtable.embedded import EmbeddedBackend


def warm(read: int, write: int) -> Request:
    return {"ReadUnitsPerSecond": read, "WriteUnitsPerSecond": write}


def ready_for(engine: EmbeddedBackend) -> list[tuple[int, int]]:
    """The warm throughput of the table, and those of its indexes."""
    described = engine.execute("DescribeTable", {"TableName": "tab"})["Table"]
    told = [one["WarmThroughput"] for one in (described, *described.get("GlobalSecondaryIndexes", ()))]
    assert {one["Status"] for one in told} == {"ACTIVE"}
    return [(one["ReadUnitsPerSecond"], one["WriteUnitsPerSecond"]) for one in told]


def test_what_a_table_is_to_be_ready_for_is_noted(engine: EmbeddedBackend) -> None:
    """The engine is always ready, and does not throttle."""
    created = engine.execute("CreateTable", table(WarmThroughput=warm(12_500, 4_000)))["TableDescription"]
    assert created["WarmThroughput"] == {**warm(12_500, 4_000), "Status": "ACTIVE"}
    new = {**index("ggg", "b"), "WarmThroughput": {"WriteUnitsPerSecond": 4_500}}
    engine.execute("UpdateTable", update({"Create": new}, AttributeDefinitions=definitions("b")))
    assert ready_for(engine) == [(12_500, 4_000), (12_000, 4_500)]
    change = {"Update": {"IndexName": "ggg", "WarmThroughput": warm(13_000, 5_000)}}
    engine.execute("UpdateTable", update(change, WarmThroughput={"WriteUnitsPerSecond": 6_000}))
    assert ready_for(engine) == [(12_500, 6_000), (13_000, 5_000)]


def test_a_table_is_ready_for_what_its_billing_gives_it_and_never_for_less(engine: EmbeddedBackend) -> None:
    of_index = index("ggg", "a", ProvisionedThroughput=units(7, 8))
    created = engine.execute("CreateTable", provisioned(GlobalSecondaryIndexes=[of_index]))["TableDescription"]
    assert "WarmThroughput" not in created | created["GlobalSecondaryIndexes"][0]
    assert ready_for(engine) == [(1, 1), (7, 8)]
    fewer = {"Update": {"IndexName": "ggg", "ProvisionedThroughput": units(2, 9)}}
    engine.execute("UpdateTable", update(fewer, ProvisionedThroughput=units(3, 3)))
    assert ready_for(engine) == [(3, 3), (7, 9)]
    engine.execute("UpdateTable", {"TableName": "tab", **CHANGES["on demand"]})
    assert ready_for(engine) == [(12_000, 4_000)] * 2
    engine.execute("UpdateTable", {**CHANGES["provisioned"], **update(fewer)})
    assert ready_for(engine) == [(12_000, 4_000)] * 2


@pytest.mark.parametrize(
    ("requests", "message"),
    [
        (
            [table(WarmThroughput=warm(11_999, 4_000))],
            f"{INVALID}Requested ReadUnitsPerSecond for WarmThroughput for table is lower than initial throughput for"
            " OnDemand. See: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode"
            ".html#on-demand-capacity-mode-initial",
        ),
        (
            [provisioned(WarmThroughput=warm(1, 0))],
            f"{INVALID}Requested WriteUnitsPerSecond for WarmThroughput for table is lower than WriteCapacityUnits of"
            " ProvisionedThroughput",
        ),
        (
            [table(WarmThroughput=warm(15_000, 5_000)), {"WarmThroughput": warm(15_000, 4_999)}],
            f"{INVALID}Requested WriteUnitsPerSecond for WarmThroughput for table is lower than current WarmThroughput,"
            " decreasing WarmThroughput is not supported",
        ),
        (
            [
                globals_(index("ggg", "a")),
                update({"Update": {"IndexName": "ggg", "WarmThroughput": {"ReadUnitsPerSecond": 100}}}),
            ],
            f"{INVALID}Requested ReadUnitsPerSecond for WarmThroughput for index ggg is lower than current"
            " WarmThroughput, decreasing WarmThroughput is not supported",
        ),
        (
            [table(), {"WarmThroughput": warm(12_000, 50_000)}],
            "Subscriber limit exceeded: Requested WriteUnitsPerSecond for WarmThroughput for table exceeds"
            " TableMaxWriteCapacityUnits of the account in region ddblocal",
        ),
    ],
)
def test_a_table_cannot_be_ready_for_less_than_it_is_or_too_much(
    engine: EmbeddedBackend, requests: list[Request], message: str
) -> None:
    assert last_refusal(engine, requests) == message


def test_units_are_described_for_every_index_with_the_times_of_their_changes(engine: EmbeddedBackend) -> None:
    """DynamoDB Local tells none of indexes on demand, and times before there was any."""
    engine.execute("CreateTable", globals_(index("ggg", "a")))
    described = engine.execute("DescribeTable", {"TableName": "tab"})["Table"]
    none = {"NumberOfDecreasesToday": 0, **units(0, 0)}
    assert described["ProvisionedThroughput"] == described["GlobalSecondaryIndexes"][0]["ProvisionedThroughput"] == none
    of_index = {"IndexName": "ggg", "ProvisionedThroughput": units(3, 3)}
    engine.execute("UpdateTable", {**CHANGES["provisioned"], **update({"Update": of_index})})
    more = update({"Update": {**of_index, "ProvisionedThroughput": units(4, 3)}})
    (told,) = engine.execute("UpdateTable", more)["TableDescription"]["GlobalSecondaryIndexes"]
    assert told["ProvisionedThroughput"].keys() - none.keys() == {"LastIncreaseDateTime"}
