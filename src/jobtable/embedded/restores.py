"""Point-in-time recovery, and what a restored table is: keys and indexes of its source, billed as the request asks."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime

from jobtable.embedded import table_names
from jobtable.embedded.descriptions import describe_restored, told_time
from jobtable.embedded.request_checks import check_constraints, check_members, optional_moment
from jobtable.embedded.request_model import REQUESTS, STRUCTURES, table_of_arn
from jobtable.embedded.storage import Storage, Transaction, View, journal, restoring
from jobtable.embedded.storage.table_catalogue import IndexRecord, RecoveryRecord, TableRecord, Throughput
from jobtable.embedded.storage.table_changes import change_table, new_id
from jobtable.embedded.table_requests import encryption, refuse_same_names, refuse_what_is_not_kept
from jobtable.embedded.throughput import given_throughput, on_demand_limit
from jobtable.embedded.wordings import invalid
from jobtable.errors import RequestRefused, request_error
from jobtable.store.backend import Request, Response

_OVERRIDES = ("ProvisionedThroughput", "OnDemandThroughput", "SSESpecification")
_LIMITS = ("MaxReadRequestUnits", "MaxWriteRequestUnits")
_REFUSED = "Invalid Request: "


def refuse_other_region(arn: str, request: Request) -> None:
    """Raise RequestRefused if a restore from another region does not set the encryption here."""
    if not table_names.is_own_arn(arn) and request.get("SSESpecificationOverride") is None:
        raise RequestRefused(f"{_REFUSED}sseSpecificationOverride must be provided for cross-region restores")


def refuse_taken_name(view: View, target: str) -> None:
    """Raise RequestError if a table with the name of the restored one exists."""
    taken = view.record(target)
    if taken is None:
        return
    origin = (taken.restored_from or {}).get("SourceBackupArn")
    if taken.is_creating and origin is not None:
        raise request_error("TableInUseException", f"Table: {target} is already being restored from backup: {origin}")
    raise request_error("TableAlreadyExistsException", f"Table already exists: {target}")


def restored_record(
    transaction: Transaction,
    source: TableRecord,
    target: str,
    request: Request,
    origin: dict[str, str | float],
    now: float,
) -> TableRecord:
    """Return the new table: no stream, TTL, recovery, tags or protection, and of the standard class.

    `origin` is the content of its RestoreSummary.
    """
    mode = request.get("BillingModeOverride")
    is_on_demand = source.is_on_demand if mode is None else mode == "PAY_PER_REQUEST"
    override = {name: request.get(f"{name}Override") for name in _OVERRIDES}
    _refuse_limits(override, is_on_demand=is_on_demand)
    _refuse_no_units(override)
    indexes = tuple(
        _restored_index(index, given, mode, is_on_demand=is_on_demand).model_copy(
            update={"id": new_id(transaction), "is_filling": False}
        )
        for index, given in _indexes(source, request)
    )
    refuse_same_names([index.name for index in indexes])
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
        throughput=_table_units(source, override, mode, is_on_demand=is_on_demand),
        on_demand=on_demand_limit(override, source.on_demand) if is_on_demand else None,
        encryption=source.encryption if override["SSESpecification"] is None else encryption(override),
        restored_from=origin,
    )


def _refuse_limits(structure: Request, of_index: str = "", *, is_on_demand: bool) -> None:
    limits = structure.get("OnDemandThroughput")
    if limits is None or is_on_demand:
        return
    named = next((name for name in _LIMITS if limits.get(name) is not None), _LIMITS[0])
    raise RequestRefused(
        f"{_REFUSED}Cannot override {named} for OnDemandThroughput unless BillingModeOverride is PAY_PER_REQUEST"
        f"{of_index}"
    )


def _refuse_no_units(override: Request) -> None:
    """Raise RequestRefused for a limit of no requests, which DynamoDB words in its own way here."""
    limits = override["OnDemandThroughput"] or {}
    for name in _LIMITS:
        if limits.get(name) == 0:
            raise RequestRefused(f"{_REFUSED}Requested {name} for OnDemandThroughput is outside of valid range")


def _table_units(source: TableRecord, override: Request, mode: str | None, *, is_on_demand: bool) -> Throughput:
    if is_on_demand:
        _refuse_units(override, mode, "")
        return Throughput()
    if override["ProvisionedThroughput"] is not None:
        return given_throughput(override)
    if mode is not None:
        raise RequestRefused(
            f"{_REFUSED}Must override ProvisionedThroughput if BillingMode is overridden to PROVISIONED"
        )
    return source.throughput


def _refuse_units(structure: Request, mode: str | None, of_index: str) -> None:
    if structure.get("ProvisionedThroughput") is None:
        return
    why = "unless BillingMode is PROVISIONED" if mode is None else "if BillingMode is overridden to PAY_PER_REQUEST"
    raise RequestRefused(f"{_REFUSED}Cannot override ProvisionedThroughput {why}{of_index}")


def _indexes(source: TableRecord, request: Request) -> Iterator[tuple[IndexRecord, Request | None]]:
    """Yield the indexes to restore, each with its override, if there is one.

    All are restored, or those of the overrides: indexes of the source, under any names.
    """
    for is_local, member in ((True, "LocalSecondaryIndexOverride"), (False, "GlobalSecondaryIndexOverride")):
        own = [index for index in source.indexes if index.is_local == is_local]
        if request.get(member) is None:
            yield from ((index, None) for index in own)
            continue
        for given in request[member]:
            index = _matching(own, given, is_local=is_local)
            own.remove(index)
            yield index, given


def _matching(own: list[IndexRecord], given: Request, *, is_local: bool) -> IndexRecord:
    key = table_names.simple_key_schema(given) if is_local else table_names.global_key_schema(given)
    kind, included = table_names.projection(given)
    for index in own:
        is_same_key = (index.partition, index.sort) == key
        if is_same_key and index.projection == kind and set(index.included) == set(included):
            return index
    raise RequestRefused(
        f"{_REFUSED}Index {given['IndexName']} does not match a secondary index that existed in the source table and"
        " cannot be created during the restore operation"
    )


def _restored_index(index: IndexRecord, given: Request | None, mode: str | None, *, is_on_demand: bool) -> IndexRecord:
    """Return an index with its name and units in the restored table."""
    name = index.name if given is None else given["IndexName"]
    if given is not None and given.get("WarmThroughput") is not None:
        raise RequestRefused(f"{_REFUSED}Cannot override WarmThroughput for index {name}")
    if index.is_local:
        return index.model_copy(update={"name": name})
    if is_on_demand:
        _refuse_units(given or {}, mode, f" for index {name}")
        limit = on_demand_limit(given or {}, index.on_demand)
        return index.model_copy(update={"name": name, "throughput": Throughput(), "on_demand": limit})
    _refuse_limits(given or {}, f" for index {name}", is_on_demand=False)
    if given is None and index.throughput.read:
        return index.model_copy(update={"on_demand": None})
    if given is None or given.get("ProvisionedThroughput") is None:
        raise RequestRefused(f"{_REFUSED}Must specify provisioned throughput for index {name}")
    units = given_throughput(given)
    return index.model_copy(update={"name": name, "throughput": units, "on_demand": None})


_MOST_DAYS = 35
_DAY = 86_400
_END_OF_CALENDAR = datetime.max.replace(tzinfo=UTC).timestamp()


def describe(storage: Storage, request: Request) -> Response:
    """DescribeContinuousBackups."""
    name = table_names.table_of(request)
    with storage.read() as view:
        record = table_names.source_table(view, name)
    return _described(record, storage.now())


def update(storage: Storage, request: Request) -> Response:
    """UpdateContinuousBackups: keep every change for that many days from now on, or none any more."""
    name = table_names.table_of(request)
    check_members(request, REQUESTS["UpdateContinuousBackups"])
    specification = request["PointInTimeRecoverySpecification"]
    structure = STRUCTURES["PointInTimeRecoverySpecification"]
    check_members(specification, structure, "pointInTimeRecoverySpecification.")
    is_enabled = specification["PointInTimeRecoveryEnabled"]
    days = specification.get("RecoveryPeriodInDays")
    if days is not None and not is_enabled:
        raise RequestRefused(
            "Invalid Request: Cannot specify RecoveryPeriodInDays when disabling point-in-time recovery."
        )

    def action(transaction: Transaction) -> Response:
        record = table_names.source_table(transaction, name)
        _refuse_while_in_use(transaction, record, is_enabled=is_enabled)
        now = storage.now()
        recovery = None
        if is_enabled:
            # Older changes are gone, even if more days are kept from now on.
            since = now if record.recovery is None else _earliest(record.recovery, now)
            recovery = RecoveryRecord(enabled=since, days=days or _MOST_DAYS)
        after = record.model_copy(update={"recovery": recovery})
        change_table(transaction, record, after)
        return _described(after, now)

    return storage.write(action)


def restore(storage: Storage, request: Request) -> Response:
    """RestoreTableToPointInTime: make a new table with the items as of the end of that second, or of now.

    A large one is CREATING until it has them all. As in DynamoDB, the answer says CREATING for every table.
    """
    check_constraints("RestoreTableToPointInTime", request)
    source, target = _source(request), request["TargetTableName"]
    wanted = _wanted_time(request)
    refuse_what_is_not_kept(request)

    def action(transaction: Transaction) -> Response:
        record = table_names.source_table(transaction, source)
        now = storage.now()
        moment = _moment(record, wanted, now)
        refuse_taken_name(transaction, target)
        origin: dict[str, str | float] = {
            "SourceTableArn": table_names.table_arn(record.name),
            "RestoreDateTime": told_time(moment),
        }
        wanted_record = restored_record(transaction, record, target, request, origin, now)
        # The state includes everything that was committed in this second.
        first_undone = journal.sequence_after(transaction, record.id, int(moment) + 1 - 1e-6)
        restored = restoring.begin_restore(transaction, record.id, wanted_record, first_undone)
        return {"TableDescription": describe_restored(transaction, restored, now)}

    return storage.write(action)


def _refuse_while_in_use(transaction: Transaction, record: TableRecord, *, is_enabled: bool) -> None:
    targets = [] if is_enabled else restoring.targets_of(transaction, record.id)
    if targets:
        reason = f"Backups of the table {record.name} are being restored to: {', '.join(targets)}."
        raise request_error("ContinuousBackupsUnavailableException", f"{reason} Please retry later")


def _described(record: TableRecord, now: float) -> Response:
    recovery = record.recovery
    if recovery is None:
        description: Response = {"PointInTimeRecoveryStatus": "DISABLED"}
    else:
        description = {
            "PointInTimeRecoveryStatus": "ENABLED",
            "RecoveryPeriodInDays": recovery.days,
            "EarliestRestorableDateTime": told_time(_earliest(recovery, now)),
            "LatestRestorableDateTime": told_time(now),
        }
    backups = {"ContinuousBackupsStatus": "ENABLED", "PointInTimeRecoveryDescription": description}
    return {"ContinuousBackupsDescription": backups}


def _earliest(recovery: RecoveryRecord, now: float) -> float:
    # The end of the second in which it was enabled can be restored, so the whole second counts.
    return max(float(int(recovery.enabled)), now - recovery.days * _DAY)


def _source(request: Request) -> str:
    name, arn = request.get("SourceTableName"), request.get("SourceTableArn")
    if arn is None:
        if name is None:
            # DynamoDB uses another name of the parameter here.
            raise RequestRefused("The parameter 'TableName' is required but was not present in the request")
        return table_names.table_of(request, "SourceTableName")
    if name is not None:
        raise RequestRefused("Must provide exactly one of: sourceTableArn, sourceTableName")
    if not arn.startswith("arn:"):
        raise invalid(f"ARNs must start with 'arn:': {arn}")
    source = table_of_arn(arn)
    if source is None:
        raise RequestRefused("sourceTableArn is not a valid ARN")
    if not table_names.is_of_own_account(arn):
        raise RequestRefused("This action is only supported by accounts that match the resource owner\u2019s account.")
    refuse_other_region(arn, request)
    return source


def _wanted_time(request: Request) -> float | None:
    """Return the time to restore, or None for the latest; RequestRefused unless exactly one is requested."""
    is_latest, moment = request.get("UseLatestRestorableTime"), optional_moment(request, "RestoreDateTime")
    if is_latest and moment is not None:
        raise RequestRefused(
            "Invalid Request: Both RestoreDateTime and UseLatestRestorableTime cannot be set for point-in-time restore"
            " request. Please specify either RestoreDateTime time or UseLatestRestorableTime"
        )
    if not is_latest and moment is None:
        raise RequestRefused(
            "Invalid Request: Either one of RestoreDateTime or UseLatestRestorableTime must be specified, but not both"
        )
    return moment


def _moment(record: TableRecord, wanted: float | None, now: float) -> float:
    if record.recovery is None:
        raise request_error(
            "PointInTimeRecoveryUnavailableException",
            f"Point in time recovery is not enabled for table '{record.name}'",
        )
    if wanted is None:
        return now
    earliest = _earliest(record.recovery, now)
    if not int(earliest) <= wanted <= now:
        raise request_error(
            "InvalidRestoreTimeException",
            f"RestoreDateTime '{_shown(wanted)}' must be within EarliestRestorableDateTime '{_shown(earliest)}' and"
            f" LatestRestorableDateTime '{_shown(now)}'",
        )
    return float(wanted)


def _shown(moment: float) -> str:
    if not 0 <= moment < _END_OF_CALENDAR:
        return "not in the calendar"
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
