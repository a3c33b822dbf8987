"""GetItem, PutItem, UpdateItem and DeleteItem."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic_core import from_json, to_json

from jobtable.embedded.expressions import InvalidValue, Placeholders, Projection, compile_projection
from jobtable.embedded.key_checks import key_position, plain_position, refuse_nested_keys
from jobtable.embedded.request_checks import (
    Lookup,
    Tables,
    check_members,
    check_parameters,
    find_table,
    older_parameters,
)
from jobtable.embedded.request_model import REQUESTS
from jobtable.embedded.storage import NO_ITEM, IndexChange, Sized, Storage, Transaction
from jobtable.embedded.table_schema import TableSchema
from jobtable.embedded.units import collection_metrics, read_report, wants_collection_metrics, write_report
from jobtable.embedded.values import validate_item
from jobtable.embedded.wordings import (
    AT_LEAST_ONE,
    ItemTooLarge,
    NotOneType,
    constraints_broken,
    is_deeper,
    unshown_constraint,
)
from jobtable.embedded.writes import Kind, Write, prepare, prepare_known, refuse_costly_update
from jobtable.errors import RequestRefused
from jobtable.store.backend import Item, Request, Response, StoreRequest

if TYPE_CHECKING:
    from jobtable.embedded.older import OlderParameters

_MAX_LEVELS = 128
"""Levels of JSON that DynamoDB's newer reader reads (see wordings.py). The older one reads deeper requests."""


def get_item(storage: Storage, request: Request) -> Response:
    """Return one item by its key; no Item member if there is none."""
    read = _plain_read(storage, request)
    if read is None:
        older = older_parameters("GetItem", request)
        _check_members("GetItem", request, older)
        read = prepare_read(storage, request, older)
    table, position, projection = read
    found = storage.sized(table, position)
    response: Response = {}
    size = 0
    if found is not None:
        body, size = found
        if projection is None and type(request) is StoreRequest:
            response["Item"] = body
        else:
            item: Item = from_json(body, cache_strings="keys")
            response["Item"] = item if projection is None else projection.apply(item)
    consumed = read_report(request, request["TableName"], size)
    if consumed is not None:
        response["ConsumedCapacity"] = consumed
    return response


Read: TypeAlias = tuple[TableSchema, bytes, Projection | None]
"""A table, a position in it, and the projection; None: the whole item."""


def prepare_read(
    tables: Tables, request: Request, older: OlderParameters | None = None, *, is_in_transaction: bool = False
) -> Read:
    """Prepare a GetItem request, or the Get of a transaction; RequestRefused if it does not fit the table.

    `older` are its parameters from before expressions; transactions never have any, and accept names that no projection
    could use.
    """
    if not is_in_transaction:
        check_parameters(request, "ProjectionExpression", older=older)
    key = validate_item(request["Key"])
    projection = older.projection() if older else projection_of(request)
    table = find_table(tables, request["TableName"])
    check_projection(table, projection)
    return table, key_position(table, key), projection


def _check_members(operation: str, request: Request, older: OlderParameters | None) -> None:
    """Raise RequestRefused if a member has the wrong JSON type or breaks a constraint.

    DynamoDB's newer reader reports an empty table name, and invalid ReturnValues of an update, before all other faults
    and alone. A request that lacks a member goes through the older one, which reports all at once.
    """
    structure = REQUESTS[operation]
    try:
        check_members(request, structure, found=older.faults(is_newer=True) if older else ())
    except RequestRefused as error:
        if error.code != RequestRefused.code:
            raise
        if any(request.get(name) is None for name in structure.required) or is_deeper(request, _MAX_LEVELS):
            check_members(request, structure, found=older.faults() if older else (), by_older_reader=True)
        elif not request["TableName"]:
            raise constraints_broken([unshown_constraint("TableName", AT_LEAST_ONE)]) from error
        elif operation == "UpdateItem":
            faults = list(structure.faults_of("ReturnValues", request.get("ReturnValues", "NONE")))
            if faults:
                raise constraints_broken(faults) from error
        raise


def _plain_read(storage: Storage, request: Request) -> Read | None:
    """Return the read of a table and a key of short strings without expressions, or None. Saves 31 % of a get."""
    name: Any = request.get("TableName")
    key: Any = request.get("Key")
    if type(request) is not StoreRequest:
        options = len(request) - 2
        if options:
            options -= type(request.get("ConsistentRead")) is bool
            options -= request.get("ReturnConsumedCapacity") in _COUNTED
        if options or type(name) is not str or type(key) is not dict:
            return None
    elif "ProjectionExpression" in request:
        return None
    table = storage.table(name)
    if table is None:
        return None
    position = plain_position(table, key)
    return None if position is None else (table, position, None)


_COUNTED = ("TOTAL", "INDEXES")


def projection_of(request: Request) -> Projection | None:
    """Return the projection of a request that has no other expression, or None."""
    placeholders = Placeholders.of(request)
    text = request.get("ProjectionExpression")
    projection = None if text is None else compile_projection(text, placeholders)
    placeholders.finish()
    return projection


def check_projection(table: TableSchema, projection: Projection | None) -> None:
    """Raise RequestRefused if the projection names a member of a key attribute."""
    if projection is not None:
        refuse_nested_keys(table, projection.nested_names)


def put_item(storage: Storage, request: Request) -> Response:
    """Store an item, replacing the one with its key."""
    return _write("put", storage, request)


def delete_item(storage: Storage, request: Request) -> Response:
    """Delete the item with a key, if it exists."""
    return _write("delete", storage, request)


def update_item(storage: Storage, request: Request) -> Response:
    """Change attributes of an item, or create it."""
    return _write("update", storage, request)


_OPERATIONS: dict[Kind, str] = {"put": "PutItem", "delete": "DeleteItem", "update": "UpdateItem"}


def _write(kind: Kind, storage: Storage, request: Request) -> Response:
    if type(request) is StoreRequest:
        try:
            write = prepare_known(kind, storage, request)
        except RequestRefused:  # told in the words for every request
            write = _prepared(kind, storage, request)
    else:
        older = older_parameters(_OPERATIONS[kind], request)
        _check_members(_OPERATIONS[kind], request, older)
        write = _prepared(kind, storage, request, older)
    refuse_costly_update(write.update)
    return run_write(storage, request, write)


def _prepared(kind: Kind, storage: Storage, request: Request, older: OlderParameters | None = None) -> Write:
    """Prepare the write of a request, or raise RequestRefused.

    DynamoDB counts a fault of the request itself as a broken constraint. Faults that only the table shows, and faults
    in a batch or transaction, are not counted.
    """
    tables = Lookup(storage)
    try:
        if kind != "update":
            _refuse_new_values(request)
        return prepare(kind, tables, request, older)
    except RequestRefused as error:
        fault = error.fault if isinstance(error, InvalidValue) else error
        if tables.is_asked or error.code != RequestRefused.code or isinstance(fault, NotOneType | ItemTooLarge):
            raise
        if is_deeper(request, _MAX_LEVELS):  # the older reader does not count them
            raise
        raise constraints_broken([fault.message]) from error


def _refuse_new_values(request: Request) -> None:
    if request.get("ReturnValues") not in (None, "NONE", "ALL_OLD"):
        raise RequestRefused("ReturnValues can only be ALL_OLD or NONE")


def run_write(storage: Storage, request: Request, write: Write) -> Response:
    """Run one write, and return the parts of its result that the request asks for."""
    wants_metrics = type(request) is not StoreRequest and wants_collection_metrics(request)

    def action(transaction: Transaction) -> tuple[Sized, Sized, list[IndexChange], dict[str, Any] | None]:
        created = write.create(transaction)
        if created is not None:
            old, (new, changes) = NO_ITEM, created
        else:
            old = write.old(transaction)
            new = write.new(old)
            changes = write.apply(transaction, old, new)
        return old, new, changes, collection_metrics(transaction, write.table, write.key) if wants_metrics else None

    old, new, changes, metrics = storage.write(action)
    response: Response = {}
    if "ReturnValues" in request and (attributes := _returned(request, write, old.item, new.item)):
        response["Attributes"] = attributes
    consumed = write_report(request, old, new, changes)
    if consumed is not None:
        response["ConsumedCapacity"] = consumed
    if metrics:
        response["ItemCollectionMetrics"] = metrics
    return response


def _returned(request: Request, write: Write, old: Item | None, new: Item | None) -> Item | None:
    match request.get("ReturnValues"):
        case "ALL_OLD":
            return old
        case "ALL_NEW":
            return new if type(request) is StoreRequest else _detached(new)
        case "UPDATED_OLD" if write.update is not None and old is not None:
            return write.update.updated_part(old)
        case "UPDATED_NEW" if write.update is not None and new is not None:
            return _detached(write.update.updated_part(new))
        case _:
            return None


def _detached(item: Item | None) -> Item | None:
    """Copy an item, so that it shares nothing with the values of the request."""
    return None if item is None else from_json(to_json(item))
