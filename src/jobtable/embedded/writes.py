"""One prepared write of one item: its condition on the stored item, and the item that it leaves.

PutItem, UpdateItem and DeleteItem are one such write; batches and transactions are several.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from jobtable.embedded.expressions import Condition, Placeholders, Update, compile_condition, compile_update
from jobtable.embedded.expressions.conditions import ConditionProgram, prepare_condition
from jobtable.embedded.expressions.placeholders import Names, is_short
from jobtable.embedded.expressions.updates import UpdateProgram, prepare_update_program
from jobtable.embedded.key_checks import (
    SchemaMismatch,
    check_index_keys,
    check_updated_index_keys,
    item_position,
    key_position,
    refuse_index_types,
    refuse_nested_keys,
)
from jobtable.embedded.request_checks import Tables, check_parameters, find_table
from jobtable.embedded.storage import NO_ITEM, IndexChange, Sized, Transaction, View
from jobtable.embedded.table_schema import TableSchema
from jobtable.embedded.values import measure_item, validate_item, validate_value
from jobtable.embedded.wordings import INVALID, ItemTooLarge
from jobtable.errors import ConditionalCheckFailed, RequestRefused
from jobtable.store.backend import AttributeValue, EncodedItem, Item, Request
from jobtable.store.sizes import MAX_ITEM_SIZE, item_size, size_change

if TYPE_CHECKING:
    from jobtable.embedded.older import OlderParameters

_TOO_LARGE = "Item size has exceeded the maximum allowed size"
_UPDATE_TOO_LARGE = "Item size to update has exceeded the maximum allowed size"

_FEWEST_TOGETHER = 4  # fewer items are read one by one in the same time

Kind: TypeAlias = Literal["put", "update", "delete", "check"]


class Write(NamedTuple):
    """A validated put, update, delete or check of the item at one position."""

    kind: Kind
    table: TableSchema
    position: bytes
    key: Item
    """The primary key; for a put the item, or the known attributes of an EncodedItem."""
    put: Sized  # the item that a put leaves; NO_ITEM for others
    values_size: int  # the bytes of the values that its expressions use
    condition: Condition | None
    update: Update | None
    returns_item_on_failure: bool

    def create(self, transaction: Transaction) -> tuple[Sized, list[IndexChange]] | None:
        """Create the item of a put, and return it with what `apply` returns.

        Return None, with nothing done, for other writes and existing items. Most puts create their item, and save 10 %.
        """
        if self.kind != "put" or (self.condition is not None and not self.condition.holds({})):
            return None
        changes = transaction.add(self.table, self.position, self.put)
        return None if changes is None else (self.put, changes)

    def old(self, view: View) -> Sized:
        """Return the stored item."""
        return view.read(self.table, self.position)

    def new(self, old: Sized) -> Sized:
        """Return the item after the write; RequestRefused or ConditionalCheckFailed if it is not allowed."""
        if self.condition is not None and not self.condition.holds(old.item or {}):
            details = {"Item": old.item} if self.returns_item_on_failure and old.item is not None else None
            raise ConditionalCheckFailed("The conditional request failed", details=details)
        match self.kind:
            case "put":
                return self.put
            case "update":
                return self._updated(old)
            case "check":
                return old
            case "delete":
                return NO_ITEM

    def apply(self, transaction: Transaction, old: Sized, new: Sized) -> list[IndexChange]:
        """Store the result of `new` in place of `old`; return the changes of the entries of each index."""
        if self.kind == "check":
            return []
        if new.item is not None:
            return transaction.put(self.table, self.position, new, old)
        if old.item is not None:
            return transaction.delete(self.table, self.position, old)
        return []

    def _updated(self, old: Sized) -> Sized:
        item = self.key if old.item is None else old.item
        if self.update is None:
            return Sized(item, old.size or item_size(item))
        if old.item is None and self.update.only_removes:
            return NO_ITEM  # Removing from a missing item does not create it.
        new, names = self.update.apply(item), self.update.top_level_names
        size = item_size(new) if old.item is None else old.size + size_change(item, new, names)
        if size > MAX_ITEM_SIZE:
            raise RequestRefused(_UPDATE_TOO_LARGE)
        check_updated_index_keys(self.table, new, names)
        return Sized(new, size)


def read_olds(view: View, writes: Sequence[Write]) -> list[Sized]:
    """Return the stored item for each of several writes. Saves about 10 % of a full BatchWriteItem."""
    if len(writes) < _FEWEST_TOGETHER:
        return [write.old(view) for write in writes]
    tables: dict[int, tuple[TableSchema, list[bytes]]] = {}
    for write in writes:
        tables.setdefault(write.table.id, (write.table, []))[1].append(write.position)
    found = {id_: view.read_all(table, positions) for id_, (table, positions) in tables.items()}
    return [found[write.table.id].get(write.position, NO_ITEM) for write in writes]


def refuse_costly_update(update: Update | None) -> None:
    """Raise RequestRefused if an UpdateItem costs too much, whatever its condition and its result."""
    if update is not None and update.cost() > MAX_ITEM_SIZE:
        raise RequestRefused(_UPDATE_TOO_LARGE)


def prepare(
    kind: Kind,
    tables: Tables,
    request: Request,
    older: OlderParameters | None = None,
    *,
    is_in_transaction: bool = False,
) -> Write:
    """Prepare a PutItem, UpdateItem or DeleteItem request, or an action of a transaction.

    `older` are its parameters from before expressions; transactions never have any. `is_in_transaction`: DynamoDB's
    older reader reads it (see wordings.py), and accepts names and values that no expression could use.
    """
    expressions = ("UpdateExpression", "ConditionExpression") if kind == "update" else ("ConditionExpression",)
    if kind == "update" or not is_in_transaction:
        check_parameters(request, *expressions, older=older)
    item, size = valid_item(request["Item"]) if kind == "put" else (validate_item(request["Key"]), 0)
    placeholders = Placeholders.of(request, *expressions, by_older_reader=is_in_transaction)
    update = None
    if kind == "update":
        update = older.update() if older else _update(request, placeholders)
    condition = older.condition() if older else _condition(request, placeholders)
    table = find_table(tables, request["TableName"])
    if kind == "update":  # whose key is checked before the members of keys in its expressions
        key_position(table, item)
        refuse_unfit_update(table, item, update)
    refuse_nested_keys(table, placeholders.nested_names)
    values_size, is_item_returned = placeholders.values_size, returns_item(request)
    if kind == "put":
        return put_of(table, item, size, condition, values_size=values_size, is_item_returned=is_item_returned)
    position = key_position(table, item)
    return Write(kind, table, position, item, NO_ITEM, values_size, condition, update, is_item_returned)


def refuse_unfit_update(table: TableSchema, key: Item, update: Update | None) -> None:
    """Raise SchemaMismatch if the update writes a key attribute, or gives one of an index another type."""
    _refuse_key_update(key, update)
    if update is not None and not update.top_level_names.isdisjoint(table.index_attributes):
        refuse_index_types(table, update.known_types())


def _refuse_key_update(key: Item, update: Update | None) -> None:
    """Raise SchemaMismatch if the update writes an attribute of the primary key."""
    if update is None or update.top_level_names.isdisjoint(key):
        return
    name = next(name for name in key if name in update.top_level_names)
    raise SchemaMismatch(f"{INVALID}Cannot update attribute {name}. This attribute is part of the key")


def valid_item(item: Any) -> tuple[Item, int]:
    """Return a new item with its size, or raise RequestRefused if it is invalid or too large."""
    valid, size = measure_item(item)
    if size > MAX_ITEM_SIZE:
        raise ItemTooLarge(_TOO_LARGE)
    return valid, size


def put_of(
    table: TableSchema,
    item: Item,
    size: int,
    condition: Condition | None = None,
    *,
    values_size: int = 0,
    is_item_returned: bool = False,
) -> Write:
    """Return the put of a valid item, or raise RequestRefused if it does not fit the table."""
    if type(item) is EncodedItem and item.lacks(table.looked_at):
        item = item.whole()
    position = table.plain_position(item) or item_position(table, item)
    if table.indexes:
        check_index_keys(table, item)
    put = Sized(item, size, item.body if type(item) is EncodedItem else None)
    return Write("put", table, position, item, put, values_size, condition, None, is_item_returned)


def delete_of(table: TableSchema, key: Item) -> Write:
    """Return the delete of the item with this (valid) key, or raise RequestRefused if it does not fit the table."""
    return Write("delete", table, key_position(table, key), key, NO_ITEM, 0, None, None, False)


def _update(request: Request, placeholders: Placeholders) -> Update | None:
    text = request.get("UpdateExpression")
    return None if text is None else compile_update(text, placeholders)


def _condition(request: Request, placeholders: Placeholders) -> Condition | None:
    """Return the condition, which is the last expression of a write."""
    text = request.get("ConditionExpression")
    condition = None if text is None else compile_condition(text, placeholders)
    placeholders.finish()
    return condition


def returns_item(request: Request) -> bool:
    """Whether the item is wanted if the condition does not hold."""
    return request.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD"


_NOTHING: dict[str, Any] = {}


class _Programs(NamedTuple):
    update: UpdateProgram | None
    condition: ConditionProgram | None
    nested_names: frozenset[str]


def prepare_known(kind: Kind, tables: Tables, request: Request) -> Write:
    """Prepare a StoreRequest, or an action of one, without the checks of the store. Saves 20 % of a typed put."""
    name = request["TableName"]
    table = tables.table(name) or find_table(tables, name)
    condition, update, is_item_returned = None, None, False
    if "ConditionExpression" in request or "UpdateExpression" in request:
        condition, update = _expressions(table, request)
        is_item_returned = returns_item(request)
    if kind == "put":
        item = request["Item"]
        if type(item) is EncodedItem and not item.unknown:
            size = item.size
        else:
            item, size = valid_item(item)
        return put_of(table, item, size, condition, is_item_returned=is_item_returned)
    key = request["Key"]
    _refuse_key_update(key, update)
    return Write(kind, table, key_position(table, key), key, NO_ITEM, 0, condition, update, is_item_returned)


def _expressions(table: TableSchema, request: Request) -> tuple[Condition | None, Update | None]:
    """Return the condition and update of a request, or raise RequestRefused if they do not fit the table."""
    update, condition = request.get("UpdateExpression"), request.get("ConditionExpression")
    entries = tuple(request.get("ExpressionAttributeNames", _NOTHING).items())
    programs = (_known_programs if is_short(entries) else _programs)(update, condition, entries)
    refuse_nested_keys(table, programs.nested_names)
    values = _valid(request.get("ExpressionAttributeValues", _NOTHING))
    return (
        None if programs.condition is None else Condition.of(programs.condition, values),
        None if programs.update is None else Update.of(programs.update, values),
    )


def _programs(update: str | None, condition: str | None, names: Names) -> _Programs:
    found = _Programs(
        None if update is None else prepare_update_program(update, names),
        None if condition is None else prepare_condition(condition, names),
        frozenset(),
    )
    nested = (program.nested_names for program in (found.update, found.condition) if program is not None)
    return found._replace(nested_names=frozenset().union(*nested))


_known_programs = lru_cache(maxsize=1024)(_programs)


def _valid(values: Mapping[str, AttributeValue]) -> Mapping[str, AttributeValue]:
    """Return the values with sets, lists and maps in canonical form."""
    for value in values.values():
        for kind in value:
            if kind not in _SCALARS:
                return {name: validate_value(each) for name, each in values.items()}
    return values


_SCALARS = frozenset({"S", "N", "B", "BOOL", "NULL"})
