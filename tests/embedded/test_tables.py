"""Operations on tables: what they answer, and that DynamoDB Local answers the same."""

from __future__ import annotations

import copy
import json
import re
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from tests.embedded.differential.peers import Answer, EmbeddedPeer, LocalPeer, Peer

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import RequestRefused, TableInUse, TableNotFound

Request = dict[str, Any]

ALL = {"ProjectionType": "ALL"}


def definitions(*names: str, kind: str = "S") -> list[Request]:
    return [{"AttributeName": name, "AttributeType": kind} for name in names]


def keys(partition: str, sort: str = "") -> list[Request]:
    """HASH attributes and RANGE attributes, one letter each."""
    kinds = [(name, "HASH") for name in partition] + [(name, "RANGE") for name in sort]
    return [{"AttributeName": name, "KeyType": kind} for name, kind in kinds]


def index(name: str, partition: str, sort: str = "", **others: Any) -> Request:
    return {"IndexName": name, "KeySchema": keys(partition, sort), "Projection": ALL, **others}


def table(name: str = "tab", **others: Any) -> Request:
    request = {
        "TableName": name,
        "AttributeDefinitions": definitions("a"),
        "KeySchema": keys("a"),
        "BillingMode": "PAY_PER_REQUEST",
    }
    return {key: value for key, value in (request | others).items() if value is not None}


def units(read: int, write: int) -> Request:
    return {"ReadCapacityUnits": read, "WriteCapacityUnits": write}


def include(*names: str) -> Request:
    return {"ProjectionType": "INCLUDE", "NonKeyAttributes": list(names)}


def globals_(*indexes: Request, **others: Any) -> Request:
    return table(GlobalSecondaryIndexes=list(indexes), **others)


def locals_(*indexes: Request, **others: Any) -> Request:
    own: Request = {"AttributeDefinitions": definitions("a", "b"), "KeySchema": keys("a", "b")}
    return table() | own | {"LocalSecondaryIndexes": list(indexes)} | others


def provisioned(**others: Any) -> Request:
    return table(BillingMode=None) | {"ProvisionedThroughput": units(1, 1)} | others


REFUSED_TABLES = [
    {},
    {"TableName": "ab"},
    {"TableName": "abc;"},
    {"TableName": "tab"},
    table(KeySchema=[], AttributeDefinitions=[]),
    table(BillingMode=None),
    table(BillingMode="PROVISIONED"),
    provisioned(ProvisionedThroughput=units(0, 1)),
    provisioned(ProvisionedThroughput={"ReadCapacityUnits": 1}),
    provisioned(ProvisionedThroughput=units(10**13, 1)),
    table(KeySchema=keys("", "a")),
    table(KeySchema=keys("a", "a")),
    table(KeySchema=keys("ab")),
    table(KeySchema=keys("a", "b")),
    table(KeySchema=keys("a", "bc")),
    table(KeySchema=keys("z")),
    table(KeySchema=[{"AttributeName": "a"}]),
    table(KeySchema=[{"KeyType": "HASH"}]),
    table(KeySchema=[*keys("", "a"), *keys("b")], AttributeDefinitions=definitions("a", "b")),
    table(AttributeDefinitions=None),
    table(AttributeDefinitions=definitions("a", "b")),
    table(AttributeDefinitions=definitions("a", "a")),
    table(AttributeDefinitions=definitions("a", kind="BOOL")),
    table(AttributeDefinitions=[{"AttributeName": "a"}]),
    table(AttributeDefinitions=[{"AttributeType": "S"}]),
    table(KeySchema=keys("a"), AttributeDefinitions=definitions("x" * 256)),
    globals_(),
    globals_(index("g", "a")),
    globals_(index("ggg", "")),
    globals_(index("ggg", "a", Projection=None)),
    globals_(index("ggg", "a", Projection={})),
    globals_(index("ggg", "a", Projection={"ProjectionType": "SOME"})),
    globals_(index("ggg", "a", Projection={"ProjectionType": "INCLUDE"})),
    globals_(index("ggg", "a", Projection=include())),
    globals_(index("ggg", "a", Projection=include("x", "x"))),
    globals_(index("ggg", "a", Projection=include("x" * 256))),
    globals_(index("ggg", "a", Projection=include(*(f"x{number}" for number in range(101))))),
    globals_(index("ggg", "a", Projection={"ProjectionType": "ALL", "NonKeyAttributes": ["x"]})),
    globals_(index("ggg", "q")),
    globals_(index("ggg", "", "a")),
    globals_(index("ggg", "a", "a")),
    globals_(index("ggg", "a"), index("ggg", "a")),
    globals_(index("ggg", "abcde"), AttributeDefinitions=definitions(*"abcde")),
    globals_(index("ggg", "a", "bcdef"), AttributeDefinitions=definitions(*"abcdef")),
    globals_(*(index(f"g{number:02}", "a") for number in range(21))),
    globals_(index("ggg", "a"), AttributeDefinitions=definitions("a", "b")),
    provisioned(GlobalSecondaryIndexes=[index("ggg", "a")]),
    provisioned(GlobalSecondaryIndexes=[index("ggg", "a", ProvisionedThroughput=units(0, 1))]),
    locals_(index("lll", "a"), KeySchema=keys("a")),
    locals_(index("lll", "a")),
    locals_(index("lll", "b", "a")),
    locals_(index("lll", "a", "q")),
    locals_(index("lll", "a", "b"), index("lll", "a", "b")),
    locals_(*(index(f"l{number}x", "a", "b") for number in range(6))),
    locals_(index("lll", "a", "b"), GlobalSecondaryIndexes=[index("lll", "b")]),
    table(StreamSpecification={}),
    table(StreamSpecification={"StreamEnabled": True}),
    table(StreamSpecification={"StreamEnabled": False, "StreamViewType": "NEW_IMAGE"}),
]

ACCEPTED_TABLES = [
    table(),
    provisioned(),
    table(AttributeDefinitions=definitions("a", "b"), KeySchema=keys("a", "b"), DeletionProtectionEnabled=True),
    globals_(index("ggg", "ab", "cd"), AttributeDefinitions=definitions(*"abcd")),
    provisioned(GlobalSecondaryIndexes=[index("ggg", "a", ProvisionedThroughput=units(1, 2))]),
    locals_(index("lll", "a", "b", Projection=include("x", "y")), GlobalSecondaryIndexes=[index("ggg", "b")]),
    table(StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}),
    table(StreamSpecification={"StreamEnabled": False}),
    table(LocalSecondaryIndexes=[]),
]

UPDATES: list[list[Request]] = [
    [{}],
    [{"BillingMode": "PROVISIONED"}],
    [{"ProvisionedThroughput": units(3, 3)}],
    [{"BillingMode": "PROVISIONED", "ProvisionedThroughput": units(3, 3)}, {"ProvisionedThroughput": units(3, 3)}],
    [{"BillingMode": "PROVISIONED", "ProvisionedThroughput": units(3, 3)}, {"ProvisionedThroughput": units(0, 3)}],
    [{"BillingMode": "PROVISIONED", "ProvisionedThroughput": units(3, 3)}, {"BillingMode": "PAY_PER_REQUEST"}],
    [{"DeletionProtectionEnabled": True}, {"DeletionProtectionEnabled": False}],
    [{"StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}}] * 2,
    [{"StreamSpecification": {"StreamEnabled": False}}],
    [{"StreamSpecification": {"StreamEnabled": True}}],
    [
        {"StreamSpecification": {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}},
        {"StreamSpecification": {"StreamEnabled": False}},
    ],
    [{"GlobalSecondaryIndexUpdates": []}],
    [{"GlobalSecondaryIndexUpdates": [{}]}],
    [{"GlobalSecondaryIndexUpdates": [{"Create": index("ggg", "a"), "Delete": {"IndexName": "ggg"}}]}],
    [{"GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "ggg"}}]}],
    [{"GlobalSecondaryIndexUpdates": [{"Delete": {}}]}],
    [{"GlobalSecondaryIndexUpdates": [{"Create": index("ggg", "q")}]}],
    [
        {
            "AttributeDefinitions": definitions("r"),
            "GlobalSecondaryIndexUpdates": [{"Create": index("ggg", "q")}],
        }
    ],
    [
        {
            "AttributeDefinitions": definitions("a", kind="N"),
            "GlobalSecondaryIndexUpdates": [{"Create": index("ggg", "a")}],
        }
    ],
]


@pytest.fixture
def embedded() -> Iterator[EmbeddedPeer]:
    backend = EmbeddedBackend(None)
    yield EmbeddedPeer(backend)
    backend.close()


class RenamingPeer:
    """A peer that calls the table "tab" by another name: DynamoDB Local remembers streams of deleted tables."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._name = f"table-{uuid.uuid4().hex}"

    def ask(self, operation: str, request: Request) -> Answer:
        sent = {**request, "TableName": self._name} if request.get("TableName") == "tab" else request
        answer = self._peer.ask(operation, sent)
        return Answer(json.loads(json.dumps(answer.body).replace(self._name, "tab")), answer.code, answer.message)


@pytest.fixture
def local(dynamodb_local_url: str) -> Iterator[Peer]:
    peer = LocalPeer(dynamodb_local_url)
    yield RenamingPeer(peer)
    peer.close()


def comparable(answer: Answer) -> Any:
    """An answer without what differs by nature: times, labels, and the id that DynamoDB Local does not give."""
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+", "LABEL", str(answer))
    text = re.sub(r"'TableId': '[^']*', ", "", text)
    return sorted(re.sub(r"\d{10}\.\d+", "TIME", text).split(", "))


@pytest.mark.parametrize("request_", REFUSED_TABLES + ACCEPTED_TABLES)
def test_create_table_answers_as_dynamodb_local(embedded: EmbeddedPeer, local: Peer, request_: Request) -> None:
    ours, theirs = embedded.ask("CreateTable", request_), local.ask("CreateTable", request_)
    assert comparable(ours) == comparable(theirs)
    assert (ours.code is None) == (request_ in ACCEPTED_TABLES)
    if ours.code is None:
        for operation in ("DescribeTable", "DeleteTable"):
            described = [peer.ask(operation, {"TableName": "tab"}) for peer in (embedded, local)]
            assert comparable(described[0]) == comparable(described[1])


@pytest.mark.parametrize("updates", UPDATES)
def test_update_table_answers_as_dynamodb_local(embedded: EmbeddedPeer, local: Peer, updates: list[Request]) -> None:
    for peer in (embedded, local):
        assert peer.ask("CreateTable", table()).code is None
    for update in updates:
        ours, theirs = (peer.ask("UpdateTable", {"TableName": "tab", **update}) for peer in (embedded, local))
        assert comparable(ours) == comparable(theirs)


@pytest.mark.parametrize(
    ("operation", "request_"),
    [
        ("DescribeTable", {}),
        ("DescribeTable", {"TableName": "x"}),
        ("UpdateTable", {}),
        ("ListTables", {"Limit": 0}),
        ("ListTables", {"Limit": 101}),
        ("ListTables", {"ExclusiveStartTableName": "x"}),
        ("DescribeLimits", {}),
        ("DescribeTimeToLive", {}),
        ("UpdateTimeToLive", {"TableName": "tab"}),
        ("UpdateTimeToLive", {"TableName": "tab", "TimeToLiveSpecification": {}}),
        ("UpdateTimeToLive", {"TableName": "tab", "TimeToLiveSpecification": {"Enabled": True}}),
        ("UpdateTimeToLive", {"TableName": "tab", "TimeToLiveSpecification": {"Enabled": True, "AttributeName": ""}}),
        ("UpdateTimeToLive", {"TableName": "tab", "TimeToLiveSpecification": {"Enabled": False, "AttributeName": "t"}}),
        ("UpdateTimeToLive", {"TableName": "tab", "TimeToLiveSpecification": {"Enabled": True, "AttributeName": "t"}}),
    ],
)
def test_other_operations_answer_as_dynamodb_local(
    embedded: EmbeddedPeer, local: Peer, operation: str, request_: Request
) -> None:
    for peer in (embedded, local):
        assert peer.ask("CreateTable", table()).code is None
    ours, theirs = embedded.ask(operation, copy.deepcopy(request_)), local.ask(operation, request_)
    assert comparable(ours) == comparable(theirs)


@pytest.fixture
def backend() -> Iterator[EmbeddedBackend]:
    made = EmbeddedBackend(None)
    yield made
    made.close()


def put(backend: EmbeddedBackend, **attributes: Any) -> None:
    backend.execute("PutItem", {"TableName": "tab", "Item": attributes})


def test_counts_and_sizes_follow_the_items(backend: EmbeddedBackend) -> None:
    small = index("small", "b", Projection={"ProjectionType": "KEYS_ONLY"})
    backend.execute("CreateTable", globals_(index("ggg", "b"), small, AttributeDefinitions=definitions("a", "b")))
    put(backend, a={"S": "1"}, b={"S": "2"}, text={"S": "xyz"})
    put(backend, a={"S": "2"})
    put(backend, a={"S": "2"}, text={"S": "x"})
    described = backend.execute("DescribeTable", {"TableName": "tab"})["Table"]
    assert (described["ItemCount"], described["TableSizeBytes"]) == (2, 11 + 7)
    sizes = {one["IndexName"]: (one["ItemCount"], one["IndexSizeBytes"]) for one in described["GlobalSecondaryIndexes"]}
    assert sizes == {"ggg": (1, 11), "small": (1, 4)}
    backend.execute("DeleteItem", {"TableName": "tab", "Key": {"a": {"S": "1"}}})
    described = backend.execute("DescribeTable", {"TableName": "tab"})["Table"]
    assert (described["ItemCount"], described["TableSizeBytes"]) == (1, 7)
    assert {one["ItemCount"] for one in described["GlobalSecondaryIndexes"]} == {0}


def test_an_index_can_be_added_to_a_table_with_items_and_removed(backend: EmbeddedBackend) -> None:
    backend.execute("CreateTable", table())
    put(backend, a={"S": "1"}, b={"S": "x"}, c={"N": "2"})
    put(backend, a={"S": "2"}, b={"S": "x"}, c={"N": "10"})
    put(backend, a={"S": "3"}, b={"S": "x"})
    put(backend, a={"S": "4"}, b={"N": "1"}, c={"N": "1"})
    put(backend, a={"S": "5"}, b={"S": "x"}, c={"S": "of another type"})
    created = {"Create": index("ggg", "b", "c")}
    attributes = definitions("b") + definitions("c", kind="N")
    request = {"TableName": "tab", "AttributeDefinitions": attributes, "GlobalSecondaryIndexUpdates": [created]}
    described = backend.execute("UpdateTable", request)["TableDescription"]
    (added,) = described["GlobalSecondaryIndexes"]
    assert (added["IndexStatus"], added["ItemCount"]) == ("ACTIVE", 2)
    query = {
        "TableName": "tab",
        "IndexName": "ggg",
        "KeyConditionExpression": "b = :b",
        "ExpressionAttributeValues": {":b": {"S": "x"}},
    }
    assert [one["a"]["S"] for one in backend.execute("Query", query)["Items"]] == ["1", "2"]
    with pytest.raises(RequestRefused, match="already exists"):
        backend.execute("UpdateTable", request)
    removal = {"TableName": "tab", "GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "ggg"}}]}
    described = backend.execute("UpdateTable", removal)["TableDescription"]
    assert "GlobalSecondaryIndexes" not in described
    assert described["AttributeDefinitions"] == definitions("a")
    with pytest.raises(RequestRefused):
        backend.execute("Query", query)


def test_names_are_listed_in_order_and_in_pages(backend: EmbeddedBackend) -> None:
    for number in range(5):
        backend.execute("CreateTable", table(f"tab{number}"))
    first = backend.execute("ListTables", {"Limit": 3})
    assert first == {"TableNames": ["tab0", "tab1", "tab2"], "LastEvaluatedTableName": "tab2"}
    rest = backend.execute("ListTables", {"Limit": 3, "ExclusiveStartTableName": "tab2"})
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
def test_a_wrong_key_type_is_told_with_its_place(backend: EmbeddedBackend, change: Request, path: str) -> None:
    with pytest.raises(RequestRefused, match=f"Value 'SORT' at '{path}.2.member.keyType' failed"):
        backend.execute("CreateTable", table(AttributeDefinitions=definitions("a", "b"), **change))


def test_a_wrong_key_type_of_a_later_index_is_told_with_its_place(backend: EmbeddedBackend) -> None:
    backend.execute("CreateTable", table())
    creation = [{"Create": WRONG_INDEX}]
    path = "globalSecondaryIndexUpdates.1.member.create.keySchema.2.member.keyType"
    with pytest.raises(RequestRefused, match=f"Value 'SORT' at '{path}' failed"):
        backend.execute(
            "UpdateTable",
            {
                "TableName": "tab",
                "AttributeDefinitions": definitions("a", "b"),
                "GlobalSecondaryIndexUpdates": creation,
            },
        )


def test_a_protected_table_is_not_deleted_and_a_deleted_one_is_gone(backend: EmbeddedBackend) -> None:
    backend.execute("CreateTable", table(DeletionProtectionEnabled=True))
    with pytest.raises(RequestRefused, match="protected against deletion"):
        backend.execute("DeleteTable", {"TableName": "tab"})
    with pytest.raises(TableInUse):
        backend.execute("CreateTable", table())
    backend.execute("UpdateTable", {"TableName": "tab", "DeletionProtectionEnabled": False})
    put(backend, a={"S": "1"})
    arn = backend.execute("DescribeTable", {"TableName": "tab"})["Table"]["TableArn"]
    backend.execute("DeleteTable", {"TableName": arn})
    with pytest.raises(TableNotFound):
        backend.execute("DescribeTable", {"TableName": "tab"})
    backend.execute("CreateTable", table())
    assert backend.execute("Scan", {"TableName": "tab"})["Count"] == 0


@pytest.mark.parametrize(
    "operation", ["DescribeTable", "UpdateTable", "DeleteTable", "UpdateTimeToLive", "DescribeTimeToLive"]
)
def test_a_table_that_is_not_there_is_named(backend: EmbeddedBackend, operation: str) -> None:
    change: Request = {
        "TimeToLiveSpecification": {"AttributeName": "t", "Enabled": True},
        "DeletionProtectionEnabled": False,
    }
    with pytest.raises(TableNotFound) as caught:
        backend.execute(operation, {"TableName": "gone", **change})
    assert caught.value.message == "Requested resource not found: Table: gone not found"


def test_a_table_that_is_already_there_is_named(backend: EmbeddedBackend) -> None:
    backend.execute("CreateTable", table())
    with pytest.raises(TableInUse) as caught:
        backend.execute("CreateTable", table())
    assert caught.value.message == "Table already exists: tab"


def test_tags_are_added_replaced_listed_in_pages_and_removed(backend: EmbeddedBackend) -> None:
    created = backend.execute("CreateTable", table(Tags=[{"Key": "team", "Value": "ml"}]))
    arn = created["TableDescription"]["TableArn"]
    tags = [{"Key": f"key{number:02}", "Value": str(number)} for number in range(12)]
    backend.execute("TagResource", {"ResourceArn": arn, "Tags": [*tags, {"Key": "team", "Value": "data"}]})
    first = backend.execute("ListTagsOfResource", {"ResourceArn": arn})
    rest = backend.execute("ListTagsOfResource", {"ResourceArn": arn, "NextToken": first["NextToken"]})
    assert first["Tags"] + rest["Tags"] == [*tags, {"Key": "team", "Value": "data"}]
    assert "NextToken" not in rest
    backend.execute("UntagResource", {"ResourceArn": arn, "TagKeys": [tag["Key"] for tag in tags] + ["unknown"]})
    assert backend.execute("ListTagsOfResource", {"ResourceArn": arn}) == {"Tags": [{"Key": "team", "Value": "data"}]}


@pytest.mark.parametrize(
    "tags",
    [
        [],
        [{"Key": "", "Value": ""}],
        [{"Key": "x" * 129, "Value": ""}],
        [{"Key": "x", "Value": "y" * 257}],
        [{"Key": "x"}],
        [{"Key": "aws:x", "Value": ""}],
        [{"Key": "x", "Value": "1"}, {"Key": "x", "Value": "2"}],
        [{"Key": str(number), "Value": ""} for number in range(51)],
    ],
)
def test_tags_that_break_a_rule_are_refused(backend: EmbeddedBackend, tags: list[Request]) -> None:
    arn = backend.execute("CreateTable", table())["TableDescription"]["TableArn"]
    with pytest.raises(RequestRefused):
        backend.execute("TagResource", {"ResourceArn": arn, "Tags": tags})
    assert backend.execute("ListTagsOfResource", {"ResourceArn": arn}) == {"Tags": []}
    with pytest.raises(TableNotFound):
        backend.execute("ListTagsOfResource", {"ResourceArn": arn + "x"})
    with pytest.raises(RequestRefused):
        backend.execute("ListTagsOfResource", {"ResourceArn": "nonsense"})


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
        table(DeletionProtectionEnabled="yes"),
        provisioned(ProvisionedThroughput=units(1, 1) | {"ReadCapacityUnits": "1"}),
        globals_(index("ggg", "a", Projection="ALL")),
        globals_(index("ggg", "a", Projection={"ProjectionType": "INCLUDE", "NonKeyAttributes": "x"})),
        globals_(index("ggg", "a", Projection={"ProjectionType": "INCLUDE", "NonKeyAttributes": [1]})),
        table(GlobalSecondaryIndexes={}),
        table(Tags=[1]),
    ],
)
def test_malformed_requests_are_refused(backend: EmbeddedBackend, request_: Request) -> None:
    with pytest.raises(RequestRefused):
        backend.execute("CreateTable", request_)
    assert backend.execute("ListTables", {}) == {"TableNames": []}


def test_the_endpoint_is_described(backend: EmbeddedBackend) -> None:
    (endpoint,) = backend.execute("DescribeEndpoints", {})["Endpoints"]
    assert endpoint["CachePeriodInMinutes"] > 0


def test_options_can_be_given_and_changed(backend: EmbeddedBackend) -> None:
    limits = {"MaxReadRequestUnits": 5, "MaxWriteRequestUnits": 7}
    options: Request = {"TableClass": "STANDARD_INFREQUENT_ACCESS", "OnDemandThroughput": limits}
    created = backend.execute("CreateTable", table(SSESpecification={"Enabled": True}, **options))["TableDescription"]
    assert created["TableClassSummary"] == {"TableClass": "STANDARD_INFREQUENT_ACCESS"}
    assert created["OnDemandThroughput"] == limits
    assert created["SSEDescription"] == {"Status": "ENABLED", "SSEType": "KMS"}
    change = {"TableClass": "STANDARD", "SSESpecification": {"Enabled": False}}
    changed = backend.execute("UpdateTable", {"TableName": "tab", **change})["TableDescription"]
    assert changed["TableClassSummary"] == {"TableClass": "STANDARD"}
    assert "SSEDescription" not in changed
    with pytest.raises(RequestRefused, match="ReplicaUpdates"):
        backend.execute("UpdateTable", {"TableName": "tab", "ReplicaUpdates": [{"Create": {"RegionName": "x"}}]})
