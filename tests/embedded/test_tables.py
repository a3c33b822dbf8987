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
from tests.embedded.table_definitions import (
    ALL,
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
from jobtable.errors import AccessDenied, RequestError, RequestRefused, TableInUse, TableNotFound

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
    globals_(*(index(f"g{letter}x", "a", Projection=include(*"abcdefghijklmnopqrst")) for letter in "abcdef")),
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
]

UPDATES: list[list[Request]] = [
    [{}],
    [{"BillingMode": "PROVISIONED"}],
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


def told_by_both(node: Any) -> Any:
    """A description without what DynamoDB Local does not tell, or not of indexes: see the tests of units."""
    if isinstance(node, list):
        return [told_by_both(one) for one in node]
    if not isinstance(node, dict):
        return node
    not_told = ("WarmThroughput", "LastIncreaseDateTime", "LastDecreaseDateTime", "NumberOfDecreasesToday")
    kept = {name: told_by_both(content) for name, content in node.items() if name not in not_told}
    return {
        name: content for name, content in kept.items() if (name, content) != ("ProvisionedThroughput", units(0, 0))
    }


def comparable(answer: Answer) -> Any:
    """An answer without what differs by nature: times, labels, and the id that DynamoDB Local does not give.

    Of a refusal only the code is left: DynamoDB Local has words of its own (see FAULTS for those of the service).
    """
    if answer.code is not None:
        return answer.code
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+", "LABEL", str(told_by_both(answer.body)))
    text = re.sub(r"'TableId': '[^']*', ", "", text)
    return sorted(re.sub(r"\d{10}\.\d+", "TIME", text).split(", "))


@pytest.mark.parametrize("request_", REFUSED_TABLES + ACCEPTED_TABLES)
def test_create_table_answers_as_dynamodb_local(embedded: EmbeddedPeer, local: Peer, request_: Request) -> None:
    ours, theirs = embedded.ask("CreateTable", request_), local.ask("CreateTable", request_)
    assert comparable(ours) == comparable(theirs)
    assert (ours.code is None) == (request_ in ACCEPTED_TABLES)
    if ours.code is None:
        described = [peer.ask("DescribeTable", {"TableName": "tab"}) for peer in (embedded, local)]
        assert comparable(described[0]) == comparable(described[1])


@pytest.mark.parametrize("updates", UPDATES)
def test_update_table_answers_as_dynamodb_local(embedded: EmbeddedPeer, local: Peer, updates: list[Request]) -> None:
    for peer in (embedded, local):
        assert peer.ask("CreateTable", table()).code is None
    for change in updates:
        ours, theirs = (peer.ask("UpdateTable", {"TableName": "tab", **change}) for peer in (embedded, local))
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
    backend: EmbeddedBackend, operation: str, request_: Request, message: str
) -> None:
    backend.execute("CreateTable", table())
    with pytest.raises(RequestError) as caught:
        backend.execute(operation, request_)
    assert caught.value.message == message


@pytest.fixture
def backend() -> Iterator[EmbeddedBackend]:
    made = EmbeddedBackend(None)
    yield made
    made.close()


def put(backend: EmbeddedBackend, **attributes: Any) -> None:
    backend.execute("PutItem", {"TableName": "tab", "Item": attributes})


def test_attributes_are_described_by_name_and_indexes_as_they_were_given(backend: EmbeddedBackend) -> None:
    given = [index("second", "c", Projection=include("z", "x", "y")), index("first", "b")]
    created = globals_(*given, AttributeDefinitions=definitions("c", "a", "b"))
    described = backend.execute("CreateTable", created)["TableDescription"]
    assert described["AttributeDefinitions"] == definitions("a", "b", "c")
    assert [one["IndexName"] for one in described["GlobalSecondaryIndexes"]] == ["second", "first"]
    assert described["GlobalSecondaryIndexes"][0]["Projection"] == include("x", "y", "z")


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


def test_attributes_that_a_new_index_does_not_use_keep_their_type(backend: EmbeddedBackend) -> None:
    backend.execute("CreateTable", table())
    given = [*definitions("a", "other", kind="N"), *definitions("b")]
    changed = backend.execute("UpdateTable", update({"Create": index("ggg", "b")}, AttributeDefinitions=given))
    assert changed["TableDescription"]["AttributeDefinitions"] == definitions("a", "b")
    put(backend, a={"S": "1"})


def test_an_index_leaves_out_items_whose_values_are_too_long_for_its_key(backend: EmbeddedBackend) -> None:
    backend.execute("CreateTable", table())
    for length in (1024, 1025, 2048, 2049):
        put(backend, a={"S": str(length)}, b={"S": "ä" * (length // 2) + "b" * (length % 2)})
    put(backend, a={"S": "0"}, b={"B": "AAAA" * 700})
    attributes = definitions("a", "b")
    for made in (index("partition", "b"), index("sort", "a", "b")):
        change = {"AttributeDefinitions": attributes, "GlobalSecondaryIndexUpdates": [{"Create": made}]}
        backend.execute("UpdateTable", {"TableName": "tab", **change})
    longest = {"TableName": "tab", "Key": {"a": {"S": "2049"}}, "UpdateExpression": "SET c = a"}
    backend.execute("UpdateItem", longest)

    def held(name: str) -> set[str]:
        return {one["a"]["S"] for one in backend.execute("Scan", {"TableName": "tab", "IndexName": name})["Items"]}

    assert held("partition") == {"1024", "1025", "2048"}
    assert held("sort") == {"1024"}


def test_a_local_index_is_not_deleted(backend: EmbeddedBackend) -> None:
    backend.execute("CreateTable", locals_(index("lll", "a", "b")))
    with pytest.raises(RequestRefused):
        backend.execute("UpdateTable", update({"Delete": {"IndexName": "lll"}}))


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


def test_the_answer_to_a_deletion_tells_no_keys_and_no_indexes(backend: EmbeddedBackend) -> None:
    """DynamoDB Local describes the table as it was."""
    indexes = {"GlobalSecondaryIndexes": [index("ggg", "b")]}
    backend.execute("CreateTable", locals_(index("lll", "a", "b"), **indexes))
    described = backend.execute("DeleteTable", {"TableName": "tab"})["TableDescription"]
    assert described["TableStatus"] == "DELETING"
    assert {"BillingModeSummary", "ItemCount", "ProvisionedThroughput", "TableArn", "TableId"} <= described.keys()
    left_out = {"AttributeDefinitions", "CreationDateTime", "KeySchema", *indexes, "LocalSecondaryIndexes"}
    assert left_out.isdisjoint(described)


def test_a_change_of_the_table_class_has_its_time(backend: EmbeddedBackend) -> None:
    created = backend.execute("CreateTable", table(TableClass="STANDARD"))["TableDescription"]
    assert created["TableClassSummary"] == {"TableClass": "STANDARD"}
    change = {"TableName": "tab", "TableClass": "STANDARD_INFREQUENT_ACCESS"}
    summary = backend.execute("UpdateTable", change)["TableDescription"]["TableClassSummary"]
    assert summary["TableClass"] == "STANDARD_INFREQUENT_ACCESS"
    assert summary["LastUpdateDateTime"] >= created["CreationDateTime"]


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


@pytest.mark.parametrize(
    ("operation", "others"),
    [
        ("ListTagsOfResource", {}),
        ("TagResource", {"Tags": [{"Key": "a", "Value": "b"}]}),
        ("UntagResource", {"TagKeys": ["a"]}),
    ],
)
def test_tables_of_others_that_are_not_here_have_their_tags_for_themselves(
    backend: EmbeddedBackend, operation: str, others: Request
) -> None:
    elsewhere = "arn:aws:dynamodb:us-east-1:123456789012:table/tab"
    with pytest.raises(AccessDenied) as caught:
        backend.execute(operation, {"ResourceArn": elsewhere, **others})
    assert caught.value.message == (
        f"User: arn:aws:iam::000000000000:root is not authorized to perform: dynamodb:{operation} on resource:"
        f" {elsewhere} because no resource-based policy allows the dynamodb:{operation} action"
    )
    backend.execute("CreateTable", table())
    backend.execute(operation, {"ResourceArn": elsewhere, **others})


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
    assert created["SSEDescription"]["Status"] == "ENABLED"
    changed = backend.execute("UpdateTable", {"TableName": "tab", "TableClass": "STANDARD"})["TableDescription"]
    assert changed["TableClassSummary"]["TableClass"] == "STANDARD"
    changed = backend.execute("UpdateTable", {"TableName": "tab", "SSESpecification": {"Enabled": False}})
    assert "SSEDescription" not in changed["TableDescription"]
    with pytest.raises(RequestRefused, match="ReplicaUpdates"):
        backend.execute("UpdateTable", {"TableName": "tab", "ReplicaUpdates": [{"Create": {"RegionName": "x"}}]})


def test_limits_on_demand_are_changed_one_by_one(backend: EmbeddedBackend) -> None:
    index = {"IndexName": "by_b", "KeySchema": keys("b"), "Projection": {"ProjectionType": "ALL"}}
    other = {"IndexName": "by_c", "KeySchema": keys("c"), "Projection": {"ProjectionType": "ALL"}}
    request = table(
        AttributeDefinitions=definitions("a", "b", "c"),
        GlobalSecondaryIndexes=[index, other],
        OnDemandThroughput={"MaxReadRequestUnits": 10, "MaxWriteRequestUnits": 20},
        WarmThroughput={"ReadUnitsPerSecond": 20000, "WriteUnitsPerSecond": 6000},
    )
    backend.execute("CreateTable", request)
    changes: list[Request] = [
        {"TableName": "tab", "OnDemandThroughput": {"MaxReadRequestUnits": 30}},
        {"TableName": "tab", "WarmThroughput": {"ReadUnitsPerSecond": 30000}},
        update({"Update": {"IndexName": "by_b", "OnDemandThroughput": {"MaxReadRequestUnits": 7}}}),
    ]
    for change in changes:
        backend.execute("UpdateTable", change)
    changed = backend.execute("DescribeTable", {"TableName": "tab"})["Table"]
    assert changed["OnDemandThroughput"] == {"MaxReadRequestUnits": 30, "MaxWriteRequestUnits": 20}
    assert changed["WarmThroughput"]["WriteUnitsPerSecond"] == 6000
    by_b, by_c = changed["GlobalSecondaryIndexes"]
    assert (by_b["IndexName"], by_c["IndexName"]) == ("by_b", "by_c")
    assert by_b["OnDemandThroughput"] == {"MaxReadRequestUnits": 7}
    assert "OnDemandThroughput" not in by_c
    off = backend.execute("UpdateTable", {"TableName": "tab", "OnDemandThroughput": {"MaxReadRequestUnits": -1}})
    assert off["TableDescription"]["OnDemandThroughput"] == {"MaxWriteRequestUnits": 20}
    off = backend.execute("UpdateTable", {"TableName": "tab", "OnDemandThroughput": {"MaxWriteRequestUnits": -1}})
    assert "OnDemandThroughput" not in off["TableDescription"]


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
def test_options_that_cannot_be_are_refused(backend: EmbeddedBackend, change: Request) -> None:
    index = {"IndexName": "by_b", "KeySchema": keys("b"), "Projection": {"ProjectionType": "ALL"}}
    backend.execute("CreateTable", table(AttributeDefinitions=definitions("a", "b"), GlobalSecondaryIndexes=[index]))
    before = backend.execute("DescribeTable", {"TableName": "tab"})
    with pytest.raises(RequestRefused):
        backend.execute("UpdateTable", {"TableName": "tab", **change})
    assert backend.execute("DescribeTable", {"TableName": "tab"}) == before


@pytest.mark.parametrize("member", ["ResourcePolicy", "VectorIndexes", "GlobalTableSourceArn"])
def test_what_the_engine_does_not_keep_is_refused(backend: EmbeddedBackend, member: str) -> None:
    with pytest.raises(RequestRefused, match=member):
        backend.execute("CreateTable", table(**{member: "x"}))


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
def test_a_table_is_told_of_as_it_was_named(backend: EmbeddedBackend, operation: str, others: Request) -> None:
    arn = backend.execute("CreateTable", table())["TableDescription"]["TableArn"]
    for name in (arn, "tab"):
        answer = backend.execute(operation, {"TableName": name, "ReturnConsumedCapacity": "TOTAL", **others})
        assert answer["ConsumedCapacity"]["TableName"] == name
    for wrong in ("arn:aws:s3:::table/tab", "arn:foo", "arn:" + "x" * 3000):
        with pytest.raises(RequestRefused):
            backend.execute(operation, {"TableName": wrong, **others})


def test_tables_of_batches_and_transactions_are_told_of_as_they_were_named(backend: EmbeddedBackend) -> None:
    arn = backend.execute("CreateTable", table())["TableDescription"]["TableArn"]
    key = {"a": {"S": "1"}}
    for name in (arn, "tab"):
        requests: dict[str, Request] = {
            "BatchGetItem": {"RequestItems": {name: {"Keys": [key]}}},
            "BatchWriteItem": {"RequestItems": {name: [{"PutRequest": {"Item": key}}]}},
            "TransactWriteItems": {"TransactItems": [{"Put": {"TableName": name, "Item": key}}]},
            "TransactGetItems": {"TransactItems": [{"Get": {"TableName": name, "Key": key}}]},
        }
        for operation, request in requests.items():
            answer = backend.execute(operation, {**request, "ReturnConsumedCapacity": "TOTAL"})
            assert [one["TableName"] for one in answer["ConsumedCapacity"]] == [name]
