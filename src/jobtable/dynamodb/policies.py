"""The IAM policies of a deployment: to read, to do everything with items and objects, and to work on jobs.

Each one allows what the package asks of AWS in that role, on the tables, indexes, streams and the bucket of one
template, and nothing beside them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from jobtable.model.entity import Entity
from jobtable.model.schema import EntitySchema
from jobtable.model.table import Table

Json: TypeAlias = dict[str, Any]

# Transactions are allowed by the actions that they are made of.
_READ_ITEMS = ("BatchGetItem", "GetItem", "Query")
_WRITE_ITEMS = ("BatchWriteItem", "ConditionCheckItem", "DeleteItem", "PutItem", "UpdateItem")
_DESCRIBE = ("DescribeContinuousBackups", "DescribeTable", "DescribeTimeToLive")
_READ_STREAMS = ("DescribeStream", "GetRecords", "GetShardIterator")


def policies(tables: Mapping[str, Table], bucket: str, of_servers: Iterable[type[Entity]]) -> dict[str, Json]:
    """The resources `ReadPolicy`, `FullPolicy` and `WorkerPolicy`, given tables and the bucket by their logical ids."""
    closed = _closed_items(tables, of_servers)
    read = [
        _items(tables, (*_READ_ITEMS, *_DESCRIBE)),
        *closed,
        *_streams(tables),
        _listing_of_tables(),
        _bucket(bucket, ("ListBucket",)),
        _objects(bucket, ("GetObject",)),
    ]
    full = [
        # Exports and migrations read whole tables.
        _items(tables, (*_READ_ITEMS, *_WRITE_ITEMS, *_DESCRIBE, "Scan")),
        *_streams(tables),
        _listing_of_tables(),
        _bucket(bucket, ("ListBucket", "ListBucketMultipartUploads")),
        _objects(bucket, ("AbortMultipartUpload", "DeleteObject", "GetObject", "PutObject")),
    ]
    work = [
        _items(tables, (*_READ_ITEMS, *_WRITE_ITEMS)),
        *closed,
        _bucket(bucket, ("ListBucket",)),
        _objects(bucket, ("AbortMultipartUpload", "DeleteObject", "GetObject", "PutObject")),
    ]
    return {
        "ReadPolicy": _policy("Read the items and objects of Jobtable.", read),
        "FullPolicy": _policy("Read and write the items and objects of Jobtable.", full),
        "WorkerPolicy": _policy("Claim jobs of Jobtable, and store what they make.", work),
    }


def attribute_of(logical_id: str, attribute: str) -> Json:
    """What a resource of the template is known by once it is there."""
    return {"Fn::GetAtt": [logical_id, attribute]}


def _policy(description: str, statements: Sequence[Json]) -> Json:
    document = {"Version": "2012-10-17", "Statement": list(statements)}
    return {
        "Type": "AWS::IAM::ManagedPolicy",
        "Properties": {"Description": description, "PolicyDocument": document},
    }


def _allow(sid: str, service: str, actions: Sequence[str], resource: Any) -> Json:
    allowed = [f"{service}:{action}" for action in sorted(actions)]
    return {"Sid": sid, "Effect": "Allow", "Action": allowed, "Resource": resource}


def _items(tables: Mapping[str, Table], actions: Sequence[str]) -> Json:
    places = [place for logical_id, table in tables.items() for place in _table_and_indexes(logical_id, table)]
    return _allow("Items", "dynamodb", actions, places)


def _table_and_indexes(logical_id: str, table: Table) -> list[Json]:
    indexes = [{"Fn::Sub": f"${{{logical_id}.Arn}}/index/*"}] if table.indexes else []
    return [attribute_of(logical_id, "Arn"), *indexes]


def _streams(tables: Mapping[str, Table]) -> list[Json]:
    streams = [attribute_of(logical_id, "StreamArn") for logical_id, table in tables.items() if table.stream]
    return [_allow("Streams", "dynamodb", _READ_STREAMS, streams)] if streams else []


def _listing_of_tables() -> Json:
    # AWS knows this action for all tables of an account or for none.
    return _allow("TableNames", "dynamodb", ("ListTables",), "*")


def _closed_items(tables: Mapping[str, Table], entities: Iterable[type[Entity]]) -> list[Json]:
    """Refusals of everything that names a partition of these entities, in their table or in one of its indexes."""
    closed: list[Json] = []
    by_name = {table.name: logical_id for logical_id, table in tables.items()}
    schemas = [entity.__schema__ for entity in entities]
    for name in dict.fromkeys(schema.table.name for schema in schemas if schema.table.name in by_name):
        own = [schema for schema in schemas if schema.table.name == name]
        logical_id = by_name[name]
        patterns = sorted({pattern for schema in own for pattern in _partitions(schema)})
        closed.append(
            {
                "Sid": f"ClosedIn{logical_id}",
                "Effect": "Deny",
                "Action": "dynamodb:*",
                "Resource": _table_and_indexes(logical_id, tables[logical_id]),
                "Condition": {"ForAnyValue:StringLike": {"dynamodb:LeadingKeys": patterns}},
            }
        )
    return closed


def _partitions(schema: EntitySchema) -> list[str]:
    """Patterns of the partitions that hold the entity, and the one that lists its type."""
    keys = [str(key.partition[0]).partition("{") for key in schema.keys]
    return [schema.type_name, *(start + ("*" if brace else "") for start, brace, _ in keys)]


def _bucket(bucket: str, actions: Sequence[str]) -> Json:
    return _allow("Bucket", "s3", actions, attribute_of(bucket, "Arn"))


def _objects(bucket: str, actions: Sequence[str]) -> Json:
    return _allow("Objects", "s3", actions, {"Fn::Sub": f"${{{bucket}.Arn}}/*"})
