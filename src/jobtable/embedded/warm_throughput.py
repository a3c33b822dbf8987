"""The units a second that tables and indexes are ready for: they never become fewer. The engine is always ready."""

from __future__ import annotations

from jobtable.embedded.names import REGION
from jobtable.embedded.storage.catalogue import Throughput, WarmThroughput
from jobtable.embedded.wordings import INVALID
from jobtable.errors import RequestRefused, request_error
from jobtable.store.backend import Request

MOST_UNITS = 40_000
"""The most units of a table or an index."""
_MEMBERS = ("ReadUnitsPerSecond", "WriteUnitsPerSecond")
_INITIAL_ON_DEMAND = (12_000, 4_000)
_ABOUT_INITIAL = (
    "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode.html"
    "#on-demand-capacity-mode-initial"
)


def ready_for(warm: WarmThroughput | None, throughput: Throughput, *, is_on_demand: bool) -> WarmThroughput:
    """What a table or an index is ready for: no less than it was, and no less than its billing gives it."""
    warm = warm or WarmThroughput()
    read, write = _INITIAL_ON_DEMAND if is_on_demand else (throughput.read, throughput.write)
    return WarmThroughput(read=max(read, warm.read or 0), write=max(write, warm.write or 0))


def new_warm_throughput(structure: Request, throughput: Throughput, *, is_on_demand: bool) -> WarmThroughput | None:
    """The WarmThroughput that a new table or index is given, or None; RequestRefused if it is too little."""
    if is_on_demand:
        faults = (f"initial throughput for OnDemand. See: {_ABOUT_INITIAL}",) * 2
    else:
        faults = ("ReadCapacityUnits of ProvisionedThroughput", "WriteCapacityUnits of ProvisionedThroughput")
    return _given(structure, ready_for(None, throughput, is_on_demand=is_on_demand), faults)


def changed_warm_throughput(structure: Request, before: WarmThroughput) -> WarmThroughput:
    """The WarmThroughput of a table or an index after a change; RequestRefused if it would be less than before."""
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
            raise RequestRefused(f"{INVALID}{requested} is lower than {fault}")
        if units is not None and units > MOST_UNITS:
            most = f"TableMax{member.replace('UnitsPerSecond', 'CapacityUnits')}"
            raise request_error(
                "LimitExceededException",
                f"Subscriber limit exceeded: {requested} exceeds {most} of the account in region {REGION}",
            )
    return WarmThroughput(read=given.get("ReadUnitsPerSecond"), write=given.get("WriteUnitsPerSecond"))
