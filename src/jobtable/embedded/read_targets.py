"""The table or index that a Query or Scan reads, the checks of its options, and the start of the next page.

DynamoDB checks ExclusiveStartKey in several steps, between checks of the rest of the request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jobtable.embedded.expressions import Condition, KeyCondition, Projection
from jobtable.embedded.key_checks import KEY_MISMATCH, key_position
from jobtable.embedded.request_checks import find_table
from jobtable.embedded.storage import Storage
from jobtable.embedded.table_schema import IndexSchema, KeyAttribute, Range, TableSchema
from jobtable.embedded.values import validate_item
from jobtable.embedded.wordings import RefusedInStart, constraints_broken, invalid
from jobtable.errors import RequestRefused
from jobtable.store.backend import Item, Request


@dataclass(frozen=True, slots=True)
class ReadTarget:
    """The table or index that a request reads, its filter and its projection."""

    table: TableSchema
    index: IndexSchema | None
    filter: Condition | None
    projection: Projection | None
    select: str | None

    def key_attributes(self) -> tuple[tuple[KeyAttribute, ...], tuple[KeyAttribute, ...]]:
        """Return the partition and the sort attributes of the table or index."""
        if self.index is not None:
            return self.index.partition, self.index.sort
        return (self.table.partition,), (self.table.sort,) if self.table.sort else ()

    def cursor_names(self) -> tuple[str, ...]:
        """The attributes of a LastEvaluatedKey."""
        partition, sort = self.key_attributes()
        return tuple(dict.fromkeys(attribute.name for attribute in (*self.table.key, *partition, *sort)))

    def projected_names(self) -> frozenset[str] | None:
        """Return the attributes that the index holds, or None if it (or the table) holds all."""
        if self.index is None or self.index.projection == "ALL":
            return None
        return self.table.projected_names(self.index)

    def is_whole(self) -> bool:
        """Whether items are wanted exactly as they are stored."""
        return self.filter is None and self.projection is None and self.select is None

    def wants_items(self) -> bool:
        """Whether the items are needed, and not only their number."""
        return self.select != "COUNT" or self.filter is not None

    def fetches_from_table(self) -> bool:
        """Whether a local index lacks wanted attributes, so that the table is read too."""
        held = self.projected_names()
        if held is None or self.index is None or not self.index.is_local:
            return False
        if self.projection is not None:
            return not self.projection.top_level_names <= held
        return self.select == "ALL_ATTRIBUTES"


def find_target(
    storage: Storage, request: Request, filter_: Condition | None, projection: Projection | None
) -> ReadTarget:
    """Return the target of a request, or raise RequestRefused if the table or index does not exist."""
    table = find_table(storage, request["TableName"])
    return ReadTarget(table, _index(table, request), filter_, projection, request.get("Select"))


def _index(table: TableSchema, request: Request) -> IndexSchema | None:
    name = request.get("IndexName")
    if name is None:
        return None
    index = table.indexes.get(name)
    if index is None:
        raise RequestRefused(f"The table does not have the specified index: {name}")
    if request.get("ConsistentRead") and not index.is_local:
        raise RequestRefused("Consistent reads are not supported on global secondary indexes")
    if index.is_filling:
        raise RequestRefused(f"Cannot read from backfilling global secondary index: {name}")
    return index


def check_select(source: ReadTarget) -> None:
    """Raise RequestRefused if Select contradicts the projection or the target."""
    fault = _fault_of_select(source)
    if fault is not None:
        raise constraints_broken([fault])


def _fault_of_select(source: ReadTarget) -> str | None:
    select, projection = source.select, source.projection
    if select == "SPECIFIC_ATTRIBUTES" and projection is None:
        return "Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES"
    if projection is not None and select not in (None, "SPECIFIC_ATTRIBUTES"):
        what = "only the Count" if select == "COUNT" else select
        return f"Cannot specify the {projection.parameter} when choosing to get {what}"
    if select == "ALL_PROJECTED_ATTRIBUTES" and source.index is None:
        return "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName"
    return None


def check_projected(source: ReadTarget, wanted: Sequence[str] | None = None) -> None:
    """Raise RequestRefused if a global index lacks wanted attributes; they are reported in the given order."""
    index, held = source.index, source.projected_names()
    if index is None or index.is_local or held is None:
        return
    if source.select == "ALL_ATTRIBUTES":
        raise invalid(
            f"Select type ALL_ATTRIBUTES is not supported for global secondary index {index.name} because"
            " its projection type is not ALL"
        )
    names = sorted(source.projection.top_level_names) if source.projection else []
    missing = [name for name in (names if wanted is None else wanted) if name not in held]
    if missing:
        raise invalid(f"Global secondary index {index.name} does not project [{', '.join(missing)}]")


def check_filter_of_query(source: ReadTarget) -> None:
    """Raise RequestRefused if the filter of a query uses key attributes, or attributes that an index lacks."""
    if source.filter is None:
        return
    partition, sort = source.key_attributes()
    for attribute in (*partition, *sort):
        if attribute.name in source.filter.top_level_names:
            raise RequestRefused(
                f"{source.filter.parameter} can only contain non-primary key attributes: Primary key attribute:"
                f" {attribute.name}"
            )
    _check_projected_filter(source)


def _check_projected_filter(source: ReadTarget) -> None:
    if source.filter is None:
        return
    held = source.projected_names()
    missing = sorted(source.filter.top_level_names - held) if held is not None else []
    if missing and source.index is not None:
        raise not_projected_filter(source.index, missing)


def not_projected_filter(index: IndexSchema, missing: Sequence[str]) -> RequestRefused:
    """Return the error for a filter on attributes that an index lacks."""
    return invalid(
        f"Secondary index {index.name} does not project one or more filter attributes: [{', '.join(missing)}]"
    )


_INVALID_START = "The provided starting key is invalid"


def start_key(request: Request) -> Item | None:
    """Return ExclusiveStartKey, if its values are valid by themselves."""
    start = request.get("ExclusiveStartKey")
    if start is None:
        return None
    try:
        return validate_item(start)
    except RefusedInStart as error:
        raise RequestRefused(f"{_INVALID_START}: {error.message}") from error


def check_start_of_scan(source: ReadTarget, key: Item) -> None:
    """Raise RequestRefused if a start lacks attributes of a LastEvaluatedKey of the scan, or has others."""
    if source.index is not None:
        check_start_partition(source, key)
        check_start_sort(source, key)
    elif set(key) != set(source.cursor_names()):
        raise RequestRefused(_INVALID_START)


def check_start_partition(source: ReadTarget, key: Item) -> None:
    """Raise RequestRefused if a start has too many or few attributes, or lacks one of the partition."""
    partition, _ = source.key_attributes()
    if len(key) != len(source.cursor_names()):
        raise RequestRefused(_INVALID_START)
    _check_start_attributes(partition, key)


def check_start_sort(source: ReadTarget, key: Item) -> None:
    """Raise RequestRefused if a start lacks a sort attribute of the target."""
    _, sort = source.key_attributes()
    _check_start_attributes(sort, key)


def _check_start_attributes(attributes: tuple[KeyAttribute, ...], key: Item) -> None:
    if any(attribute.name not in key for attribute in attributes):
        raise RequestRefused(_INVALID_START)
    if any(attribute.type not in key[attribute.name] for attribute in attributes):
        raise RequestRefused(KEY_MISMATCH)


def start_position(source: ReadTarget, key: Item) -> bytes:
    """Return the position of a start; its item need not exist any more."""
    table = source.table
    own = key
    if source.index is not None:
        own = {attribute.name: key[attribute.name] for attribute in table.key if attribute.name in key}
    try:
        position = key_position(table, own)
    except RequestRefused as error:
        raise RequestRefused(f"{_INVALID_START}: {error.message}") from error
    if source.index is None:
        return position
    in_index = table.index_position(source.index, key)
    if in_index is None:
        raise RequestRefused(_INVALID_START)
    return in_index


def check_start_of_query(source: ReadTarget, condition: KeyCondition, bounds: Range, key: Item) -> None:
    """Raise RequestRefused if a query cannot have ended there; its condition on the sort key is checked first."""
    partition, _ = source.key_attributes()
    wanted = dict(zip((attribute.name for attribute in partition), condition.partition_values, strict=True))
    has_sort_condition = bool(condition.sort_equal) or condition.sort_range is not None
    if has_sort_condition and not _contains(bounds, start_position(source, {**key, **wanted})):
        raise RequestRefused("The provided starting key does not match the range key predicate")
    if any(key[name] != value for name, value in wanted.items()):
        if has_sort_condition:
            raise RequestRefused("The query can return at most one row and cannot be restarted")
        raise RequestRefused("The provided starting key is outside query boundaries based on provided conditions")


def check_segment(request: Request, bounds: Range, start: bytes) -> None:
    """Raise RequestRefused if the scanned segment, which has these bounds, cannot have ended there."""
    if not _contains(bounds, start):
        raise RequestRefused(
            f"{_INVALID_START}: Invalid ExclusiveStartKey. Please use ExclusiveStartKey with correct Segment."
            f" TotalSegments: {request['TotalSegments']} Segment: {request['Segment']}"
        )


def _contains(bounds: Range, position: bytes) -> bool:
    return bounds[0] <= position and (bounds[1] is None or position < bounds[1])
