"""ExclusiveStartKey: where a Query or Scan goes on, and whether it can have ended there.

DynamoDB checks it in several steps, between those that look at the rest of the request.
"""

from __future__ import annotations

from jobtable.embedded.expressions import KeyCondition
from jobtable.embedded.keys import KEY_MISMATCH, key_position
from jobtable.embedded.schema import KeyAttribute, Range
from jobtable.embedded.sources import Source
from jobtable.embedded.values import validate_item
from jobtable.embedded.wordings import RefusedInStart
from jobtable.errors import RequestRefused
from jobtable.store.backend import Item, Request

_INVALID_START = "The provided starting key is invalid"


def start_key(request: Request) -> Item | None:
    """ExclusiveStartKey, if its values are valid by themselves."""
    start = request.get("ExclusiveStartKey")
    if start is None:
        return None
    try:
        return validate_item(start)
    except RefusedInStart as error:
        raise RequestRefused(f"{_INVALID_START}: {error.message}") from error


def check_start_of_scan(source: Source, key: Item) -> None:
    """RequestRefused if a start does not have the attributes of a LastEvaluatedKey of the scan."""
    if source.index is not None:
        check_start_partition(source, key)
        check_start_sort(source, key)
    elif set(key) != set(source.cursor_names()):
        raise RequestRefused(_INVALID_START)


def check_start_partition(source: Source, key: Item) -> None:
    """RequestRefused if a start has more or fewer attributes than a LastEvaluatedKey, or lacks one of the partition."""
    partition, _ = source.key_attributes()
    if len(key) != len(source.cursor_names()):
        raise RequestRefused(_INVALID_START)
    _check_start_attributes(partition, key)


def check_start_sort(source: Source, key: Item) -> None:
    """RequestRefused if a start lacks a sort attribute of what is read."""
    _, sort = source.key_attributes()
    _check_start_attributes(sort, key)


def _check_start_attributes(attributes: tuple[KeyAttribute, ...], key: Item) -> None:
    if any(attribute.name not in key for attribute in attributes):
        raise RequestRefused(_INVALID_START)
    if any(attribute.type not in key[attribute.name] for attribute in attributes):
        raise RequestRefused(KEY_MISMATCH)


def start_position(source: Source, key: Item) -> bytes:
    """Where a start stands; there need be no item any more."""
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


def check_start_of_query(source: Source, condition: KeyCondition, bounds: Range, key: Item) -> None:
    """RequestRefused if a query cannot have ended there. Of its two conditions, that on the sort key comes first."""
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
    """RequestRefused if the segment that is scanned, which has these bounds, cannot have ended there."""
    if not _contains(bounds, start):
        raise RequestRefused(
            f"{_INVALID_START}: Invalid ExclusiveStartKey. Please use ExclusiveStartKey with correct Segment."
            f" TotalSegments: {request['TotalSegments']} Segment: {request['Segment']}"
        )


def _contains(bounds: Range, position: bytes) -> bool:
    return bounds[0] <= position and (bounds[1] is None or position < bounds[1])
