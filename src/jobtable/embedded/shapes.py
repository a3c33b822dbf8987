"""The JSON types of requests, and the fault of a member that has another one.

DynamoDB reads a whole request before it checks anything, so such a member is reported before every other fault,
wherever it is. The engine reads members where it needs them: only for a request that it refuses does it check the
types, and only then does it read flags in words and the whole part of decimals, which DynamoDB accepts too.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from jobtable.embedded.values import FLAGS, validate_value
from jobtable.embedded.wordings import BOOLEAN, INTEGER, LONG, STRING, wrong_json_type
from jobtable.errors import RequestRefused
from jobtable.store.backend import Request

_DEEPEST = 100  # deeper values are refused for their depth, whatever they are
_PARAMETERIZED = "sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl"
_NOT_A_COLLECTION = (
    f"class {_PARAMETERIZED} cannot be cast to class java.lang.Class ({_PARAMETERIZED} and java.lang.Class are in"
    " module java.base of loader 'bootstrap')"
)


class Shape(ABC):
    """The type of a member of a request: `java` is its name in the service."""

    def __init__(self, java: str) -> None:
        self.java = java

    @abstractmethod
    def check(self, found: Any, depth: int, *, is_inside: bool = False) -> None:
        """Raise RequestRefused for another type. `is_inside`: it is a member of a list or map."""

    def read(self, found: Any, depth: int) -> Any:
        """Convert a value as DynamoDB does; unreadable values stay as they are."""
        return found


class Scalar(Shape):
    """A text, a flag or a number."""

    _PYTHON_TYPES: Mapping[str, type] = {STRING: str, BOOLEAN: bool, INTEGER: int, LONG: int}

    def check(self, found: Any, depth: int, *, is_inside: bool = False) -> None:
        if type(found) is not self._PYTHON_TYPES[f"class {self.java}"]:
            raise wrong_json_type(found, f"class {self.java}")

    def read(self, found: Any, depth: int) -> Any:
        wanted = self._PYTHON_TYPES[f"class {self.java}"]
        if wanted is bool and isinstance(found, str):
            return FLAGS.get(found.lower(), found)
        return int(found) if wanted is int and isinstance(found, float) and math.isfinite(found) else found


class Binary(Shape):
    """Bytes in base64."""

    def check(self, found: Any, depth: int, *, is_inside: bool = False) -> None:
        validate_value({"B": found})


class WrittenFlag(Scalar):
    """The flag of an attribute value, which may be a word."""

    def check(self, found: Any, depth: int, *, is_inside: bool = False) -> None:
        validate_value({"BOOL": found})

    def read(self, found: Any, depth: int) -> Any:
        return found  # It is read where values are.


class Collection(Shape):
    """A list, or a map from any text, with members of one shape."""

    def __init__(self, java: str, type_: type[list[Any]] | type[dict[str, Any]], content: Shape) -> None:
        super().__init__(f"java.util.{java}{content.java}>")
        self.type = type_
        self.content = content

    def check(self, found: Any, depth: int, *, is_inside: bool = False) -> None:
        if not isinstance(found, self.type):
            if is_inside and not isinstance(found, (list, dict)):
                raise _refused(_NOT_A_COLLECTION)
            raise wrong_json_type(found, self.java)
        for member in found.values() if isinstance(found, dict) else found:
            _check(self.content, member, depth, is_inside=True)

    def read(self, found: Any, depth: int) -> Any:
        if not isinstance(found, self.type):
            return found
        if isinstance(found, dict):
            return {name: _read(self.content, member, depth) for name, member in found.items()}
        return [_read(self.content, member, depth) for member in found]


class Structure(Shape):
    """Members of given names, of which any may be missing; others are ignored."""

    def __init__(self, name: str, members: Mapping[str, Shape]) -> None:
        super().__init__(f"com.amazonaws.dynamodb.v20120810.{name}")
        self.members = members

    def check(self, found: Any, depth: int, *, is_inside: bool = False) -> None:
        if not isinstance(found, dict):
            if isinstance(found, list):
                raise wrong_json_type(found, f"class {self.java}")
            raise _refused("Unexpected value type in payload" if is_inside else "Unexpected field type")
        for name, member in found.items():
            if name in self.members:
                _check(self.members[name], member, depth)

    def read(self, found: Any, depth: int) -> Any:
        if not isinstance(found, dict):
            return found
        members = self.members
        return {
            name: _read(members[name], member, depth) if name in members else member for name, member in found.items()
        }


def _check(shape: Shape, found: Any, depth: int, *, is_inside: bool = False) -> None:
    if found is not None and depth < _DEEPEST:
        shape.check(found, depth + 1, is_inside=is_inside)


def _read(shape: Shape, found: Any, depth: int) -> Any:
    return found if depth >= _DEEPEST else shape.read(found, depth + 1)


def ListOf(content: Shape) -> Collection:  # noqa: N802 - reads as a type in the declarations below
    return Collection("List<", list, content)


def MapOf(content: Shape) -> Collection:  # noqa: N802 - as above
    return Collection("Map<java.lang.String, ", dict, content)


def _refused(message: str) -> RequestRefused:
    return RequestRefused(message, code="SerializationException")


def _structure(name: str, texts: str = "", /, **members: Shape) -> Structure:
    """Make a structure; `texts` are the names of its members that are texts."""
    return Structure(name, dict.fromkeys(texts.split(), _TEXT) | members)


_TEXT, _FLAG = Scalar("java.lang.String"), Scalar("java.lang.Boolean")
_INTEGER, _LONG = Scalar("java.lang.Integer"), Scalar("java.lang.Long")
_BINARY, _WRITTEN_FLAG = Binary("java.nio.ByteBuffer"), WrittenFlag("java.lang.Boolean")
_TEXTS = ListOf(_TEXT)

_KINDS: dict[str, Shape] = {"S": _TEXT, "N": _TEXT, "B": _BINARY, "BOOL": _WRITTEN_FLAG, "NULL": _WRITTEN_FLAG}
_VALUE = Structure("AttributeValue", _KINDS)
_ITEM = MapOf(_VALUE)
_KINDS |= {"SS": _TEXTS, "NS": _TEXTS, "BS": ListOf(_BINARY), "L": ListOf(_VALUE), "M": _ITEM}

_CONDITION_MEMBERS = {"ComparisonOperator": _TEXT, "AttributeValueList": ListOf(_VALUE)}
_CONDITIONS = MapOf(_structure("Condition", **_CONDITION_MEMBERS))
_EXPECTED: dict[str, Shape] = {
    "Expected": MapOf(_structure("ExpectedAttributeValue", Value=_VALUE, Exists=_FLAG, **_CONDITION_MEMBERS))
}
_UPDATES = MapOf(_structure("AttributeValueUpdate", "Action", Value=_VALUE))

_NAMES: dict[str, Shape] = {"ExpressionAttributeNames": MapOf(_TEXT)}
_PLACEHOLDERS = _NAMES | {"ExpressionAttributeValues": _ITEM}
_CONDITION = "TableName ConditionExpression ReturnValuesOnConditionCheckFailure"
_WRITE = f"{_CONDITION} ConditionalOperator ReturnValues ReturnConsumedCapacity ReturnItemCollectionMetrics"
_SELECTION = (
    "TableName IndexName Select ConditionalOperator ReturnConsumedCapacity ProjectionExpression FilterExpression"
)
_PAGE = _PLACEHOLDERS | {
    "Limit": _INTEGER,
    "ConsistentRead": _FLAG,
    "ExclusiveStartKey": _ITEM,
    "AttributesToGet": _TEXTS,
}

_KEYS_AND_ATTRIBUTES = _structure(
    "KeysAndAttributes",
    "ProjectionExpression",
    Keys=ListOf(_ITEM),
    ConsistentRead=_FLAG,
    AttributesToGet=_TEXTS,
    **_NAMES,
)
_WRITE_REQUEST = _structure(
    "WriteRequest",
    PutRequest=_structure("PutRequest", Item=_ITEM),
    DeleteRequest=_structure("DeleteRequest", Key=_ITEM),
)
_TRANSACT_GET = _structure(
    "TransactGetItem", Get=_structure("Get", "TableName ProjectionExpression", Key=_ITEM, **_NAMES)
)
_TRANSACT_WRITE = _structure(
    "TransactWriteItem",
    ConditionCheck=_structure("ConditionCheck", _CONDITION, Key=_ITEM, **_PLACEHOLDERS),
    Put=_structure("Put", _CONDITION, Item=_ITEM, **_PLACEHOLDERS),
    Delete=_structure("Delete", _CONDITION, Key=_ITEM, **_PLACEHOLDERS),
    Update=_structure("Update", f"{_CONDITION} UpdateExpression", Key=_ITEM, **_PLACEHOLDERS),
)
_STATEMENT_TEXTS = "Statement ReturnValuesOnConditionCheckFailure"
_STATEMENT = _structure("ParameterizedStatement", _STATEMENT_TEXTS, Parameters=ListOf(_VALUE))
_BATCH_STATEMENT = _structure(
    "BatchStatementRequest", _STATEMENT_TEXTS, Parameters=ListOf(_VALUE), ConsistentRead=_FLAG
)

_DEFINITIONS = ListOf(_structure("AttributeDefinition", "AttributeName AttributeType"))
_KEY_SCHEMA = ListOf(_structure("KeySchemaElement", "AttributeName KeyType"))
_PROVISIONED = _structure("ProvisionedThroughput", ReadCapacityUnits=_LONG, WriteCapacityUnits=_LONG)
_ON_DEMAND = _structure("OnDemandThroughput", MaxReadRequestUnits=_LONG, MaxWriteRequestUnits=_LONG)
_WARM = _structure("WarmThroughput", ReadUnitsPerSecond=_LONG, WriteUnitsPerSecond=_LONG)
_UNITS: dict[str, Shape] = {
    "ProvisionedThroughput": _PROVISIONED,
    "OnDemandThroughput": _ON_DEMAND,
    "WarmThroughput": _WARM,
}
_INDEX: dict[str, Shape] = {
    "KeySchema": _KEY_SCHEMA,
    "Projection": _structure("Projection", "ProjectionType", NonKeyAttributes=_TEXTS),
}
_LOCAL_INDEXES = ListOf(_structure("LocalSecondaryIndex", "IndexName", **_INDEX))
_GLOBAL_INDEXES = ListOf(_structure("GlobalSecondaryIndex", "IndexName", **_INDEX, **_UNITS))
_INDEX_UPDATE = _structure(
    "GlobalSecondaryIndexUpdate",
    Create=_structure("CreateGlobalSecondaryIndexAction", "IndexName", **_INDEX, **_UNITS),
    Update=_structure("UpdateGlobalSecondaryIndexAction", "IndexName", **_UNITS),
    Delete=_structure("DeleteGlobalSecondaryIndexAction", "IndexName"),
)
_ENCRYPTION = _structure("SSESpecification", "SSEType KMSMasterKeyId", Enabled=_FLAG)
_TABLE = _UNITS | {
    "AttributeDefinitions": _DEFINITIONS,
    "StreamSpecification": _structure("StreamSpecification", "StreamViewType", StreamEnabled=_FLAG),
    "SSESpecification": _ENCRYPTION,
    "DeletionProtectionEnabled": _FLAG,
}
_TAGS = ListOf(_structure("Tag", "Key Value"))
_EXPIRY = _structure("TimeToLiveSpecification", "AttributeName", Enabled=_FLAG)
_RECOVERY = _structure(
    "PointInTimeRecoverySpecification", PointInTimeRecoveryEnabled=_FLAG, RecoveryPeriodInDays=_INTEGER
)
_OVERRIDES: dict[str, Shape] = {
    "GlobalSecondaryIndexOverride": _GLOBAL_INDEXES,
    "LocalSecondaryIndexOverride": _LOCAL_INDEXES,
    "ProvisionedThroughputOverride": _PROVISIONED,
    "OnDemandThroughputOverride": _ON_DEMAND,
    "SSESpecificationOverride": _ENCRYPTION,
}

REQUESTS = {
    "GetItem": _structure(
        "GetItemInput",
        "TableName ReturnConsumedCapacity ProjectionExpression",
        Key=_ITEM,
        ConsistentRead=_FLAG,
        AttributesToGet=_TEXTS,
        **_NAMES,
    ),
    "PutItem": _structure("PutItemInput", _WRITE, Item=_ITEM, **_PLACEHOLDERS, **_EXPECTED),
    "DeleteItem": _structure("DeleteItemInput", _WRITE, Key=_ITEM, **_PLACEHOLDERS, **_EXPECTED),
    "UpdateItem": _structure(
        "UpdateItemInput",
        f"{_WRITE} UpdateExpression",
        Key=_ITEM,
        AttributeUpdates=_UPDATES,
        **_PLACEHOLDERS,
        **_EXPECTED,
    ),
    "Query": _structure(
        "QueryInput",
        f"{_SELECTION} KeyConditionExpression",
        KeyConditions=_CONDITIONS,
        QueryFilter=_CONDITIONS,
        ScanIndexForward=_FLAG,
        **_PAGE,
    ),
    "Scan": _structure(
        "ScanInput", _SELECTION, ScanFilter=_CONDITIONS, Segment=_INTEGER, TotalSegments=_INTEGER, **_PAGE
    ),
    "BatchGetItem": _structure("BatchGetItemInput", "ReturnConsumedCapacity", RequestItems=MapOf(_KEYS_AND_ATTRIBUTES)),
    "BatchWriteItem": _structure(
        "BatchWriteItemInput",
        "ReturnConsumedCapacity ReturnItemCollectionMetrics",
        RequestItems=MapOf(ListOf(_WRITE_REQUEST)),
    ),
    "TransactGetItems": _structure(
        "TransactGetItemsInput", "ReturnConsumedCapacity", TransactItems=ListOf(_TRANSACT_GET)
    ),
    "TransactWriteItems": _structure(
        "TransactWriteItemsInput",
        "ReturnConsumedCapacity ReturnItemCollectionMetrics ClientRequestToken",
        TransactItems=ListOf(_TRANSACT_WRITE),
    ),
    "ExecuteStatement": _structure(
        "ExecuteStatementInput",
        "Statement NextToken ReturnConsumedCapacity ReturnValuesOnConditionCheckFailure",
        Parameters=ListOf(_VALUE),
        ConsistentRead=_FLAG,
        Limit=_INTEGER,
    ),
    "BatchExecuteStatement": _structure(
        "BatchExecuteStatementInput", "ReturnConsumedCapacity", Statements=ListOf(_BATCH_STATEMENT)
    ),
    "ExecuteTransaction": _structure(
        "ExecuteTransactionInput", "ClientRequestToken ReturnConsumedCapacity", TransactStatements=ListOf(_STATEMENT)
    ),
    "CreateTable": _structure(
        "CreateTableInput",
        "TableName BillingMode TableClass ResourcePolicy",
        KeySchema=_KEY_SCHEMA,
        LocalSecondaryIndexes=_LOCAL_INDEXES,
        GlobalSecondaryIndexes=_GLOBAL_INDEXES,
        Tags=_TAGS,
        **_TABLE,
    ),
    "UpdateTable": _structure(
        "UpdateTableInput",
        "TableName BillingMode TableClass",
        GlobalSecondaryIndexUpdates=ListOf(_INDEX_UPDATE),
        **_TABLE,
    ),
    **{
        operation: _structure(f"{operation}Input", "TableName")
        for operation in ("DeleteTable", "DescribeTable", "DescribeTimeToLive", "DescribeContinuousBackups")
    },
    "ListTables": _structure("ListTablesInput", "ExclusiveStartTableName", Limit=_INTEGER),
    "UpdateTimeToLive": _structure("UpdateTimeToLiveInput", "TableName", TimeToLiveSpecification=_EXPIRY),
    "UpdateContinuousBackups": _structure(
        "UpdateContinuousBackupsInput", "TableName", PointInTimeRecoverySpecification=_RECOVERY
    ),
    "RestoreTableToPointInTime": _structure(
        "RestoreTableToPointInTimeInput",
        "SourceTableArn SourceTableName TargetTableName BillingModeOverride",
        UseLatestRestorableTime=_FLAG,
        **_OVERRIDES,
    ),
    "CreateBackup": _structure("CreateBackupInput", "TableName BackupName"),
    "DescribeBackup": _structure("DescribeBackupInput", "BackupArn"),
    "DeleteBackup": _structure("DeleteBackupInput", "BackupArn"),
    "ListBackups": _structure("ListBackupsInput", "TableName ExclusiveStartBackupArn BackupType", Limit=_INTEGER),
    "RestoreTableFromBackup": _structure(
        "RestoreTableFromBackupInput", "TargetTableName BackupArn BillingModeOverride", **_OVERRIDES
    ),
    "TagResource": _structure("TagResourceInput", "ResourceArn", Tags=_TAGS),
    "UntagResource": _structure("UntagResourceInput", "ResourceArn", TagKeys=_TEXTS),
    "ListTagsOfResource": _structure("ListTagsOfResourceInput", "ResourceArn NextToken"),
    "ListStreams": _structure("ListStreamsInput", "TableName ExclusiveStartStreamArn", Limit=_INTEGER),
    "DescribeStream": _structure(
        "DescribeStreamInput",
        "StreamArn ExclusiveStartShardId",
        Limit=_INTEGER,
        ShardFilter=_structure("ShardFilter", "Type ShardId"),
    ),
    "GetShardIterator": _structure("GetShardIteratorInput", "StreamArn ShardId ShardIteratorType SequenceNumber"),
    "GetRecords": _structure("GetRecordsInput", "ShardIterator", Limit=_INTEGER),
}
"""The request of every operation that has one, without parameters that the engine refuses or ignores."""


def wrong_type(operation: str, request: Mapping[str, Any]) -> RequestRefused | None:
    """Return the fault of the first member of another JSON type, or None."""
    shape = REQUESTS.get(operation)
    try:
        if shape is not None:
            shape.check(request, 0)
    except RequestRefused as fault:
        return fault
    return None


def as_read(operation: str, request: Request) -> Request:
    """Return a request whose members of other JSON types are converted as far as DynamoDB can read them."""
    read: Request = REQUESTS[operation].read(request, 0)
    return read
