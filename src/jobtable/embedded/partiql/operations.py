"""ExecuteStatement."""

from __future__ import annotations

from jobtable.embedded.items import run_write
from jobtable.embedded.partiql.grammar import parse
from jobtable.embedded.partiql.paging import read
from jobtable.embedded.partiql.selections import plan_of
from jobtable.embedded.partiql.statements import PARAMETERS, STATEMENT
from jobtable.embedded.partiql.syntax import Delete, Exists, Insert, Select, Update
from jobtable.embedded.partiql.terms import Terms, parameters_of
from jobtable.embedded.partiql.writes import duplicate_key, prepare_write, returned_by
from jobtable.embedded.requests import (
    CAPACITY,
    OPTIONAL_BOOLEAN,
    RETURN_VALUES_ON_FAILURE,
    Member,
    check_members,
)
from jobtable.embedded.storage import Storage
from jobtable.errors import ConditionalCheckFailed, RequestRefused
from jobtable.store.backend import Request, Response

_MEMBERS = {
    "Statement": STATEMENT,
    "Parameters": PARAMETERS,
    "ConsistentRead": OPTIONAL_BOOLEAN,
    "NextToken": Member(str, shortest=1, longest=32768),
    "ReturnConsumedCapacity": CAPACITY,
    "Limit": Member(int, least=1),
    "ReturnValuesOnConditionCheckFailure": RETURN_VALUES_ON_FAILURE,
}


def execute_statement(storage: Storage, request: Request) -> Response:
    """Read items, or write one, as a statement says."""
    check_members(request, _MEMBERS)
    parameters = parameters_of(request)
    parsed = parse(request["Statement"])
    terms = Terms(parsed, parameters)
    match parsed.statement:
        case Select() as select:
            return read(storage, request, plan_of(storage, select, terms, request))
        case Exists():
            raise RequestRefused("EXISTS can only be used in ExecuteTransaction write requests.")
        case statement:
            return _write(storage, statement, terms, request)


def _write(storage: Storage, statement: Insert | Update | Delete, terms: Terms, request: Request) -> Response:
    write = prepare_write(storage, statement, terms, request)
    wanted = {
        "TableName": write.table.name,
        "ReturnConsumedCapacity": request.get("ReturnConsumedCapacity"),
        "ReturnValues": returned_by(statement),
    }
    try:
        done = run_write(storage, wanted, write)
    except ConditionalCheckFailed as failure:
        if isinstance(statement, Insert):
            raise duplicate_key() from failure
        raise
    response: Response = {"Items": [done["Attributes"]] if "Attributes" in done else []}
    if "ConsumedCapacity" in done:
        response["ConsumedCapacity"] = done["ConsumedCapacity"]
    return response
