"""The parameters from before expressions, which older programs still send. Loaded with the first such request.

They become the conditions, updates, projections and key conditions that expressions become.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from jobtable.embedded.expressions import Condition, Projection, Update
from jobtable.embedded.expressions import condition_tests as tests
from jobtable.embedded.expressions import update_values as compute
from jobtable.embedded.expressions.checks import Checks
from jobtable.embedded.expressions.condition_tests import Predicate
from jobtable.embedded.expressions.key_conditions import KeyCondition, OneKey, matched
from jobtable.embedded.expressions.paths import Computed, Values
from jobtable.embedded.expressions.updates import NO_COST, UpdateProgram, UpdateStep
from jobtable.embedded.request_model import REQUESTS, STRUCTURES, wrong_type
from jobtable.embedded.table_schema import KeyAttribute
from jobtable.embedded.values import MAX_NAME_BYTES, compare, validate_value
from jobtable.embedded.wordings import invalid
from jobtable.errors import RequestRefused
from jobtable.store.backend import AttributeValue, Item, Request

_ORDERED = frozenset({"S", "N", "B"})
_TYPES = {
    **dict.fromkeys(("LE", "LT", "GE", "GT", "BETWEEN", "IN"), _ORDERED),
    **dict.fromkeys(("CONTAINS", "NOT_CONTAINS"), _ORDERED | {"BOOL", "NULL"}),
    "BEGINS_WITH": frozenset({"S", "B"}),
}
"""The types of values that a comparison accepts; others accept all."""
_COUNTS = {"NULL": 0, "NOT_NULL": 0, "BETWEEN": 2}  # one value for others, and any number for IN
_COMPARATORS = {"EQ": "=", "NE": "<>", "LE": "<=", "LT": "<", "GE": ">=", "GT": ">"}
_FUNCTIONS = {
    "NULL": "attribute_not_exists",
    "NOT_NULL": "attribute_exists",
    "CONTAINS": "contains",
    "BEGINS_WITH": "begins_with",
}


class Comparison(NamedTuple):
    """A comparison with valid values, in the right number and of the right types."""

    attribute: str
    operator: str
    values: tuple[AttributeValue, ...]

    @classmethod
    def of(cls, attribute: str, operator: str, values: list[Any] | None, *, may_be_deeper: bool = False) -> Comparison:
        """Return the comparison, or raise RequestRefused. `may_be_deeper`: its values may have one more level."""
        valid = tuple(validate_value(value, may_be_deeper=may_be_deeper) for value in values or ())
        wanted = _COUNTS.get(operator, 1)
        if len(valid) != wanted and not (operator == "IN" and valid):
            raise invalid(f"Invalid number of argument(s) for the {operator} ComparisonOperator")
        types = [next(iter(value)) for value in valid]
        for found in types:
            if found not in _TYPES.get(operator, types):
                raise invalid(f"ComparisonOperator {operator} is not valid for {found} AttributeValue type")
        if len(set(types)) > 1:
            raise invalid("AttributeValues inside AttributeValueList must be of same type")
        if operator == "BETWEEN" and (compare(*valid) or 0) > 0:
            raise RequestRefused(
                "The BETWEEN condition was provided a range where the lower bound is greater than the upper bound"
            )
        return cls(attribute, operator, valid)

    def test(self) -> Predicate:
        """Return the test of an item. A missing attribute differs from everything, and contains and lacks nothing."""
        attribute = tests.attribute((self.attribute,))
        values = [_constant(value) for value in self.values]
        if self.operator in _COMPARATORS:
            return tests.comparison(_COMPARATORS[self.operator], attribute, *values)
        if self.operator in _FUNCTIONS:
            return tests.FUNCTIONS[_FUNCTIONS[self.operator]](attribute, *values)
        if self.operator == "BETWEEN":
            return tests.between(attribute, *values)
        if self.operator == "IN":
            return tests.one_of(attribute, tuple(values))
        lacks = tests.negation(tests.FUNCTIONS["contains"](attribute, *values))
        return tests.conjunction(tests.FUNCTIONS["attribute_exists"](attribute), lacks)


def check_name(name: str) -> None:
    """Raise RequestRefused if no attribute can have this name."""
    if not name:
        raise RequestRefused("Empty attribute name")
    if len(name) > MAX_NAME_BYTES // 4 and len(name.encode("utf-8", "surrogatepass")) > MAX_NAME_BYTES:
        raise RequestRefused("Attribute name is too large, must be less than 65536 bytes")


def _constant(value: AttributeValue) -> Computed:
    return lambda item, values: value


class OlderFilter(Condition):
    """A condition that is a QueryFilter or a ScanFilter."""

    __slots__ = ()

    parameter = "QueryFilter"


def comparisons(conditions: dict[str, Any], *, may_be_deeper: bool = False) -> list[Comparison]:
    """Return the comparisons of a map of conditions, or raise RequestRefused."""
    found = []
    for name, condition in conditions.items():
        check_name(name)
        if condition is None:
            raise RequestRefused(f"The filter condition for an attribute cannot be null: {name}")
        operator, values = condition["ComparisonOperator"], condition.get("AttributeValueList")
        found.append(Comparison.of(name, operator, values, may_be_deeper=may_be_deeper))
    return found


def expectation(name: str, condition: dict[str, Any] | None) -> Comparison:
    """Return the comparison of one member of Expected, or raise RequestRefused."""
    check_name(name)
    if condition is None:
        raise _wrong("ExpectedAttributeValue must not be null", name)
    operator, exists = condition.get("ComparisonOperator"), condition.get("Exists")
    value, values = condition.get("Value"), condition.get("AttributeValueList")
    if value is not None and values is not None:
        raise _wrong("Value and AttributeValueList cannot be used together", name)
    if operator is None:
        if values is not None:
            raise _wrong("AttributeValueList can only be used with a ComparisonOperator", name)
        return _existence(name, exists, value)
    if exists is not None:
        raise _wrong("Exists and ComparisonOperator cannot be used together", name)
    if value is None and values is None and operator not in ("NULL", "NOT_NULL"):
        raise _wrong(f"Value or AttributeValueList must be used with ComparisonOperator: {operator}", name)
    return Comparison.of(name, operator, values if value is None else [value])


def _existence(name: str, exists: bool | None, value: Any) -> Comparison:
    """Expect one value, or no value, without a comparison."""
    if exists is False:
        if value is not None:
            raise _wrong("Value cannot be used when Exists is false", name)
        return Comparison.of(name, "NULL", None)
    if value is None:
        raise _wrong(f"Value must be provided when Exists is {'null' if exists is None else 'true'}", name)
    return Comparison.of(name, "EQ", [value])


def _wrong(reason: str, name: str) -> RequestRefused:
    return invalid(f"{reason} for Attribute: {name}")


def joined(kind: type[Condition], request: Request, found: list[Comparison]) -> Condition | None:
    if not found:
        return None
    tests = [comparison.test() for comparison in found]
    join = any if request.get("ConditionalOperator") == "OR" else all

    def test(item: Item, values: object) -> bool:
        return join(each(item, {}) for each in tests)

    return kind(test, {}, frozenset(comparison.attribute for comparison in found))


_OPERATORS = {
    **{name: comparator for name, comparator in _COMPARATORS.items() if name != "NE"},
    "BETWEEN": "BETWEEN",
    "BEGINS_WITH": "begins_with",
}
"""The operators that an index can answer, as expressions write them."""


class OlderKeyCondition:
    """KeyConditions, in place of an UnmatchedKeyCondition: checked after all expressions."""

    __slots__ = ("_comparisons", "_request")

    _comparisons: list[Comparison]

    def __init__(self, request: Request) -> None:
        self._request = request

    def check_form(self) -> None:
        """Raise RequestRefused if a condition is invalid by itself, or if there is none."""
        self._comparisons = comparisons(self._request["KeyConditions"])
        if not self._comparisons:
            raise RequestRefused("Conditions must be at least length 1")

    def against(
        self, partition: tuple[KeyAttribute, ...], sort: tuple[KeyAttribute, ...], index_name: str | None = None
    ) -> KeyCondition:
        """Match the condition with the key schema of a table, or of the named index, or raise RequestRefused."""
        _refuse_unindexable({one.attribute: one for one in self._comparisons}, (*partition, *sort))
        given: dict[str, OneKey] = {}
        values: dict[str, AttributeValue] = {}
        for one in self._comparisons:
            names = tuple(f":{one.attribute}:{number}" for number in range(len(one.values)))
            given[one.attribute] = OneKey(one.attribute, _OPERATORS.get(one.operator, one.operator), names)
            values.update(zip(names, one.values, strict=True))
        return matched(given, values, partition, sort, index_name)


def _refuse_unindexable(given: dict[str, Comparison], attributes: tuple[KeyAttribute, ...]) -> None:
    """Raise RequestRefused for a comparison that no index answers, unless DynamoDB finds another fault first."""
    for attribute in attributes:
        one = given.get(attribute.name)
        if one is None:
            return
        if one.operator not in _OPERATORS:
            raise RequestRefused("Attempted conditional constraint is not an indexable operation")
        if any(attribute.type not in value for value in one.values):
            return


class AttributesToGet(Projection):
    """A projection on whole attributes."""

    __slots__ = ()

    parameter = "AttributesToGet"


_SETS = ("SS", "NS", "BS")
_ADDED = (*_SETS, "N", "L")
_NOTHING: frozenset[str] = frozenset()


def step_of(name: str, update: dict[str, Any], values: dict[str, AttributeValue]) -> UpdateStep:
    """Return the change of one attribute; its value, if there is one, is kept under the attribute's name."""
    action, value = update.get("Action") or "PUT", update.get("Value")
    if value is None:
        if action != "DELETE":
            raise invalid("Only DELETE action is allowed when no attribute value is specified")
        return UpdateStep("REMOVE", (name,), compute.NOTHING)
    values[name] = validate_value(value)
    [kind] = values[name]
    if action == "PUT":
        return UpdateStep("SET", (name,), compute.value(name))
    if action == "DELETE":
        if kind not in _SETS:
            raise invalid(f"DELETE action with value is not supported for the type {kind}")
        return UpdateStep("DELETE", (name,), _of_same_type(name, kind, compute.deleted((name,), name)))
    if kind not in _ADDED:
        raise invalid(f"ADD action is not supported for the type {kind}")
    added = _appended(name) if kind == "L" else compute.added((name,), name)
    return UpdateStep("ADD", (name,), _of_same_type(name, kind, added))


def _of_same_type(name: str, kind: str, computed: Computed) -> Computed:
    """Restrict a change to attributes of this type, or missing ones."""

    def checked(item: Item, values: Values) -> AttributeValue | None:
        if kind not in item.get(name, (kind,)):
            raise RequestRefused("Type mismatch for attribute to update")
        return computed(item, values)

    return checked


def _appended(name: str) -> Computed:
    """The old list with the elements of another appended."""

    def computed(item: Item, values: Values) -> AttributeValue:
        return {"L": item[name]["L"] + values[name]["L"]} if name in item else values[name]

    return computed


def program_of(steps: list[UpdateStep], values: dict[str, AttributeValue]) -> UpdateProgram:
    names = [str(step.path[0]) for step in steps]
    return UpdateProgram(
        steps=tuple(steps),
        tree=dict.fromkeys(names),
        checks=Checks(()),
        names_used=_NOTHING,
        values_used=_NOTHING,
        nested_names=_NOTHING,
        top_level_names=frozenset(names),
        only_removes=all(step.section in ("DELETE", "REMOVE") for step in steps),
        sources=tuple((name, name) for name in values),
        cost=NO_COST,
    )


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
        steps: list[UpdateStep] = []
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
                raise invalid(f"Duplicate value in attribute name: {name}")
        return AttributesToGet(dict.fromkeys(names), frozenset())

    def key_condition(self) -> OlderKeyCondition:
        """Return KeyConditions, not yet matched with a key schema."""
        return OlderKeyCondition(self._request)

    def _has_unknown_operator(self) -> bool:
        """Whether the operator between conditions is unknown; the newer reader first checks that there are two."""
        conditions = self._request.get("Expected") or self._request.get("QueryFilter") or ()
        operator = self._request.get("ConditionalOperator")
        return len(conditions) > 1 and operator not in (None, "AND", "OR")
