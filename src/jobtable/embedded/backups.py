"""On-demand backups: a table as it was, of which new tables can be made even after it is deleted."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

from jobtable.embedded import descriptions
from jobtable.embedded.request_checks import check_constraints, optional_moment
from jobtable.embedded.restores import refuse_other_region, refuse_taken_name, restored_record
from jobtable.embedded.storage import Storage, Transaction, View, restoring
from jobtable.embedded.storage.restoring import AFTER_ALL_LABELS, BackupRecord, BackupSelection, label_at
from jobtable.embedded.storage.table_catalogue import IndexRecord, TableRecord, Throughput
from jobtable.embedded.storage.table_changes import new_id
from jobtable.embedded.table_names import backup_arn, backup_of_arn, is_own_arn, source_table, table_arn, table_of
from jobtable.embedded.table_requests import refuse_what_is_not_kept
from jobtable.embedded.wordings import invalid
from jobtable.errors import RequestError, RequestRefused, request_error
from jobtable.store.backend import Request, Response
from jobtable.store.tables import key_schema


def describe_backup(backup: BackupRecord, arn: str) -> descriptions.Description:
    """Return the BackupDescription of a backup that a request named by this ARN."""
    return {
        "BackupDetails": {**_describe_details(backup), "BackupArn": arn},
        "SourceTableDetails": _source(backup),
        "SourceTableFeatureDetails": _features(backup.table),
    }


def _describe_details(backup: BackupRecord) -> descriptions.Description:
    expiry = {} if backup.expires is None else {"BackupExpiryDateTime": descriptions.told_time(backup.expires)}
    return {
        "BackupArn": backup_arn(backup.table.name, backup.label),
        "BackupName": backup.name,
        "BackupSizeBytes": backup.size,
        "BackupStatus": "CREATING" if backup.is_creating else "AVAILABLE",
        "BackupType": "USER" if backup.expires is None else "SYSTEM",
        "BackupCreationDateTime": backup.created,
        **expiry,
    }


def _summarise(backup: BackupRecord) -> descriptions.Description:
    return {**_named(backup.table), **_describe_details(backup)}


def _named(table: TableRecord) -> descriptions.Description:
    return {"TableName": table.name, "TableId": table.uuid, "TableArn": table_arn(table.name)}


def _source(backup: BackupRecord) -> descriptions.Description:
    table = backup.table
    return {
        **_named(table),
        "TableSizeBytes": backup.size,
        "KeySchema": key_schema((table.partition,), (table.sort,) if table.sort else ()),
        "TableCreationDateTime": descriptions.told_time(table.created),
        "ProvisionedThroughput": _units(table.throughput),
        **descriptions.describe_limit(table.on_demand),
        "ItemCount": backup.items,
        "BillingMode": "PAY_PER_REQUEST" if table.is_on_demand else "PROVISIONED",
    }


def _features(table: TableRecord) -> descriptions.Description:
    """Describe only the features that the table had."""
    local = [descriptions.describe_key_and_projection(index) for index in table.indexes if index.is_local]
    others = [_global_index(index) for index in table.indexes if not index.is_local]
    features: descriptions.Description = {}
    if local:
        features["LocalSecondaryIndexes"] = local
    if others:
        features["GlobalSecondaryIndexes"] = others
    if table.stream is not None:
        features["StreamDescription"] = descriptions.describe_stream(table.stream)
    if table.ttl_attribute is not None:
        features["TimeToLiveDescription"] = descriptions.describe_expiry(table)
    return features | descriptions.describe_encryption(table)


def _global_index(index: IndexRecord) -> descriptions.Description:
    units = {"ProvisionedThroughput": _units(index.throughput)}
    return {**descriptions.describe_key_and_projection(index), **units, **descriptions.describe_limit(index.on_demand)}


def _units(throughput: Throughput) -> descriptions.Description:
    return {"ReadCapacityUnits": throughput.read, "WriteCapacityUnits": throughput.write}


_SECONDS_OF_DELETED = 35 * 86_400
_DIGITS_OF_DELETED = "00000000"
_MOST_SUMMARIES = 100
_IS_EXPIRING = {"USER": False, "SYSTEM": True, "ALL": None}


def create(storage: Storage, request: Request) -> Response:
    """CreateBackup: store the items that the table has now, whatever is written to it later.

    As in DynamoDB, the answer always says CREATING, although only the backup of a large table is still being made.
    """
    check_constraints("CreateBackup", request)
    name = table_of(request)

    def action(transaction: Transaction) -> Response:
        record = source_table(transaction, name)
        digits = uuid.uuid4().hex[:8]
        backup = _new(transaction, new_id(transaction), record, request["BackupName"], storage.now(), digits=digits)
        restoring.back_up(transaction, record, backup)
        return {"BackupDetails": {**_describe_details(backup), "BackupStatus": "CREATING"}}

    return storage.write(action)


def keep_deleted(transaction: Transaction, record: TableRecord, now: float) -> None:
    """Turn the items of a table that is being deleted into a backup, which stays for 35 days."""
    name = f"{record.name}$DeletedTableBackup"
    backup = _new(transaction, record.id, record, name, now, digits=_DIGITS_OF_DELETED)
    restoring.save_backup(transaction, backup.model_copy(update={"expires": backup.created + _SECONDS_OF_DELETED}))


def describe(storage: Storage, request: Request) -> Response:
    """DescribeBackup."""
    check_constraints("DescribeBackup", request)
    arn = request["BackupArn"]
    named = backup_of_arn(arn)
    with storage.read() as view:
        backup = _existing(view, named, arn, storage.now())
    return {"BackupDescription": describe_backup(backup, arn)}


def list_backups(storage: Storage, request: Request) -> Response:
    """ListBackups: list backups by creation time, at most 100 at a time; backups left by DeleteTable on request."""
    check_constraints("ListBackups", request)
    name = None if request.get("TableName") is None else table_of(request)
    first, end = _time_range(request)
    label, table = max((first, ""), _start(request))
    most = request.get("Limit") or _MOST_SUMMARIES
    kind = request.get("BackupType") or "USER"
    if kind not in _IS_EXPIRING:
        return {"BackupSummaries": []}
    selection = BackupSelection(
        table_name=name,
        after_label=label,
        after_table=table,
        before_label=end,
        is_expiring=_IS_EXPIRING[kind],
        now=storage.now(),
        most=most + 1,
    )
    with storage.read() as view:
        summaries = [_summarise(backup) for backup in restoring.backups_in_order(view, selection)]
    if len(summaries) <= most:
        return {"BackupSummaries": summaries}
    return {"BackupSummaries": summaries[:most], "LastEvaluatedBackupArn": summaries[most - 1]["BackupArn"]}


def delete(storage: Storage, request: Request) -> Response:
    """DeleteBackup: hide the backup at once; the items of a large one are removed in steps."""
    check_constraints("DeleteBackup", request)
    arn = request["BackupArn"]
    named = backup_of_arn(arn)

    def action(transaction: Transaction) -> Response:
        backup = _existing(transaction, named, arn, storage.now())
        if backup.expires is not None:
            raise RequestRefused(
                f"Invalid Request: User is not allowed to delete the system backup with arn {arn}. It will"
                f" automatically expire on {_shown(backup.expires)}"
            )
        _refuse_unfinished(backup, arn)
        if restoring.targets_of(transaction, backup.id):
            raise _in_use(f"Backup is being used to restore table: {arn}")
        description = describe_backup(backup, arn)
        description["BackupDetails"]["BackupStatus"] = "DELETED"
        restoring.remove_backup(transaction, backup)
        return {"BackupDescription": description}

    return storage.write(action)


def restore(storage: Storage, request: Request) -> Response:
    """RestoreTableFromBackup: make a new table with the items of the backup, CREATING until it has them all.

    As in DynamoDB, the answer says CREATING for every table.
    """
    target = request.get("TargetTableName")
    if isinstance(target, str) and not 3 <= len(target) <= 255:  # only here DynamoDB does not report a constraint
        raise RequestRefused("TableName must be at least 3 characters long and at most 255 characters long")
    check_constraints("RestoreTableFromBackup", request)
    target, arn = str(target), request["BackupArn"]
    named = backup_of_arn(arn)
    refuse_what_is_not_kept(request)
    refuse_other_region(arn, request)

    def action(transaction: Transaction) -> Response:
        now = storage.now()
        backup = _existing(transaction, named, arn, now)
        refuse_taken_name(transaction, target)
        _refuse_unfinished(backup, arn)
        if restoring.targets_of(transaction, backup.id):
            raise _in_use(f"Backup is being used to restore another table: {arn}")
        table = backup.table
        origin: dict[str, str | float] = {
            "SourceBackupArn": backup_arn(table.name, backup.label),
            "SourceTableArn": table_arn(table.name),
            "RestoreDateTime": backup.created,
        }
        wanted = restored_record(transaction, table, target, request, origin, now)
        restored = restoring.begin_restore(
            transaction, backup.id, wanted, restoring.next_change(transaction, backup.id)
        )
        return {"TableDescription": descriptions.describe_restored(transaction, restored, now)}

    return storage.write(action)


def _new(view: View, id_: int, record: TableRecord, name: str, now: float, *, digits: str) -> BackupRecord:
    """Make a backup of a table as it is now. No two backups of one name share a time: they are listed in order."""
    milliseconds = int(now * 1000)
    while restoring.is_label_taken(view, record.name, milliseconds):
        milliseconds += 1
    created = milliseconds / 1000
    items, size = view.counters([record.id])[record.id]
    return BackupRecord(
        id=id_, label=f"{label_at(created)}-{digits}", name=name, created=created, table=record, items=items, size=size
    )


def _existing(view: View, named: tuple[str, str], arn: str, now: float) -> BackupRecord:
    backup = restoring.find_backup(view, *named)
    if backup is None or backup.is_expired(now):
        raise request_error("BackupNotFoundException", f"Backup not found: {arn}")
    return backup


def _refuse_unfinished(backup: BackupRecord, arn: str) -> None:
    if backup.is_creating:
        raise _in_use(f"Backup is being created: {arn}")


def _in_use(message: str) -> RequestError:
    return request_error("BackupInUseException", message)


def _time_range(request: Request) -> tuple[str, str]:
    """Return the label from which backups are listed, and the label before which they end."""
    lower, upper = (optional_moment(request, f"TimeRange{bound}Bound") for bound in ("Lower", "Upper"))
    first = "" if lower is None else label_at(lower)
    end = AFTER_ALL_LABELS if upper is None else label_at(upper)
    if first > end:
        raise invalid("Time range lower bound must be less than or equal to upper bound")
    return first, end


def _start(request: Request) -> tuple[str, str]:
    """Return the label and table after which the list continues; that backup need not exist any more."""
    arn = request.get("ExclusiveStartBackupArn")
    if arn is None:
        return "", ""
    table, label = backup_of_arn(arn)
    if not is_own_arn(arn):
        raise RequestRefused("Invalid Request: The supplied ExclusiveStartBackupArn does not match the region")
    return label, table


def _shown(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
