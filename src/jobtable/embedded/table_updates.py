"""UpdateTable and DeleteTable."""

from __future__ import annotations

from typing import Any, TypeVar

from jobtable.embedded import backups, streams, table_requests
from jobtable.embedded import throughput as capacity
from jobtable.embedded.descriptions import describe_deleted, describe_updated
from jobtable.embedded.storage import Storage, Transaction, restoring
from jobtable.embedded.storage.table_catalogue import CatalogueRecord, IndexRecord, TableRecord, Throughput
from jobtable.embedded.storage.table_changes import change_table, drop_table, new_id
from jobtable.embedded.table_names import KeySchema, attribute_definitions, existing_table, table_of, whole_table
from jobtable.embedded.table_schema import KeyType
from jobtable.embedded.wordings import IN_USE, invalid
from jobtable.errors import RequestRefused, TableInUse, TableNotFound, request_error
from jobtable.store.backend import Request, Response

R = TypeVar("R", bound=CatalogueRecord)


def update(storage: Storage, request: Request) -> Response:
    """UpdateTable; all changes are done when it returns, but a new index of a large table is filled afterwards."""
    table_requests.check_request(request)
    name = table_of(request)

    def action(transaction: Transaction) -> Response:
        before = whole_table(transaction, name)
        now = storage.now()
        after = change_table(transaction, before, _updated(transaction, before, request, now))
        return {"TableDescription": describe_updated(transaction, after, request, now)}

    return storage.write(action)


def delete(storage: Storage, request: Request) -> Response:
    """DeleteTable; its stream stays readable for another day, and recoverable items stay as a backup."""
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


def _updated(transaction: Transaction, record: TableRecord, request: Request, now: float) -> TableRecord:
    """Return the table as UpdateTable asks for it, or raise RequestRefused."""
    changes = table_requests.index_changes(request)
    record = _with_what_it_is_ready_for(record)
    record = _with_billing(record, request, now)
    for change in changes:
        record = _with_index_change(transaction, record, request, change, now)
    if not record.is_on_demand:
        for index in record.indexes:
            if not index.is_local and not index.throughput.read:
                raise invalid(f"ProvisionedThroughput must be specified for index: {index.name}")
    return _with_stream(transaction, _with_options(record, request, now), request, now)


def _with_what_it_is_ready_for(record: TableRecord) -> TableRecord:
    """Return the table with its warm throughput and that of its indexes, which changes never decrease."""
    is_on_demand = record.is_on_demand
    indexes = tuple(
        _replaced(
            one, warm=None if one.is_local else capacity.ready_for(one.warm, one.throughput, is_on_demand=is_on_demand)
        )
        for one in record.indexes
    )
    warm = capacity.ready_for(record.warm, record.throughput, is_on_demand=is_on_demand)
    return _replaced(record, warm=warm, indexes=indexes)


def _with_billing(record: TableRecord, request: Request, now: float) -> TableRecord:
    mode = request.get("BillingMode")
    if mode == "PAY_PER_REQUEST" or (mode is None and record.is_on_demand):
        capacity.refuse_table_throughput(request)
        if record.is_on_demand:
            return record
        # The service counts this as a decrease of indexes, but not of the table.
        nothing = Throughput()
        indexes = tuple(_replaced(one, throughput=_changed(one.throughput, nothing, now)) for one in record.indexes)
        throughput = record.throughput.model_copy(update={"read": 0, "write": 0})
        return _replaced(record, is_on_demand=True, on_demand_since=now, throughput=throughput, indexes=indexes)
    if mode is None and request.get("ProvisionedThroughput") is None:
        return record
    wanted = capacity.given_throughput(request)
    throughput = _changed(record.throughput, wanted, now)
    if record.is_on_demand:
        indexes = tuple(_replaced(index, on_demand=None) for index in record.indexes)
        return _replaced(record, is_on_demand=False, throughput=throughput, on_demand=None, indexes=indexes)
    _check_difference(record.throughput, wanted, "the table")
    return _replaced(record, throughput=throughput)


def _with_index_change(
    transaction: Transaction, record: TableRecord, request: Request, change: table_requests.IndexAction, now: float
) -> TableRecord:
    if change.action != "Update" and any(
        index.is_filling for index in record.indexes if index.name != change.content["IndexName"]
    ):
        raise table_requests.too_many_at_once()
    if change.action == "Create":
        return _with_new_index(transaction, record, request, change)
    name = change.content["IndexName"]
    index = record.index(name)
    if index is None:
        raise TableNotFound(f"Requested resource not found: Index {name} for table {record.name}")
    if index.is_local:
        raise RequestRefused(f"Cannot {change.action.lower()} an index that is not a GlobalSecondaryIndex: {name}")
    others = tuple(other for other in record.indexes if other is not index)
    if change.action == "Delete":
        return _replaced(record, indexes=others, attributes=_used_attributes(record, others))
    changed = _updated_index(index, change, now, is_on_demand=record.is_on_demand)
    return _replaced(record, indexes=tuple(changed if one is index else one for one in record.indexes))


def _updated_index(
    index: IndexRecord, change: table_requests.IndexAction, now: float, *, is_on_demand: bool
) -> IndexRecord:
    given = change.content
    if not is_on_demand:
        capacity.refuse_on_demand_limit(given)
    before = capacity.ready_for(index.warm, index.throughput, is_on_demand=is_on_demand)
    options = {
        "warm": capacity.changed_warm_throughput(given, before),
        "on_demand": capacity.on_demand_limit(given, index.on_demand),
    }
    is_said = any(given.get(name) for name in ("WarmThroughput", "OnDemandThroughput"))
    if is_said and given.get("ProvisionedThroughput") is None:
        return _replaced(index, **options)
    if is_on_demand:
        raise invalid(
            f"The only Updates for index: {index.name} when TableThroughputMode is PAY_PER_REQUEST can be to"
            " OnDemandThroughput, WarmThroughput"
        )
    _check_units_of_index(given, is_on_demand=False)
    wanted = capacity.given_throughput(given)
    _check_difference(index.throughput, wanted, f"index {index.name}")
    return _replaced(index, **options, throughput=_changed(index.throughput, wanted, now))


def _check_units_of_index(given: Request, *, is_on_demand: bool) -> None:
    has_units = given.get("ProvisionedThroughput") is not None
    if has_units and is_on_demand:
        raise invalid(
            f"Neither ReadCapacityUnits nor WriteCapacityUnits can be specified for index:"
            f" {given['IndexName']} when BillingMode is PAY_PER_REQUEST"
        )
    if not has_units and not is_on_demand:
        raise invalid(
            f"Both ReadCapacityUnits and WriteCapacityUnits must be specified for index: {given['IndexName']}"
        )


def _check_difference(before: Throughput, after: Throughput, named: str) -> None:
    if (after.read, after.write) == (before.read, before.write):
        raise RequestRefused(
            f"The provisioned throughput for the {named.removeprefix('the ')} will not change. The requested value"
            f" equals the current value. Current ReadCapacityUnits provisioned for {named}: {before.read}. Requested"
            f" ReadCapacityUnits: {after.read}. Current WriteCapacityUnits provisioned for {named}: {before.write}."
            f" Requested WriteCapacityUnits: {after.write}. {capacity.MORE_ABOUT_LIMITS}"
        )


def _with_new_index(
    transaction: Transaction, record: TableRecord, request: Request, change: table_requests.IndexAction
) -> TableRecord:
    if request.get("AttributeDefinitions") is None:
        name = change.content["IndexName"]
        raise invalid(f"AttributeDefinitions is not specified for index: {name}")
    defined = attribute_definitions(request)
    if record.index(change.content["IndexName"]) is not None:
        raise RequestRefused("Attempting to create an index which already exists")
    _check_units_of_index(change.content, is_on_demand=record.is_on_demand)
    index = table_requests.new_global_index(change.content, defined, is_on_demand=record.is_on_demand)
    for name in (*index.partition, *index.sort):
        if record.attributes.get(name, defined[name]) != defined[name]:
            raise _redefined(record, name, index, defined)
    attributes = defined | record.attributes
    indexes = (*record.indexes, index.model_copy(update={"id": new_id(transaction)}))
    if sum(not one.is_local for one in indexes) > table_requests.MOST_GLOBAL_INDEXES:
        raise request_error(
            "LimitExceededException",
            f"Subscriber limit exceeded: Number of global secondary indexes exceeds per-table limit of"
            f" {table_requests.MOST_GLOBAL_INDEXES}",
        )
    table_requests.check_included(sum(len(one.included) for one in indexes))
    with_index = _replaced(record, indexes=indexes, attributes=attributes)
    return _replaced(with_index, attributes=_used_attributes(with_index, indexes))


def _redefined(record: TableRecord, name: str, new: IndexRecord, defined: dict[str, KeyType]) -> RequestRefused:
    keys: list[KeySchema] = [((record.partition,), (record.sort,) if record.sort else ())]
    keys += [(index.partition, index.sort) for index in record.indexes]
    old = next(key for key in keys if name in (*key[0], *key[1]))
    return invalid(
        f"Attributes cannot be redefined. Please check that your attribute has the same type as previously"
        f" defined. Existing schema: {_schema(old, record.attributes)} New schema:"
        f" {_schema((new.partition, new.sort), defined)}"
    )


def _schema(key: KeySchema, types: dict[str, KeyType]) -> str:
    kinds = [(name, "HASH") for name in key[0]] + [(name, "RANGE") for name in key[1]]
    elements = [f"SchemaElement: key{{{name}:{types[name]}:{kind}}}" for name, kind in kinds]
    return f"Schema:[{', '.join(elements)}]"


def _used_attributes(record: TableRecord, indexes: tuple[IndexRecord, ...]) -> dict[str, KeyType]:
    used = {record.partition, record.sort}
    for index in indexes:
        used.update(index.partition, index.sort)
    return {name: type_ for name, type_ in record.attributes.items() if name in used}


def _with_options(record: TableRecord, request: Request, now: float) -> TableRecord:
    if not record.is_on_demand:
        capacity.refuse_on_demand_limit(request)
    before = capacity.ready_for(record.warm, record.throughput, is_on_demand=record.is_on_demand)
    protection = request.get("DeletionProtectionEnabled")
    chosen_class = table_requests.table_class(request)
    if chosen_class == "STANDARD" and record.table_class is None:
        chosen_class = None  # the table has this class already, and DynamoDB still tells none of it
    return _replaced(
        record,
        is_protected=record.is_protected if protection is None else protection,
        table_class=chosen_class or record.table_class,
        table_class_changed=now if chosen_class else record.table_class_changed,
        on_demand=capacity.on_demand_limit(request, record.on_demand),
        warm=capacity.changed_warm_throughput(request, before),
        encryption=_changed_encryption(record, request),
    )


def _changed_encryption(record: TableRecord, request: Request) -> dict[str, str] | None:
    if request.get("SSESpecification") is None:
        return record.encryption
    wanted = table_requests.encryption(request)
    if wanted is None and record.encryption is None:
        raise invalid("Table is already encrypted by default")
    if record.encryption and record.encryption["KMSMasterKeyArn"] == request["SSESpecification"].get("KMSMasterKeyId"):
        raise invalid(
            "Table is already encrypted with given KMSMasterKeyId. Use KMSMasterKeyId parameter if you want"
            " to change Master Key"
        )
    return wanted


def _with_stream(transaction: Transaction, record: TableRecord, request: Request, now: float) -> TableRecord:
    is_enabled, view = table_requests.stream_specification(request)
    if is_enabled is None:
        return record
    if not is_enabled:
        if view is not None:
            raise invalid("If stream is being disabled, then UpdateViewType must not be specified")
        if record.stream is None:
            raise RequestRefused(f"Table has no stream to disable: TableName: {record.name}")
        return streams.disabled(transaction, record, now)
    if view is None:
        raise invalid("If stream is being enabled then UpdateViewType is required")
    if record.stream is not None:
        raise RequestRefused(f"Table already has an enabled stream: TableName: {record.name}")
    return streams.enabled(transaction, record, view, now)


def _changed(before: Throughput, after: Throughput, now: float) -> Throughput:
    is_more = after.read > before.read or after.write > before.write
    is_less = after.read < before.read or after.write < before.write
    return Throughput(
        read=after.read,
        write=after.write,
        increased=now if is_more and before.read else before.increased,
        decreased=now if is_less and before.read else before.decreased,
        decreases=before.decreases_on_day_of(now) + 1 if is_less and before.read else before.decreases,
    )


def _replaced(record: R, **changes: Any) -> R:
    return record.model_copy(update=changes)
