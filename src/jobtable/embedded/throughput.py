"""The units of tables and indexes: provisioned, limited on demand, or warm (the engine is always ready for them)."""

from __future__ import annotations

from jobtable.embedded.storage.table_catalogue import OnDemandLimit, Throughput, WarmThroughput
from jobtable.embedded.table_names import REGION
from jobtable.embedded.wordings import invalid
from jobtable.errors import RequestRefused, request_error
from jobtable.store.backend import Request

MOST_UNITS = 40_000  # most units of a table or an index
_MEMBERS = ("ReadUnitsPerSecond", "WriteUnitsPerSecond")
_INITIAL_ON_DEMAND = (12_000, 4_000)
_ABOUT_INITIAL = (
    "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode.html"
    "#on-demand-capacity-mode-initial"
)


def ready_for(warm: WarmThroughput | None, throughput: Throughput, *, is_on_demand: bool) -> WarmThroughput:
    """Return the units that a table or index is ready for: at least the previous ones and those of its billing."""
    warm = warm or WarmThroughput()
    read, write = _INITIAL_ON_DEMAND if is_on_demand else (throughput.read, throughput.write)
    return WarmThroughput(read=max(read, warm.read or 0), write=max(write, warm.write or 0))


def new_warm_throughput(structure: Request, throughput: Throughput, *, is_on_demand: bool) -> WarmThroughput | None:
    """Return the WarmThroughput of a new table or index, or None; RequestRefused if it is too small."""
    if is_on_demand:
        faults = (f"initial throughput for OnDemand. See: {_ABOUT_INITIAL}",) * 2
    else:
        faults = ("ReadCapacityUnits of ProvisionedThroughput", "WriteCapacityUnits of ProvisionedThroughput")
    return _given(structure, ready_for(None, throughput, is_on_demand=is_on_demand), faults)


def changed_warm_throughput(structure: Request, before: WarmThroughput) -> WarmThroughput:
    """Return the WarmThroughput of a table or index after a change; RequestRefused if it would decrease."""
    faults = ("current WarmThroughput, decreasing WarmThroughput is not supported",) * 2
    wanted = _given(structure, before, faults) or WarmThroughput()
    return WarmThroughput(read=wanted.read or before.read, write=wanted.write or before.write)


def _given(structure: Request, least: WarmThroughput, faults: tuple[str, ...]) -> WarmThroughput | None:
    given, index = structure.get("WarmThroughput"), structure.get("IndexName")
    if not given:
        return None
    of = "table" if index is None else f"index {index}"
    for member, minimum, fault in zip(_MEMBERS, (least.read, least.write), faults, strict=True):
        requested = f"Requested {member} for WarmThroughput for {of}"
        units = given.get(member)
        if units is not None and units < (minimum or 0):
            raise invalid(f"{requested} is lower than {fault}")
        if units is not None and units > MOST_UNITS:
            most = f"TableMax{member.replace('UnitsPerSecond', 'CapacityUnits')}"
            raise request_error(
                "LimitExceededException",
                f"Subscriber limit exceeded: {requested} exceeds {most} of the account in region {REGION}",
            )
    return WarmThroughput(read=given.get("ReadUnitsPerSecond"), write=given.get("WriteUnitsPerSecond"))


MORE_ABOUT_LIMITS = "Refer to the Amazon DynamoDB Developer Guide for current limits and how to request higher limits."
_UNITS = ("ReadCapacityUnits", "WriteCapacityUnits")
_BOUND = 1_000_000_000_000  # more units are refused before the limits of tables are checked
_REQUEST_UNITS = ("MaxReadRequestUnits", "MaxWriteRequestUnits")
_NO_LIMIT = -1


def table_throughput(request: Request) -> Throughput:
    """Return the ProvisionedThroughput of a table, or raise RequestRefused without one."""
    if request.get("ProvisionedThroughput") is None:
        raise invalid("ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED")
    return given_throughput(request)


def refuse_table_throughput(request: Request) -> None:
    """Raise RequestRefused if a table on demand gets units."""
    if request.get("ProvisionedThroughput") is not None:
        raise invalid(
            "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST"
        )


def global_index_throughput(structure: Request, *, is_on_demand: bool) -> Throughput:
    """Return the ProvisionedThroughput of a new global index; none on demand."""
    if not is_on_demand:
        return given_throughput(structure)
    if structure.get("ProvisionedThroughput") is not None:
        raise invalid(
            f"ProvisionedThroughput should not be specified for index: {structure['IndexName']} when"
            " BillingMode is PAY_PER_REQUEST"
        )
    return Throughput()


def given_throughput(structure: Request) -> Throughput:
    """Return the ProvisionedThroughput of a table or index, or raise RequestRefused if it is too large."""
    check_bounds(structure)
    given, index = structure["ProvisionedThroughput"], structure.get("IndexName")
    kind, of_index = ("table", "") if index is None else ("index", f" for index {index}")
    for name in _UNITS:
        if given[name] > MOST_UNITS:
            raise request_error(
                "LimitExceededException",
                f"The requested {name}{of_index}, {given[name]}, is above the per {kind} maximum for the account in"
                f" {REGION}. Per table maximum: {MOST_UNITS}. {MORE_ABOUT_LIMITS}",
            )
    return Throughput(read=given["ReadCapacityUnits"], write=given["WriteCapacityUnits"])


def check_bounds(structure: Request) -> None:
    """Raise RequestRefused if units of a table or index are beyond every bound."""
    given, index = structure.get("ProvisionedThroughput") or {}, structure.get("IndexName")
    for name in _UNITS:
        if given.get(name, 0) > _BOUND:
            of_index = "" if index is None else f" for index {index}"
            raise RequestRefused(f"Given value {given[name]} for {name} is out of bounds{of_index}")


def on_demand_limit(
    structure: Request, before: OnDemandLimit | None = None, *, is_new: bool = False
) -> OnDemandLimit | None:
    """Return OnDemandThroughput of a table or index; missing members stay as they were before."""
    given = structure.get("OnDemandThroughput")
    if not given:
        return before
    name = structure.get("IndexName")
    of = "table" if name is None else f"index : {name}"
    read, write = (_request_units(given, member, of, is_new=is_new) for member in _REQUEST_UNITS)
    before = before or OnDemandLimit()
    limits = (_limit(read, before.read), _limit(write, before.write))
    return None if limits == (None, None) else OnDemandLimit(read=limits[0], write=limits[1])


def removed_limits(request: Request) -> dict[str, int]:
    """Return the limits on demand that a request removes from a table, in its own form."""
    given = request.get("OnDemandThroughput") or {}
    return {member: _NO_LIMIT for member in _REQUEST_UNITS if given.get(member) == _NO_LIMIT}


def refuse_on_demand_limit(structure: Request, *, is_new: bool = False) -> None:
    """Raise RequestRefused if a table with units, or an index of it, gets limits on demand."""
    given, name = structure.get("OnDemandThroughput"), structure.get("IndexName")
    if given is None:
        return
    of = "" if name is None else f" for index{':' if is_new else ' :'} {name}"
    for member in _REQUEST_UNITS:
        if given.get(member) is not None:
            raise invalid(
                f"{member} for OnDemandThroughput{of} cannot be specified when"
                f" {'table BillingMode is PROVISIONED.' if is_new else 'the table BillingMode is PROVISIONED'}"
            )


def _request_units(given: dict[str, int], member: str, of: str, *, is_new: bool) -> int | None:
    """Return a limit of requests; -1 removes an existing one."""
    value = given.get(member)
    if value is None:
        return None
    requested = f"Requested {member} for OnDemandThroughput for {of}"
    if value < 1 and (is_new or value != _NO_LIMIT):
        raise invalid(f"{requested} is outside of valid range")
    if value > MOST_UNITS:
        most = f"Table{member.replace('Request', 'Capacity')}"
        raise request_error(
            "LimitExceededException",
            f"Subscriber limit exceeded: {requested} exceeds {most} of the account in region {REGION}",
        )
    return value


def _limit(given: int | None, before: int | None) -> int | None:
    if given is None:
        return before
    return None if given == _NO_LIMIT else given
