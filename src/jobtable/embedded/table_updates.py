"""What UpdateTable makes of a table."""

from __future__ import annotations

from typing import Any

from jobtable.embedded import streams
from jobtable.embedded.key_schemas import attribute_definitions, maps, text
from jobtable.embedded.ordering import KeyType
from jobtable.embedded.requests import expect_type
from jobtable.embedded.storage import Transaction
from jobtable.embedded.storage.catalogue import IndexRecord, TableRecord, Throughput
from jobtable.embedded.storage.definitions import new_id
from jobtable.embedded.table_requests import (
    NewIndex,
    billing_mode,
    check_index_counts,
    encryption,
    flag,
    index_throughput,
    new_global_index,
    on_demand_limit,
    stream_view,
    table_class,
    table_throughput,
)
from jobtable.errors import RequestRefused, TableNotFound, request_error
from jobtable.store.backend import Request

_PARAMETERS: dict[str, type] = {
    "ProvisionedThroughput": dict,
    "BillingMode": str,
    "OnDemandThroughput": dict,
    "DeletionProtectionEnabled": bool,
    "StreamSpecification": dict,
    "SSESpecification": dict,
    "TableClass": str,
    "GlobalSecondaryIndexUpdates": list,
}
_NOT_SUPPORTED = ("ReplicaUpdates", "GlobalTableWitnessUpdates", "MultiRegionConsistency", "WarmThroughput")
_ACTIONS = ("Create", "Delete", "Update")


def check_types(request: Request) -> None:
    """RequestRefused (SerializationException) if a member has the wrong JSON type, which is seen before the table."""
    for name, expected in _PARAMETERS.items():
        if request.get(name) is not None:
            expect_type(request[name], expected)


def updated(transaction: Transaction, record: TableRecord, request: Request, now: float) -> TableRecord:
    """The table as UpdateTable asks for it, or RequestRefused."""
    refused = [name for name in _NOT_SUPPORTED if request.get(name)]
    if refused:
        raise RequestRefused(f"This engine has one copy of a table, so it does not know {', '.join(refused)}")
    if not any(request.get(name) not in (None, []) for name in _PARAMETERS):
        raise RequestRefused("Nothing to update")
    changes = _index_changes(request)
    record = _with_billing(record, request, now)
    for action, change in changes:
        record = _with_index_change(transaction, record, request, action, change, now)
    _check_index_throughput(record)
    return _with_stream(transaction, _with_options(record, request), request, now)


def index_record(transaction: Transaction, index: NewIndex) -> IndexRecord:
    """What is stored about a new index."""
    return IndexRecord(
        id=new_id(transaction),
        name=index.name,
        is_local=index.is_local,
        partition=index.key[0],
        sort=index.key[1],
        projection=index.projection,
        included=index.included,
        throughput=index.throughput,
        on_demand=index.on_demand,
    )


def _index_changes(request: Request) -> list[tuple[str, dict[str, Any]]]:
    changes: list[tuple[str, dict[str, Any]]] = []
    for update in maps(request, "GlobalSecondaryIndexUpdates"):
        given = [(action, update[action]) for action in _ACTIONS if update.get(action) is not None]
        if not given:
            raise RequestRefused("Update global secondary index action is null")
        for _, change in given:
            expect_type(change, dict)
        earlier = [change.get("IndexName") for _, change in changes]
        if any(change.get("IndexName") in earlier for _, change in given):
            raise RequestRefused("Only one global secondary index update per index is allowed simultaneously.")
        changes += given
    if sum(action != "Update" for action, _ in changes) > 1:
        raise request_error(
            "LimitExceededException",
            "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table",
        )
    return changes


def _with_billing(record: TableRecord, request: Request, now: float) -> TableRecord:
    mode = billing_mode(request)
    if mode == "PAY_PER_REQUEST":
        if record.is_on_demand:
            return record
        return _replaced(record, is_on_demand=True, on_demand_since=now, throughput=Throughput())
    if mode is None and request.get("ProvisionedThroughput") is None:
        return record
    wanted = table_throughput(request)
    if mode is None and record.is_on_demand:
        return record
    if not record.is_on_demand and (wanted.read, wanted.write) == (record.throughput.read, record.throughput.write):
        raise RequestRefused("The requested throughput value equals the current value")
    return _replaced(record, is_on_demand=False, throughput=_changed(record.throughput, wanted, now))


def _with_index_change(
    transaction: Transaction, record: TableRecord, request: Request, action: str, change: dict[str, Any], now: float
) -> TableRecord:
    if action == "Create":
        return _with_new_index(transaction, record, request, change)
    name = text(change, "IndexName")
    if not name:
        raise RequestRefused("Invalid global secondary index name")
    index = record.index(name)
    if index is None or index.is_local:
        raise TableNotFound("Requested resource not found")
    others = tuple(other for other in record.indexes if other is not index)
    if action == "Delete":
        return _replaced(record, indexes=others, attributes=_used_attributes(record, others))
    wanted = index_throughput(change)
    if (wanted.read, wanted.write) == (index.throughput.read, index.throughput.write):
        raise RequestRefused("The requested throughput value equals the current value")
    throughput = _changed(index.throughput, wanted, now)
    return _replaced(record, indexes=(*others, index.model_copy(update={"throughput": throughput})))


def _with_new_index(
    transaction: Transaction, record: TableRecord, request: Request, change: dict[str, Any]
) -> TableRecord:
    defined = attribute_definitions(request)
    if any(record.attributes.get(name, type_) != type_ for name, type_ in defined.items()):
        raise RequestRefused("invalid attribute, SchemaElement redefined should be of same type as previously defined")
    attributes = record.attributes | defined
    updates = maps(request, "GlobalSecondaryIndexUpdates")
    number = next(number for number, one in enumerate(updates, start=1) if one.get("Create") is change)
    path = f"globalSecondaryIndexUpdates.{number}.member.create."
    index = new_global_index(change, path, attributes, is_on_demand=record.is_on_demand)
    if record.index(index.name) is not None:
        raise RequestRefused("Attempting to create an index which already exists")
    indexes = (*record.indexes, index_record(transaction, index))
    check_index_counts(sum(not one.is_local for one in indexes), sum(len(one.included) for one in indexes))
    with_index = _replaced(record, indexes=indexes, attributes=attributes)
    return _replaced(with_index, attributes=_used_attributes(with_index, indexes))


def _used_attributes(record: TableRecord, indexes: tuple[IndexRecord, ...]) -> dict[str, KeyType]:
    used = {record.partition, record.sort}
    for index in indexes:
        used.update(index.partition, index.sort)
    return {name: type_ for name, type_ in record.attributes.items() if name in used}


def _check_index_throughput(record: TableRecord) -> None:
    if not record.is_on_demand and any(not one.is_local and not one.throughput.read for one in record.indexes):
        raise RequestRefused("No provisioned throughput specified for the global secondary index")


def _with_options(record: TableRecord, request: Request) -> TableRecord:
    protection = flag(request, "DeletionProtectionEnabled")
    return _replaced(
        record,
        is_protected=record.is_protected if protection is None else protection,
        table_class=table_class(request) or record.table_class,
        on_demand=on_demand_limit(request) or record.on_demand,
        encryption=record.encryption if request.get("SSESpecification") is None else encryption(request),
    )


def _with_stream(transaction: Transaction, record: TableRecord, request: Request, now: float) -> TableRecord:
    if request.get("StreamSpecification") is None:
        return record
    view = stream_view(request)
    if view is None:
        if record.stream is None:
            raise RequestRefused("Table has no stream to disable")
        return streams.disabled(transaction, record, now)
    if record.stream is not None:
        raise RequestRefused("Table already has an enabled stream")
    return streams.enabled(transaction, record, view, now)


def _changed(before: Throughput, after: Throughput, now: float) -> Throughput:
    is_more = after.read > before.read or after.write > before.write
    is_less = after.read < before.read or after.write < before.write
    return Throughput(
        read=after.read,
        write=after.write,
        increased=now if is_more and before.read else before.increased,
        decreased=now if is_less and before.read else before.decreased,
    )


def _replaced(record: TableRecord, **changes: Any) -> TableRecord:
    return record.model_copy(update=changes)
