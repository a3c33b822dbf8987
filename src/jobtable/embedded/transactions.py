"""TransactWriteItems and TransactGetItems: all of the actions, or none."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeAlias, TypeVar

from pydantic_core import from_json, to_json

from jobtable.embedded.batches import collections_of
from jobtable.embedded.items import Read, prepare_read
from jobtable.embedded.key_checks import EmptyKeyValue, SchemaMismatch
from jobtable.embedded.request_checks import Lookup, Tables, check_members
from jobtable.embedded.request_model import REQUESTS, STRUCTURES, table_of_arn
from jobtable.embedded.shapes import Limits, missing_member
from jobtable.embedded.storage import Sized, Storage, Transaction
from jobtable.embedded.table_schema import TableSchema
from jobtable.embedded.units import (
    TRANSACTIONAL,
    Split,
    TableUnits,
    read_units,
    wanted_capacity,
    wants_collection_metrics,
)
from jobtable.embedded.wordings import TooDeep, constraint, constraints_broken, expect_type, lower_first
from jobtable.embedded.writes import Kind, Write, prepare, prepare_known, read_olds
from jobtable.errors import (
    ConditionalCheckFailed,
    IdempotencyMismatch,
    RequestError,
    RequestRefused,
    TransactionCanceled,
)
from jobtable.store.backend import EncodedItem, Item, Request, Response, StoreRequest
from jobtable.store.sizes import item_size

MAX_ACTIONS = 100
_ONE_ITEM_TWICE = "Transaction request cannot include multiple operations on one item"

T = TypeVar("T")


def check_number(request: Request, member: str, most: int, what: str) -> list[Any]:
    """Return the actions or statements of a request, or raise RequestRefused if they are too many or none."""
    given: list[Any] = request[member]
    rules = Limits(least=1, most=most).broken(given)
    if rules:
        shown = f"'[{len(given)} {what}]'" if given else "'[]'"
        raise constraints_broken([constraint(lower_first(member), shown, rule) for rule in rules])
    return given


def prepare_actions(storage: Storage, actions: Sequence[tuple[Callable[[Tables, Request], T], Request]]) -> list[T]:
    """Prepare the actions.

    A fault refuses all of them: first one of an action itself, then one that a table shows. Only then does a key that
    does not fit its schema cancel the transaction; only the first is reported, and no item is read.
    """
    prepared: list[T] = []
    found_in_table: RequestError | None = None
    unfit: tuple[int, SchemaMismatch] | None = None
    for number, (prepared_by, body) in enumerate(actions):
        tables = Lookup(storage)
        try:
            prepared.append(prepared_by(tables, body))
        except SchemaMismatch as error:
            unfit = unfit or (number, error)
        except RequestError as error:
            if not tables.is_asked:
                if isinstance(error, TooDeep):
                    _refuse_expressions(storage, prepared_by, body)
                raise
            found_in_table = found_in_table or error
    if found_in_table is not None:
        raise found_in_table
    if unfit is not None:
        raise cancelled([unfit[1] if number == unfit[0] else None for number in range(len(actions))]) from unfit[1]
    return prepared


def _refuse_expressions(storage: Storage, prepare: Callable[[Tables, Request], object], body: Request) -> None:
    """Raise RequestRefused for the expressions of an action, which are checked before a key that is nested too deep."""
    tables = Lookup(storage)
    try:
        prepare(tables, {**body, "Key": {}})
    except RequestError:
        if not tables.is_asked:
            raise


def refuse_same_item(targets: Sequence[tuple[TableSchema, bytes]]) -> None:
    """Raise RequestRefused if two actions are about one item."""
    if len({(table.id, position) for table, position in targets}) < len(targets):
        raise RequestRefused(_ONE_ITEM_TWICE)


def cancelled(outcomes: Sequence[object]) -> TransactionCanceled:
    """Return the error for a transaction of which some outcomes are errors."""
    return cancelled_for([_reason(one) if isinstance(one, RequestError) else {"Code": "None"} for one in outcomes])


def cancelled_for(reasons: Sequence[dict[str, Any]]) -> TransactionCanceled:
    """Return the error for a transaction with one reason for each action, of which some are none."""
    codes = ", ".join(reason["Code"] for reason in reasons)
    return TransactionCanceled(
        f"Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]",
        details={"CancellationReasons": list(reasons)},
    )


def _reason(error: RequestError) -> dict[str, Any]:
    code = "ConditionalCheckFailed" if isinstance(error, ConditionalCheckFailed) else "ValidationError"
    return {"Code": code, "Message": error.message, **error.details}


def given_names(actions: Iterable[Request]) -> dict[str, str]:
    """Return the ARNs by which actions name tables, by the tables' names: answers name a table as the request did."""
    named = [action["TableName"] for action in actions if action["TableName"].startswith("arn:")]
    return {table_of_arn(arn) or arn: arn for arn in named}


MAX_BYTES = 4 * 1024 * 1024


def transact_write_items(storage: Storage, request: Request) -> Response:
    """Check, put, update and delete up to 100 items, atomically; at most once for a ClientRequestToken."""
    writes, actions, text = _prepared_known(storage, request) or _prepared(storage, request)
    refuse_same_item([(write.table, write.position) for write in writes])
    run = WriteRun(writes, actions, request, text)
    storage.write(run)
    return run.response()


_Actions: TypeAlias = list[tuple[str, Request]]  # the actions of a request, each with its kind
_Prepared: TypeAlias = tuple[list[Write], _Actions, bytes]
"""The writes, their actions, and what two requests with one token must have in common: all but the order of members and
nulls.
"""


def _prepared_known(storage: Storage, request: Request) -> _Prepared | None:
    """Prepare a StoreRequest that is certainly not too large; None for another request."""
    if type(request) is not StoreRequest:
        return None
    named = [next(iter(action.items())) for action in request["TransactItems"]]
    text = _text_of(named)
    if len(text) > MAX_BYTES:
        return None
    return prepare_actions(storage, [(partial(prepare_known, _KINDS[kind]), body) for kind, body in named]), named, text


def _text_of(named: _Actions) -> bytes:
    """Encode all that a StoreRequest asks for. Items that are JSON already follow the rest."""
    bare: _Actions = []
    items: list[bytes] = []
    for kind, body in named:
        item = body.get("Item")
        if type(item) is EncodedItem:
            items.append(item.body)
            bare.append((kind, {**body, "Item": None}))
        else:
            bare.append((kind, body))
    return to_json(bare) + b"".join(items)


def _prepared(storage: Storage, request: Request) -> _Prepared:
    check_members(request, REQUESTS["TransactWriteItems"])
    named = [
        _named_action(number, action)
        for number, action in enumerate(check_number(request, "TransactItems", MAX_ACTIONS, "actions"), 1)
    ]
    prepared = [(partial(prepare, _KINDS[kind], is_in_transaction=True), body) for kind, body in named]
    writes = prepare_actions(storage, prepared)
    texts = [(body.get("UpdateExpression") or "") + (body.get("ConditionExpression") or "") for _, body in named]
    check_payload(list(map(len, texts)), writes)
    return writes, named, b"" if request.get("ClientRequestToken") is None else _in_order(named)


def _named_action(number: int, action: Any) -> tuple[str, Request]:
    expect_type(action, dict)
    kinds = [kind for kind, body in action.items() if body is not None and kind in _KINDS]
    if not kinds:
        raise RequestRefused("Invalid Request: TransactWriteRequest should contain Delete or Put or Update request")
    if len(kinds) > 1:
        raise RequestRefused("TransactItems can only contain one of Check, Put, Update or Delete")
    [kind] = kinds
    body: Request = action[kind]
    check_members(body, STRUCTURES[kind], f"transactItems.{number}.member.{lower_first(kind)}.")
    return kind, body


_KINDS: dict[str, Kind] = {"Put": "put", "Update": "update", "Delete": "delete", "ConditionCheck": "check"}


def check_payload(text_sizes: Sequence[int], writes: Sequence[Write]) -> None:
    """Raise RequestRefused if the writes, whose expressions have these sizes, are too large together."""
    total = 0
    for text_size, write in zip(text_sizes, writes, strict=True):
        total += write.put.size or item_size(write.key)
        total += write.values_size + text_size
        if total > MAX_BYTES:
            raise RequestRefused(f"Transaction payload size cannot exceed 4MB. Payload Size: {total}")


def _outcome(write: Write, old: Sized) -> Sized | RequestError:
    """Return the item after a write, or the error that prevents it."""
    try:
        return write.new(old)
    except EmptyKeyValue:
        raise
    except (ConditionalCheckFailed, RequestRefused) as error:
        return error


class WriteRun:
    """One transaction of writes, which the storage runs, and its response."""

    def __init__(self, writes: list[Write], actions: _Actions, request: Request, text: bytes) -> None:
        self._writes = writes
        self._actions = actions
        self._token: str | None = request.get("ClientRequestToken")
        self._identity = hashlib.sha256(text).digest()
        self._capacity = wanted_capacity(request)
        self._wants_metrics = wants_collection_metrics(request)
        self._consumed: dict[str, TableUnits] = {}
        self._split: Split = "WriteCapacityUnits"
        self._metrics: dict[str, list[dict[str, Any]]] = {}

    def __call__(self, transaction: Transaction) -> None:
        self._consumed, self._metrics = {}, {}
        if self._token is not None:
            known = transaction.token(self._token)
            if known is not None:
                self._replay(known)
                return
        olds = read_olds(transaction, self._writes)
        outcomes = [_outcome(write, old) for write, old in zip(self._writes, olds, strict=True)]
        news = [outcome for outcome in outcomes if not isinstance(outcome, RequestError)]
        if len(news) < len(outcomes):
            raise cancelled(outcomes)
        with transaction.together():
            for write, old, new in zip(self._writes, olds, news, strict=True):
                changes = write.apply(transaction, old, new)
                if self._capacity:
                    self._units_of(write.table.name).add_write(old, new, changes, TRANSACTIONAL)
        if self._wants_metrics:
            self._measure_collections(transaction)
        if self._token is not None:
            transaction.remember(self._token, self._identity, _units_of_replay(self._writes, news))

    def _units_of(self, table_name: str) -> TableUnits:
        units = self._consumed.get(table_name)
        if units is None:
            units = self._consumed[table_name] = TableUnits()
        return units

    def response(self) -> Response:
        """Return the response, after the transaction has been run."""
        response: Response = {}
        if self._capacity:
            given = given_names(body for _, body in self._actions)
            response["ConsumedCapacity"] = [
                units.report(given.get(name, name), self._capacity, self._split)
                for name, units in self._consumed.items()
            ]
        if self._metrics:
            response["ItemCollectionMetrics"] = self._metrics
        return response

    def _measure_collections(self, transaction: Transaction) -> None:
        written = [write for write in self._writes if write.kind != "check"]
        for name in dict.fromkeys(write.table.name for write in written):
            found = collections_of(transaction, [write for write in written if write.table.name == name])
            if found:
                self._metrics[name] = found

    def _replay(self, known: tuple[bytes, bytes]) -> None:
        """Answer for a transaction that was committed before: only reading it is charged."""
        identity, read_units_by_table = known
        if identity != self._identity:
            raise IdempotencyMismatch(
                f"The ClientRequestToken {self._token} was used in the last 10 minutes with other actions; use a new"
                " token for another transaction"
            )
        self._split = "ReadCapacityUnits"
        self._consumed = {name: TableUnits(units) for name, units in from_json(read_units_by_table).items()}


def _in_order(named: _Actions) -> bytes:
    """Encode the actions as JSON that does not depend on the order of their members, nor on null members."""
    given = [(kind, {name: _whole(value) for name, value in body.items() if value is not None}) for kind, body in named]
    # They have been validated, so they have no cycles.
    return json.JSONEncoder(sort_keys=True, check_circular=False).encode(given).encode()


def _whole(value: Any) -> Any:
    return value.whole() if type(value) is EncodedItem else value


def _units_of_replay(writes: Sequence[Write], news: Sequence[Sized]) -> bytes:
    units: dict[str, float] = {}
    for write, new in zip(writes, news, strict=True):
        read = read_units(new.size, TRANSACTIONAL)
        units[write.table.name] = units.get(write.table.name, 0.0) + read
    return to_json(units)


def transact_get_items(storage: Storage, request: Request) -> Response:
    """Return up to 100 items as of one moment."""
    check_members(request, REQUESTS["TransactGetItems"])
    bodies = [
        _get_action(number, action)
        for number, action in enumerate(check_number(request, "TransactItems", MAX_ACTIONS, "actions"), 1)
    ]
    reads = prepare_actions(storage, [(partial(prepare_read, is_in_transaction=True), body) for body in bodies])
    refuse_same_item([(table, position) for table, position, _ in reads])
    items, consumed = read_items(storage, reads)
    # An empty projection has no Item either.
    response: Response = {"Responses": [{"Item": item} if item else {} for item in items]}
    capacity = wanted_capacity(request)
    if capacity:
        response["ConsumedCapacity"] = report_reads(consumed, capacity, given_names(bodies))
    return response


def read_items(storage: Storage, reads: Sequence[Read]) -> tuple[list[Item | None], dict[str, TableUnits]]:
    """Return the projected items as of one moment (None for a missing one), and the units by table."""
    items: list[Item | None] = []
    consumed: dict[str, TableUnits] = {}
    total = 0
    with storage.read() as view:
        for table, position, projection in reads:
            found = view.sized(table, position)
            item: Item | None = None if found is None else from_json(found[0])
            size = 0 if found is None else found[1]
            total += size
            if total > MAX_BYTES:
                raise RequestRefused(f"Payload in response is too large.{total}")
            consumed.setdefault(table.name, TableUnits()).table += read_units(size, TRANSACTIONAL)
            items.append(item if item is None or projection is None else projection.apply(item))
    return items, consumed


def report_reads(consumed: dict[str, TableUnits], capacity: str, given: dict[str, str]) -> list[dict[str, Any]]:
    """Return the ConsumedCapacity of a transaction of reads; `given` are the names of tables in the request."""
    return [units.report(given.get(name, name), capacity, "ReadCapacityUnits") for name, units in consumed.items()]


def _get_action(number: int, action: Any) -> Request:
    expect_type(action, dict)
    path = f"transactItems.{number}.member."
    body: Request | None = action.get("Get")
    if body is None:
        raise constraints_broken([missing_member(path, "Get")])
    check_members(body, STRUCTURES["Get"], path + "get.")
    return body
