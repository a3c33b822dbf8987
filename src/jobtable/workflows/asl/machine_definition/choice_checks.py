"""The rules of Choice states."""

from __future__ import annotations

from typing import Any

from jobtable.workflows.asl.interpreter.choice_rules import COMPARISONS, TYPE_TESTS
from jobtable.workflows.asl.machine import Language
from jobtable.workflows.asl.machine_definition.findings import Check, Place
from jobtable.workflows.asl.machine_definition.object_checks import Shape
from jobtable.workflows.asl.machine_definition.value_checks import (
    array_of,
    expression_or,
    flag,
    jsonata,
    literal_text,
    numeric,
    text,
    timestamp,
    variable,
)
from jobtable.workflows.asl.machine_definition.variable_checks import assign

_OPERANDS: dict[str, Check] = {
    "String": literal_text,
    "Numeric": numeric,
    "Boolean": flag,
    "Timestamp": timestamp,
}
OPERATORS: dict[str, Check] = {
    **{name: check for name in COMPARISONS for kind, check in _OPERANDS.items() if name.startswith(kind)},
    **{f"{name}Path": variable for name in COMPARISONS},
    "StringMatches": literal_text,
    "IsPresent": flag,
    **dict.fromkeys(TYPE_TESTS, flag),
}
_SELECTORS = ("And", "Or", "Not", "Variable", "Condition")


def _only_one_selector(value: Any, place: Place) -> None:
    if place.language is Language.JSONPATH and sum(name in value for name in _SELECTORS[:-1]) != 1:
        place.error(f"The object must have only one of the following fields, [{', '.join(_SELECTORS)}]")


def _one_operator(value: Any, place: Place) -> None:
    if place.language is Language.JSONATA:
        return
    operators = [name for name in value if name in OPERATORS]
    allowed = ", ".join(OPERATORS)
    if "Variable" not in value:
        for name in operators:
            place.error(f"Field '{name}' is only supported together with 'Variable'")
    elif len(operators) > 1:
        place.error(f"There should only be one of the following fields: [{allowed}]")
    elif not operators:
        place.error(f"This object should have only one of the following fields: [{allowed}]")


def _nested(value: Any, place: Place) -> None:
    _NESTED_RULE(value, place)


def _condition(value: Any, place: Place) -> None:
    """A JSONata expression, or a constant."""
    if isinstance(value, str):
        jsonata(value, place)
    elif not isinstance(value, bool):
        place.error("Expected value of type [STRING]")


_TESTS: dict[str, Check] = {
    "Variable": variable,
    "And": array_of(_nested, least=1),
    "Or": array_of(_nested, least=1),
    "Not": _nested,
    **OPERATORS,
}
_NESTED_RULE = Shape(members={"Comment": text}, jsonpath=_TESTS, also=(_only_one_selector, _one_operator))
RULE = Shape(
    members={"Comment": text, "Next": text, "Assign": assign},
    jsonpath=_TESTS,
    jsonata={"Condition": _condition, "Output": expression_or(jsonata)},
    required=("Condition", "Next"),
    also=(_only_one_selector, _one_operator),
)
