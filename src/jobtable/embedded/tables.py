"""CreateTable, DescribeTable, ListTables, TimeToLive, DescribeLimits and DescribeEndpoints."""

from __future__ import annotations

from jobtable.embedded import streams, tags
from jobtable.embedded.descriptions import describe_expiry, describe_new, describe_table
from jobtable.embedded.request_checks import check_constraints
from jobtable.embedded.storage import Storage, Transaction
from jobtable.embedded.storage.table_catalogue import TableRecord
from jobtable.embedded.storage.table_changes import change_table, create_table, new_id
from jobtable.embedded.table_names import REGION, existing_table, table_of, whole_table
from jobtable.embedded.table_requests import new_table
from jobtable.embedded.throughput import MOST_UNITS
from jobtable.embedded.wordings import IN_USE
from jobtable.errors import RequestRefused, TableInUse
from jobtable.store.backend import Request, Response

_MOST_NAMES = 100
_MOST_ACCOUNT_UNITS = 80_000


def create(storage: Storage, request: Request) -> Response:
    """CreateTable; the table is usable at once."""
    wanted, view = new_table(request, tags.tags_of(request))

    def action(transaction: Transaction) -> Response:
        taken = transaction.record(wanted.name)
        if taken is not None and taken.is_creating:
            raise TableInUse(f"{IN_USE}Table is being used: {wanted.name}")
        if taken is not None:
            raise TableInUse(f"Table already exists: {wanted.name}")
        now = storage.now()
        since = now if wanted.is_on_demand else None
        record = wanted.model_copy(update={"id": new_id(transaction), "created": now, "on_demand_since": since})
        indexes = tuple(index.model_copy(update={"id": new_id(transaction)}) for index in wanted.indexes)
        record = record.model_copy(update={"indexes": indexes})
        if view is not None:
            record = streams.enabled(transaction, record, view, now)
        create_table(transaction, record)
        return {"TableDescription": describe_new(transaction, record, now)}

    return storage.write(action)


def describe(storage: Storage, request: Request) -> Response:
    """DescribeTable."""
    name = table_of(request)
    with storage.read() as view:
        return {"Table": describe_table(view, existing_table(view, name), storage.now())}


def list_names(storage: Storage, request: Request) -> Response:
    """ListTables: return names in order, at most 100 at a time."""
    check_constraints("ListTables", request)
    after = request.get("ExclusiveStartTableName") or ""
    wanted: int = request.get("Limit") or _MOST_NAMES
    with storage.read() as view:
        names = view.table_names(after, wanted + 1)
    if len(names) <= wanted:
        return {"TableNames": names}
    return {"TableNames": names[:wanted], "LastEvaluatedTableName": names[wanted - 1]}


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


def update_ttl(storage: Storage, request: Request) -> Response:
    """UpdateTimeToLive; from now on items expire by the attribute, including existing ones."""
    check_constraints("UpdateTimeToLive", request)
    name = table_of(request)
    specification = request["TimeToLiveSpecification"]
    attribute: str = specification["AttributeName"]
    is_enabled: bool = specification["Enabled"]

    def action(transaction: Transaction) -> Response:
        record = whole_table(transaction, name)
        _check_ttl_change(record, attribute, is_enabled)
        change = {"ttl_attribute": attribute if is_enabled else None}
        change_table(transaction, record, record.model_copy(update=change))
        return {"TimeToLiveSpecification": {"Enabled": is_enabled, "AttributeName": attribute}}

    return storage.write(action)


def describe_ttl(storage: Storage, request: Request) -> Response:
    """DescribeTimeToLive."""
    name = table_of(request)
    with storage.read() as view:
        record = whole_table(view, name)
    return {"TimeToLiveDescription": describe_expiry(record)}


def _check_ttl_change(record: TableRecord, attribute: str, is_enabled: bool) -> None:
    current = record.ttl_attribute
    if current is None and not is_enabled:
        raise RequestRefused("TimeToLive is already disabled")
    if current is not None and current != attribute:
        raise RequestRefused(f"TimeToLive is active on a different AttributeName: current AttributeName is {current}")
    if current is not None and is_enabled:
        raise RequestRefused("TimeToLive is already enabled")
