"""BatchExecuteStatement: reads of single items, or writes. Each succeeds or fails by itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from jobtable.embedded.items import Read, run_write
from jobtable.embedded.partiql.single_reads import prepare_read, read_one
from jobtable.embedded.partiql.statements import MEMBERS, Given, given, requests_of, short_code
from jobtable.embedded.partiql.syntax import Exists, Insert, Select
from jobtable.embedded.partiql.terms import parameters_of
from jobtable.embedded.partiql.writes import duplicate_key, prepare_write, returned_by
from jobtable.embedded.requests import CAPACITY, OPTIONAL_BOOLEAN, Member, check_members
from jobtable.embedded.storage import Storage
from jobtable.embedded.wordings import in_words_of
from jobtable.embedded.writes import Write
from jobtable.errors import ConditionalCheckFailed, RequestError, RequestRefused, TableNotFound
from jobtable.store.backend import Request, Response

_MAX_STATEMENTS = 25
_MEMBERS = {"Statements": Member(list, required=True), "ReturnConsumedCapacity": CAPACITY}
_STATEMENT_MEMBERS = {**MEMBERS, "ConsistentRead": OPTIONAL_BOOLEAN}
_FAULTS = (RequestRefused, TableNotFound, ConditionalCheckFailed)
"""What a single statement can be refused with."""

_NO_KEY = "Select statements within BatchExecuteStatement must specify the primary key in the where clause."

_Prepared: TypeAlias = tuple[Given, Read | Write]


def batch_execute_statement(storage: Storage, request: Request) -> Response:
    """Up to 25 reads of single items or 25 writes, with an answer or an error for each."""
    check_members(request, _MEMBERS)
    bodies = requests_of(request, "Statements", _MAX_STATEMENTS, _STATEMENT_MEMBERS)
    parsed = [_given_or_fault(number, body) for number, body in enumerate(bodies)]
    if len({one.is_read() for one in parsed if isinstance(one, Given)}) > 1:
        raise RequestRefused("Read and write requests together in the same batch is not supported.")
    prepared = [one if isinstance(one, RequestError) else _prepared(storage, one) for one in parsed]
    _refuse_duplicates(one[1] for one in prepared if not isinstance(one, RequestError))
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
            raise  # A value of another JSON type: the request as a whole cannot be read.
        return fault


def _prepared(storage: Storage, one: Given) -> _Prepared | RequestError:
    try:
        match one.parsed.statement:
            case Select() as select:
                return one, prepare_read(storage, select, one.terms(), _NO_KEY)
            case Exists():
                raise RequestRefused("EXISTS can only be used in ExecuteTransaction write requests.")
            case statement:
                return one, prepare_write(storage, statement, one.terms(), one.request)
    except _FAULTS as fault:
        return fault


def _refuse_duplicates(actions: Iterable[Read | Write]) -> None:
    places = [(one.table.id, one.position) if isinstance(one, Write) else (one[0].id, one[1]) for one in actions]
    if len(set(places)) < len(places):
        raise RequestRefused("Provided list of item keys contains duplicates")


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
        done = run_write(storage, wanted, action) if isinstance(action, Write) else read_one(storage, wanted, action)
    except _FAULTS as fault:
        is_insert = isinstance(one.parsed.statement, Insert) and isinstance(fault, ConditionalCheckFailed)
        return response | _refusal(duplicate_key() if is_insert else fault)
    item = done.get("Attributes", done.get("Item"))
    if item is not None:
        response["Item"] = item
    if "ConsumedCapacity" in done:
        response["ConsumedCapacity"] = done["ConsumedCapacity"]
    return response


def _refusal(refused: RequestError) -> dict[str, Any]:
    fault = in_words_of("BatchExecuteStatement", refused)
    return {"Error": {"Code": short_code(fault), "Message": fault.message, **fault.details}}
