"""Which parameters from before expressions an operation has, and the constraints on each of them by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

from jobtable.embedded.requests import AT_LEAST_ONE, Limits, constraint, lower_first
from jobtable.embedded.shapes import wrong_type
from jobtable.errors import RequestRefused
from jobtable.store.backend import Request

_CONDITIONAL = ("Expected", "ConditionalOperator")
_PARAMETERS = {
    "GetItem": ("AttributesToGet",),
    "BatchGetItem": ("AttributesToGet",),
    "PutItem": _CONDITIONAL,
    "DeleteItem": _CONDITIONAL,
    "UpdateItem": ("AttributeUpdates", *_CONDITIONAL),
    "Query": ("AttributesToGet", "QueryFilter", "ConditionalOperator", "KeyConditions"),
    "Scan": ("AttributesToGet", "ScanFilter", "ConditionalOperator"),
}
"""Those of each operation, in the order in which DynamoDB names them; BatchGetItem has its own for each table."""
has_none = frozenset(chain.from_iterable(_PARAMETERS.values())).isdisjoint
"""Whether a request has none of them, which is all that most requests are asked."""

_COMPARISONS = Limits(
    enum=(
        *("IN", "NULL", "BETWEEN", "LT", "NOT_CONTAINS", "EQ", "GT", "NOT_NULL", "NE", "LE", "BEGINS_WITH", "GE"),
        "CONTAINS",
    )
)
_ACTIONS = Limits(enum=("ADD", "PUT", "DELETE"))
_OPERATORS = Limits(enum=("OR", "AND"))
_NO_OPERATOR = "Failed to satisfy constraint: Member must satisfy enum value set: [ALL, OR]"  # DynamoDB's spelling
_NULL = "Member must not be null"


def given(operation: str, request: Request, whole: Request | None = None) -> tuple[str, ...]:
    """The names of those that a request has; RequestRefused if anything in it has the wrong JSON type.

    `whole` is the request of which this one is the part for a table.
    """
    names = tuple(name for name in _PARAMETERS[operation] if request.get(name) is not None)
    fault = wrong_type(operation, whole or request) if names else None
    if fault is not None:
        raise fault
    return names


def older_faults(request: Request, names: tuple[str, ...], path: str = "", *, is_newer: bool = False) -> list[str]:
    """The constraints that these parameters of a request break; `is_newer`: in the words of the newer reader."""
    faults: list[str] = []
    for name in names:
        if name == "ConditionalOperator" and is_newer:
            faults += [_NO_OPERATOR] if _is_unknown_operator(request) else []
        else:
            faults += _FAULTS[name](path + lower_first(name), request[name])
    return faults


def refuse_operator(request: Request) -> None:
    """RequestRefused for an unknown ConditionalOperator of a query, which is told alone and before all other faults."""
    if _is_unknown_operator(request):
        raise RequestRefused(_NO_OPERATOR)


def _is_unknown_operator(request: Request) -> bool:
    """Whether conditions are joined by what is no operator; the newer reader first sees whether there are two."""
    conditions = request.get("Expected") or request.get("QueryFilter") or ()
    operator = request.get("ConditionalOperator")
    return operator is not None and len(conditions) > 1 and bool(_OPERATORS.broken(operator))


def _of_names(path: str, names: list[Any]) -> Iterator[str]:
    if not names:
        yield constraint(path, "'[]'", AT_LEAST_ONE)


def _of_text(path: str, text: str, limits: Limits) -> Iterator[str]:
    for rule in limits.broken(text):
        yield constraint(path, f"'{text}'", rule)


def _of_expected(path: str, conditions: dict[str, Any]) -> Iterator[str]:
    for name, condition in conditions.items():
        operator = None if condition is None else condition.get("ComparisonOperator")
        if operator is not None:
            yield from _of_text(f"{path}.{name}.member.comparisonOperator", operator, _COMPARISONS)


def _of_conditions(path: str, conditions: dict[str, Any]) -> Iterator[str]:
    for name, condition in conditions.items():
        if condition is not None and condition.get("ComparisonOperator") is None:
            yield constraint(f"{path}.{name}.member.comparisonOperator", "null", _NULL)
    yield from _of_expected(path, conditions)


def _of_updates(path: str, updates: dict[str, Any]) -> Iterator[str]:
    for name, update in updates.items():
        action = None if update is None else update.get("Action")
        if action is not None:
            yield from _of_text(f"{path}.{name}.member.action", action, _ACTIONS)


_FAULTS: dict[str, Callable[[str, Any], Iterator[str]]] = {
    "AttributesToGet": _of_names,
    "AttributeUpdates": _of_updates,
    "ConditionalOperator": lambda path, text: _of_text(path, text, _OPERATORS),
    "Expected": _of_expected,
    "KeyConditions": _of_conditions,
    "QueryFilter": _of_conditions,
    "ScanFilter": _of_conditions,
}
