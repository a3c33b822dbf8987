"""Table operations of the engine and of DynamoDB Local, side by side."""

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
)

from jobtable.embedded import EmbeddedBackend

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
    """A description without what DynamoDB Local does not tell, or not of indexes: see the tests of units.

    Since when a table is on demand it tells of one that is being made, too; the service does only when it is there.
    """
    if isinstance(node, list):
        return [told_by_both(one) for one in node]
    if not isinstance(node, dict):
        return node
    times = ("LastIncreaseDateTime", "LastDecreaseDateTime", "LastUpdateToPayPerRequestDateTime")
    left_out = ("WarmThroughput", "NumberOfDecreasesToday", *times)
    kept = {name: told_by_both(content) for name, content in node.items() if name not in left_out}
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
