"""The checks of every request before its table is looked up, in DynamoDB's words.

The order is DynamoDB's: members of the wrong JSON type, then all broken constraints in one message, then parameters
that exclude each other, then values, then expressions, and only then the table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from jobtable.embedded.storage.failures import table_not_found
from jobtable.embedded.table_schema import TableSchema
from jobtable.embedded.wordings import expect_type
from jobtable.errors import RequestRefused
from jobtable.store.backend import Request

if TYPE_CHECKING:
    from jobtable.embedded.older import OlderParameters

_NAME = re.compile(r"[a-zA-Z0-9_.-]+", re.ASCII)
_ARN = re.compile(r"arn:[^:]*:dynamodb:[^:]*:[^:]*:table/([a-zA-Z0-9_.-]{3,255})", re.ASCII)
AT_LEAST_ONE = "Member must have length greater than or equal to 1"
MOST_TOLD = 10  # DynamoDB reports no more broken constraints than this
_PATTERN_RULE = "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a value: its allowed texts, its size or its length."""

    enum: tuple[str, ...] = ()
    least: int | None = None
    most: int | None = None
    shortest: int | None = None
    longest: int | None = None

    def broken(self, value: Any) -> list[str]:
        """Return the constraints that a value of the right type breaks."""
        if self.enum:
            return [] if value in self.enum else [f"Member must satisfy enum value set: [{', '.join(self.enum)}]"]
        broken = []
        if self.least is not None and value < self.least:
            broken.append(f"Member must have value greater than or equal to {self.least}")
        if self.most is not None and value > self.most:
            broken.append(f"Member must have value less than or equal to {self.most}")
        if self.shortest is not None and len(value) < self.shortest:
            broken.append(f"Member must have length greater than or equal to {self.shortest}")
        if self.longest is not None and len(value) > self.longest:
            broken.append(f"Member must have length less than or equal to {self.longest}")
        return broken


@dataclass(frozen=True, slots=True)
class Member(Limits):
    """A member of a request: its JSON type, and the constraints on its value."""

    type: type
    required: bool = False
    is_table_name: bool = False
    is_index_name: bool = False  # whether it names an index, for which ARNs are invalid
    names_tables: bool = False  # whether the keys of a map are names of tables
    is_shown: bool = True  # whether DynamoDB shows the value that breaks a constraint
    fixed_message: str = ""
    """DynamoDB's message for any broken constraint, if it shows neither the value nor the member."""
    is_free: bool = field(init=False)  # whether every value of the type is valid

    def __post_init__(self) -> None:
        has_limits = any(limit is not None for limit in (self.least, self.most, self.shortest, self.longest))
        is_name = self.is_table_name or self.is_index_name or self.names_tables
        object.__setattr__(self, "is_free", not self.enum and not is_name and not has_limits)

    def faults(self, value: Any) -> list[str]:
        """Return the constraints that a value of the right type breaks."""
        if self.is_index_name:
            return index_name_faults(value)
        if self.is_table_name:
            return _table_name_faults(value)
        if self.names_tables:
            return map_of_tables_faults(value)
        return self.broken(value)

    def tell(self, path: str, name: str, value: Any, fault: str) -> str:
        """Word a fault of the value of this member at the path."""
        if self.fixed_message:
            return self.fixed_message
        if self.is_shown:
            return constraint(path + lower_first(name), _shown(value), fault)
        return unshown_constraint(path + name, fault)


TABLE_NAME = Member(str, required=True, is_table_name=True)
OPTIONAL_BOOLEAN = Member(bool)
OPTIONAL_STRING = Member(str)
OPTIONAL_MAP = Member(dict)
REQUIRED_MAP = Member(dict, required=True)
CAPACITY = Member(str, enum=("INDEXES", "TOTAL", "NONE"))
COLLECTION_METRICS = Member(str, enum=("SIZE", "NONE"))
OLDER_RETURN_VALUES = Member(str, enum=("ALL_NEW", "UPDATED_OLD", "ALL_OLD", "NONE", "UPDATED_NEW"))
RETURN_VALUES = replace(
    OLDER_RETURN_VALUES,
    fixed_message="Failed to satisfy constraint: Member must satisfy enum value set: [ALL_OLD, UPDATED_OLD, ALL_NEW,"
    " UPDATE_NEW, NONE]",  # DynamoDB's spelling
)
RETURN_VALUES_ON_FAILURE = Member(str, enum=("ALL_OLD", "NONE"))

_PROJECTION = "ProjectionExpression"


def _table_name_faults(name: str) -> list[str]:
    """Return the constraints that a table's name or ARN breaks in an operation on items."""
    if not name:
        return [AT_LEAST_ONE]
    return [] if name.startswith("arn:") and table_of_arn(name) else name_faults(name)


def table_of_arn(arn: str) -> str | None:
    """Return the table that an ARN names, in any region and account; None for another text."""
    match = _ARN.fullmatch(arn)
    return match and match[1]


def name_faults(name: str) -> list[str]:
    """Return the constraints that a name of a table breaks, or of an index in an operation on tables."""
    faults = []
    if len(name) < 3:
        faults.append("Member must have length greater than or equal to 3")
    if len(name) > 255:
        faults.append("Member must have length less than or equal to 255")
    return faults if _NAME.fullmatch(name) else [*faults, _PATTERN_RULE]


def index_name_faults(name: str) -> list[str]:
    """Return the same with the characters first, as for an index to read, a backup, or the start of a list."""
    return sorted(name_faults(name), key=lambda fault: fault != _PATTERN_RULE)


def map_of_tables_faults(requests: Mapping[str, Any]) -> list[str]:
    """Return the constraint that the keys of a map of tables break: DynamoDB reports it once for all keys."""
    if not any(map(_table_name_faults, requests)):
        return []
    return [
        "Map keys must satisfy constraint: [Member must have length less than or equal to 255, Member must have length"
        f" greater than or equal to 3, {_PATTERN_RULE}]"
    ]


def check_members(request: Any, members: Mapping[str, Member], path: str = "", found: Sequence[str] = ()) -> None:
    """Raise RequestRefused if a member has the wrong JSON type or breaks a constraint; unknown members are ignored.

    `path` is the place of the request inside a larger one ("transactItems.1.member.put."); `found` are broken
    constraints of other members, to be reported with these.
    """
    expect_type(request, dict)
    faults = [*found] if found else []
    for name, member in members.items():
        value = request.get(name)
        if value is None:
            if member.required:
                faults.append(constraint(path + lower_first(name), "null", "Member must not be null"))
            continue
        if type(value) is not member.type:
            expect_type(value, member.type)
        if not member.is_free:
            faults += [member.tell(path, name, value, fault) for fault in member.faults(value)]
    if faults:
        raise constraints_broken(faults)


def _shown(value: Any) -> str:
    return f"'{json.dumps(value, separators=(',', ':'), default=str) if isinstance(value, dict) else value}'"


def constraint(path: str, value: str, rule: str) -> str:
    """Word one broken constraint."""
    return f"Value {value} at '{path}' failed to satisfy constraint: {rule}"


def unshown_constraint(path: str, rule: str) -> str:
    """Word one broken constraint that DynamoDB reports without the value, under the member's own name."""
    return f"Value at '{path}' failed to satisfy constraint: {rule}"


def constraints_broken(faults: list[str]) -> RequestRefused:
    """Return the error for the broken constraints of a request, as many as DynamoDB reports."""
    told = faults[:MOST_TOLD]
    plural = "" if len(told) == 1 else "s"
    return RequestRefused(f"{len(told)} validation error{plural} detected: {'; '.join(told)}")


def lower_first(name: str) -> str:
    """Return a member's name as messages write it."""
    return name[:1].lower() + name[1:]


def structures(request: Request, member: str) -> list[dict[str, Any]]:
    """Return a member that is a list of structures; empty if it is missing."""
    value = request.get(member)
    if value is None:
        return []
    expect_type(value, list)
    for one in value:
        expect_type(one, dict)
    return list(value)


def optional_text(structure: Request, member: str) -> str | None:
    """Return a member that is a string, or None."""
    value = structure.get(member)
    if value is not None:
        expect_type(value, str)
    return value


def optional_moment(structure: Request, member: str) -> float | None:
    """Return a member that is a time in seconds since 1970, or None."""
    moment: float | None = structure.get(member)
    if moment is not None and (isinstance(moment, bool) or not isinstance(moment, int | float)):
        raise RequestRefused(f"{member} must be a number of seconds", code="SerializationException")
    return moment


_OLDER = frozenset(
    {
        *("AttributesToGet", "AttributeUpdates", "ConditionalOperator", "Expected"),
        *("KeyConditions", "QueryFilter", "ScanFilter"),
    }
)


def older_parameters(operation: str, request: Request, whole: Request | None = None) -> OlderParameters | None:
    """Return the parameters from before expressions that a request has, or None as for most requests.

    `whole` is the whole request if this one is its part for a table.
    """
    if _OLDER.isdisjoint(request):
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
