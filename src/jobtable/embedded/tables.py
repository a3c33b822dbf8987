"""CreateTable, DescribeTable, ListTables, UpdateTable, DeleteTable, and what the service says of itself."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import TypeAlias

from jobtable.embedded import backups, expiry, recovery, streams, tags
from jobtable.embedded.constraints import check_constraints
from jobtable.embedded.descriptions import describe_deleted, describe_new, describe_table, describe_updated
from jobtable.embedded.names import REGION, existing_table, table_of, whole_table
from jobtable.embedded.storage import Storage, Transaction, restoring
from jobtable.embedded.storage.catalogue import TableRecord
from jobtable.embedded.storage.definitions import change_table, create_table, drop_table, new_id
from jobtable.embedded.table_requests import new_table
from jobtable.embedded.table_update_requests import check_request
from jobtable.embedded.table_updates import index_record, updated
from jobtable.embedded.warm_throughput import MOST_UNITS
from jobtable.embedded.wordings import IN_USE
from jobtable.errors import RequestRefused, TableInUse
from jobtable.store.backend import Request, Response

Handler: TypeAlias = Callable[[Storage, Request], Response]
"""One operation: it may change the storage, and gives the response or raises RequestError."""

_MOST_NAMES = 100
_MOST_ACCOUNT_UNITS = 80_000


def create(storage: Storage, request: Request) -> Response:
    """CreateTable; the table is usable at once."""
    wanted = new_table(request, tags.tags_of(request, "Tags"))

    def action(transaction: Transaction) -> Response:
        _refuse_taken_name(transaction, wanted.name)
        now = storage.now()
        record = TableRecord(
            id=new_id(transaction),
            uuid=str(uuid.uuid4()),
            name=wanted.name,
            created=now,
            attributes=wanted.attributes,
            partition=wanted.key[0][0],
            sort=wanted.key[1][0] if wanted.key[1] else None,
            indexes=tuple(index_record(transaction, index) for index in wanted.indexes),
            is_on_demand=wanted.is_on_demand,
            on_demand_since=now if wanted.is_on_demand else None,
            throughput=wanted.throughput,
            on_demand=wanted.on_demand,
            warm=wanted.warm,
            table_class=wanted.table_class,
            is_protected=wanted.is_protected,
            encryption=wanted.encryption,
            tags=wanted.tags,
        )
        if wanted.view is not None:
            record = streams.enabled(transaction, record, wanted.view, now)
        create_table(transaction, record)
        return {"TableDescription": describe_new(transaction, record, now)}

    return storage.write(action)


def _refuse_taken_name(transaction: Transaction, name: str) -> None:
    taken = transaction.record(name)
    if taken is not None:
        raise TableInUse(
            f"{IN_USE}Table is being used: {name}" if taken.is_creating else f"Table already exists: {name}"
        )


def describe(storage: Storage, request: Request) -> Response:
    """DescribeTable."""
    name = table_of(request)
    with storage.read() as view:
        return {"Table": describe_table(view, existing_table(view, name), storage.now())}


def list_names(storage: Storage, request: Request) -> Response:
    """ListTables: names in order, at most 100 at a time."""
    check_constraints("ListTables", request)
    after = request.get("ExclusiveStartTableName") or ""
    wanted: int = request.get("Limit") or _MOST_NAMES
    with storage.read() as view:
        names = view.table_names(after, wanted + 1)
    if len(names) <= wanted:
        return {"TableNames": names}
    return {"TableNames": names[:wanted], "LastEvaluatedTableName": names[wanted - 1]}


def update(storage: Storage, request: Request) -> Response:
    """UpdateTable; all changes are done when it returns, but a new index of a large table is filled behind it."""
    check_request(request)
    name = table_of(request)

    def action(transaction: Transaction) -> Response:
        before = whole_table(transaction, name)
        now = storage.now()
        after = change_table(transaction, before, updated(transaction, before, request, now))
        return {"TableDescription": describe_updated(transaction, after, request, now)}

    return storage.write(action)


def delete(storage: Storage, request: Request) -> Response:
    """DeleteTable; its stream can be read for another day, and what could be recovered stays as a backup."""
    name = table_of(request)

    def action(transaction: Transaction) -> Response:
        record = existing_table(transaction, name)
        if record.is_creating:
            raise TableInUse(f"{IN_USE}Table is being created: {name}")
        if record.is_protected:
            raise RequestRefused(
                "Resource cannot be deleted as it is currently protected against deletion. Disable deletion"
                " protection first."
            )
        if any(index.is_filling for index in record.indexes):
            raise TableInUse(f"{IN_USE}Cannot delete table while indexes are being created, updated, or deleted.")
        targets = restoring.targets_of(transaction, record.id)
        if targets:
            raise TableInUse(f"{IN_USE}Table is being restored: {name}, to {', '.join(targets)}")
        now = storage.now()
        description = describe_deleted(transaction, record, now)
        if record.stream is not None:
            streams.disabled(transaction, record, now)
        if record.recovery is not None:
            backups.keep_deleted(transaction, record, now)
        keeps_items = record.recovery is not None or restoring.is_source(transaction, record.id)
        drop_table(transaction, record, keeps_items=keeps_items)
        return {"TableDescription": description}

    return storage.write(action)


def describe_limits(storage: Storage, request: Request) -> Response:
    """DescribeLimits: DynamoDB's defaults; the engine does not throttle."""
    return {
        "AccountMaxReadCapacityUnits": _MOST_ACCOUNT_UNITS,
        "AccountMaxWriteCapacityUnits": _MOST_ACCOUNT_UNITS,
        "TableMaxReadCapacityUnits": MOST_UNITS,
        "TableMaxWriteCapacityUnits": MOST_UNITS,
    }


def describe_endpoints(storage: Storage, request: Request) -> Response:
    """DescribeEndpoints."""
    return {"Endpoints": [{"Address": f"dynamodb.{REGION}.amazonaws.com", "CachePeriodInMinutes": 1440}]}


OPERATIONS: dict[str, Handler] = {
    "CreateTable": create,
    "DescribeTable": describe,
    "ListTables": list_names,
    "UpdateTable": update,
    "DeleteTable": delete,
    "DescribeLimits": describe_limits,
    "DescribeEndpoints": describe_endpoints,
    "UpdateTimeToLive": expiry.update,
    "DescribeTimeToLive": expiry.describe,
    "TagResource": tags.tag,
    "UntagResource": tags.untag,
    "ListTagsOfResource": tags.list_tags,
    "DescribeContinuousBackups": recovery.describe,
    "UpdateContinuousBackups": recovery.update,
    "RestoreTableToPointInTime": recovery.restore,
    "CreateBackup": backups.create,
    "DescribeBackup": backups.describe,
    "ListBackups": backups.list_backups,
    "DeleteBackup": backups.delete,
    "RestoreTableFromBackup": backups.restore,
    "ListStreams": streams.list_streams,
    "DescribeStream": streams.describe,
    "GetShardIterator": streams.iterator,
    "GetRecords": streams.records,
}
"""Every operation that is about tables, streams or backups rather than items."""
