"""BatchGetItem and BatchWriteItem."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic_core import from_json

from jobtable.embedded.expressions import Projection
from jobtable.embedded.items import check_projection, projection_of
from jobtable.embedded.key_checks import KEY_MISMATCH, ItemKeyMismatch, key_position
from jobtable.embedded.request_checks import Tables, check_members, check_parameters, find_table, older_parameters
from jobtable.embedded.request_model import REQUESTS, STRUCTURES, map_of_tables_faults
from jobtable.embedded.storage import Storage, Transaction, View
from jobtable.embedded.table_schema import TableSchema
from jobtable.embedded.units import (
    TableUnits,
    collection_metrics,
    read_rate,
    read_units,
    wanted_capacity,
    wants_collection_metrics,
)
from jobtable.embedded.values import SEVERAL_TYPES, validate_item
from jobtable.embedded.wordings import (
    AT_LEAST_ONE,
    constraint,
    constraints_broken,
    expect_type,
    lower_first,
    unshown_constraint,
)
from jobtable.embedded.writes import Write, delete_of, put_of, read_olds, valid_item
from jobtable.errors import RequestRefused
from jobtable.store.backend import Item, Request, Response, StoreRequest

if TYPE_CHECKING:
    from jobtable.embedded.older import OlderParameters

MAX_GETS = 100
MAX_WRITES = 25
MAX_RESPONSE_BYTES = 16 * 1024 * 1024

_DUPLICATES = "Provided list of item keys contains duplicates"


class _Gets:
    """The valid keys of one table in a BatchGetItem request."""

    def __init__(self, request: Request, keys: list[Item], projection: Projection | None) -> None:
        self.request = request
        self.keys = keys
        self.projection = projection

    @classmethod
    def checked(cls, request: Request, older: OlderParameters | None, older_of_any: OlderParameters | None) -> _Gets:
        """Check a request that may be invalid.

        `older` are its parameters from before expressions, `older_of_any` those of any table: no table may have
        expressions beside them.
        """
        check_parameters(request, "ProjectionExpression", older=older_of_any)
        keys = [validate_item(key) for key in request["Keys"]]
        projection = older.projection() if older else projection_of(request)
        _refuse_duplicates(keys)
        return cls(request, keys, projection)

    def find(self, tables: Tables, name: str) -> None:
        """Look up the table and the positions of its items."""
        self.table = find_table(tables, name)
        check_projection(self.table, self.projection)
        self.positions = [key_position(self.table, key) for key in self.keys]

    def items(self, bodies: Iterable[bytes | None]) -> list[Item]:
        """Return the existing items, projected if the request asks for that."""
        items: list[Item] = [from_json(body, cache_strings="keys") for body in bodies if body is not None]
        return items if self.projection is None else [self.projection.apply(item) for item in items]

    def unprocessed(self, first: int) -> Request:
        """Return a request for the keys from the first unread one on; it shares nothing with this one."""
        names = ("ConsistentRead", "ProjectionExpression", "ExpressionAttributeNames", "AttributesToGet")
        rest = {name: self.request[name] for name in names if self.request.get(name) is not None}
        return copy.deepcopy({"Keys": self.keys[first:], **rest})


def batch_get_item(storage: Storage, request: Request) -> Response:
    """Return items of several tables by their keys; those past 16 MB come back as UnprocessedKeys."""
    if type(request) is StoreRequest:
        known = {name: _Gets(per_table, per_table["Keys"], None) for name, per_table in request["RequestItems"].items()}
        return _read(storage, known, wanted_capacity(request), as_json=True)
    check_members(request, REQUESTS["BatchGetItem"])
    if not request["RequestItems"]:
        raise constraints_broken([unshown_constraint("RequestItems", AT_LEAST_ONE)])
    count = 0
    older: dict[str, OlderParameters | None] = {}
    for name, table_request in request["RequestItems"].items():
        path = f"requestItems.{name}.member."
        per_table = {} if table_request is None else table_request  # null is a missing member
        expect_type(per_table, dict)
        found = older[name] = older_parameters("BatchGetItem", per_table, request)
        check_members(per_table, STRUCTURES["KeysAndAttributes"], path, found.faults(path) if found else ())
        if not 1 <= len(per_table["Keys"]) <= MAX_GETS:
            rule = f"Member must have length less than or equal to {MAX_GETS}" if per_table["Keys"] else AT_LEAST_ONE
            raise constraints_broken([unshown_constraint(f"RequestItems.{name}.member.Keys", rule)])
        count += len(per_table["Keys"])
    if count > MAX_GETS:
        raise RequestRefused("Too many items requested for the BatchGetItem call")
    of_any = next(filter(None, older.values()), None)
    gets = {name: _Gets.checked(per_table, older[name], of_any) for name, per_table in request["RequestItems"].items()}
    return _read(storage, gets, wanted_capacity(request), as_json=False)


def _read(storage: Storage, gets: dict[str, _Gets], capacity: str | None, *, as_json: bool) -> Response:
    """Return the response, with parsed items, or with JSON and None for each key without an item."""
    for name, wanted in gets.items():
        wanted.find(storage, name)
    responses: dict[str, list[Any]] = {}
    unprocessed: dict[str, Request] = {}
    consumed: list[dict[str, Any]] = []
    left = MAX_RESPONSE_BYTES
    with storage.read() as view:
        for name, wanted in gets.items():
            bodies, size, units = _read_table(view, wanted, left)
            left -= size
            responses[name] = bodies if as_json else wanted.items(bodies)
            if len(bodies) < len(wanted.keys):
                unprocessed[name] = wanted.unprocessed(len(bodies))
            if capacity:
                consumed.append(units.report(name, capacity))
    response: Response = {"Responses": responses, "UnprocessedKeys": unprocessed}
    if capacity:
        response["ConsumedCapacity"] = consumed
    return response


def _read_table(view: View, wanted: _Gets, left: int) -> tuple[list[bytes | None], int, TableUnits]:
    """Return each item as JSON or None while there is room, the bytes of the items, and the units."""
    bodies: list[bytes | None] = []
    total = 0
    units = TableUnits()
    rate = read_rate(wanted.request)
    for position in wanted.positions:
        if total >= left:
            break
        body, size = view.sized(wanted.table, position) or (None, 0)
        if total + size > left:
            break
        bodies.append(body)
        total += size
        units.table += read_units(size, rate)
    return bodies, total, units


def batch_write_item(storage: Storage, request: Request) -> Response:
    """Put and delete items of several tables; all of it is done when this returns."""
    check_members(request, REQUESTS["BatchWriteItem"])
    # A null list is an empty one.
    requests = {name: [] if one is None else one for name, one in request["RequestItems"].items()}
    _check_lists_of_writes(requests)
    faults = list(REQUESTS["BatchWriteItem"].members["RequestItems"].faults_inside(requests, "requestItems."))
    if faults:
        raise constraints_broken(faults)
    if sum(map(len, requests.values())) > MAX_WRITES:
        raise RequestRefused("Too many items requested for the BatchWriteItem call")
    changes = {name: [_change(one or {}) for one in per_table] for name, per_table in requests.items()}
    tables = {name: find_table(storage, name) for name in changes}
    for name, table in tables.items():
        _refuse_duplicates([_key_of(table, change) for change in changes[name]])
    writes = {name: [_write_of(table, change) for change in changes[name]] for name, table in tables.items()}
    return _write(storage, request, writes)


@dataclass(frozen=True, slots=True)
class _Change:
    item: Item
    is_put: bool
    size: int = 0


def _change(request: Request) -> _Change:
    put, delete = request.get("PutRequest"), request.get("DeleteRequest")
    if (put is None) == (delete is None):
        raise RequestRefused(SEVERAL_TYPES)  # DynamoDB says so of requests as well
    if put is not None:
        item, size = valid_item(put["Item"])
        return _Change(item, is_put=True, size=size)
    return _Change(validate_item(request["DeleteRequest"]["Key"]), is_put=False)


def _key_of(table: TableSchema, change: _Change) -> Item:
    """Return the key attributes that the item has, valid or not."""
    return {attribute.name: change.item[attribute.name] for attribute in table.key if attribute.name in change.item}


def _write_of(table: TableSchema, change: _Change) -> Write:
    if not change.is_put:
        return delete_of(table, change.item)
    try:
        return put_of(table, change.item, change.size)
    except ItemKeyMismatch as error:
        # A batch reports less than PutItem.
        raise RequestRefused(KEY_MISMATCH) from error


def _refuse_duplicates(keys: list[Item]) -> None:
    if len({str(sorted(key.items())) for key in keys}) < len(keys):
        raise RequestRefused(_DUPLICATES)


def _write(storage: Storage, request: Request, writes: dict[str, list[Write]]) -> Response:
    capacity, wants_metrics = wanted_capacity(request), wants_collection_metrics(request)

    def action(transaction: Transaction) -> tuple[list[dict[str, Any]], dict[str, list[dict[str, Any]]]]:
        consumed, metrics = [], {}
        for name, per_table in writes.items():
            units = TableUnits()
            olds = read_olds(transaction, per_table)
            with transaction.together():
                for write, old in zip(per_table, olds, strict=True):
                    new = write.new(old)
                    changes = write.apply(transaction, old, new)
                    if capacity:
                        units.add_write(old, new, changes)
            if capacity:
                consumed.append(units.report(name, capacity))
            collections = collections_of(transaction, per_table) if wants_metrics else []
            if collections:
                metrics[name] = collections
        return consumed, metrics

    consumed, metrics = storage.write(action)
    response: Response = {"UnprocessedItems": {}}
    if capacity:
        response["ConsumedCapacity"] = consumed
    if metrics:
        response["ItemCollectionMetrics"] = metrics
    return response


def collections_of(view: View, writes: list[Write]) -> list[dict[str, Any]]:
    """Return the ItemCollectionMetrics of several writes of one table: one entry per collection."""
    by_partition = {str(write.key[write.table.partition.name]): write for write in writes}
    metrics = (collection_metrics(view, write.table, write.key) for write in by_partition.values())
    return [one for one in metrics if one is not None]


def _check_lists_of_writes(requests: dict[str, Any]) -> None:
    if not requests:
        raise RequestRefused("The requestItems parameter is required for BatchWriteItem")
    for per_table in requests.values():
        expect_type(per_table, list)
    rules = map_of_tables_faults(requests)
    if not all(1 <= len(per_table) <= MAX_WRITES for per_table in requests.values()):
        rules.append(
            f"Map value must satisfy constraint: [Member must have length less than or equal to {MAX_WRITES},"
            f" {AT_LEAST_ONE}]"
        )
    if rules:
        shown = ", ".join(f"{name}=[{_shown(per_table)}]" for name, per_table in requests.items())
        raise constraints_broken([constraint("requestItems", f"'{{{shown}}}'", rule) for rule in rules])


def _shown(per_table: list[Any]) -> str:
    """Show the requests for one table as DynamoDB does; of too many only their number."""
    if len(per_table) > MAX_WRITES:
        return f"{len(per_table)} requests"
    return ", ".join(
        f"WriteRequest(putRequest={_shown_request(one, 'PutRequest', 'Item')},"
        f" deleteRequest={_shown_request(one, 'DeleteRequest', 'Key')})"
        for one in per_table
    )


def _shown_request(write: Any, name: str, member: str) -> str:
    expect_type(write, dict)
    request = write.get(name)
    if request is None:
        return "null"
    expect_type(request, dict)
    item = request.get(member)
    values = item.items() if isinstance(item, dict) else ()
    shown = ", ".join(f"{attribute}={_shown_value(value)}" for attribute, value in values)
    return f"{name}({lower_first(member)}={{{shown}}})"


def _shown_value(value: Any) -> str:
    kinds = value.items() if isinstance(value, dict) else ()
    shown = (f"{kind}={content if isinstance(content, str) else '...'}" for kind, content in kinds)
    return f"AttributeValue({', '.join(shown)})"
