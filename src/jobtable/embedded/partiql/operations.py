"""ExecuteStatement, BatchExecuteStatement and ExecuteTransaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from pydantic_core import from_json

from jobtable.embedded import transactions
from jobtable.embedded.items import Read, check_projection, run_write
from jobtable.embedded.key_checks import SchemaMismatch, key_position
from jobtable.embedded.partiql import syntax
from jobtable.embedded.partiql.selections import index_of, plan_of, projection_of, read
from jobtable.embedded.partiql.statement_parser import parse
from jobtable.embedded.partiql.statement_writes import (
    duplicate_key,
    find_single_key,
    prepare_write,
    returned_by,
    table_of,
)
from jobtable.embedded.partiql.terms import Terms, parameters_of
from jobtable.embedded.request_checks import Tables, check_members
from jobtable.embedded.request_model import REQUESTS, STRUCTURES
from jobtable.embedded.storage import Storage
from jobtable.embedded.units import read_report, wanted_capacity
from jobtable.embedded.wordings import in_words_of, lower_first
from jobtable.embedded.writes import Write
from jobtable.errors import ConditionalCheckFailed, RequestError, RequestRefused, TableNotFound, TransactionCanceled
from jobtable.store.backend import AttributeValue, Item, Request, Response


@dataclass(frozen=True, slots=True)
class Given:
    """One statement of a request that has several."""

    number: int
    request: Request
    parsed: syntax.Parsed
    parameters: Sequence[AttributeValue]

    def terms(self) -> Terms:
        """Return its names and values; RequestRefused if a parameter is missing."""
        return Terms(self.parsed, self.parameters)

    def is_read(self) -> bool:
        """Whether it reads. EXISTS belongs to writes."""
        return isinstance(self.parsed.statement, syntax.SelectStatement)


def _requests_of(request: Request, member: str, most: int, structure: str) -> list[Request]:
    """Return the statements of a request with their options; RequestRefused for an invalid number or form."""
    bodies = transactions.check_number(request, member, most, "statements")
    for number, body in enumerate(bodies, 1):
        check_members(body, STRUCTURES[structure], f"{lower_first(member)}.{number}.member.")
    return bodies


def given(number: int, body: Request, parameters: Sequence[AttributeValue]) -> Given:
    return Given(number, body, parse(body["Statement"]), parameters)


def _short_code(fault: RequestError) -> str:
    """Return the name of a fault in batches and in the reasons of a cancelled transaction."""
    code = fault.code.removesuffix("Exception")
    return "ValidationError" if code == "Validation" else code


def prepare_read(tables: Tables, select: syntax.SelectStatement, terms: Terms, otherwise: str) -> Read:
    """Prepare a SELECT of one item; RequestRefused with the message `otherwise` for another one."""
    projection = projection_of(select.paths)
    table = table_of(tables, select.source)
    index = index_of(table, select)
    found = None if index else find_single_key(table, select.where, terms)
    if found is None or found[1] is not None:
        raise RequestRefused(otherwise)
    check_projection(table, projection)
    return table, key_position(table, found[0]), projection


def _read_one(storage: Storage, request: Request, read: Read) -> Response:
    """Read the item, and answer as GetItem does."""
    table, position, projection = read
    found = storage.sized(table, position)
    response: Response = {}
    if found is not None:
        item: Item = from_json(found[0])
        response["Item"] = item if projection is None else projection.apply(item)
    consumed = read_report(request, table.name, 0 if found is None else found[1])
    if consumed is not None:
        response["ConsumedCapacity"] = consumed
    return response


def execute_statement(storage: Storage, request: Request) -> Response:
    """Run one statement."""
    check_members(request, REQUESTS["ExecuteStatement"])
    parameters = parameters_of(request)
    parsed = parse(request["Statement"])
    terms = Terms(parsed, parameters)
    match parsed.statement:
        case syntax.SelectStatement() as select:
            return read(storage, request, plan_of(storage, select, terms, request))
        case syntax.ExistsStatement():
            raise RequestRefused("EXISTS can only be used in ExecuteTransaction write requests.")
        case statement:
            return _run_statement(storage, statement, terms, request)


def _run_statement(
    storage: Storage,
    statement: syntax.InsertStatement | syntax.UpdateStatement | syntax.DeleteStatement,
    terms: Terms,
    request: Request,
) -> Response:
    write = prepare_write(storage, statement, terms, request)
    wanted = {
        "TableName": write.table.name,
        "ReturnConsumedCapacity": request.get("ReturnConsumedCapacity"),
        "ReturnValues": returned_by(statement),
    }
    try:
        done = run_write(storage, wanted, write)
    except ConditionalCheckFailed as failure:
        if isinstance(statement, syntax.InsertStatement):
            raise duplicate_key() from failure
        raise
    response: Response = {"Items": [done["Attributes"]] if "Attributes" in done else []}
    if "ConsumedCapacity" in done:
        response["ConsumedCapacity"] = done["ConsumedCapacity"]
    return response


_MAX_STATEMENTS = 25
_FAULTS = (RequestRefused, TableNotFound, ConditionalCheckFailed)  # the faults that refuse a single statement

_NO_KEY_IN_BATCH = "Select statements within BatchExecuteStatement must specify the primary key in the where clause."

_Prepared: TypeAlias = tuple[Given, Read | Write]


def batch_execute_statement(storage: Storage, request: Request) -> Response:
    """Run up to 25 reads of single items or 25 writes, with an answer or an error for each."""
    check_members(request, REQUESTS["BatchExecuteStatement"])
    bodies = _requests_of(request, "Statements", _MAX_STATEMENTS, "BatchStatementRequest")
    parsed = [_given_or_fault(number, body) for number, body in enumerate(bodies)]
    if len({one.is_read() for one in parsed if isinstance(one, Given)}) > 1:
        raise RequestRefused("Read and write requests together in the same batch is not supported.")
    prepared = [one if isinstance(one, RequestError) else _prepared_in_batch(storage, one) for one in parsed]
    actions = [one[1] for one in prepared if not isinstance(one, RequestError)]
    places = [(one.table.id, one.position) if isinstance(one, Write) else (one[0].id, one[1]) for one in actions]
    if len(set(places)) < len(places):
        raise RequestRefused("Provided list of item keys contains duplicates")
    responses: list[dict[str, Any]] = []
    consumed: list[dict[str, Any]] = []
    for one in prepared:
        response = _refusal(one) if isinstance(one, RequestError) else _done(storage, request, *one)
        units = response.pop("ConsumedCapacity", None)
        if units is not None:
            consumed.append(units)
        responses.append(response)
    return {"Responses": responses, "ConsumedCapacity": consumed} if consumed else {"Responses": responses}


def _given_or_fault(number: int, body: Request) -> Given | RequestError:
    try:
        return given(number, body, parameters_of(body))
    except RequestRefused as fault:
        if fault.code != RequestRefused.code:
            raise  # A value of another JSON type: the whole request is unreadable.
        return fault


def _prepared_in_batch(storage: Storage, one: Given) -> _Prepared | RequestError:
    try:
        match one.parsed.statement:
            case syntax.SelectStatement() as select:
                return one, prepare_read(storage, select, one.terms(), _NO_KEY_IN_BATCH)
            case syntax.ExistsStatement():
                raise RequestRefused("EXISTS can only be used in ExecuteTransaction write requests.")
            case statement:
                return one, prepare_write(storage, statement, one.terms(), one.request)
    except _FAULTS as fault:
        return fault


def _done(storage: Storage, request: Request, one: Given, action: Read | Write) -> dict[str, Any]:
    table = action.table if isinstance(action, Write) else action[0]
    wanted = {
        "TableName": table.name,
        "ReturnConsumedCapacity": request.get("ReturnConsumedCapacity"),
        "ReturnValues": returned_by(one.parsed.statement),
        "ConsistentRead": one.request.get("ConsistentRead"),
    }
    response: dict[str, Any] = {"TableName": table.name}
    try:
        done = run_write(storage, wanted, action) if isinstance(action, Write) else _read_one(storage, wanted, action)
    except _FAULTS as fault:
        is_insert = isinstance(one.parsed.statement, syntax.InsertStatement) and isinstance(
            fault, ConditionalCheckFailed
        )
        return response | _refusal(duplicate_key() if is_insert else fault)
    item = done.get("Attributes", done.get("Item"))
    if item is not None:
        response["Item"] = item
    if "ConsumedCapacity" in done:
        response["ConsumedCapacity"] = done["ConsumedCapacity"]
    return response


def _refusal(refused: RequestError) -> dict[str, Any]:
    fault = in_words_of("BatchExecuteStatement", refused)
    return {"Error": {"Code": _short_code(fault), "Message": fault.message, **fault.details}}


_NO_KEY_IN_TRANSACTION = "Select statements within ExecuteTransaction must specify the primary key in the where clause."


def execute_transaction(storage: Storage, request: Request) -> Response:
    """Read up to 100 single items at one moment, or run up to 100 writes and checks, atomically."""
    check_members(request, REQUESTS["ExecuteTransaction"])
    bodies = _requests_of(request, "TransactStatements", transactions.MAX_ACTIONS, "ParameterizedStatement")
    parameters = [parameters_of(body) for body in bodies]
    statements = []
    for number, body in enumerate(bodies):
        try:
            statements.append(given(number, body, parameters[number]))
        except RequestRefused as fault:
            raise _placed(number, fault) from fault
    if len({one.is_read() for one in statements}) > 1:
        raise RequestRefused(
            "ExecuteTransaction API does not support both read and write operations in the same request."
        )
    prepared = transactions.prepare_actions(storage, [(_in_place(one), one.request) for one in statements])
    if statements[0].is_read():
        return _transact_reads(storage, request, [one for one in prepared if not isinstance(one, Write)])
    return _transact_writes(storage, request, statements, [one for one in prepared if isinstance(one, Write)])


def _transact_reads(storage: Storage, request: Request, reads: list[Read]) -> Response:
    transactions.refuse_same_item([(table, position) for table, position, _ in reads])
    items, consumed = transactions.read_items(storage, reads)
    response: Response = {"Responses": [{} if item is None else {"Item": item} for item in items]}
    capacity = wanted_capacity(request)
    if capacity:
        response["ConsumedCapacity"] = transactions.report_reads(consumed, capacity, {})
    return response


def _transact_writes(storage: Storage, request: Request, statements: list[Given], writes: list[Write]) -> Response:
    transactions.check_payload([len(one.request["Statement"]) for one in statements], writes)
    transactions.refuse_same_item([(write.table, write.position) for write in writes])
    run = transactions.WriteRun(writes, [], request, _text_of(statements))
    try:
        storage.write(run)
    except TransactionCanceled as cancellation:
        raise _in_words_of(statements, cancellation) from cancellation
    return {"Responses": [], **run.response()}


def _prepared_in_transaction(tables: Tables, one: Given) -> Read | Write:
    statement = one.parsed.statement
    if isinstance(statement, syntax.SelectStatement):
        if statement.source.index is not None:
            raise RequestRefused("Reads on indices are not supported within transactions.")
        return prepare_read(tables, statement, one.terms(), _NO_KEY_IN_TRANSACTION)
    if returned_by(statement) is not None:
        raise RequestRefused("RETURNING clause is not supported in ExecuteTransaction.")
    return prepare_write(tables, statement, one.terms(), one.request)


def _in_place(one: Given) -> Callable[[Tables, Request], Read | Write]:
    """Return the preparation of a statement, whose faults name its place; those of its key cancel the transaction."""

    def prepared(tables: Tables, request: Request) -> Read | Write:
        try:
            return _prepared_in_transaction(tables, one)
        except SchemaMismatch:
            raise
        except RequestRefused as fault:
            raise _placed(one.number, fault) from fault

    return prepared


def _placed(number: int, refused: RequestRefused) -> RequestRefused:
    """Return the fault of a statement with its place."""
    fault = in_words_of("ExecuteTransaction", refused)
    return RequestRefused(f"Validation failed in TransactStatements[{number}]: {fault.message}", code=fault.code)


def _text_of(statements: list[Given]) -> bytes:
    """Return what two requests with one token must have in common."""
    said = [(one.request["Statement"], one.request.get("Parameters")) for one in statements]
    return json.dumps(said, sort_keys=True).encode()


def _in_words_of(statements: list[Given], cancellation: TransactionCanceled) -> TransactionCanceled:
    """Return the cancellation with the reason of a failed INSERT: an existing item, not a condition."""
    reasons: list[dict[str, Any]] = []
    for one, reason in zip(statements, cancellation.details["CancellationReasons"], strict=True):
        is_insert = (
            isinstance(one.parsed.statement, syntax.InsertStatement) and reason["Code"] == "ConditionalCheckFailed"
        )
        fault = duplicate_key()
        reasons.append({"Code": _short_code(fault), "Message": fault.message} if is_insert else reason)
    return transactions.cancelled_for(reasons)
