"""Backups as DynamoDB describes them: with the table as it was when they were made."""

from __future__ import annotations

from jobtable.embedded.descriptions import (
    Description,
    describe_encryption,
    describe_expiry,
    describe_key_and_projection,
    describe_limit,
    describe_stream,
    told_time,
)
from jobtable.embedded.names import backup_arn, table_arn
from jobtable.embedded.storage.backups import BackupRecord
from jobtable.embedded.storage.catalogue import IndexRecord, TableRecord, Throughput
from jobtable.store.tables import key_schema


def describe_backup(backup: BackupRecord, arn: str) -> Description:
    """The BackupDescription of a backup that a request has named by this ARN."""
    return {
        "BackupDetails": {**describe_details(backup), "BackupArn": arn},
        "SourceTableDetails": _source(backup),
        "SourceTableFeatureDetails": _features(backup.table),
    }


def describe_details(backup: BackupRecord) -> Description:
    """The BackupDetails of a backup."""
    expiry = {} if backup.expires is None else {"BackupExpiryDateTime": told_time(backup.expires)}
    return {
        "BackupArn": backup_arn(backup.table.name, backup.label),
        "BackupName": backup.name,
        "BackupSizeBytes": backup.size,
        "BackupStatus": "CREATING" if backup.is_creating else "AVAILABLE",
        "BackupType": "USER" if backup.expires is None else "SYSTEM",
        "BackupCreationDateTime": backup.created,
        **expiry,
    }


def summarise(backup: BackupRecord) -> Description:
    """The BackupSummary of a backup."""
    return {**_named(backup.table), **describe_details(backup)}


def _named(table: TableRecord) -> Description:
    return {"TableName": table.name, "TableId": table.uuid, "TableArn": table_arn(table.name)}


def _source(backup: BackupRecord) -> Description:
    table = backup.table
    return {
        **_named(table),
        "TableSizeBytes": backup.size,
        "KeySchema": key_schema((table.partition,), (table.sort,) if table.sort else ()),
        "TableCreationDateTime": told_time(table.created),
        "ProvisionedThroughput": _units(table.throughput),
        **describe_limit(table.on_demand),
        "ItemCount": backup.items,
        "BillingMode": "PAY_PER_REQUEST" if table.is_on_demand else "PROVISIONED",
    }


def _features(table: TableRecord) -> Description:
    """Only what the table had."""
    local = [describe_key_and_projection(index) for index in table.indexes if index.is_local]
    others = [_global_index(index) for index in table.indexes if not index.is_local]
    features: Description = {}
    if local:
        features["LocalSecondaryIndexes"] = local
    if others:
        features["GlobalSecondaryIndexes"] = others
    if table.stream is not None:
        features["StreamDescription"] = describe_stream(table.stream)
    if table.ttl_attribute is not None:
        features["TimeToLiveDescription"] = describe_expiry(table)
    return features | describe_encryption(table)


def _global_index(index: IndexRecord) -> Description:
    units = {"ProvisionedThroughput": _units(index.throughput)}
    return {**describe_key_and_projection(index), **units, **describe_limit(index.on_demand)}


def _units(throughput: Throughput) -> Description:
    return {"ReadCapacityUnits": throughput.read, "WriteCapacityUnits": throughput.write}
