"""JSON types of requests: those of the service's model, and told before every other fault."""

from __future__ import annotations

import math
from typing import Any

import botocore.session
import pytest
from botocore.model import ListShape, MapShape, StructureShape
from botocore.model import Shape as ModelShape
from tests.embedded.differential.peers import EmbeddedPeer
from tests.embedded.differential.tables import Table
from tests.embedded.side_by_side import N, Request, S

from jobtable.embedded import EmbeddedBackend
from jobtable.embedded.dispatch import OPERATIONS
from jobtable.embedded.request_model import REQUESTS
from jobtable.embedded.shapes import Binary, Collection, Scalar, Shape, Structure
from jobtable.embedded.table_requests import refuse_what_is_not_kept
from jobtable.errors import RequestError, RequestRefused

MODEL = "com.amazonaws.dynamodb.v20120810."
WITHOUT_REQUEST = {"DescribeEndpoints", "DescribeLimits"}
# Refused or ignored whatever they are, or (times) of a form of their own.
NOT_READ = {
    *("ReplicaUpdates", "GlobalTableWitnessUpdates", "MultiRegionConsistency"),
    *("GlobalTableSourceArn", "GlobalTableSettingsReplicationMode", "DisassociationProtectionEnabled"),
    *("VectorIndexes", "VectorIndexUpdates", "VectorIndexOverride", "Timestamp", "RestoreDateTime"),
    *("TimeRangeLowerBound", "TimeRangeUpperBound"),
}
JAVA = {"string": "java.lang.String", "boolean": "java.lang.Boolean"} | {
    "integer": "java.lang.Integer",
    "long": "java.lang.Long",
}


def assert_same(shape: Shape, model: ModelShape, where: str, seen: frozenset[str] = frozenset()) -> None:
    if isinstance(model, StructureShape):
        assert isinstance(shape, Structure), where
        assert shape.java == MODEL + model.name, where
        if model.name in seen:
            return
        assert {*shape.members} == {*model.members} - NOT_READ, where
        for name, member in shape.members.items():
            assert_same(member, model.members[name], f"{where}.{name}", seen | {model.name})
    elif isinstance(model, ListShape):
        assert isinstance(shape, Collection), where
        assert shape.type is list, where
        assert_same(shape.content, model.member, where, seen)
    elif isinstance(model, MapShape):
        assert isinstance(shape, Collection), where
        assert shape.type is dict, where
        assert_same(shape.content, model.value, where, seen)
    elif model.type_name == "blob":
        assert isinstance(shape, Binary), where
    else:
        assert isinstance(shape, Scalar), where
        assert shape.java == JAVA[model.type_name], where


def input_of(operation: str) -> StructureShape:
    session = botocore.session.get_session()
    services = [session.get_service_model(name) for name in ("dynamodb", "dynamodbstreams")]
    [service] = [one for one in services if operation in one.operation_names]
    model = service.operation_model(operation).input_shape
    assert model is not None
    return model


@pytest.mark.parametrize("operation", sorted(REQUESTS))
def test_requests_have_the_members_of_the_service(operation: str) -> None:
    assert_same(REQUESTS[operation], input_of(operation), operation)


@pytest.mark.parametrize("operation", ["CreateTable", "UpdateTable", "RestoreTableToPointInTime"])
def test_members_of_table_operations_that_are_not_read_are_refused(operation: str) -> None:
    unread = {*input_of(operation).members} - {*REQUESTS[operation].members, "RestoreDateTime"}
    assert unread
    for name in unread:
        with pytest.raises(RequestRefused, match=name):
            refuse_what_is_not_kept({name: False})


def test_every_operation_has_a_request() -> None:
    assert {*REQUESTS} == {*OPERATIONS} - WITHOUT_REQUEST


MAP_OF_VALUES = f"java.util.Map<java.lang.String, {MODEL}AttributeValue>"
NOT_A_CLASS = (
    "class sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl cannot be cast to class java.lang.Class"
)
STRUCTURE = "Start of structure or map found where not expected"
FAULTS: list[tuple[str, Request, str]] = [
    ("GetItem", {"Key": []}, f"Unrecognized collection type {MAP_OF_VALUES}"),
    ("GetItem", {"Key": {"a": []}}, f"Unrecognized collection type class {MODEL}AttributeValue"),
    ("GetItem", {"Key": {"a": "x"}}, "Unexpected value type in payload"),
    ("UpdateItem", {"AttributeUpdates": {"a": {"Value": "x"}}}, "Unexpected field type"),
    ("DeleteItem", {"Expected": {"a": {"Value": 5}}}, "Unexpected field type"),
    ("DeleteItem", {"Expected": {"a": {"Value": []}}}, f"Unrecognized collection type class {MODEL}AttributeValue"),
    ("GetItem", {"ConsistentRead": "maybe"}, "Unexpected token received from parser"),
    ("GetItem", {"ConsistentRead": "yes", "TableName": 5}, "NUMBER_VALUE cannot be converted to String"),
    ("Scan", {"Limit": math.inf}, "DECIMAL_VALUE cannot be converted to Integer"),
    ("GetItem", {"ExpressionAttributeNames": {"#a": 5}}, "NUMBER_VALUE cannot be converted to String"),
    ("PutItem", {"Item": {"a": {"L": [{"M": {"a": {"B": 5}}}]}}}, "only base-64-encoded strings are convertible to"),
    ("Query", {"Limit": "23"}, "STRING_VALUE cannot be converted to Integer"),
    ("Scan", {"TotalSegments": True}, "TRUE_VALUE cannot be converted to Integer"),
    (
        "BatchGetItem",
        {"RequestItems": []},
        f"Unrecognized collection type java.util.Map<java.lang.String, {MODEL}KeysAndAttributes>",
    ),
    ("BatchGetItem", {"RequestItems": {"a": {"Keys": ["x"]}}}, NOT_A_CLASS),
    ("BatchWriteItem", {"RequestItems": {"a": 5}}, NOT_A_CLASS),
    ("BatchWriteItem", {"RequestItems": {"a": {}}}, STRUCTURE),
    ("BatchWriteItem", {"RequestItems": {"a": ["x"]}}, "Unexpected value type in payload"),
    ("BatchWriteItem", {"RequestItems": {"a": [{"PutRequest": "x"}]}}, "Unexpected field type"),
    ("TransactWriteItems", {"TransactItems": [{}, {"Put": {"Item": {"a": {"N": 5}}}}]}, "NUMBER_VALUE cannot be"),
    ("CreateTable", {"ProvisionedThroughput": {"ReadCapacityUnits": "5"}}, "STRING_VALUE cannot be converted to Long"),
    ("CreateTable", {"KeySchema": {}}, STRUCTURE),
    ("UpdateTable", {"TableName": "nope", "GlobalSecondaryIndexUpdates": [{"Update": 5}]}, "Unexpected field type"),
    ("TagResource", {"Tags": [[]]}, f"Unrecognized collection type class {MODEL}Tag"),
    ("GetRecords", {"Limit": {}}, STRUCTURE),
]


@pytest.mark.parametrize(("operation", "request_", "message"), FAULTS)
def test_a_wrong_type_is_told_before_every_other_fault(
    backend: EmbeddedBackend, operation: str, request_: Request, message: str
) -> None:
    with pytest.raises(RequestError) as caught:
        backend.execute(operation, request_)
    assert caught.value.code == "SerializationException"
    assert caught.value.message.startswith(message)


def test_faults_of_a_table_come_after_wrong_types(backend: EmbeddedBackend) -> None:
    request: Request = {"TableName": "nope", "Key": {"pk": S("1")}, "ConsistentRead": {}}
    with pytest.raises(RequestError, match=STRUCTURE):
        backend.execute("GetItem", request)


def test_flags_in_words_are_no_wrong_types(backend: EmbeddedBackend) -> None:
    with pytest.raises(RequestError, match="Requested resource not found"):
        backend.execute("GetItem", {"TableName": "nope", "Key": {"pk": {"BOOL": "no"}}})


READABLE: list[tuple[str, Request, Request]] = [
    ("Scan", {"Limit": 2.9}, {"Limit": 2}),
    ("Scan", {"Segment": 0.5, "TotalSegments": 2.0}, {"Segment": 0, "TotalSegments": 2}),
    ("Scan", {"Limit": 0.5}, {"Limit": 0}),
    ("Scan", {"ConsistentRead": "True", "IndexName": "gall"}, {"ConsistentRead": True, "IndexName": "gall"}),
    (
        "Query",
        {"KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": {":p": S("1")}, "ScanIndexForward": "no"},
        {"KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": {":p": S("1")}, "ScanIndexForward": False},
    ),
    (
        "UpdateTimeToLive",
        {"TimeToLiveSpecification": {"AttributeName": "a", "Enabled": "0"}},
        {"TimeToLiveSpecification": {"AttributeName": "a", "Enabled": False}},
    ),
]


@pytest.mark.parametrize(("operation", "request_", "meant"), READABLE)
def test_flags_in_words_and_decimals_are_read_as_the_service_reads_them(
    backend: EmbeddedBackend, operation: str, request_: Request, meant: Request
) -> None:
    for sk in "123":
        backend.execute("PutItem", {"TableName": "main", "Item": {"pk": S("1"), "sk": S(sk)}})
    read, expected = (EmbeddedPeer(backend).ask(operation, {"TableName": "main", **one}) for one in (request_, meant))
    assert read == expected
    assert read.code != "SerializationException"


def test_decimals_of_a_table_are_read_as_whole_numbers(engine: EmbeddedBackend) -> None:
    units = {"ReadCapacityUnits": 7.5, "WriteCapacityUnits": 3.0}
    made = engine.execute(
        "CreateTable",
        {**Table("hash", ("pk", "S")).definition(), "BillingMode": "PROVISIONED", "ProvisionedThroughput": units},
    )
    described = made["TableDescription"]["ProvisionedThroughput"]
    assert (described["ReadCapacityUnits"], described["WriteCapacityUnits"]) == (7, 3)


def test_deep_values_are_refused_for_that(backend: EmbeddedBackend) -> None:
    deep: dict[str, Any] = N(1)
    for _ in range(5000):
        deep = {"L": [deep]}
    with pytest.raises(RequestError, match="Nesting Levels have exceeded supported limits"):
        backend.execute("PutItem", {"TableName": "hash", "Item": {"pk": S("1"), "a": deep}})
