"""The parameters from before expressions, which older programs still send. Loaded with the first such request."""

from __future__ import annotations

from typing import Any

from jobtable.embedded.expressions import Condition, Projection, Update
from jobtable.embedded.expressions.updates import Step
from jobtable.embedded.older.conversions import (
    AttributesToGet,
    OlderFilter,
    OlderKeyCondition,
    check_name,
    comparisons,
    expectation,
    joined,
    program_of,
    step_of,
)
from jobtable.embedded.request_model import REQUESTS, STRUCTURES, wrong_type
from jobtable.embedded.wordings import INVALID
from jobtable.errors import RequestRefused
from jobtable.store.backend import AttributeValue, Request

_NO_OPERATOR = "Failed to satisfy constraint: Member must satisfy enum value set: [ALL, OR]"  # DynamoDB's spelling
_NULL = "Value null "


class OlderParameters:
    """The parameters from before expressions that one request has, or the part of a request for one table.

    They become what expressions become, so that one engine evaluates both. Names of attributes are taken as they are:
    they are no paths.
    """

    def __init__(self, operation: str, request: Request, whole: Request) -> None:
        """Raise RequestRefused if anything in the whole request has the wrong JSON type."""
        self._request = request
        self._structure = REQUESTS[operation] if request is whole else STRUCTURES["KeysAndAttributes"]
        self.names = tuple(name for name in self._structure.older if request.get(name) is not None)
        fault = wrong_type(operation, whole) if self.names else None
        if fault is not None:
            raise fault

    def faults(self, path: str = "", *, is_newer: bool = False) -> list[str]:
        """Return the constraints that they break; `is_newer`: in the words of the newer reader (see wordings.py)."""
        faults: list[str] = []
        for name in self.names:
            if name == "ConditionalOperator" and is_newer:
                faults += [_NO_OPERATOR] if self._has_unknown_operator() else []
            else:
                found = self._structure.faults_of(name, self._request[name], path)
                faults += sorted(found, key=lambda fault: not fault.startswith(_NULL))
        return faults

    def refuse_operator(self) -> None:
        """RequestRefused for an unknown ConditionalOperator of a query, which is reported alone and first."""
        if self._has_unknown_operator():
            raise RequestRefused(_NO_OPERATOR)

    def condition(self) -> Condition | None:
        """Return the condition of Expected; None if it has no conditions."""
        conditions: dict[str, Any] = self._request.get("Expected") or {}
        return joined(Condition, self._request, [expectation(name, conditions[name]) for name in conditions])

    def filter(self, parameter: str) -> Condition | None:
        """Return the condition of QueryFilter or ScanFilter; None if it has no conditions."""
        by_older_reader = parameter == "ScanFilter"  # DynamoDB's older reader reads it (see wordings.py)
        found = comparisons(self._request.get(parameter) or {}, may_be_deeper=by_older_reader)
        return joined(OlderFilter, self._request, found)

    def update(self) -> Update | None:
        """Return the update of AttributeUpdates; None if it changes nothing."""
        values: dict[str, AttributeValue] = {}
        steps: list[Step] = []
        for name, update in (self._request.get("AttributeUpdates") or {}).items():
            check_name(name)
            if update is not None:  # DynamoDB takes null for nothing
                steps.append(step_of(name, update, values))
        return Update(program_of(steps, values), values) if steps else None

    def projection(self) -> Projection | None:
        """Return the projection of AttributesToGet; None if the request wants no attributes in particular."""
        names = self._request.get("AttributesToGet")
        if names is None:
            return None
        for number, name in enumerate(names):
            check_name(name)
            if name in names[:number]:
                raise RequestRefused(f"{INVALID}Duplicate value in attribute name: {name}")
        return AttributesToGet(dict.fromkeys(names), frozenset())

    def key_condition(self) -> OlderKeyCondition:
        """Return KeyConditions, not yet matched with a key schema."""
        return OlderKeyCondition(self._request)

    def _has_unknown_operator(self) -> bool:
        """Whether the operator between conditions is unknown; the newer reader first checks that there are two."""
        conditions = self._request.get("Expected") or self._request.get("QueryFilter") or ()
        operator = self._request.get("ConditionalOperator")
        return len(conditions) > 1 and operator not in (None, "AND", "OR")
