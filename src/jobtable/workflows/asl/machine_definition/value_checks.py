"""Checks of single values: texts, numbers, paths, templates and expressions."""

from __future__ import annotations

from typing import Any

from jobtable.workflows.asl.interpreter.instants import parse_instant
from jobtable.workflows.asl.machine import Language
from jobtable.workflows.asl.machine_definition.findings import Check, Place
from jobtable.workflows.asl.query_languages.expression_checks import (
    find_function_fault,
    find_path_fault,
    find_static_members,
    find_template_faults,
    looks_dynamic,
    variables_of,
    variables_of_path,
)
from jobtable.workflows.asl.query_languages.jsonata_evaluation import find_expression

LONGEST_SECONDS = 99_999_999
_CONTEXT = "$$"


def anything(value: Any, place: Place) -> None:
    """Accept every value."""


def text(value: Any, place: Place) -> None:
    """A string."""
    if not isinstance(value, str):
        place.error("Expected value of type [STRING]")


def short_name(value: str, kind: str, longest: int, place: Place) -> bool:
    """Return whether a name has characters, but not too many; report it otherwise."""
    code = f"INVALID_{kind.upper()}_NAME"
    if not value:
        place.error(f"Invalid {kind} name: '': {kind} name cannot be empty", code)
    elif len(value) > longest:
        limit = f"exceeds the {longest}-character limit allowed by the service"
        place.error(f"Invalid {kind} name: '{value}' {limit}", code)
    return 0 < len(value) <= longest


def flag(value: Any, place: Place) -> None:
    """True or false."""
    if not isinstance(value, bool):
        place.error("Expected value of type [BOOLEAN]")


def literal_text(value: Any, place: Place) -> None:
    """A string that is no path, though it may look like one; in JSONata it may be an expression."""
    if place.language is Language.JSONATA:
        expression_or(text)(value, place)
        return
    text(value, place)
    if isinstance(value, str) and looks_dynamic(value):
        name = place.path.rpartition("/")[2]
        place.warn("NO_PATH", f"Field '{name}' looks like a path, but its name does not end with 'Path'")


def static(value: Any, place: Place) -> None:
    """The result of a Pass state, whose paths mean nothing."""
    texts = [value] if isinstance(value, str) else []
    if any(looks_dynamic(each) for each in texts) or find_static_members(value):
        place.warn("PASS_RESULT_IS_STATIC", "The Result of a Pass state is static: paths and functions in it are texts")


def choice_of(*allowed: str) -> Check:
    """One of some strings."""

    def check(value: Any, place: Place) -> None:
        if not isinstance(value, str):
            place.error("Expected value of type [STRING]")
        elif value not in allowed:
            place.error(f"Value should be one of the following: [{', '.join(allowed)}]")

    return check


def named_choice_of(*allowed: str) -> Check:
    """One of some strings, which AWS reports with the name of the field."""

    def check(value: Any, place: Place) -> None:
        name = place.path.rpartition("/")[2]
        if not isinstance(value, str) or value not in allowed:
            place.error(f"The field '{name}' should have one of these values: [{', '.join(allowed)}]")

    return check


def array_of(check_element: Check, *, least: int = 0) -> Check:
    """An array; of a retrier or a catcher it may be empty, of branches and rules it may not."""

    def check(value: Any, place: Place) -> None:
        if not isinstance(value, list):
            place.error("Expected value of type [ARRAY]")
            return
        if len(value) < least:
            place.error("Value cannot be empty")
        for index, element in enumerate(value):
            check_element(element, place.element(index))

    return check


# --- numbers ----------------------------------------------------------------------------------------------------------


def whole(least: int, most: int | None = None) -> Check:
    """An integer in a range."""

    def check(value: Any, place: Place) -> None:
        if not isinstance(value, int) or isinstance(value, bool):
            place.error("Expected value of type Integer")
        else:
            _check_range(value, least, most, place)

    return check


def fraction(least: float, most: float | None = None) -> Check:
    """A number in a range."""

    def check(value: Any, place: Place) -> None:
        if not isinstance(value, int | float) or isinstance(value, bool):
            place.error("Expected value of type Float")
        else:
            _check_range(value, least, most, place)

    return check


def numeric(value: Any, place: Place) -> None:
    """Any number."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        place.error("Expected value of type [NUMBER]")


def _check_range(value: float, least: float, most: float | None, place: Place) -> None:
    if value < least:
        place.error(f"Minimum value is {least}")
    elif most is not None and value > most:
        place.error(f"Maximum value is {most}")


def timestamp(value: Any, place: Place) -> None:
    """An instant as RFC 3339 has it."""
    if not isinstance(value, str):
        place.error("Expected value of type [STRING]")
    elif parse_instant(value) is None:
        place.error("String does not match RFC3339 timestamp")


# --- paths ------------------------------------------------------------------------------------------------------------


def path(value: Any, place: Place) -> None:
    """A path, or null."""
    if value is not None:
        _check_path(value, place, find_path_fault)


def variable(value: Any, place: Place) -> None:
    """What a choice rule compares. AWS calls it a reference path, but takes filters and wildcards too."""
    if isinstance(value, str) and not value.startswith("$"):
        place.error("Value is not a Reference Path: Reference path didn't start with '$'")
    else:
        _check_path(value, place, find_path_fault)


def function(value: Any, place: Place) -> None:
    """A path or an intrinsic function."""
    _check_path(value, place, find_function_fault)


def reference(value: Any, place: Place) -> None:
    """A path to one place of the input, the context object or a variable."""
    _check_path(value, place, lambda found: find_path_fault(found, reference=True))


def reference_in_data(value: Any, place: Place) -> None:
    """A reference path to anything but the context object, which the numbers of a Map do not read."""
    if isinstance(value, str) and value.startswith(_CONTEXT):
        place.error("Value is not a Reference Path")
    else:
        reference(value, place)


def result_path(value: Any, place: Place) -> None:
    """Where a result is placed in the input, or null."""
    if isinstance(value, str) and variables_of_path(value) | ({_CONTEXT} if value.startswith(_CONTEXT) else set()):
        place.error("Value is not a Reference Path")
    elif value is not None:
        reference(value, place)


def _check_path(value: Any, place: Place, find_fault: Any) -> None:
    if not isinstance(value, str):
        place.error("Expected value of type [STRING]")
        return
    fault = find_fault(value)
    if fault is not None:
        place.error(fault)
    else:
        place.read(variables_of_path(value))


# --- templates and expressions ----------------------------------------------------------------------------------------


def payload(value: Any, place: Place) -> None:
    """A template of a JSONPath state."""
    if not isinstance(value, dict):
        place.error("Expected value of type [OBJECT]")
        return
    for fault in find_template_faults(value, Language.JSONPATH):
        place.error(fault.message, fault.code, fault.place)
    for below, name in find_static_members(value):
        place.warn("NO_DOLLAR", f"Field '{name}' looks like a path or a function, but does not end with '.$'", below)
    place.read(variables_of(value, Language.JSONPATH))


def jsonata(value: Any, place: Place) -> None:
    """Any JSON whose strings may be JSONata expressions."""
    for fault in find_template_faults(value, Language.JSONATA, has_error_output=place.has_error_output):
        place.error(fault.message, fault.code, fault.place)
    place.read(variables_of(value, Language.JSONATA))


def template(value: Any, place: Place) -> None:
    """A template in the query language of the state."""
    (jsonata if place.language is Language.JSONATA else payload)(value, place)


def expression_or(check: Check) -> Check:
    """A JSONata expression in a JSONata state, or a value that a check accepts."""

    def either(value: Any, place: Place) -> None:
        is_expression = isinstance(value, str) and ("{%" in value[:2] or "%}" in value[-2:])
        if place.language is Language.JSONATA and is_expression:
            jsonata(value, place)
        else:
            check(value, place)

    return either


def is_expression(value: Any) -> bool:
    """Return whether a value is a whole JSONata expression."""
    return isinstance(value, str) and find_expression(value) is not None
