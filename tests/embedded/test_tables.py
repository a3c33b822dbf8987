"""Operations on tables: what they do and answer."""

from __future__ import annotations

from typing import Any

import pytest
from tests.embedded.table_definitions import (
    ALL,
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
from jobtable.errors import AccessDenied, RequestRefused, TableInUse, TableNotFound
from jobtable.testing import FakeClock


def put(engine: EmbeddedBackend, **attributes: Any) -> None:
    engine.execute("PutItem", {"TableName": "tab", "Item": attributes})


def test_attributes_are_described_by_name_and_indexes_as_they_were_given(engine: EmbeddedBackend) -> None:
    given = [index("second", "c", Projection=include("z", "x", "y")), index("first", "b")]
    created = globals_(*given, AttributeDefinitions=definitions("c", "a", "b"))
    described = engine.execute("CreateTable", created)["TableDescription"]
    assert described["AttributeDefinitions"] == definitions("a", "b", "c")
    assert [one["IndexName"] for one in described["GlobalSecondaryIndexes"]] == ["second", "first"]
    assert described["GlobalSecondaryIndexes"][0]["Projection"] == include("x", "y", "z")


def test_counts_and_sizes_follow_the_items(engine: EmbeddedBackend) -> None:
    small = index("small", "b", Projection={"ProjectionType": "KEYS_ONLY"})
    engine.execute("CreateTable", globals_(index("ggg", "b"), small, AttributeDefinitions=definitions("a", "b")))
    put(engine, a={"S": "1"}, b={"S": "2"}, text={"S": "xyz"})
    put(engine, a={"S": "2"})
    put(engine, a={"S": "2"}, text={"S": "x"})
    described = engine.execute("DescribeTable", {"TableName": "tab"})["Table"]
    assert (described["ItemCount"], described["TableSizeBytes"]) == (2, 11 + 7)
    sizes = {one["IndexName"]: (one["ItemCount"], one["IndexSizeBytes"]) for one in described["GlobalSecondaryIndexes"]}
    assert sizes == {"ggg": (1, 11), "small": (1, 4)}
    engine.execute("DeleteItem", {"TableName": "tab", "Key": {"a": {"S": "1"}}})
    described = engine.execute("DescribeTable", {"TableName": "tab"})["Table"]
    assert (described["ItemCount"], described["TableSizeBytes"]) == (1, 7)
    assert {one["ItemCount"] for one in described["GlobalSecondaryIndexes"]} == {0}


def test_an_index_can_be_added_to_a_table_with_items_and_removed(engine: EmbeddedBackend) -> None:
    engine.execute("CreateTable", table())
    put(engine, a={"S": "1"}, b={"S": "x"}, c={"N": "2"})
    put(engine, a={"S": "2"}, b={"S": "x"}, c={"N": "10"})
    put(engine, a={"S": "3"}, b={"S": "x"})
    put(engine, a={"S": "4"}, b={"N": "1"}, c={"N": "1"})
    put(engine, a={"S": "5"}, b={"S": "x"}, c={"S": "of another type"})
    created = {"Create": index("ggg", "b", "c")}
    attributes = definitions("b") + definitions("c", kind="N")
    request = {"TableName": "tab", "AttributeDefinitions": attributes, "GlobalSecondaryIndexUpdates": [created]}
    described = engine.execute("UpdateTable", request)["TableDescription"]
    (added,) = described["GlobalSecondaryIndexes"]
    assert (added["IndexStatus"], added["ItemCount"]) == ("ACTIVE", 2)
    query = {
        "TableName": "tab",
        "IndexName": "ggg",
        "KeyConditionExpression": "b = :b",
        "ExpressionAttributeValues": {":b": {"S": "x"}},
    }
    assert [one["a"]["S"] for one in engine.execute("Query", query)["Items"]] == ["1", "2"]
    with pytest.raises(RequestRefused, match="already exists"):
        engine.execute("UpdateTable", request)
    removal = {"TableName": "tab", "GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "ggg"}}]}
    described = engine.execute("UpdateTable", removal)["TableDescription"]
    assert "GlobalSecondaryIndexes" not in described
    assert described["AttributeDefinitions"] == definitions("a")
    with pytest.raises(RequestRefused):
        engine.execute("Query", query)


def test_attributes_that_a_new_index_does_not_use_keep_their_type(engine: EmbeddedBackend) -> None:
    engine.execute("CreateTable", table())
    given = [*definitions("a", "other", kind="N"), *definitions("b")]
    changed = engine.execute("UpdateTable", update({"Create": index("ggg", "b")}, AttributeDefinitions=given))
    assert changed["TableDescription"]["AttributeDefinitions"] == definitions("a", "b")
    put(engine, a={"S": "1"})


def test_an_index_leaves_out_items_whose_values_are_too_long_for_its_key(engine: EmbeddedBackend) -> None:
    engine.execute("CreateTable", table())
    for length in (1024, 1025, 2048, 2049):
        put(engine, a={"S": str(length)}, b={"S": "ä" * (length // 2) + "b" * (length % 2)})
    put(engine, a={"S": "0"}, b={"B": "AAAA" * 700})
    attributes = definitions("a", "b")
    for made in (index("partition", "b"), index("sort", "a", "b")):
        change = {"AttributeDefinitions": attributes, "GlobalSecondaryIndexUpdates": [{"Create": made}]}
        engine.execute("UpdateTable", {"TableName": "tab", **change})
    longest = {"TableName": "tab", "Key": {"a": {"S": "2049"}}, "UpdateExpression": "SET c = a"}
    engine.execute("UpdateItem", longest)

    def held(name: str) -> set[str]:
        return {one["a"]["S"] for one in engine.execute("Scan", {"TableName": "tab", "IndexName": name})["Items"]}

    assert held("partition") == {"1024", "1025", "2048"}
    assert held("sort") == {"1024"}


def test_a_local_index_is_not_deleted(engine: EmbeddedBackend) -> None:
    engine.execute("CreateTable", locals_(index("lll", "a", "b")))
    with pytest.raises(RequestRefused):
        engine.execute("UpdateTable", update({"Delete": {"IndexName": "lll"}}))


def test_names_are_listed_in_order_and_in_pages(engine: EmbeddedBackend) -> None:
    for number in range(5):
        engine.execute("CreateTable", table(f"tab{number}"))
    first = engine.execute("ListTables", {"Limit": 3})
    assert first == {"TableNames": ["tab0", "tab1", "tab2"], "LastEvaluatedTableName": "tab2"}
    rest = engine.execute("ListTables", {"Limit": 3, "ExclusiveStartTableName": "tab2"})
    assert rest == {"TableNames": ["tab3", "tab4"]}


SORT = {"AttributeName": "b", "KeyType": "SORT"}
WRONG_KEYS = [*keys("a"), SORT]
WRONG_INDEX = {"IndexName": "ind", "KeySchema": WRONG_KEYS, "Projection": ALL}


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"KeySchema": WRONG_KEYS}, "keySchema"),
        ({"GlobalSecondaryIndexes": [WRONG_INDEX]}, "globalSecondaryIndexes.1.member.keySchema"),
        (
            {"LocalSecondaryIndexes": [index("loc", "a", "b"), WRONG_INDEX], "KeySchema": keys("a", "b")},
            "localSecondaryIndexes.2.member.keySchema",
        ),
    ],
)
def test_a_wrong_key_type_is_told_with_its_place(engine: EmbeddedBackend, change: Request, path: str) -> None:
    with pytest.raises(RequestRefused, match=f"Value 'SORT' at '{path}.2.member.keyType' failed"):
        engine.execute("CreateTable", table(AttributeDefinitions=definitions("a", "b"), **change))


def test_a_wrong_key_type_of_a_later_index_is_told_with_its_place(engine: EmbeddedBackend) -> None:
    engine.execute("CreateTable", table())
    creation = [{"Create": WRONG_INDEX}]
    path = "globalSecondaryIndexUpdates.1.member.create.keySchema.2.member.keyType"
    with pytest.raises(RequestRefused, match=f"Value 'SORT' at '{path}' failed"):
        engine.execute(
            "UpdateTable",
            {
                "TableName": "tab",
                "AttributeDefinitions": definitions("a", "b"),
                "GlobalSecondaryIndexUpdates": creation,
            },
        )


def test_a_protected_table_is_not_deleted_and_a_deleted_one_is_gone(engine: EmbeddedBackend) -> None:
    engine.execute("CreateTable", table(DeletionProtectionEnabled=True))
    with pytest.raises(RequestRefused, match="protected against deletion"):
        engine.execute("DeleteTable", {"TableName": "tab"})
    with pytest.raises(TableInUse):
        engine.execute("CreateTable", table())
    engine.execute("UpdateTable", {"TableName": "tab", "DeletionProtectionEnabled": False})
    put(engine, a={"S": "1"})
    arn = engine.execute("DescribeTable", {"TableName": "tab"})["Table"]["TableArn"]
    engine.execute("DeleteTable", {"TableName": arn})
    with pytest.raises(TableNotFound):
        engine.execute("DescribeTable", {"TableName": "tab"})
    engine.execute("CreateTable", table())
    assert engine.execute("Scan", {"TableName": "tab"})["Count"] == 0


def test_the_answer_to_a_deletion_tells_no_keys_and_no_indexes(engine: EmbeddedBackend) -> None:
    """DynamoDB Local describes the table as it was."""
    indexes = {"GlobalSecondaryIndexes": [index("ggg", "b")]}
    engine.execute("CreateTable", locals_(index("lll", "a", "b"), **indexes))
    described = engine.execute("DeleteTable", {"TableName": "tab"})["TableDescription"]
    assert described["TableStatus"] == "DELETING"
    assert {"BillingModeSummary", "ItemCount", "ProvisionedThroughput", "TableArn", "TableId"} <= described.keys()
    left_out = {"AttributeDefinitions", "CreationDateTime", "KeySchema", *indexes, "LocalSecondaryIndexes"}
    assert left_out.isdisjoint(described)


def test_a_new_table_tells_since_when_it_is_on_demand_as_soon_as_it_is_there(engine: EmbeddedBackend) -> None:
    created = engine.execute("CreateTable", table())["TableDescription"]
    assert created["BillingModeSummary"] == {"BillingMode": "PAY_PER_REQUEST"}
    summary = engine.execute("DescribeTable", {"TableName": "tab"})["Table"]["BillingModeSummary"]
    assert summary == {
        "BillingMode": "PAY_PER_REQUEST",
        "LastUpdateToPayPerRequestDateTime": created["CreationDateTime"],
    }


def test_a_change_of_the_table_class_has_its_time(engine: EmbeddedBackend) -> None:
    created = engine.execute("CreateTable", table(TableClass="STANDARD"))["TableDescription"]
    assert created["TableClassSummary"] == {"TableClass": "STANDARD"}
    change = {"TableName": "tab", "TableClass": "STANDARD_INFREQUENT_ACCESS"}
    summary = engine.execute("UpdateTable", change)["TableDescription"]["TableClassSummary"]
    assert summary["TableClass"] == "STANDARD_INFREQUENT_ACCESS"
    assert summary["LastUpdateDateTime"] >= created["CreationDateTime"]


def test_a_table_without_a_class_is_given_the_usual_one_to_no_effect(engine: EmbeddedBackend) -> None:
    engine.execute("CreateTable", table())
    change = {"TableName": "tab", "TableClass": "STANDARD"}
    assert "TableClassSummary" not in engine.execute("UpdateTable", change)["TableDescription"]
    assert "TableClassSummary" not in engine.execute("DescribeTable", {"TableName": "tab"})["Table"]


def test_times_are_told_to_the_millisecond(clock: FakeClock) -> None:
    told = clock.seconds() + 0.123
    clock.advance(0.123999)
    engine = EmbeddedBackend(None, clock=clock)
    view = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
    created = engine.execute("CreateTable", table(StreamSpecification=view))["TableDescription"]
    assert created["CreationDateTime"] == told
    stream = engine.execute("DescribeStream", {"StreamArn": created["LatestStreamArn"]})["StreamDescription"]
    assert stream["CreationRequestDateTime"] == told
    changed = {"TableName": "tab", "TableClass": "STANDARD_INFREQUENT_ACCESS"}
    described = engine.execute("UpdateTable", changed)["TableDescription"]
    assert described["BillingModeSummary"]["LastUpdateToPayPerRequestDateTime"] == told
    assert described["TableClassSummary"]["LastUpdateDateTime"] == told
    engine.execute("CreateTable", provisioned(TableName="other"))
    increased = {"TableName": "other", "ProvisionedThroughput": units(2, 2)}
    described = engine.execute("UpdateTable", increased)["TableDescription"]
    assert described["ProvisionedThroughput"]["LastIncreaseDateTime"] == told
    engine.close()


@pytest.mark.parametrize(
    "operation", ["DescribeTable", "UpdateTable", "DeleteTable", "UpdateTimeToLive", "DescribeTimeToLive"]
)
def test_a_table_that_is_not_there_is_named(engine: EmbeddedBackend, operation: str) -> None:
    change: Request = {
        "TimeToLiveSpecification": {"AttributeName": "t", "Enabled": True},
        "DeletionProtectionEnabled": False,
    }
    with pytest.raises(TableNotFound) as caught:
        engine.execute(operation, {"TableName": "gone", **change})
    assert caught.value.message == "Requested resource not found: Table: gone not found"


def test_a_table_that_is_already_there_is_named(engine: EmbeddedBackend) -> None:
    engine.execute("CreateTable", table())
    with pytest.raises(TableInUse) as caught:
        engine.execute("CreateTable", table())
    assert caught.value.message == "Table already exists: tab"


@pytest.mark.parametrize(
    ("operation", "others"),
    [
        ("ListTagsOfResource", {}),
        ("TagResource", {"Tags": [{"Key": "a", "Value": "b"}]}),
        ("UntagResource", {"TagKeys": ["a"]}),
    ],
)
def test_tables_of_others_that_are_not_here_have_their_tags_for_themselves(
    engine: EmbeddedBackend, operation: str, others: Request
) -> None:
    elsewhere = "arn:aws:dynamodb:us-east-1:123456789012:table/tab"
    with pytest.raises(AccessDenied) as caught:
        engine.execute(operation, {"ResourceArn": elsewhere, **others})
    assert caught.value.message == (
        f"User: arn:aws:iam::000000000000:root is not authorized to perform: dynamodb:{operation} on resource:"
        f" {elsewhere} because no resource-based policy allows the dynamodb:{operation} action"
    )
    engine.execute("CreateTable", table())
    engine.execute(operation, {"ResourceArn": elsewhere, **others})


@pytest.mark.parametrize(
    "request_",
    [
        {"TableName": 5},
        table(KeySchema="a"),
        table(KeySchema=["a"]),
        table(BillingMode="FREE"),
        table(TableClass="FIRST"),
        table(StreamSpecification={"StreamEnabled": True, "StreamViewType": "BEST"}),
        table(StreamSpecification=[]),
        table(DeletionProtectionEnabled="maybe"),
        provisioned(ProvisionedThroughput=units(1, 1) | {"ReadCapacityUnits": "1"}),
        globals_(index("ggg", "a", Projection="ALL")),
        globals_(index("ggg", "a", Projection={"ProjectionType": "INCLUDE", "NonKeyAttributes": "x"})),
        globals_(index("ggg", "a", Projection={"ProjectionType": "INCLUDE", "NonKeyAttributes": [1]})),
        table(GlobalSecondaryIndexes={}),
        table(Tags=[1]),
    ],
)
def test_malformed_requests_are_refused(engine: EmbeddedBackend, request_: Request) -> None:
    with pytest.raises(RequestRefused):
        engine.execute("CreateTable", request_)
    assert engine.execute("ListTables", {}) == {"TableNames": []}


def test_the_endpoint_is_described(engine: EmbeddedBackend) -> None:
    (endpoint,) = engine.execute("DescribeEndpoints", {})["Endpoints"]
    assert endpoint["CachePeriodInMinutes"] > 0


def test_options_can_be_given_and_changed(engine: EmbeddedBackend) -> None:
    limits = {"MaxReadRequestUnits": 5, "MaxWriteRequestUnits": 7}
    options: Request = {"TableClass": "STANDARD_INFREQUENT_ACCESS", "OnDemandThroughput": limits}
    created = engine.execute("CreateTable", table(SSESpecification={"Enabled": True}, **options))["TableDescription"]
    assert created["TableClassSummary"] == {"TableClass": "STANDARD_INFREQUENT_ACCESS"}
    assert created["OnDemandThroughput"] == limits
    assert created["SSEDescription"]["Status"] == "ENABLED"
    changed = engine.execute("UpdateTable", {"TableName": "tab", "TableClass": "STANDARD"})["TableDescription"]
    assert changed["TableClassSummary"]["TableClass"] == "STANDARD"
    changed = engine.execute("UpdateTable", {"TableName": "tab", "SSESpecification": {"Enabled": False}})
    assert "SSEDescription" not in changed["TableDescription"]
    with pytest.raises(RequestRefused, match="ReplicaUpdates is not supported"):
        engine.execute("UpdateTable", {"TableName": "tab", "ReplicaUpdates": [{"Create": {"RegionName": "x"}}]})


def test_limits_on_demand_are_changed_one_by_one(engine: EmbeddedBackend) -> None:
    index = {"IndexName": "by_b", "KeySchema": keys("b"), "Projection": {"ProjectionType": "ALL"}}
    other = {"IndexName": "by_c", "KeySchema": keys("c"), "Projection": {"ProjectionType": "ALL"}}
    request = table(
        AttributeDefinitions=definitions("a", "b", "c"),
        GlobalSecondaryIndexes=[index, other],
        OnDemandThroughput={"MaxReadRequestUnits": 10, "MaxWriteRequestUnits": 20},
        WarmThroughput={"ReadUnitsPerSecond": 20000, "WriteUnitsPerSecond": 6000},
    )
    engine.execute("CreateTable", request)
    changes: list[Request] = [
        {"TableName": "tab", "OnDemandThroughput": {"MaxReadRequestUnits": 30}},
        {"TableName": "tab", "WarmThroughput": {"ReadUnitsPerSecond": 30000}},
        update({"Update": {"IndexName": "by_b", "OnDemandThroughput": {"MaxReadRequestUnits": 7}}}),
    ]
    for change in changes:
        engine.execute("UpdateTable", change)
    changed = engine.execute("DescribeTable", {"TableName": "tab"})["Table"]
    assert changed["OnDemandThroughput"] == {"MaxReadRequestUnits": 30, "MaxWriteRequestUnits": 20}
    assert changed["WarmThroughput"]["WriteUnitsPerSecond"] == 6000
    by_b, by_c = changed["GlobalSecondaryIndexes"]
    assert (by_b["IndexName"], by_c["IndexName"]) == ("by_b", "by_c")
    assert by_b["OnDemandThroughput"] == {"MaxReadRequestUnits": 7}
    assert "OnDemandThroughput" not in by_c


def test_limits_on_demand_that_are_taken_away_are_told_once(engine: EmbeddedBackend) -> None:
    no_reads, no_writes = {"MaxReadRequestUnits": -1}, {"MaxWriteRequestUnits": -1}
    writes = {"MaxWriteRequestUnits": 20}
    engine.execute("CreateTable", table(OnDemandThroughput={"MaxReadRequestUnits": 10} | writes))
    changes: list[tuple[Request, Request, Request | None]] = [
        (no_reads, no_reads | writes, writes),
        (no_writes, no_writes, None),
        (no_reads | no_writes, no_reads | no_writes, None),
    ]
    for removed, answered, left in changes:
        answer = engine.execute("UpdateTable", {"TableName": "tab", "OnDemandThroughput": removed})
        assert answer["TableDescription"]["OnDemandThroughput"] == answered
        described = engine.execute("DescribeTable", {"TableName": "tab"})["Table"]
        assert described.get("OnDemandThroughput") == left


@pytest.mark.parametrize(
    "change",
    [
        {"OnDemandThroughput": {}},
        {"OnDemandThroughput": {"MaxReadRequestUnits": 0}},
        {"SSESpecification": {"Enabled": True, "SSEType": "FOO"}},
        {"GlobalSecondaryIndexUpdates": [{"Update": {"IndexName": "by_b", "ProvisionedThroughput": units(3, 3)}}]},
        {"VectorIndexUpdates": [{}]},
    ],
)
def test_options_that_cannot_be_are_refused(engine: EmbeddedBackend, change: Request) -> None:
    index = {"IndexName": "by_b", "KeySchema": keys("b"), "Projection": {"ProjectionType": "ALL"}}
    engine.execute("CreateTable", table(AttributeDefinitions=definitions("a", "b"), GlobalSecondaryIndexes=[index]))
    before = engine.execute("DescribeTable", {"TableName": "tab"})
    with pytest.raises(RequestRefused):
        engine.execute("UpdateTable", {"TableName": "tab", **change})
    assert engine.execute("DescribeTable", {"TableName": "tab"}) == before


@pytest.mark.parametrize("member", ["ResourcePolicy", "VectorIndexes", "GlobalTableSourceArn"])
def test_what_the_engine_does_not_keep_is_refused(engine: EmbeddedBackend, member: str) -> None:
    with pytest.raises(RequestRefused, match=member):
        engine.execute("CreateTable", table(**{member: "x"}))


@pytest.mark.parametrize(
    ("operation", "others"),
    [
        ("GetItem", {"Key": {"a": {"S": "1"}}}),
        ("PutItem", {"Item": {"a": {"S": "1"}}}),
        (
            "Query",
            {"KeyConditionExpression": "a = :a", "ExpressionAttributeValues": {":a": {"S": "1"}}},
        ),
    ],
)
def test_a_table_is_told_of_as_it_was_named(engine: EmbeddedBackend, operation: str, others: Request) -> None:
    arn = engine.execute("CreateTable", table())["TableDescription"]["TableArn"]
    for name in (arn, "tab"):
        answer = engine.execute(operation, {"TableName": name, "ReturnConsumedCapacity": "TOTAL", **others})
        assert answer["ConsumedCapacity"]["TableName"] == name
    for wrong in ("arn:aws:s3:::table/tab", "arn:foo", "arn:" + "x" * 3000):
        with pytest.raises(RequestRefused):
            engine.execute(operation, {"TableName": wrong, **others})


def test_a_new_table_may_be_named_by_its_arn(engine: EmbeddedBackend) -> None:
    arn = "arn:aws:dynamodb:ddblocal:000000000000:table/tab"
    created = engine.execute("CreateTable", table(TableName=arn))["TableDescription"]
    assert (created["TableName"], created["TableArn"]) == ("tab", arn)
    with pytest.raises(TableInUse):
        engine.execute("CreateTable", table())


def test_tables_of_batches_and_transactions_are_told_of_as_they_were_named(engine: EmbeddedBackend) -> None:
    arn = engine.execute("CreateTable", table())["TableDescription"]["TableArn"]
    key = {"a": {"S": "1"}}
    for name in (arn, "tab"):
        requests: dict[str, Request] = {
            "BatchGetItem": {"RequestItems": {name: {"Keys": [key]}}},
            "BatchWriteItem": {"RequestItems": {name: [{"PutRequest": {"Item": key}}]}},
            "TransactWriteItems": {"TransactItems": [{"Put": {"TableName": name, "Item": key}}]},
            "TransactGetItems": {"TransactItems": [{"Get": {"TableName": name, "Key": key}}]},
        }
        for operation, request in requests.items():
            answer = engine.execute(operation, {**request, "ReturnConsumedCapacity": "TOTAL"})
            assert [one["TableName"] for one in answer["ConsumedCapacity"]] == [name]
