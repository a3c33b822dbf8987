"""A deployment as a CloudFormation template: the declared tables, a bucket for objects, and policies for both."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from jobtable.dynamodb.policies import Json, attribute_of, policies
from jobtable.errors import DefinitionError
from jobtable.model.entity import Entity
from jobtable.model.table import NAME_PATTERN, Table
from jobtable.store.tables import create_request

BUCKET = "ObjectsBucket"
_KEEP_REPLACED_OBJECTS_DAYS = 30
_KEEP_UNFINISHED_UPLOADS_DAYS = 7
_KEPT = {"DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain"}


def cloudformation_template(
    tables: Iterable[Table], *, prefix: str = "", of_servers: Iterable[type[Entity]] = ()
) -> Json:
    """The template as it is written to a file: tables as `store.tables.create` makes them, and protected from deletion.

    `prefix` stands before every table's name, as in `dynamodb://REGION?prefix=NAME`. Items of the entities in
    `of_servers` can neither be read nor written with the policies of readers and workers.
    """
    by_id = _by_logical_id(tables)
    resources = {logical_id: table_resource(table, prefix) for logical_id, table in by_id.items()}
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": "Tables, bucket and policies of Jobtable.",
        "Resources": {**resources, **_bucket(), **policies(by_id, BUCKET, of_servers)},
        "Outputs": _outputs(prefix),
    }


def _by_logical_id(tables: Iterable[Table]) -> dict[str, Table]:
    """The tables under names that CloudFormation takes: letters and digits."""
    by_id: dict[str, Table] = {}
    for table in tables:
        words = re.findall(r"[A-Za-z0-9]+", table.name)
        logical_id = "".join(word[0].upper() + word[1:] for word in words) + "Table"
        if logical_id in by_id:
            raise DefinitionError(
                f"tables {by_id[logical_id].name} and {table.name} would both be {logical_id} in a template; "
                "put them into two templates"
            )
        by_id[logical_id] = table
    return by_id


def table_resource(table: Table, prefix: str) -> Json:
    """Return a table as a resource of a template: kept and protected when its stack is deleted."""
    name = prefix + table.name
    if not NAME_PATTERN.fullmatch(name):
        raise DefinitionError(f"{name!r} is not a valid table name; use 3 to 255 of the characters a-z A-Z 0-9 _ . -")
    properties = create_request(table, name)
    if table.stream:
        # What is there is enabled: CloudFormation has no member for it.
        del properties["StreamSpecification"]["StreamEnabled"]
    if table.ttl is not None:
        properties["TimeToLiveSpecification"] = {"AttributeName": table.ttl, "Enabled": True}
    if table.recovery:
        properties["PointInTimeRecoverySpecification"] = {"PointInTimeRecoveryEnabled": True}
    properties["DeletionProtectionEnabled"] = True
    return {"Type": "AWS::DynamoDB::Table", **_KEPT, "Properties": properties}


def _bucket() -> dict[str, Json]:
    """A private bucket, and a policy by which nobody reaches it without TLS."""
    properties = {
        "BucketEncryption": {
            "ServerSideEncryptionConfiguration": [{"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]
        },
        "OwnershipControls": {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]},
        "PublicAccessBlockConfiguration": {
            "BlockPublicAcls": True,
            "BlockPublicPolicy": True,
            "IgnorePublicAcls": True,
            "RestrictPublicBuckets": True,
        },
        "VersioningConfiguration": {"Status": "Enabled"},
        "LifecycleConfiguration": {"Rules": [_lifecycle()]},
    }
    refusal = {
        "Sid": "OnlyWithTLS",
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": [attribute_of(BUCKET, "Arn"), {"Fn::Sub": f"${{{BUCKET}.Arn}}/*"}],
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    document = {"Version": "2012-10-17", "Statement": [refusal]}
    return {
        BUCKET: {"Type": "AWS::S3::Bucket", **_KEPT, "Properties": properties},
        "ObjectsBucketPolicy": {
            "Type": "AWS::S3::BucketPolicy",
            "Properties": {"Bucket": {"Ref": BUCKET}, "PolicyDocument": document},
        },
    }


def _lifecycle() -> Json:
    return {
        "Id": "RemoveRemains",
        "Status": "Enabled",
        "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": _KEEP_UNFINISHED_UPLOADS_DAYS},
        "NoncurrentVersionExpiration": {"NoncurrentDays": _KEEP_REPLACED_OBJECTS_DAYS},
        "ExpiredObjectDeleteMarker": True,
    }


def _outputs(prefix: str) -> Mapping[str, Any]:
    """What the settings and the roles of a deployment need to know."""
    store = "dynamodb://${AWS::Region}" + (f"?prefix={prefix}" if prefix else "")
    objects = f"s3://${{{BUCKET}}}?region=${{AWS::Region}}"
    return {
        "Store": {"Description": "The setting store.", "Value": {"Fn::Sub": store}},
        "Objects": {"Description": "The setting objects.", "Value": {"Fn::Sub": objects}},
        "ReadPolicyArn": {"Description": "For read-only access.", "Value": {"Ref": "ReadPolicy"}},
        "FullPolicyArn": {"Description": "For servers.", "Value": {"Ref": "FullPolicy"}},
        "WorkerPolicyArn": {"Description": "For workers.", "Value": {"Ref": "WorkerPolicy"}},
    }
