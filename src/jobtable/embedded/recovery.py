"""Point-in-time recovery: a table as it was in any second that is kept, as a new table."""

from __future__ import annotations

import uuid
from typing import Any

from pydantic_core import from_json

from jobtable.embedded.descriptions import describe_table
from jobtable.embedded.key_schemas import maps, text
from jobtable.embedded.names import table_arn, table_of, table_of_arn, valid_name
from jobtable.embedded.requests import expect_type
from jobtable.embedded.storage import Storage, Transaction, journal, statements
from jobtable.embedded.storage.catalogue import IndexRecord, RecoveryRecord, TableRecord, Throughput
from jobtable.embedded.storage.definitions import change_table, create_table, fill_indexes, new_id
from jobtable.embedded.table_requests import billing_mode, flag, table_throughput
from jobtable.errors import RequestError, RequestRefused, request_error
from jobtable.store.backend import Request, Response
from jobtable.store.sizes import item_size

_DEFAULT_DAYS = 35
_DAY = 86_400


def describe(storage: Storage, request: Request) -> Response:
    """DescribeContinuousBackups."""
    name = table_of(request)
    with storage.read() as view:
        record = view.record(name)
    if record is None:
        raise _no_such_table(name)
    return _described(record, storage.now())


def update(storage: Storage, request: Request) -> Response:
    """UpdateContinuousBackups: from now on every change is kept for as many days; or no longer."""
    name = table_of(request)
    specification = request.get("PointInTimeRecoverySpecification")
    if specification is None:
        raise RequestRefused(
            "1 validation error detected: Value null at 'pointInTimeRecoverySpecification' failed to satisfy"
            " constraint: Member must not be null"
        )
    expect_type(specification, dict)
    is_enabled = bool(flag(specification, "PointInTimeRecoveryEnabled"))
    days = _days(specification.get("RecoveryPeriodInDays"))

    def action(transaction: Transaction) -> Response:
        record = transaction.record(name)
        if record is None:
            raise _no_such_table(name)
        now = storage.now()
        recovery = None
        if is_enabled:
            since = now if record.recovery is None else record.recovery.enabled
            kept = _DEFAULT_DAYS if record.recovery is None else record.recovery.days
            recovery = RecoveryRecord(enabled=since, days=kept if days is None else days)
        after = record.model_copy(update={"recovery": recovery})
        change_table(transaction, record, after)
        return _described(after, now)

    return storage.write(action)


def restore(storage: Storage, request: Request) -> Response:
    """RestoreTableToPointInTime: the items as they were at the end of that second, in a new table."""
    source, target = _source(request), valid_name(request.get("TargetTableName"))

    def action(transaction: Transaction) -> Response:
        record = transaction.record(source)
        if record is None:
            raise _no_such_table(source)
        if transaction.record(target) is not None:
            raise request_error("TableAlreadyExistsException", f"Table already exists: {target}")
        now = storage.now()
        moment = _moment(record, request, now)
        restored = _restored_record(transaction, record, target, request, moment, now)
        create_table(transaction, restored)
        _copy_items(transaction, record, restored, moment)
        fill_indexes(transaction, restored)
        return {"TableDescription": describe_table(transaction, restored)}

    return storage.write(action)


def _described(record: TableRecord, now: float) -> Response:
    recovery = record.recovery
    if recovery is None:
        description: Response = {"PointInTimeRecoveryStatus": "DISABLED"}
    else:
        description = {
            "PointInTimeRecoveryStatus": "ENABLED",
            "RecoveryPeriodInDays": recovery.days,
            "EarliestRestorableDateTime": _earliest(recovery, now),
            "LatestRestorableDateTime": now,
        }
    backups = {"ContinuousBackupsStatus": "ENABLED", "PointInTimeRecoveryDescription": description}
    return {"ContinuousBackupsDescription": backups}


def _earliest(recovery: RecoveryRecord, now: float) -> float:
    return max(recovery.enabled, now - recovery.days * _DAY)


def _days(days: Any) -> int | None:
    if days is None:
        return None
    expect_type(days, int)
    if not 1 <= days <= _DEFAULT_DAYS:
        bound = "greater than or equal to 1" if days < 1 else f"less than or equal to {_DEFAULT_DAYS}"
        raise RequestRefused(
            f"1 validation error detected: Value '{days}' at 'pointInTimeRecoverySpecification.recoveryPeriodInDays'"
            f" failed to satisfy constraint: Member must have value {bound}"
        )
    return int(days)


def _source(request: Request) -> str:
    arn = text(request, "SourceTableArn")
    if arn is not None and request.get("SourceTableName") is None:
        name = table_of_arn(arn)
        if name is None:
            raise RequestRefused(f"Invalid SourceTableArn: {arn}")
        return name
    return table_of(request, "SourceTableName")


def _moment(record: TableRecord, request: Request, now: float) -> float:
    if record.recovery is None:
        raise request_error(
            "PointInTimeRecoveryUnavailableException",
            f"Point in time recovery is not enabled for table '{record.name}'",
        )
    if flag(request, "UseLatestRestorableTime"):
        return now
    moment = request.get("RestoreDateTime")
    if moment is None:
        raise RequestRefused("Either RestoreDateTime or UseLatestRestorableTime has to be specified")
    if isinstance(moment, bool) or not isinstance(moment, int | float):
        raise RequestRefused("RestoreDateTime must be a number of seconds", code="SerializationException")
    # The second as a whole: what was committed in it is part of the state.
    if not int(_earliest(record.recovery, now)) <= moment <= now:
        raise request_error(
            "InvalidRestoreTimeException",
            "The specified restore time must lie between EarliestRestorableDateTime and LatestRestorableDateTime",
        )
    return float(moment)


def _restored_record(
    transaction: Transaction, source: TableRecord, target: str, request: Request, moment: float, now: float
) -> TableRecord:
    """The new table: keys and indexes of the source, but no stream, TTL, recovery, tags or protection."""
    mode = billing_mode({"BillingMode": request.get("BillingModeOverride")})
    is_on_demand = source.is_on_demand if mode is None else mode == "PAY_PER_REQUEST"
    override = {"ProvisionedThroughput": request.get("ProvisionedThroughputOverride")}
    throughput = Throughput() if is_on_demand else source.throughput
    if not is_on_demand and (override["ProvisionedThroughput"] is not None or source.is_on_demand):
        throughput = table_throughput(override)
    indexes = tuple(_restored_index(transaction, index) for index in _indexes(source, request))
    used = {source.partition, source.sort, *(name for index in indexes for name in (*index.partition, *index.sort))}
    return TableRecord(
        id=new_id(transaction),
        uuid=str(uuid.uuid4()),
        name=target,
        created=now,
        attributes={name: type_ for name, type_ in source.attributes.items() if name in used},
        partition=source.partition,
        sort=source.sort,
        indexes=indexes,
        is_on_demand=is_on_demand,
        on_demand_since=now if is_on_demand else None,
        throughput=throughput,
        table_class=source.table_class,
        encryption=source.encryption,
        restored_from={"SourceTableArn": table_arn(source.name), "RestoreDateTime": moment},
    )


def _indexes(source: TableRecord, request: Request) -> list[IndexRecord]:
    """The indexes to restore: all, or those of the overrides, which must be indexes of the source."""
    chosen: list[IndexRecord] = []
    for is_local, member in ((True, "LocalSecondaryIndexOverride"), (False, "GlobalSecondaryIndexOverride")):
        own = [index for index in source.indexes if index.is_local == is_local]
        if request.get(member) is not None:
            wanted = {text(one, "IndexName") for one in maps(request, member)}
            if wanted - {index.name for index in own}:
                raise RequestRefused(f"{member} must name indexes of the source table")
            own = [index for index in own if index.name in wanted]
        chosen += own
    return chosen


def _restored_index(transaction: Transaction, index: IndexRecord) -> IndexRecord:
    return index.model_copy(update={"id": new_id(transaction)})


def _copy_items(transaction: Transaction, source: TableRecord, target: TableRecord, moment: float) -> None:
    """Copy what is there now, then undo in the copy whatever happened later."""
    connection, sql = transaction.connection, statements.of_table(target.id)
    connection.execute(f"INSERT INTO items_{target.id} SELECT * FROM items_{source.id}")  # noqa: S608 - numbers
    first_undone = journal.sequence_after(transaction, source.id, int(moment) + 1 - 1e-6)
    for position, old in journal.states_at(transaction, source.id, first_undone):
        if old is None:
            connection.execute(sql.delete, (position,))
        else:
            connection.execute(sql.put, (position, item_size(from_json(old)), old))
    counted = connection.execute(f"SELECT count(*), total(size) FROM items_{target.id}")  # noqa: S608 - a number
    items, size = counted.fetchone()
    transaction.count(target.id, items, int(size))


def _no_such_table(name: str) -> RequestError:
    return request_error("TableNotFoundException", f"Table not found: {name}")
