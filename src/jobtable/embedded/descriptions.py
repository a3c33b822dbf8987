"""Tables as DynamoDB describes them."""

from __future__ import annotations

from typing import Any

from jobtable.embedded.storage import View
from jobtable.embedded.storage.table_catalogue import (
    IndexRecord,
    OnDemandLimit,
    StreamRecord,
    TableRecord,
    Throughput,
    WarmThroughput,
)
from jobtable.embedded.table_names import index_arn, stream_arn, table_arn
from jobtable.embedded.throughput import ready_for, removed_limits
from jobtable.store.backend import Request
from jobtable.store.tables import key_schema

Description = dict[str, Any]

_NOT_TOLD_OF_DELETED = (
    "AttributeDefinitions",
    "CreationDateTime",
    "GlobalSecondaryIndexes",
    "KeySchema",
    "LocalSecondaryIndexes",
)


def told_time(moment: float) -> float:
    """Round a time to the millisecond, as DynamoDB does."""
    # As a float, a whole millisecond may be slightly less, so it is rounded to microseconds first.
    return round(moment * 1_000_000) // 1000 / 1000


def describe_table(view: View, record: TableRecord, now: float) -> Description:
    counts = view.counters([record.id, *(index.id for index in record.indexes)])
    items, size = counts[record.id]
    return {
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": type_} for name, type_ in sorted(record.attributes.items())
        ],
        "TableName": record.name,
        "KeySchema": key_schema((record.partition,), (record.sort,) if record.sort else ()),
        "TableStatus": "CREATING" if record.is_creating else "ACTIVE",
        "CreationDateTime": told_time(record.created),
        "ProvisionedThroughput": _throughput(record.throughput, now),
        "TableSizeBytes": size,
        "ItemCount": items,
        "TableArn": table_arn(record.name),
        "TableId": record.uuid,
        **_billing(record),
        **_warm(ready_for(record.warm, record.throughput, is_on_demand=record.is_on_demand)),
        **_indexes(record, counts, now),
        **_stream(record),
        **_options(record),
        "DeletionProtectionEnabled": record.is_protected,
    }


def describe_new(view: View, record: TableRecord, now: float) -> Description:
    """Describe a table that is being created, without what DynamoDB reports only later."""
    description = describe_table(view, record, now)
    description.get("BillingModeSummary", {}).pop("LastUpdateToPayPerRequestDateTime", None)
    if record.warm is None:
        del description["WarmThroughput"]
    for index in description.get("GlobalSecondaryIndexes", ()):
        del index["WarmThroughput"]
    return description


def describe_restored(view: View, record: TableRecord, now: float) -> Description:
    """Describe a table whose restore has just begun as CREATING, even if it is complete already."""
    return describe_table(view, record.model_copy(update={"is_creating": True}), now)


def describe_updated(view: View, record: TableRecord, request: Request, now: float) -> Description:
    """Describe a table that a request has just changed, with the limits that it removed."""
    description = describe_table(view, record, now)
    removed = removed_limits(request)
    if removed:
        description["OnDemandThroughput"] = description.get("OnDemandThroughput", {}) | removed
    return description


def describe_deleted(view: View, record: TableRecord, now: float) -> Description:
    """Describe a table that is being deleted, without its keys and indexes."""
    description = describe_table(view, record, now)
    for name in _NOT_TOLD_OF_DELETED:
        description.pop(name, None)
    return description | {"TableStatus": "DELETING"}


def describe_expiry(record: TableRecord) -> Description:
    if record.ttl_attribute is None:
        return {"TimeToLiveStatus": "DISABLED"}
    status = "ENABLING" if record.is_filling_expiry else "ENABLED"
    return {"TimeToLiveStatus": status, "AttributeName": record.ttl_attribute}


def describe_stream(stream: StreamRecord) -> Description:
    return {"StreamEnabled": True, "StreamViewType": stream.view}


def describe_encryption(record: TableRecord) -> Description:
    """Return the SSEDescription as a member; nothing if the key is DynamoDB's own."""
    return {} if record.encryption is None else {"SSEDescription": {"Status": "ENABLED", **record.encryption}}


def describe_limit(limit: OnDemandLimit | None) -> Description:
    """Return the OnDemandThroughput of a table or index as a member; nothing without a limit."""
    if limit is None:
        return {}
    units = {"MaxReadRequestUnits": limit.read, "MaxWriteRequestUnits": limit.write}
    return {"OnDemandThroughput": {name: value for name, value in units.items() if value is not None}}


def describe_key_and_projection(index: IndexRecord) -> Description:
    """Describe the name, key and projection of an index."""
    included = {"NonKeyAttributes": sorted(index.included)} if index.included else {}
    return {
        "IndexName": index.name,
        "KeySchema": key_schema(index.partition, index.sort),
        "Projection": {"ProjectionType": index.projection, **included},
    }


def _throughput(throughput: Throughput, now: float) -> Description:
    times = {"LastIncreaseDateTime": throughput.increased, "LastDecreaseDateTime": throughput.decreased}
    return {
        **{name: told_time(time) for name, time in times.items() if time is not None},
        "NumberOfDecreasesToday": throughput.decreases_on_day_of(now),
        "ReadCapacityUnits": throughput.read,
        "WriteCapacityUnits": throughput.write,
    }


def _billing(record: TableRecord) -> Description:
    if record.on_demand_since is None:
        return {}
    mode = "PAY_PER_REQUEST" if record.is_on_demand else "PROVISIONED"
    summary = {"BillingMode": mode, "LastUpdateToPayPerRequestDateTime": told_time(record.on_demand_since)}
    return {"BillingModeSummary": summary, **describe_limit(record.on_demand)}


def _warm(warm: WarmThroughput) -> Description:
    units = {"ReadUnitsPerSecond": warm.read, "WriteUnitsPerSecond": warm.write}
    return {"WarmThroughput": {**units, "Status": "ACTIVE"}}


def _indexes(record: TableRecord, counts: dict[int, tuple[int, int]], now: float) -> Description:
    local = [_index(record, index, counts, now) for index in record.indexes if index.is_local]
    others = [_index(record, index, counts, now) for index in record.indexes if not index.is_local]
    return ({"LocalSecondaryIndexes": local} if local else {}) | ({"GlobalSecondaryIndexes": others} if others else {})


def _index(record: TableRecord, index: IndexRecord, counts: dict[int, tuple[int, int]], now: float) -> Description:
    items, size = counts[index.id]
    description = describe_key_and_projection(index)
    if not index.is_local:
        status: Description = {"IndexStatus": "ACTIVE"}
        if record.is_creating:  # the index of a table that is being restored has no status yet
            status = {}
        elif index.is_filling:
            status = {"IndexStatus": "CREATING", "Backfilling": True}
        description |= {
            **status,
            "ProvisionedThroughput": _throughput(index.throughput, now),
            **describe_limit(index.on_demand),
            **_warm(ready_for(index.warm, index.throughput, is_on_demand=record.is_on_demand)),
        }
    return description | {"IndexSizeBytes": size, "ItemCount": items, "IndexArn": index_arn(record.name, index.name)}


def _stream(record: TableRecord) -> Description:
    description: Description = {}
    if record.stream is not None:
        description["StreamSpecification"] = describe_stream(record.stream)
    if record.latest_stream_label is not None:
        description["LatestStreamLabel"] = record.latest_stream_label
        description["LatestStreamArn"] = stream_arn(record.name, record.latest_stream_label)
    return description


def _options(record: TableRecord) -> Description:
    description: Description = {}
    if record.table_class is not None:
        summary: Description = {"TableClass": record.table_class}
        if record.table_class_changed is not None:
            summary["LastUpdateDateTime"] = told_time(record.table_class_changed)
        description["TableClassSummary"] = summary
    description |= describe_encryption(record)
    if record.restored_from is not None and record.is_creating:
        description["RestoreSummary"] = {**record.restored_from, "RestoreInProgress": True}
    return description
