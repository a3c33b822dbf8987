"""ExecuteTransaction: all of the statements, or none."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from jobtable.embedded.items import Read
from jobtable.embedded.keys import SchemaMismatch
from jobtable.embedded.partiql.single_reads import prepare_read
from jobtable.embedded.partiql.statements import MEMBERS, Given, given, requests_of, short_code
from jobtable.embedded.partiql.syntax import Insert, Select
from jobtable.embedded.partiql.terms import parameters_of
from jobtable.embedded.partiql.writes import duplicate_key, prepare_write, returned_by
from jobtable.embedded.requests import CAPACITY, Member, Tables, check_members
from jobtable.embedded.storage import Storage
from jobtable.embedded.transaction_actions import MAX_ACTIONS, cancelled_for, prepare_actions, refuse_same_item
from jobtable.embedded.transactions import CLIENT_REQUEST_TOKEN, WriteRun, check_payload, read_items, report_reads
from jobtable.embedded.units import wanted_capacity
from jobtable.embedded.wordings import in_words_of
from jobtable.embedded.writes import Write
from jobtable.errors import RequestRefused, TransactionCanceled
from jobtable.store.backend import AttributeValue, Request, Response

_MEMBERS = {
    "TransactStatements": Member(list, required=True),
    "ClientRequestToken": CLIENT_REQUEST_TOKEN,
    "ReturnConsumedCapacity": CAPACITY,
}
_NO_KEY = "Select statements within ExecuteTransaction must specify the primary key in the where clause."


def execute_transaction(storage: Storage, request: Request) -> Response:
    """Up to 100 reads of single items as they were at one moment, or up to 100 writes and checks, atomically."""
    check_members(request, _MEMBERS)
    bodies = requests_of(request, "TransactStatements", MAX_ACTIONS, MEMBERS)
    parameters = [parameters_of(body) for body in bodies]
    statements = [_given(number, body, parameters[number]) for number, body in enumerate(bodies)]
    if len({one.is_read() for one in statements}) > 1:
        raise RequestRefused(
            "ExecuteTransaction API does not support both read and write operations in the same request."
        )
    prepared = prepare_actions(storage, [(_in_place(one), one.request) for one in statements])
    if statements[0].is_read():
        return _read(storage, request, [one for one in prepared if not isinstance(one, Write)])
    return _write(storage, request, statements, [one for one in prepared if isinstance(one, Write)])


def _given(number: int, body: Request, parameters: Sequence[AttributeValue]) -> Given:
    try:
        return given(number, body, parameters)
    except RequestRefused as fault:
        raise _placed(number, fault) from fault


def _read(storage: Storage, request: Request, reads: list[Read]) -> Response:
    refuse_same_item([(table, position) for table, position, _ in reads])
    items, consumed = read_items(storage, reads)
    response: Response = {"Responses": [{} if item is None else {"Item": item} for item in items]}
    capacity = wanted_capacity(request)
    if capacity:
        response["ConsumedCapacity"] = report_reads(consumed, capacity, {})
    return response


def _write(storage: Storage, request: Request, statements: list[Given], writes: list[Write]) -> Response:
    check_payload([len(one.request["Statement"]) for one in statements], writes)
    refuse_same_item([(write.table, write.position) for write in writes])
    run = WriteRun(writes, [], request, _text_of(statements))
    try:
        storage.write(run)
    except TransactionCanceled as cancellation:
        raise _in_words_of(statements, cancellation) from cancellation
    return {"Responses": [], **run.response()}


def _prepared(tables: Tables, one: Given) -> Read | Write:
    statement = one.parsed.statement
    if isinstance(statement, Select):
        if statement.source.index is not None:
            raise RequestRefused("Reads on indices are not supported within transactions.")
        return prepare_read(tables, statement, one.terms(), _NO_KEY)
    if returned_by(statement) is not None:
        raise RequestRefused("RETURNING clause is not supported in ExecuteTransaction.")
    return prepare_write(tables, statement, one.terms(), one.request)


def _in_place(one: Given) -> Callable[[Tables, Request], Read | Write]:
    """The preparation of a statement, whose faults say where it stands; those of its key cancel the transaction."""

    def prepared(tables: Tables, request: Request) -> Read | Write:
        try:
            return _prepared(tables, one)
        except SchemaMismatch:
            raise
        except RequestRefused as fault:
            raise _placed(one.number, fault) from fault

    return prepared


def _placed(number: int, refused: RequestRefused) -> RequestRefused:
    """The fault of a statement, which says where that stands."""
    fault = in_words_of("ExecuteTransaction", refused)
    return RequestRefused(f"Validation failed in TransactStatements[{number}]: {fault.message}", code=fault.code)


def _text_of(statements: list[Given]) -> bytes:
    """What two requests with one token must have in common."""
    said = [(one.request["Statement"], one.request.get("Parameters")) for one in statements]
    return json.dumps(said, sort_keys=True).encode()


def _in_words_of(statements: list[Given], cancellation: TransactionCanceled) -> TransactionCanceled:
    """The cancellation, in which an INSERT fails because there is an item, not because of a condition."""
    reasons: list[dict[str, Any]] = []
    for one, reason in zip(statements, cancellation.details["CancellationReasons"], strict=True):
        is_insert = isinstance(one.parsed.statement, Insert) and reason["Code"] == "ConditionalCheckFailed"
        fault = duplicate_key()
        reasons.append({"Code": short_code(fault), "Message": fault.message} if is_insert else reason)
    return cancelled_for(reasons)
