"""Query and Scan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
from jobtable.embedded.keys import KEY_MISMATCH, key_position, refuse_nested_keys
from jobtable.embedded.pages import Page, Reading, read_page
from jobtable.embedded.requests import (
    CAPACITY,
    OPTIONAL_BOOLEAN,
    OPTIONAL_MAP,
    OPTIONAL_STRING,
    TABLE_NAME,
    Member,
    check_members,
    check_parameters,
    constraints_broken,
    find_table,
)
from jobtable.embedded.schema import IndexSchema, KeyAttribute, Range, TableSchema, just_after, segment_range
from jobtable.embedded.storage import Storage
from jobtable.embedded.units import read_rate, wanted_capacity
from jobtable.embedded.values import validate_item
from jobtable.embedded.wordings import INVALID
from jobtable.errors import RequestRefused
from jobtable.store.backend import Item, Request, Response, StoreRequest

_SELECTS = ("SPECIFIC_ATTRIBUTES", "COUNT", "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES")
_READ_MEMBERS = {
    "ReturnConsumedCapacity": CAPACITY,
    "Select": Member(str, enum=_SELECTS),
    "TableName": TABLE_NAME,
    "IndexName": Member(str, is_index_name=True),
    "Limit": Member(int, minimum=1, is_shown=False),
    "ConsistentRead": OPTIONAL_BOOLEAN,
    "ExclusiveStartKey": OPTIONAL_MAP,
    "FilterExpression": OPTIONAL_STRING,
    "ProjectionExpression": OPTIONAL_STRING,
    "ExpressionAttributeNames": OPTIONAL_MAP,
    "ExpressionAttributeValues": OPTIONAL_MAP,
}
_QUERY_MEMBERS = {
    **_READ_MEMBERS,
    "KeyConditionExpression": OPTIONAL_STRING,
    "ScanIndexForward": OPTIONAL_BOOLEAN,
}
_SCAN_MEMBERS = {
    **_READ_MEMBERS,
    "Segment": Member(int, minimum=0, maximum=999999, is_shown=False),
    "TotalSegments": Member(int, minimum=1, maximum=1000000),
}

_INVALID_START = "The provided starting key is invalid"
_SAID_OF_STARTS = (
    "exactly one of the supported datatypes",
    "Null attribute value types must have the value of true",
    "An string set  may not be empty",
    "Binary sets should not be empty",
)
"""The faults of values that DynamoDB reports as faults of a starting key."""


def query(storage: Storage, request: Request) -> Response:
    """The items of one partition of a table or index, in the order of their sort keys."""
    check_members(request, _QUERY_MEMBERS)
    check_parameters(request, "ProjectionExpression", "FilterExpression", "KeyConditionExpression")
    start_key = _start_key(request)
    text = request.get("KeyConditionExpression")
    if text is None:
        raise RequestRefused(
            "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request."
        )
    try:
        placeholders = Placeholders.of(request, "FilterExpression", "KeyConditionExpression")
    except InvalidValue as error:
        raise error.fault from error
    unmatched = prepare_key_condition(text, placeholders)
    filter_, projection = _filter_and_projection(request, placeholders)
    placeholders.finish()
    unmatched.check_form()
    source = _source(storage, request, filter_, projection)
    if start_key is not None:
        _check_start_partition(source, start_key)
    condition = unmatched.against(*source.key_attributes(), source.index.name if source.index else None)
    bounds = _bounds(source, condition)
    forward = request.get("ScanIndexForward") is not False
    start = None
    if start_key is not None:
        _check_start_sort(source, start_key)
        start = _start_position(source, start_key)
        _check_start(source, condition, bounds, start_key)
    _check_select(source)
    _check_filter_of_query(source)
    _check_projected(source)
    refuse_nested_keys(source.table, placeholders.nested_names)
    response = _respond(storage, request, source, _from_start(bounds, start, forward=forward), reverse=not forward)
    if source.index is None and source.table.sort is None:
        # There is at most one item, so nothing can be left.
        response.pop("LastEvaluatedKey", None)
    return response


def scan(storage: Storage, request: Request) -> Response:
    """All items of a table or index, or those of one segment of it."""
    check_members(request, _SCAN_MEMBERS)
    check_parameters(request, "ProjectionExpression", "FilterExpression")
    start_key = _start_key(request)
    bounds = _segment_bounds(request)
    placeholders = Placeholders.of(request, "FilterExpression")
    filter_, projection = _filter_and_projection(request, placeholders)
    placeholders.finish()
    source = _source(storage, request, filter_, projection)
    if start_key is not None:
        _check_start_of_scan(source, start_key)
    _check_select(source)
    _check_projected(source)
    start = None if start_key is None else _start_position(source, start_key)
    if start is not None and not _contains(bounds, start):
        raise RequestRefused(
            f"{_INVALID_START}: Invalid ExclusiveStartKey. Please use ExclusiveStartKey with correct Segment."
            f" TotalSegments: {request['TotalSegments']} Segment: {request['Segment']}"
        )
    refuse_nested_keys(source.table, placeholders.nested_names)
    return _respond(storage, request, source, _from_start(bounds, start, forward=True), reverse=False)


@dataclass(frozen=True, slots=True)
class _Source:
    """What a request reads, and what it wants to see of it."""

    table: TableSchema
    index: IndexSchema | None
    filter: Condition | None
    projection: Projection | None
    select: str | None

    def key_attributes(self) -> tuple[tuple[KeyAttribute, ...], tuple[KeyAttribute, ...]]:
        """The partition and the sort attributes of what is read."""
        if self.index is not None:
            return self.index.partition, self.index.sort
        return (self.table.partition,), (self.table.sort,) if self.table.sort else ()

    def cursor_names(self) -> tuple[str, ...]:
        """The attributes of a LastEvaluatedKey."""
        partition, sort = self.key_attributes()
        own = (self.table.partition, self.table.sort) if self.table.sort else (self.table.partition,)
        return tuple(dict.fromkeys(attribute.name for attribute in (*own, *partition, *sort)))

    def projected_names(self) -> frozenset[str] | None:
        """The attributes that the index holds, or None if it (or the table) holds all."""
        if self.index is None or self.index.projection == "ALL":
            return None
        return self.table.projected_names(self.index)

    def is_whole(self) -> bool:
        """Whether all items that are read are wanted as they are stored."""
        return self.filter is None and self.projection is None and self.select is None

    def fetches_from_table(self) -> bool:
        """Whether a local index lacks attributes that the request wants, so that the table is read, too."""
        held = self.projected_names()
        if held is None or self.index is None or not self.index.is_local:
            return False
        if self.projection is not None:
            return not self.projection.top_level_names <= held
        return self.select == "ALL_ATTRIBUTES"


def _filter_and_projection(request: Request, placeholders: Placeholders) -> tuple[Condition | None, Projection | None]:
    filter_text, projection_text = request.get("FilterExpression"), request.get("ProjectionExpression")
    return (
        None if filter_text is None else compile_condition(filter_text, placeholders, "FilterExpression"),
        None if projection_text is None else compile_projection(projection_text, placeholders),
    )


def _source(storage: Storage, request: Request, filter_: Condition | None, projection: Projection | None) -> _Source:
    table = find_table(storage, request["TableName"])
    return _Source(table, _index(table, request), filter_, projection, request.get("Select"))


def _check_select(source: _Source) -> None:
    fault = _fault_of_select(source)
    if fault is not None:
        raise constraints_broken([fault])


def _fault_of_select(source: _Source) -> str | None:
    select, projection = source.select, source.projection
    if select == "SPECIFIC_ATTRIBUTES" and projection is None:
        return "Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES"
    if projection is not None and select not in (None, "SPECIFIC_ATTRIBUTES"):
        what = "only the Count" if select == "COUNT" else select
        return f"Cannot specify the ProjectionExpression when choosing to get {what}"
    if select == "ALL_PROJECTED_ATTRIBUTES" and source.index is None:
        return "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName"
    return None


def _index(table: TableSchema, request: Request) -> IndexSchema | None:
    name = request.get("IndexName")
    if name is None:
        return None
    index = table.indexes.get(name)
    if index is None:
        raise RequestRefused(f"The table does not have the specified index: {name}")
    if request.get("ConsistentRead") and not index.is_local:
        raise RequestRefused("Consistent reads are not supported on global secondary indexes")
    return index


def _check_projected(source: _Source) -> None:
    """A global index cannot give what it does not hold."""
    index, held = source.index, source.projected_names()
    if index is None or index.is_local or held is None:
        return
    if source.select == "ALL_ATTRIBUTES":
        raise RequestRefused(
            f"{INVALID}Select type ALL_ATTRIBUTES is not supported for global secondary index {index.name} because"
            " its projection type is not ALL"
        )
    missing = sorted(source.projection.top_level_names - held) if source.projection else []
    if missing:
        raise RequestRefused(f"{INVALID}Global secondary index {index.name} does not project [{', '.join(missing)}]")


def _check_filter_of_query(source: _Source) -> None:
    if source.filter is None:
        return
    partition, sort = source.key_attributes()
    for attribute in (*partition, *sort):
        if attribute.name in source.filter.top_level_names:
            raise RequestRefused(
                "Filter Expression can only contain non-primary key attributes: Primary key attribute:"
                f" {attribute.name}"
            )
    held = source.projected_names()
    missing = sorted(source.filter.top_level_names - held) if held is not None else []
    if missing and source.index is not None:
        raise RequestRefused(
            f"{INVALID}Secondary index {source.index.name} does not project one or more filter attributes:"
            f" [{', '.join(missing)}]"
        )


def _bounds(source: _Source, condition: KeyCondition) -> tuple[bytes, bytes]:
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


def _start_key(request: Request) -> Item | None:
    """ExclusiveStartKey, if its values are valid by themselves."""
    start = request.get("ExclusiveStartKey")
    if start is None:
        return None
    try:
        return validate_item(start)
    except RequestRefused as error:
        if error.message.endswith(_SAID_OF_STARTS):
            raise RequestRefused(f"{_INVALID_START}: {error.message}") from error
        raise


def _check_start_of_scan(source: _Source, key: Item) -> None:
    if source.index is not None:
        _check_start_partition(source, key)
        _check_start_sort(source, key)
    elif set(key) != set(source.cursor_names()):
        raise RequestRefused(_INVALID_START)


def _check_start_partition(source: _Source, key: Item) -> None:
    """RequestRefused if a start has not the attributes that a LastEvaluatedKey has, as far as DynamoDB looks first."""
    partition, _ = source.key_attributes()
    if len(key) != len(source.cursor_names()):
        raise RequestRefused(_INVALID_START)
    _check_start_attributes(partition, key)


def _check_start_sort(source: _Source, key: Item) -> None:
    """The same for the sort attributes of what is read."""
    _, sort = source.key_attributes()
    _check_start_attributes(sort, key)


def _check_start_attributes(attributes: tuple[KeyAttribute, ...], key: Item) -> None:
    if any(attribute.name not in key for attribute in attributes):
        raise RequestRefused(_INVALID_START)
    if any(attribute.type not in key[attribute.name] for attribute in attributes):
        raise RequestRefused(KEY_MISMATCH)


def _start_position(source: _Source, key: Item) -> bytes:
    """Where a start stands; there need be no item any more."""
    table = source.table
    own = key
    if source.index is not None:
        own = {attribute.name: key[attribute.name] for attribute in table.key if attribute.name in key}
    try:
        position = key_position(table, own)
    except RequestRefused as error:
        raise RequestRefused(f"{_INVALID_START}: {error.message}") from error
    return position if source.index is None else _index_position(table, source.index, key)


def _index_position(table: TableSchema, index: IndexSchema, key: Item) -> bytes:
    position = table.index_position(index, key)
    if position is None:
        raise RequestRefused(_INVALID_START)
    return position


def _check_start(source: _Source, condition: KeyCondition, bounds: Range, key: Item) -> None:
    """RequestRefused if a query cannot have ended there. Of its two conditions, that on the sort key comes first."""
    partition, _ = source.key_attributes()
    wanted = dict(zip((attribute.name for attribute in partition), condition.partition_values, strict=True))
    has_sort_condition = bool(condition.sort_equal) or condition.sort_range is not None
    if has_sort_condition and not _contains(bounds, _start_position(source, {**key, **wanted})):
        raise RequestRefused("The provided starting key does not match the range key predicate")
    if any(key[name] != value for name, value in wanted.items()):
        if has_sort_condition:
            raise RequestRefused("The query can return at most one row and cannot be restarted")
        raise RequestRefused("The provided starting key is outside query boundaries based on provided conditions")


def _contains(bounds: Range, position: bytes) -> bool:
    return bounds[0] <= position and (bounds[1] is None or position < bounds[1])


def _from_start(bounds: Range, start: bytes | None, *, forward: bool) -> Range:
    if start is None:
        return bounds
    return (just_after(start), bounds[1]) if forward else (bounds[0], start)


def _respond(storage: Storage, request: Request, source: _Source, bounds: Range, *, reverse: bool) -> Response:
    reading = Reading(
        table=source.table,
        index=source.index,
        bounds=bounds,
        reverse=reverse,
        limit=request.get("Limit"),
        fetches_from_table=source.fetches_from_table(),
        wants_items=source.select != "COUNT" or source.filter is not None,
        as_json=type(request) is StoreRequest and source.is_whole(),
    )
    with storage.read() as view:
        page = read_page(view, reading)
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
        response["LastEvaluatedKey"] = _cursor(source, page.last)
    _report_capacity(response, request, source, page)
    return response


def _cursor(source: _Source, last: Item) -> Item:
    return {name: dict(last[name]) for name in source.cursor_names()}


def _report_capacity(response: dict[str, Any], request: Request, source: _Source, page: Page) -> None:
    wanted = wanted_capacity(request)
    if wanted:
        units = page.units(source.index, read_rate(request))
        response["ConsumedCapacity"] = units.report(request["TableName"], wanted)


OPERATIONS = {"Query": query, "Scan": scan}
