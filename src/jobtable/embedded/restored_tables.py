"""What a restored table is: the keys and indexes of its source, with the billing that the restore asks for."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

from jobtable.embedded.key_schemas import global_key_schema, projection, simple_key_schema
from jobtable.embedded.names import is_own_arn
from jobtable.embedded.requests import structures
from jobtable.embedded.storage import Transaction, View
from jobtable.embedded.storage.catalogue import IndexRecord, TableRecord, Throughput
from jobtable.embedded.storage.definitions import new_id
from jobtable.embedded.table_requests import encryption
from jobtable.embedded.throughput import given_throughput, on_demand_limit
from jobtable.embedded.wordings import INVALID
from jobtable.errors import RequestRefused, request_error
from jobtable.store.backend import Request

_OVERRIDES = ("ProvisionedThroughput", "OnDemandThroughput", "SSESpecification")
_LIMITS = ("MaxReadRequestUnits", "MaxWriteRequestUnits")
_REFUSED = "Invalid Request: "


def refuse_other_region(arn: str, request: Request) -> None:
    """RequestRefused if a restore out of another region does not say how the table is to be encrypted here."""
    if not is_own_arn(arn) and request.get("SSESpecificationOverride") is None:
        raise RequestRefused(f"{_REFUSED}sseSpecificationOverride must be provided for cross-region restores")


def refuse_taken_name(view: View, target: str) -> None:
    """RequestError if there is a table of the name that a restored one is to have."""
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
    """The new table: no stream, TTL, recovery, tags or protection, and of the standard class.

    `origin` is what its RestoreSummary is to say of where it comes from.
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
    _refuse_same_names(indexes)
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
    """RequestRefused if a restored table is to have a limit of no requests; the words are not those of other tables."""
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
    """The indexes to restore, each with its override, if there is one.

    They are all, or those of the overrides: indexes of the source, by whatever names.
    """
    for is_local, member in ((True, "LocalSecondaryIndexOverride"), (False, "GlobalSecondaryIndexOverride")):
        own = [index for index in source.indexes if index.is_local == is_local]
        if request.get(member) is None:
            yield from ((index, None) for index in own)
            continue
        for given in structures(request, member):
            index = _matching(own, given, is_local=is_local)
            own.remove(index)
            yield index, given


def _matching(own: list[IndexRecord], given: Request, *, is_local: bool) -> IndexRecord:
    key = simple_key_schema(given) if is_local else global_key_schema(given)
    kind, included = projection(given)
    for index in own:
        is_same_key = (index.partition, index.sort) == key
        if is_same_key and index.projection == kind and set(index.included) == set(included):
            return index
    raise RequestRefused(
        f"{_REFUSED}Index {given['IndexName']} does not match a secondary index that existed in the source table and"
        " cannot be created during the restore operation"
    )


def _refuse_same_names(indexes: tuple[IndexRecord, ...]) -> None:
    names = [index.name for index in indexes]
    for number, name in enumerate(names):
        if name in names[:number]:
            raise RequestRefused(f"{INVALID}Duplicate index name: {name}")


def _restored_index(index: IndexRecord, given: Request | None, mode: str | None, *, is_on_demand: bool) -> IndexRecord:
    """An index with the name and the units that it has in the restored table."""
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
