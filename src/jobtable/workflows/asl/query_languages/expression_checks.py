"""Checks paths and templates of a definition before anything runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from jobtable.workflows.asl.machine import Language
from jobtable.workflows.asl.query_languages import jsonata_library as library
from jobtable.workflows.asl.query_languages.expression_errors import ExpressionSyntaxError
from jobtable.workflows.asl.query_languages.intrinsic_syntax import COUNTS, PREFIX, Invocation, parse_intrinsic
from jobtable.workflows.asl.query_languages.jsonata_evaluation import find_expression
from jobtable.workflows.asl.query_languages.jsonata_references import (
    ERROR_OUTPUT,
    ROOT,
    find_references,
    find_variables,
)
from jobtable.workflows.asl.query_languages.path_parser import parse_path
from jobtable.workflows.asl.query_languages.path_syntax import CONTEXT, CURRENT, Call, Filter, Path
from jobtable.workflows.asl.query_languages.path_syntax import ROOT as PATH_ROOT
from jobtable.workflows.asl.query_languages.payload_templates import DYNAMIC

SCHEMA = "SCHEMA_VALIDATION_FAILED"
INVALID_JSONATA = "INVALID_JSONATA_EXPRESSION"
UNSUPPORTED_JSONATA = "UNSUPPORTED_JSONATA_EXPRESSION"
_JSON_TYPES = {dict: "OBJECT", list: "ARRAY", bool: "BOOLEAN", int: "NUMBER", float: "NUMBER", type(None): "NULL"}


@dataclass(frozen=True)
class TemplateFault:
    """A fault of a template. `place` is below the template, as in `/items[0]`."""

    place: str
    message: str
    code: str = SCHEMA


def find_path_fault(path: str, *, reference: bool = False) -> str | None:
    """Return what is wrong with a path, or None. A reference path names one place of the input."""
    if not path.startswith(PATH_ROOT):
        start = "Value is not a Reference Path: Reference path didn't start with '$'"
        return start if reference else "Value must be a valid JSONPath."
    try:
        parsed = parse_path(path)
    except ExpressionSyntaxError as error:
        return f"Value is not a Reference Path: {error}" if reference else f"Value must be a valid JSONPath. {error}"
    return "Value is not a Reference Path" if reference and not parsed.is_reference else None


def find_function_fault(text: str) -> str | None:
    """Return what is wrong with a path or an intrinsic function, or None."""
    if not text.startswith(PREFIX):
        return find_path_fault(text)
    try:
        return _find_count_fault(parse_intrinsic(text))
    except ExpressionSyntaxError as error:
        return str(error)


def _find_count_fault(invocation: Invocation) -> str | None:
    """Return which function has too few or too many arguments, or None."""
    least, most = COUNTS[invocation.name]
    count = len(invocation.arguments)
    if count < least or (most is not None and count > most):
        wanted = f"{least}" if least == most else f"at least {least}" if most is None else f"{least} to {most}"
        return f"'{PREFIX}{invocation.name}' takes {wanted} arguments, not {count}"
    inner = (_find_count_fault(each) for each in invocation.arguments if isinstance(each, Invocation))
    return next((fault for fault in inner if fault is not None), None)


def find_template_faults(template: Any, language: Language, *, has_error_output: bool = False) -> list[TemplateFault]:
    """Return the faults of a template. Only the Output and Assign of a catcher read `$states.errorOutput`."""
    if language is Language.JSONATA:
        return [
            fault
            for place, _, text in _strings(template)
            for fault in _jsonata_faults(place, text, has_error_output=has_error_output)
        ]
    return [fault for place, name, value in _members(template) if (fault := _payload_fault(place, name, value))]


def _payload_fault(place: str, name: str, value: Any) -> TemplateFault | None:
    if not name.endswith(DYNAMIC):
        return None
    if not isinstance(value, str):
        kind = _JSON_TYPES.get(type(value), "OBJECT")
        message = f"The value for the field '{name}' must be a STRING that contains a JSONPath but was an {kind}"
        return TemplateFault(place, message)
    fault = find_function_fault(value)
    if fault is None:
        return None
    message = f"The value for the field '{name}' must be a valid JSONPath or a valid intrinsic function call"
    return TemplateFault(place, f"{message}: {fault}" if value.startswith((PREFIX, PATH_ROOT)) else message)


def _jsonata_faults(place: str, text: str, *, has_error_output: bool) -> Iterator[TemplateFault]:
    expression = find_expression(text)
    if expression is None:
        if text.startswith("{%") is not text.endswith("%}") or text == "{%}":
            yield TemplateFault(place, "JSONata string must start with {% and end with %}")
        return
    if not library.is_installed:
        return
    try:
        references = find_references(expression)
    except library.JsonataError as error:
        yield TemplateFault(place, str(error), INVALID_JSONATA)
        return
    except RecursionError:
        yield TemplateFault(place, "The expression is nested too deeply", INVALID_JSONATA)
        return
    for name in references:
        if name == ROOT:
            yield TemplateFault(place, f"Reference to '{name}' is not supported.", UNSUPPORTED_JSONATA)
        elif name == ERROR_OUTPUT:
            if not has_error_output:
                yield TemplateFault(place, f"Field '{name}' does not exist.", UNSUPPORTED_JSONATA)
        else:
            message = f"Reference to '{name}' at the top level is not supported."
            yield TemplateFault(place, message, UNSUPPORTED_JSONATA)


def looks_dynamic(text: str) -> bool:
    """Return whether a plain string looks like a path or an intrinsic function."""
    return text.startswith(("$.", "$$.", "$[")) or (text.startswith(PREFIX) and text.endswith(")"))


def find_static_members(template: Any) -> list[tuple[str, str]]:
    """Return the place and name of members that look dynamic, but whose names do not end in `.$`."""
    return [
        (place, name)
        for place, name, value in _members(template)
        if isinstance(value, str) and not name.endswith(DYNAMIC) and looks_dynamic(value)
    ]


def variables_of(template: Any, language: Language) -> set[str]:
    """Return the variables that the expressions of a template read; malformed expressions read none."""
    names: set[str] = set()
    if language is Language.JSONATA:
        for _, _, text in _strings(template):
            expression = find_expression(text)
            if expression is not None and library.is_installed:
                names |= _variables_of_expression(expression)
        return names
    for _, name, value in _members(template):
        if name.endswith(DYNAMIC) and isinstance(value, str):
            names |= variables_of_path(value)
    return names


def variables_of_path(text: str) -> set[str]:
    """Return the variables that a path or an intrinsic function reads."""
    try:
        return set(_roots(parse_intrinsic(text) if text.startswith(PREFIX) else parse_path(text)))
    except ExpressionSyntaxError:
        return set()


def _variables_of_expression(expression: str) -> set[str]:
    try:
        return find_variables(expression)
    except (library.JsonataError, RecursionError):
        return set()


def _roots(part: Any) -> Iterator[str]:
    if isinstance(part, Invocation | Call):
        for argument in part.arguments:
            yield from _roots(argument)
    elif isinstance(part, Path):
        if part.root not in {PATH_ROOT, CONTEXT, CURRENT}:
            yield part.root
        yield from _roots(part.call)
        for step in part.steps:
            if isinstance(step, Filter):
                yield from _roots(step.condition)
    elif hasattr(part, "__dataclass_fields__"):
        for name in part.__dataclass_fields__:
            member = getattr(part, name)
            for each in member if isinstance(member, tuple) else (member,):
                yield from _roots(each)


def _members(template: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield the place of each object, and the names and values of its members."""
    for place, value in _containers(template):
        if isinstance(value, dict):
            for name, member in value.items():
                yield place, name, member


def _strings(template: Any) -> Iterator[tuple[str, str, str]]:
    """Yield the place and value of each string."""
    if isinstance(template, str):
        yield "", "", template
    for place, value in _containers(template):
        for step, member in _places(value):
            if isinstance(member, str):
                yield place + step, "", member


def _containers(template: Any) -> Iterator[tuple[str, Any]]:
    todo = [("", template)]
    while todo:
        place, value = todo.pop()
        if isinstance(value, dict | list):
            yield place, value
            todo += [(place + step, member) for step, member in reversed(_places(value))]


def _places(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [(f"/{name}", member) for name, member in value.items()]
    return [(f"[{index}]", member) for index, member in enumerate(value)]
