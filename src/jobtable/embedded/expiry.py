"""UpdateTimeToLive and DescribeTimeToLive."""

from __future__ import annotations

from jobtable.embedded.constraints import check_constraints
from jobtable.embedded.descriptions import describe_expiry
from jobtable.embedded.names import table_of, whole_table
from jobtable.embedded.storage import Storage, Transaction
from jobtable.embedded.storage.catalogue import TableRecord
from jobtable.embedded.storage.definitions import change_table
from jobtable.errors import RequestRefused
from jobtable.store.backend import Request, Response


def update(storage: Storage, request: Request) -> Response:
    """UpdateTimeToLive; items expire from now on by the attribute, those that are there already included."""
    check_constraints("UpdateTimeToLive", request)
    name = table_of(request)
    specification = request["TimeToLiveSpecification"]
    attribute: str = specification["AttributeName"]
    is_enabled: bool = specification["Enabled"]

    def action(transaction: Transaction) -> Response:
        record = whole_table(transaction, name)
        _check_change(record, attribute, is_enabled)
        change = {"ttl_attribute": attribute if is_enabled else None}
        change_table(transaction, record, record.model_copy(update=change))
        return {"TimeToLiveSpecification": {"Enabled": is_enabled, "AttributeName": attribute}}

    return storage.write(action)


def describe(storage: Storage, request: Request) -> Response:
    """DescribeTimeToLive."""
    name = table_of(request)
    with storage.read() as view:
        record = whole_table(view, name)
    return {"TimeToLiveDescription": describe_expiry(record)}


def _check_change(record: TableRecord, attribute: str, is_enabled: bool) -> None:
    current = record.ttl_attribute
    if current is None and not is_enabled:
        raise RequestRefused("TimeToLive is already disabled")
    if current is not None and current != attribute:
        raise RequestRefused(f"TimeToLive is active on a different AttributeName: current AttributeName is {current}")
    if current is not None and is_enabled:
        raise RequestRefused("TimeToLive is already enabled")
