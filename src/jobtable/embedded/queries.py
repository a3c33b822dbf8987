"""Query and Scan. A page has at most 1 MB of items, measured before any filter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic_core import from_json

from jobtable.embedded import read_targets as targets
from jobtable.embedded.expressions import (
    Condition,
    InvalidValue,
    KeyCondition,
    Placeholders,
    Projection,
    compile_condition,
    compile_projection,
    prepare_key_condition,
)
from jobtable.embedded.key_checks import refuse_nested_keys
from jobtable.embedded.request_checks import check_members, check_parameters, older_parameters
from jobtable.embedded.request_model import REQUESTS
from jobtable.embedded.storage import Storage, View
from jobtable.embedded.table_schema import IndexSchema, Range, just_after, segment_range
from jobtable.embedded.units import TableUnits, read_rate, read_units, wanted_capacity
from jobtable.errors import RequestRefused
from jobtable.store.backend import Item, Request, Response, StoreRequest
from jobtable.store.sizes import item_size

PAGE_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Page:
    """The entries that were read."""

    items: list[Item] | list[bytes]  # empty if only their number was wanted
    scanned: int
    last: Item | None
    """The last entry read, if the page ended before the entries did, or exactly with them."""
    read_bytes: int
    fetched_sizes: list[int]
    """The sizes of the items fetched from the table to complete entries of an index."""

    def units(self, index: IndexSchema | None, rate: float) -> TableUnits:
        """Return the units that reading the page consumed; `rate` is the units of a block."""
        consumed = read_units(self.read_bytes, rate)
        if index is None:
            return TableUnits(consumed)
        units = TableUnits(sum((read_units(size, rate) for size in self.fetched_sizes), 0.0))
        units.add_to_index(index, consumed)
        return units


def read_page(
    view: View, source: targets.ReadTarget, bounds: Range, *, reverse: bool, limit: int | None, as_json: bool = False
) -> Page:
    """Read entries from the beginning of the range up to the limit, 1 MB, or the end. `as_json`: they stay JSON."""
    index = source.index
    entries = view.range(source.table, index, *bounds, reverse=reverse)
    if index is None or index.projection == "ALL":
        return _whole_items(source, entries, limit or -1, as_json=as_json)
    return _projected_items(source, index, entries, limit)


def _whole_items(
    source: targets.ReadTarget, entries: Iterator[tuple[int, bytes]], limit: int, *, as_json: bool
) -> Page:
    """Sizes come with the rows, and one call parses all items."""
    bodies: list[bytes] = []
    total = 0
    is_cut = False
    for size, body in entries:
        bodies.append(body)
        total += size
        if len(bodies) == limit:
            is_cut = True
            break
        if total >= PAGE_BYTES:
            is_cut = next(entries, None) is not None
            break
    last: Item | None = from_json(bodies[-1], cache_strings="keys") if is_cut else None
    if as_json:
        return Page(bodies, len(bodies), last, total, [])
    items: list[Item] = []
    if source.wants_items():
        items = from_json(b"[" + b",".join(bodies) + b"]", cache_strings="keys")
    return Page(items, len(bodies), last, total, [])


def _projected_items(
    source: targets.ReadTarget, index: IndexSchema, entries: Iterator[tuple[int, bytes]], limit: int | None
) -> Page:
    """Each entry is the part of the item that the index holds, unless it is completed from the table."""
    fetches = source.fetches_from_table()
    items: list[Item] = []
    fetched_sizes: list[int] = []
    total = page_bytes = 0
    last: Item | None = None
    for size, body in entries:
        item: Item = from_json(body)
        entry = source.table.projected(index, item)
        entry_size = item_size(entry)
        total += entry_size
        if fetches:
            fetched_sizes.append(size)
        items.append(item if fetches else entry)
        page_bytes += size if fetches else entry_size
        if len(items) == limit or (page_bytes >= PAGE_BYTES and next(entries, None) is not None):
            last = items[-1]
            break
        if page_bytes >= PAGE_BYTES:
            break
    return Page(items if source.wants_items() else [], len(items), last, total, fetched_sizes)


if TYPE_CHECKING:
    from jobtable.embedded.older import OlderParameters


def query(storage: Storage, request: Request) -> Response:
    """Return the items of one partition of a table or index, in the order of their sort keys."""
    older = older_parameters("Query", request)
    if older:
        older.refuse_operator()
    check_members(request, REQUESTS["Query"], found=older.faults(is_newer=True) if older else ())
    check_parameters(request, "ProjectionExpression", "FilterExpression", "KeyConditionExpression", older=older)
    older_selection = _older_selection(older, "QueryFilter") if older else None
    after = targets.start_key(request)
    text: Any = request.get("KeyConditionExpression")
    if text is None and (older is None or "KeyConditions" not in older.names):
        raise RequestRefused(
            "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request."
        )
    try:
        placeholders = Placeholders.of(request, "FilterExpression", "KeyConditionExpression")
    except InvalidValue as error:
        raise error.fault from error
    unmatched = (
        older.key_condition()
        if older and text is None
        else prepare_key_condition(request["KeyConditionExpression"], placeholders)
    )
    filter_, projection = older_selection or _filter_and_projection(request, placeholders)
    placeholders.finish()
    unmatched.check_form()
    source = targets.find_target(storage, request, filter_, projection)
    if after is not None:
        targets.check_start_partition(source, after)
    condition = unmatched.against(*source.key_attributes(), source.index.name if source.index else None)
    bounds = bounds_of(source, condition)
    forward = request.get("ScanIndexForward") is not False
    start = None
    if after is not None:
        targets.check_start_sort(source, after)
        start = targets.start_position(source, after)
        targets.check_start_of_query(source, condition, bounds, after)
    targets.check_select(source)
    targets.check_filter_of_query(source)
    targets.check_projected(source)
    refuse_nested_keys(source.table, placeholders.nested_names)
    response = _respond(storage, request, source, from_start(bounds, start, forward=forward), reverse=not forward)
    if source.index is None and source.table.sort is None:
        # There is at most one item.
        response.pop("LastEvaluatedKey", None)
    return response


def scan(storage: Storage, request: Request) -> Response:
    """Return all items of a table or index, or of one segment of it."""
    older = older_parameters("Scan", request)
    check_members(request, REQUESTS["Scan"], found=older.faults() if older else ())
    check_parameters(request, "ProjectionExpression", "FilterExpression", older=older)
    older_selection = _older_selection(older, "ScanFilter") if older else None
    after = targets.start_key(request)
    bounds = _segment_bounds(request)
    placeholders = Placeholders.of(request, "FilterExpression", by_older_reader=True)
    filter_, projection = older_selection or _filter_and_projection(request, placeholders)
    placeholders.finish()
    source = targets.find_target(storage, request, filter_, projection)
    if after is not None:
        targets.check_start_of_scan(source, after)
    targets.check_select(source)
    targets.check_projected(source)
    start = None if after is None else targets.start_position(source, after)
    if start is not None:
        targets.check_segment(request, bounds, start)
    refuse_nested_keys(source.table, placeholders.nested_names)
    return _respond(storage, request, source, from_start(bounds, start, forward=True), reverse=False)


_Selection: TypeAlias = tuple[Condition | None, Projection | None]  # a filter and a projection


def _older_selection(older: OlderParameters, parameter: str) -> _Selection | None:
    """Return the filter and projection of older parameters; None without them."""
    found = older.filter(parameter), older.projection()
    return None if found == (None, None) else found


def _filter_and_projection(request: Request, placeholders: Placeholders) -> _Selection:
    filter_text, projection_text = request.get("FilterExpression"), request.get("ProjectionExpression")
    return (
        None if filter_text is None else compile_condition(filter_text, placeholders, "FilterExpression"),
        None if projection_text is None else compile_projection(projection_text, placeholders),
    )


def bounds_of(source: targets.ReadTarget, condition: KeyCondition) -> tuple[bytes, bytes]:
    """Return the range of a table or index that the condition allows."""
    sort = condition.sort_range
    return source.table.key_range(
        source.index,
        condition.partition_values,
        condition.sort_equal,
        sort.operator if sort else None,
        sort.operands if sort else (),
    )


def _segment_bounds(request: Request) -> Range:
    segment, total = request.get("Segment"), request.get("TotalSegments")
    if segment is None and total is None:
        return b"", None
    if total is None:
        raise RequestRefused(
            "The TotalSegments parameter is required but was not present in the request when Segment parameter is"
            " present"
        )
    if segment is None:
        raise RequestRefused(
            "The Segment parameter is required but was not present in the request when parameter TotalSegments is"
            " present"
        )
    if segment >= total:
        raise RequestRefused("The Segment parameter is zero-based and must be less than parameter TotalSegments")
    return segment_range(segment, total)


def from_start(bounds: Range, start: bytes | None, *, forward: bool) -> Range:
    """Return the rest of a range after a start, in the direction of reading."""
    if start is None:
        return bounds
    return (just_after(start), bounds[1]) if forward else (bounds[0], start)


def _respond(
    storage: Storage, request: Request, source: targets.ReadTarget, bounds: Range, *, reverse: bool
) -> Response:
    as_json = type(request) is StoreRequest and source.is_whole()
    with storage.read() as view:
        page = read_page(view, source, bounds, reverse=reverse, limit=request.get("Limit"), as_json=as_json)
    items: list[Any] = page.items
    if source.filter is not None:
        items = list(filter(source.filter.holds, items))
    response: Response = {}
    if source.select == "COUNT":
        response["Count"] = len(items) if source.filter is not None else page.scanned
    else:
        if source.projection is not None:
            items = [source.projection.apply(item) for item in items]
        response["Items"] = items
        response["Count"] = len(items)
    response["ScannedCount"] = page.scanned
    if page.last is not None:
        response["LastEvaluatedKey"] = cursor_of(source, page.last)
    wanted = wanted_capacity(request)
    if wanted:
        units = page.units(source.index, read_rate(request))
        response["ConsumedCapacity"] = units.report(request["TableName"], wanted)
    return response


def cursor_of(source: targets.ReadTarget, last: Item) -> Item:
    """Return the LastEvaluatedKey of a page that ends with an item."""
    return {name: dict(last[name]) for name in source.cursor_names()}
