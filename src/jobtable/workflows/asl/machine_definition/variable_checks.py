"""Variables: the names that Assign may give, and the ones that expressions may read."""

from __future__ import annotations

import re
from typing import Any

from jobtable.workflows.asl.machine import Language
from jobtable.workflows.asl.machine_definition.findings import ERROR, WARNING, Findings, Place
from jobtable.workflows.asl.machine_definition.value_checks import template
from jobtable.workflows.asl.query_languages.payload_templates import DYNAMIC

_NAME = re.compile(r"[^\W\d]\w*")
_LONGEST_NAME = 80
_RESERVED = "states"


def assign(value: Any, place: Place) -> None:
    """The variables that a state, a choice rule or a catcher assigns."""
    if not isinstance(value, dict):
        place.error("Expected value of type [OBJECT]")
        return
    for member in value:
        name = member.removesuffix(DYNAMIC) if place.language is Language.JSONPATH else member
        below = f"/{member}"
        if name == _RESERVED:
            place.error(f"Cannot assign to reserved variable '${name}'.", "RESERVED_VARIABLE_NAME", below)
        elif _NAME.fullmatch(name) is None:
            why = "the variable name contains invalid characters."
            place.error(f"Invalid variable name '{name}': {why}", "INVALID_VARIABLE_NAME", below)
        elif len(name) > _LONGEST_NAME:
            why = f"the variable name exceeds the {_LONGEST_NAME}-character limit."
            place.error(f"Invalid variable name '{name}': {why}", "INVALID_VARIABLE_NAME", below)
        else:
            place.scope.assigned.setdefault(name, place.path)
    template(value, place)


def check_variables(findings: Findings) -> None:
    """Report variables that an inner scope assigns again, and those that nothing assigns, after everything is read."""
    for scope in findings.scopes:
        outer = [] if scope.parent is None else list(scope.parent.chain())
        for name, path in scope.assigned.items():
            if any(name in each.assigned for each in outer):
                message = f"Variable '{name}' is assigned in an outer scope and cannot be assigned in an inner one"
                findings.add(ERROR, "DUPLICATE_VARIABLE_NAME", message, path)
    for scope, path, name in findings.reads:
        if not any(name in each.assigned for each in scope.chain()):
            findings.add(
                WARNING, "UNDEFINED_VARIABLE", f"Variable '{name}' is read here, but no state assigns it", path
            )
