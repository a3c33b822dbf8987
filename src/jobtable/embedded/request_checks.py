"""The checks of every request before its table is looked up, in DynamoDB's words.

The order is DynamoDB's: members of the wrong JSON type, then all broken constraints in one message, then parameters
that exclude each other, then values, then expressions, and only then the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

from jobtable.embedded.request_model import OLDER_PARAMETERS, REQUESTS, table_of_arn
from jobtable.embedded.shapes import Structure, missing_member
from jobtable.embedded.storage.connections import table_not_found
from jobtable.embedded.table_schema import TableSchema
from jobtable.embedded.wordings import MOST_TOLD, constraints_broken, expect_type
from jobtable.errors import RequestRefused
from jobtable.store.backend import Request

if TYPE_CHECKING:
    from jobtable.embedded.older import OlderParameters

_PROJECTION = "ProjectionExpression"


def check_members(
    request: Any, structure: Structure, path: str = "", found: Sequence[str] = (), *, by_older_reader: bool = False
) -> None:
    """Raise RequestRefused if a member has the wrong JSON type or breaks a constraint; unknown members are ignored.

    What is inside of the members is not checked. `path` is the place of the request inside a larger one
    ("transactItems.1.member.put."); `found` are broken constraints of other members, to be reported with these.
    """
    expect_type(request, dict)
    faults = [*found] if found else []
    for name, shape, is_required in structure.checked:
        value = request.get(name)
        if value is None:
            if is_required:
                faults.append(missing_member(path, name))
            continue
        if type(value) is not shape.type:
            expect_type(value, shape.type)
        if not shape.is_free and shape.limits.broken(value):
            faults += shape.limits.faults(path, name, value, by_older_reader=by_older_reader)
    if faults:
        raise constraints_broken(faults)


def check_constraints(operation: str, request: Request) -> None:
    """Raise RequestRefused with the first ten broken constraints of a table operation, wherever they are."""
    structure = REQUESTS[operation]
    for name in structure.looked_for_first:
        if request.get(name) is None:
            raise RequestRefused(f"The parameter '{name}' is required but was not present in the request")
    faults = list(islice(structure.faults_inside(request), MOST_TOLD))
    if faults:
        raise constraints_broken(faults)


def optional_moment(structure: Request, member: str) -> float | None:
    """Return a member that is a time in seconds since 1970, or None."""
    moment: float | None = structure.get(member)
    if moment is not None and (isinstance(moment, bool) or not isinstance(moment, int | float)):
        raise RequestRefused(f"{member} must be a number of seconds", code="SerializationException")
    return moment


def older_parameters(operation: str, request: Request, whole: Request | None = None) -> OlderParameters | None:
    """Return the parameters from before expressions that a request has, or None as for most requests.

    `whole` is the whole request if this one is its part for a table.
    """
    if OLDER_PARAMETERS.isdisjoint(request):
        return None
    from jobtable.embedded.older import OlderParameters  # noqa: PLC0415 - few programs still send them

    found = OlderParameters(operation, request, whole or request)
    return found if found.names else None


def check_parameters(request: Request, *expressions: str, older: OlderParameters | None = None) -> None:
    """Raise RequestRefused if parameters exclude each other: older ones and expressions, or maps without a user.

    `expressions` are those of the operation; all but ProjectionExpression can use ExpressionAttributeValues. `older`
    are the parameters from before expressions.
    """
    older_names = older.names if older else ()
    given = [name for name in expressions if request.get(name) is not None]
    if older_names:
        _refuse_both(older_names, given)
    if given and given != [_PROJECTION]:
        return
    if request.get("ExpressionAttributeNames") is not None and not given:
        raise RequestRefused("ExpressionAttributeNames can only be specified when using expressions")
    users_of_values = [name for name in expressions if name != _PROJECTION]
    if request.get("ExpressionAttributeValues") is not None and users_of_values:
        message = "ExpressionAttributeValues can only be specified when using expressions"
        if users_of_values != ["FilterExpression"]:  # Scan alone says which one.
            raise RequestRefused(message)
        raise RequestRefused(f"{message}: FilterExpression is null")
    if "ConditionalOperator" in older_names:
        _refuse_lonely_operator([request[name] for name in older_names if name in _JOINED])


def _refuse_both(older: tuple[str, ...], given: list[str]) -> None:
    """Raise RequestRefused for expressions beside older parameters; KeyConditions allow some."""
    unsuited = older if "KeyConditionExpression" in given else [name for name in older if name != "KeyConditions"]
    if given and unsuited:
        raise RequestRefused(
            "Can not use both expression and non-expression parameters in the same request: Non-expression parameters:"
            f" {{{', '.join(unsuited)}}} Expression parameters: {{{', '.join(given)}}}"
        )


_JOINED = ("Expected", "QueryFilter", "ScanFilter")
"""The parameters whose conditions ConditionalOperator joins; a request has at most one of them."""


def _refuse_lonely_operator(joined: list[dict[str, Any]]) -> None:
    """Raise RequestRefused if there are no conditions that ConditionalOperator could join."""
    count = sum(map(len, joined))
    if count == 0:
        raise RequestRefused("ConditionalOperator cannot be used without Filter or Expected")
    if count == 1:
        raise RequestRefused("ConditionalOperator can only be used when Filter or Expected has two or more elements")


class Tables(Protocol):
    """A lookup of tables: the storage, or one state of it."""

    def table(self, name: str, /) -> TableSchema | None: ...


class Lookup:
    """Tables that note whether one was looked up: until then, every fault is one of the request itself."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self.is_asked = False

    def table(self, name: str, /) -> TableSchema | None:
        self.is_asked = True
        return self._tables.table(name)


def find_table(tables: Tables, name: str) -> TableSchema:
    """Return the table of that name or ARN, or raise TableNotFound."""
    table = tables.table(table_of_arn(name) or name if name.startswith("arn:") else name)
    if table is None:
        raise table_not_found()
    return table
