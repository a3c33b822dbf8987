"""Point-in-time recovery: a table as it was in any second that is kept, as a new table."""

from __future__ import annotations

from datetime import UTC, datetime

from jobtable.embedded.constraints import check_constraints
from jobtable.embedded.descriptions import describe_restored, told_time
from jobtable.embedded.names import is_of_own_account, source_table, table_arn, table_of
from jobtable.embedded.requests import REQUIRED_MAP, Member, check_members, optional_moment, table_of_arn
from jobtable.embedded.restored_tables import refuse_other_region, refuse_taken_name, restored_record
from jobtable.embedded.storage import Storage, Transaction, journal, restoring
from jobtable.embedded.storage.catalogue import RecoveryRecord, TableRecord
from jobtable.embedded.storage.definitions import change_table
from jobtable.embedded.table_requests import refuse_what_is_not_kept
from jobtable.embedded.wordings import INVALID
from jobtable.errors import RequestRefused, request_error
from jobtable.store.backend import Request, Response

_MOST_DAYS = 35
_DAY = 86_400
_END_OF_CALENDAR = datetime.max.replace(tzinfo=UTC).timestamp()
_MEMBERS = {"PointInTimeRecoverySpecification": REQUIRED_MAP}
_SPECIFICATION_MEMBERS = {
    "PointInTimeRecoveryEnabled": Member(bool, required=True),
    "RecoveryPeriodInDays": Member(int, least=1, most=_MOST_DAYS),
}


def describe(storage: Storage, request: Request) -> Response:
    """DescribeContinuousBackups."""
    name = table_of(request)
    with storage.read() as view:
        record = source_table(view, name)
    return _described(record, storage.now())


def update(storage: Storage, request: Request) -> Response:
    """UpdateContinuousBackups: from now on every change is kept for that many days, or none is kept any more."""
    name = table_of(request)
    check_members(request, _MEMBERS)
    specification = request["PointInTimeRecoverySpecification"]
    check_members(specification, _SPECIFICATION_MEMBERS, "pointInTimeRecoverySpecification.")
    is_enabled = specification["PointInTimeRecoveryEnabled"]
    days = specification.get("RecoveryPeriodInDays")
    if days is not None and not is_enabled:
        raise RequestRefused(
            "Invalid Request: Cannot specify RecoveryPeriodInDays when disabling point-in-time recovery."
        )

    def action(transaction: Transaction) -> Response:
        record = source_table(transaction, name)
        _refuse_while_in_use(transaction, record, is_enabled=is_enabled)
        now = storage.now()
        recovery = None
        if is_enabled:
            # What is older than the days until now is gone, also if there are more days from now on.
            since = now if record.recovery is None else _earliest(record.recovery, now)
            recovery = RecoveryRecord(enabled=since, days=days or _MOST_DAYS)
        after = record.model_copy(update={"recovery": recovery})
        change_table(transaction, record, after)
        return _described(after, now)

    return storage.write(action)


def restore(storage: Storage, request: Request) -> Response:
    """RestoreTableToPointInTime: the items as they were at the end of that second, or are now, in a new table.

    A large one is CREATING until it has them all. As in DynamoDB, the answer says so of every table.
    """
    check_constraints("RestoreTableToPointInTime", request)
    source, target = _source(request), request["TargetTableName"]
    wanted = _wanted_time(request)
    refuse_what_is_not_kept(request)

    def action(transaction: Transaction) -> Response:
        record = source_table(transaction, source)
        now = storage.now()
        moment = _moment(record, wanted, now)
        refuse_taken_name(transaction, target)
        origin: dict[str, str | float] = {
            "SourceTableArn": table_arn(record.name),
            "RestoreDateTime": told_time(moment),
        }
        wanted_record = restored_record(transaction, record, target, request, origin, now)
        # The second as a whole: what was committed in it is part of the state.
        first_undone = journal.sequence_after(transaction, record.id, int(moment) + 1 - 1e-6)
        restored = restoring.begin(transaction, record.id, wanted_record, first_undone)
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
    # Of the second in which it was enabled, the end can be restored: that second is told as a whole.
    return max(float(int(recovery.enabled)), now - recovery.days * _DAY)


def _source(request: Request) -> str:
    name, arn = request.get("SourceTableName"), request.get("SourceTableArn")
    if arn is None:
        if name is None:
            # DynamoDB does not call the parameter by its own name here.
            raise RequestRefused("The parameter 'TableName' is required but was not present in the request")
        return table_of(request, "SourceTableName")
    if name is not None:
        raise RequestRefused("Must provide exactly one of: sourceTableArn, sourceTableName")
    if not arn.startswith("arn:"):
        raise RequestRefused(f"{INVALID}ARNs must start with 'arn:': {arn}")
    source = table_of_arn(arn)
    if source is None:
        raise RequestRefused("sourceTableArn is not a valid ARN")
    if not is_of_own_account(arn):
        raise RequestRefused("This action is only supported by accounts that match the resource owner\u2019s account.")
    refuse_other_region(arn, request)
    return source


def _wanted_time(request: Request) -> float | None:
    """The time to restore, or None for the latest; RequestRefused unless one of them is asked for."""
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
