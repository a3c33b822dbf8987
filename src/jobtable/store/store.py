"""The store: typed verbs over a backend."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Self, TypeVar, overload

from jobtable.clock import SYSTEM_CLOCK, Clock
from jobtable.errors import (
    AlreadyExistsError,
    BackendUnavailable,
    ConditionalCheckFailed,
    ConditionFailedError,
    ConflictError,
    ErrorReason,
    RequestError,
    RequestRefused,
    TableNotFound,
    TransactionFailedError,
    ValueRefusedError,
    lacks_index,
)
from jobtable.model.conditions import AttributeIs, Condition, Placeholders, all_of, as_condition
from jobtable.model.entity import Entity
from jobtable.model.expressions import Attribute, Update, attribute_of
from jobtable.model.schema import KeySchema
from jobtable.model.selection import Selection
from jobtable.model.table import Table
from jobtable.store import requests
from jobtable.store.backend import (
    Backend,
    Item,
    Request,
    Response,
    StoreRequest,
    TakesEncodedItems,
    TellsChanges,
)
from jobtable.store.batches import Batches
from jobtable.store.capacity import CapacityMeter
from jobtable.store.changes import Feed
from jobtable.store.collections import entity_of, own_entity
from jobtable.store.projections import project, values_of
from jobtable.store.queries import Query
from jobtable.store.query_requests import Bounds, collection_request, query_request
from jobtable.store.requests import Target, Write
from jobtable.store.retries import Backoff, TryAgain, reason_to_retry
from jobtable.store.scans import Scan
from jobtable.store.tables import Tables
from jobtable.store.transactions import Transaction, transact_get

E = TypeVar("E", bound=Entity)
E2 = TypeVar("E2", bound=Entity)
E3 = TypeVar("E3", bound=Entity)
S = TypeVar("S")
T = TypeVar("T")
V = TypeVar("V")
V2 = TypeVar("V2")

_OPERATIONS = {
    "put": "PutItem",
    "add": "PutItem",
    "update": "UpdateItem",
    "upsert": "UpdateItem",
    "delete": "DeleteItem",
}


class Store:
    """Reads and writes entities on one backend. One verb for one act: get raises, find returns None, query streams.

    Reads by primary key are consistent unless `consistent=False`, which costs half on DynamoDB; those of `values` never
    are. Any thread may use a store. Requests that certainly did not take effect, and those that can be repeated without
    harm, are retried after a pause; others raise, because only the caller knows whether to repeat them.
    """

    def __init__(
        self, backend: Backend, *, prefix: str = "", clock: Clock = SYSTEM_CLOCK, backoff: Backoff | None = None
    ) -> None:
        self.backend = backend
        self.prefix = prefix
        self.clock = clock
        self.backoff = backoff or Backoff(clock=clock)
        self._contention = Backoff(
            attempts=20, first_seconds=0.002, most_seconds=0.2, clock=clock, random=self.backoff.random
        )
        self.capacity = CapacityMeter()
        self.takes_encoded_items = isinstance(backend, TakesEncodedItems)
        self.tables = Tables(self)
        self._batches = Batches(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the backend; nothing acknowledged is lost."""
        self.backend.close()

    def change_mark(self) -> object | None:
        """Return a value that stays the same as long as nobody writes; None if only reading can tell.

        To wait for a change, compare it, which takes microseconds, and read when it differs.
        """
        return self.backend.change_mark() if isinstance(self.backend, TellsChanges) else None

    def table_name(self, table: Table) -> str:
        """Return the name of a table on the backend."""
        return self.prefix + table.name

    # --- one item ---------------------------------------------------------------------------------------------------

    def get(self, selection: Selection[E], *, consistent: bool = True) -> E:
        """Return the entity under a primary key, or raise NotFoundError."""
        found = self.find(selection, consistent=consistent)
        if found is None:
            raise selection.entity.__schema__.missing(selection.equal)
        return found

    def find(self, selection: Selection[E], *, consistent: bool = True) -> E | None:
        """Return the entity under a primary key, or None."""
        schema = requests.selected(selection)
        request = StoreRequest(
            TableName=self.prefix + schema.table.name,
            Key=selection.whole_key(),
            ConsistentRead=consistent,
            ReturnConsumedCapacity="TOTAL",
        )
        item = self.ask("GetItem", request, selection.key.pattern).get("Item")
        found: E | None = None if item is None else own_entity(schema, item)
        return found

    def add(self, entity: Entity) -> None:
        """Store a new item, or raise AlreadyExistsError and change nothing."""
        write = requests.put(entity, None, verb="add", is_encoded=self.takes_encoded_items)
        try:
            self._write(write)
        except ConditionalCheckFailed as error:
            raise AlreadyExistsError(f"cannot {write.describe()}: it already exists") from error
        except BackendUnavailable:
            self._add_again(write, entity)

    def _add_again(self, write: Write, entity: Entity) -> None:
        """Send an add whose answer was lost again. If it had happened, it now finds its own item."""
        try:
            self._write(write, repeatable=True)
        except ConditionalCheckFailed as error:
            if write.schema.codec.decode(error.details["Item"]) != entity:
                raise AlreadyExistsError(f"cannot {write.describe()}: it already exists") from error

    def put(self, entity: Entity, *, when: Condition | bool | None = None) -> None:
        """Store a whole item, replacing one with the same key."""
        write = requests.put(entity, when, is_encoded=self.takes_encoded_items)
        if "ConditionExpression" in write.members:
            self._conditional(write)
        else:
            self._write(write, repeatable=True)

    def update(self, target: Selection[E] | E, *updates: Update, when: Condition | bool | None = None) -> E:
        """Change attributes of an existing item, index keys included, in one request; return the new state.

        Raises NotFoundError, or ConditionFailedError with the item as it is. Pass an entity that was read to supply the
        other fields of its index keys; the update then requires that they have not changed since.
        """
        write = requests.update(target, updates, when)
        response = self._conditional(write, "ALL_NEW")
        changed: E = write.schema.codec.decode(response["Attributes"])
        return changed

    def upsert(self, selection: Selection[E], *updates: Update, when: Condition | bool | None = None) -> E:
        """Change attributes of an item, or create it from the changes, in one request; return the new state.

        Refused before anything is sent if the changes lack a field that a new item needs.
        """
        write = requests.upsert(selection, updates, when)
        response = self._conditional(write, "ALL_NEW")
        made: E = write.schema.codec.decode(response["Attributes"])
        return made

    def delete(self, target: Target, *, when: Condition | bool | None = None) -> bool:
        """Delete an item; return whether it existed."""
        write = requests.delete(target, when)
        try:
            response = self._conditional(write, "ALL_OLD", repeatable=when is None)
        except ConditionFailedError as error:
            if when is None and not isinstance(error.current, write.schema.cls):
                return False  # what stands there is of an entity that has the same keys
            raise
        return "Attributes" in response

    # --- many items -------------------------------------------------------------------------------------------------

    def query(
        self,
        selection: Selection[E],
        *,
        after: Any = None,
        before: Any = None,
        between: tuple[Any, Any] | None = None,
        newest_first: bool = False,
        limit: int | None = None,
        where: Condition | bool | None = None,
        consistent: bool = True,
    ) -> Query[E]:
        """Return the entities of a selection in key order, lazily.

        `after` and `before` (both excluded) and `between` (both included) apply to the next field of the sort key after
        those of the selection.
        """
        request = query_request(
            selection, Bounds(after, before, between), where=where, newest_first=newest_first, consistent=consistent
        )
        schema, index = selection.entity.__schema__, selection.key.index
        is_whole = index is None or index.projection == "ALL"
        return Query(
            self._asker(selection.key.pattern),
            self._on_table(schema.table, request),
            schema.codec.decode if is_whole else partial(_refuse_part_of_item, selection.key),
            read_all_json=schema.codec.decode_all_json if is_whole else None,
            key=selection.key,
            schema=schema,
            limit=limit,
            only_type=schema.type_name if schema.table.type_attribute else None,
        )

    def collection(
        self,
        selection: Selection[Any],
        *,
        until: Selection[Any] | None = None,
        newest_first: bool = False,
        consistent: bool = True,
    ) -> Query[Entity]:
        """Return everything under a partition key, of any type, in key order, by one query.

        `until`, a selection of the same partition, limits the range: from the first item that `selection` can select to
        the last that `until` can select.
        """
        schema = requests.selected(selection)
        request = collection_request(selection, until, newest_first=newest_first, consistent=consistent)
        return Query(
            self._asker(f"{schema.name}.collection"),
            self._on_table(schema.table, request),
            lambda item: entity_of(schema.table, item),
            key=selection.key,
            schema=schema,
        )

    def count(self, selection: Selection[Any], *, where: Condition | bool | None = None, **bounds: Any) -> int:
        """Count the entities of a selection."""
        return self.query(selection, where=where, **bounds).count()

    @overload
    def values(
        self, selection: Selection[Any], attribute: Attribute[V], /, *, where: Condition | bool | None = None
    ) -> Query[V]: ...
    @overload
    def values(
        self,
        selection: Selection[Any],
        first: Attribute[V],
        second: Attribute[V2],
        /,
        *,
        where: Condition | bool | None = None,
    ) -> Query[tuple[V, V2]]: ...
    @overload
    def values(
        self, selection: Selection[Any], *attributes: Any, where: Condition | bool | None = None
    ) -> Query[Any]: ...
    def values(self, selection: Selection[Any], *attributes: Any, where: Condition | bool | None = None) -> Query[Any]:
        """Return only some attributes of the selected entities: a tuple each, or the bare value of a single one."""
        chosen = [attribute_of(attribute) for attribute in attributes]
        request = query_request(selection, Bounds(), where=where, newest_first=False, consistent=False)
        schema = selection.entity.__schema__
        return Query(
            self._asker(f"{selection.key.pattern}.values"),
            self._on_table(schema.table, project(request, chosen, schema)),
            lambda item: values_of(item, chosen),
            key=selection.key,
            schema=schema,
            only_type=schema.type_name if schema.table.type_attribute else None,
        )

    def scan(self, entity: type[E], *, segments: int = 1, where: Condition | bool | None = None) -> Iterator[E]:
        """Yield every entity of a type, unordered, in parallel segments. Reads the whole table: not for routine use."""
        schema = entity.__schema__
        condition = as_condition(where)
        if schema.table.type_attribute:
            condition = all_of(AttributeIs((schema.table.type_attribute,), {"S": schema.type_name}), condition)
        placeholders = Placeholders(schema=schema)
        request: Request = {} if condition is None else {"FilterExpression": condition.write(placeholders)}
        placeholders.add_to(request)
        scan = Scan(self._asker(f"{schema.name}.scan"), self._on_table(schema.table, request), segments)
        return (schema.codec.decode(item) for item in scan)

    def batch_get(self, selections: Iterable[Selection[E]], *, consistent: bool = True) -> list[E | None]:
        """Return the entities under many primary keys, in the order of the keys; None for missing ones."""
        return self._batches.get(list(selections), consistent=consistent)

    def batch_put(self, entities: Iterable[Entity]) -> int:
        """Store many items, each on its own; return their number. After an IncompleteBatchError some are stored."""
        return self._batches.put(entities)

    def batch_delete(self, targets: Iterable[Target]) -> int:
        """Delete many items, each on its own; return their number."""
        return self._batches.delete(targets)

    # --- all or nothing ---------------------------------------------------------------------------------------------

    def transaction(self, *, token: str | None = None) -> Transaction:
        """Open a block of up to 100 writes that happen together or not at all:

        with store.transaction() as tx:
            tx.add(status)
            tx.update(Job.key(job_id=j), Job.status.set("RUNNING"), when=Job.status == "PENDING")
        """
        return Transaction(self, token)

    @overload
    def get_together(self, first: Selection[E], second: Selection[E2], /) -> tuple[E | None, E2 | None]: ...
    @overload
    def get_together(
        self, first: Selection[E], second: Selection[E2], third: Selection[E3], /
    ) -> tuple[E | None, E2 | None, E3 | None]: ...
    @overload
    def get_together(self, *selections: Selection[Any]) -> tuple[Any, ...]: ...
    def get_together(self, *selections: Selection[Any]) -> tuple[Any, ...]:
        """Return up to 100 entities as of one instant; None for missing ones."""
        return transact_get(self, selections)

    # --- what changes -----------------------------------------------------------------------------------------------

    def changes(self, table: Table, *, after: str | None = None) -> Feed:
        """Return the feed of a table with a stream, from now on or after the cursor of an earlier feed."""
        return Feed(self, table, after)

    # --- asking the backend -----------------------------------------------------------------------------------------

    def retrying(
        self,
        read: Callable[[], S],
        act: Callable[[S], T],
        what: str,
        *,
        first: Any = None,
        retry_if: Callable[[ConditionFailedError | TransactionFailedError], bool] | None = None,
        backoff: Backoff | None = None,
    ) -> T:
        """Return what `act` makes of the state that `read` returns; repeat both while the state changes in between.

        `act` reports a change by ConditionFailedError, TransactionFailedError or `TryAgain`, and must then have changed
        nothing. With `retry_if`, only conflicts for which it returns true are retried. The first retries are almost
        immediate; after the last, ConflictError says that `what` (such as "seal group 7") was not possible. `first` is
        a state that was already read.
        """
        state: S = read() if first is None else first
        pauses = (backoff or self._contention).pauses()
        while True:
            try:
                return act(state)
            except (ConditionFailedError, TransactionFailedError, TryAgain) as error:
                reason = reason_to_retry(error)
                if reason is None or not (retry_if is None or isinstance(error, TryAgain) or retry_if(error)):
                    raise
                if next(pauses, None) is None:
                    raise ConflictError(f"could not {what}: {reason}", hint="try again") from error
            state = read()

    def ask(
        self, operation: str, request: Request, pattern: str, *, writes: bool = False, repeatable: bool = True
    ) -> Response:
        """Send one request, retried if that is safe, and count its capacity under the access pattern."""
        try:
            response = self.backend.execute(operation, request)
        except TableNotFound as error:
            if not (names := " or ".join(_tables_of(request))):  # a request to a stream names no table
                raise
            raise TableNotFound(
                f"{error.message}: {names}",
                code=error.code,
                hint="create it with store.tables.create(...), or with `jobtable tables create`",
                reason=ErrorReason.TABLE_MISSING,
            ) from error
        except RequestError as error:
            if lacks_index(error):
                hint = "add it with store.tables.update(...), or with `jobtable tables update`"
                raise RequestRefused(error.message, hint=hint, reason=ErrorReason.INDEX_MISSING) from error
            again = self.backend.execute
            response = self.backoff.again(lambda: again(operation, request), error, repeatable=repeatable)
        self.capacity.record(pattern, response, writes=writes)
        return response

    def _asker(self, pattern: str) -> Callable[[str, Request], Response]:
        return lambda operation, request: self.ask(operation, request, pattern)

    def _on_table(self, table: Table, request: Request) -> Request:
        return {"TableName": self.table_name(table), **request, "ReturnConsumedCapacity": "TOTAL"}

    def _write(self, write: Write, returned: str | None = None, *, repeatable: bool = False) -> Response:
        name = self.prefix + write.schema.table.name
        request = StoreRequest(TableName=name, **write.members, ReturnConsumedCapacity="TOTAL")
        if "ConditionExpression" in request:
            request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        if returned is not None:
            request["ReturnValues"] = returned
        pattern = f"{write.schema.name}.{write.verb}"
        return self.ask(_OPERATIONS[write.verb], request, pattern, writes=True, repeatable=repeatable)

    def _conditional(self, write: Write, returned: str | None = None, *, repeatable: bool = False) -> Response:
        try:
            return self._write(write, returned, repeatable=repeatable)
        except ConditionalCheckFailed as error:
            item = error.details.get("Item")
            if not item:
                raise write.schema.missing(write.key) from error
            current = entity_of(write.schema.table, item)
            raise ConditionFailedError(f"cannot {write.describe()}: its condition is not met", current) from error


def _tables_of(request: Request) -> list[str]:
    """The tables that a request names, wherever they stand in it."""
    actions = [inside for action in request.get("TransactItems", ()) for inside in action.values()]
    named = [each["TableName"] for each in (request, *actions) if "TableName" in each]
    return sorted({*named, *request.get("RequestItems", ())})


def _refuse_part_of_item(key: KeySchema, _: Item) -> Any:
    """What is missing in an entry would be read as a default, and lost when the entity is written back."""
    name = key.index.name if key.index else key.name
    raise ValueRefusedError(
        f"index {name} does not contain whole items, so {key.pattern} cannot return a {key.owner};"
        " read `values` that it contains, or get the items by their keys"
    )
