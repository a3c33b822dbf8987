"""How data passes through a state, in both query languages.

JSONPath: InputPath, Parameters, the state's work, ResultSelector, ResultPath, OutputPath. JSONata: Arguments, the
state's work, Output. Assign reads the variables as they were when the state was entered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jobtable.workflows.asl.interpreter.filling import fill
from jobtable.workflows.asl.interpreter.strand import Strand, dump
from jobtable.workflows.asl.json_text import MOST_LEVELS, is_too_deep
from jobtable.workflows.asl.machine import Language, StateFault
from jobtable.workflows.asl.query_languages import place, read_path
from jobtable.workflows.asl.run import MOST_PAYLOAD_BYTES, Json

MOST_VARIABLE_BYTES = 10 * 1024 * 1024
RUNTIME = "States.Runtime"
DATA_LIMIT = "States.DataLimitExceeded"
QUERY_EVALUATION = "States.QueryEvaluationError"


_JSON_TYPES = ((bool, "boolean"), (str, "string"), (int | float, "number"), (list, "array"), (dict, "object"))
_PARAMETERS = frozenset({"Seconds", "TimeoutSeconds", "HeartbeatSeconds"})


@dataclass(frozen=True)
class Leaving:
    """How a state is left."""

    output: Json
    next: str | None
    assigned: dict[str, Json] = field(default_factory=dict)


def is_jsonata(strand: Strand) -> bool:
    """Return whether the state's expressions are JSONata."""
    return strand.state.language is Language.JSONATA


def effective_input(strand: Strand) -> Json:
    """Return the state's input after InputPath."""
    return _at_path(strand, "InputPath", strand.memory["input"])


def payload(strand: Strand, value: Json) -> Json:
    """Return what a state hands over: its Parameters or Arguments, or else a value."""
    name = "Arguments" if is_jsonata(strand) else "Parameters"
    if name not in strand.fields:
        return value
    return evaluate(strand, name, strand.fields[name], value)


def evaluate(strand: Strand, name: str, template: Json, value: Json, **more: Json) -> Json:
    """Evaluate a field of the state, with a value as `$`; the name is for messages."""
    return fill(template, strand.scope(value, **more), strand.state.language, name)


def leave_with_result(strand: Strand, result: Json) -> Leaving:
    """Leave a state that has a result: Task, Parallel, Map, or Pass."""
    fields = strand.fields
    if is_jsonata(strand):
        return leave_in_jsonata(strand, fields, strand.state.next, result, result=result)
    if "ResultSelector" in fields:
        result = evaluate(strand, "ResultSelector", fields["ResultSelector"], result)
    assigned = _assign(strand, fields, "Assign", result)
    combined = _combine(fields, strand.memory["input"], result)
    return Leaving(_at_path(strand, "OutputPath", combined), strand.state.next, assigned)


def leave_with_input(strand: Strand) -> Leaving:
    """Leave a state without a result: Wait, Succeed."""
    fields = strand.fields
    if is_jsonata(strand):
        return leave_in_jsonata(strand, fields, strand.state.next, strand.memory["input"])
    value = effective_input(strand)
    assigned = _assign(strand, fields, "Assign", value)
    return Leaving(_at_path(strand, "OutputPath", value), strand.state.next, assigned)


def leave_in_jsonata(
    strand: Strand, fields: Mapping[str, Any], target: str | None, default: Json, at: str = "", **more: Json
) -> Leaving:
    """Leave a state by the Output and Assign of the state, a choice rule or a catcher, which is at a place in it."""
    raw = strand.memory["input"]
    assigned = _assign(strand, fields, f"{at}Assign", raw, **more)
    output = evaluate(strand, f"{at}Output", fields["Output"], raw, **more) if "Output" in fields else default
    return Leaving(output, target, assigned)


def leave_by_rule(strand: Strand, rule: Mapping[str, Any], target: str, at: str) -> Leaving:
    """Leave a Choice by a rule or by its default, which is at a place in it."""
    if is_jsonata(strand):
        return leave_in_jsonata(strand, rule, target, strand.memory["input"], at)
    value = effective_input(strand)
    assigned = _assign(strand, rule, f"{at}Assign", value)
    return Leaving(_at_path(strand, "OutputPath", value), target, assigned)


def leave_by_catcher(strand: Strand, catcher: Mapping[str, Any], error_output: Json, at: str) -> Leaving:
    """Leave a failed state by a catcher, which is at a place in it."""
    if is_jsonata(strand):
        return leave_in_jsonata(strand, catcher, catcher["Next"], error_output, at, error_output=error_output)
    assigned = _assign(strand, catcher, f"{at}Assign", error_output)
    return Leaving(_combine(catcher, strand.memory["input"], error_output), catcher["Next"], assigned)


def check_size(value: Json, subject: str) -> None:
    """Refuse a payload of more than 256 KB, or too deep; the subject is the state or the resource that made it."""
    try:
        text = dump(value)
    except RecursionError:
        raise _too_deep(subject) from None
    if is_too_deep(text):
        raise _too_deep(subject)
    if len(text) > MOST_PAYLOAD_BYTES or len(text.encode(errors="surrogatepass")) > MOST_PAYLOAD_BYTES:
        raise _too_large(subject)


def check_leaving(strand: Strand, leaving: Leaving) -> None:
    """Refuse an output, or variables, that are too large or too deep; all variables together may have 10 MB."""
    subject = strand.memory["state"]
    check_size(leaving.output, subject)
    if leaving.assigned:
        check_size(leaving.assigned, subject)
        together = {**strand.variables(), **leaving.assigned}.values()
        if sum(len(dump(each).encode(errors="surrogatepass")) for each in together) > MOST_VARIABLE_BYTES:
            raise _too_large(subject)


def _too_large(subject: str) -> StateFault:
    return StateFault(
        DATA_LIMIT,
        f"The state/task '{subject}' returned a result with a size exceeding"
        " the maximum number of bytes service limit.",
    )


def _too_deep(subject: str) -> StateFault:
    return StateFault(RUNTIME, f"The data of the state/task '{subject}' is nested more than {MOST_LEVELS} levels deep")


def read_number(strand: Strand, name: str, value: Json, *, whole: bool = True) -> float | None:
    """Return the number of a field, of its JSONata expression or of its Path variant; None if it has none."""
    return read_member(strand, "", strand.fields, name, value, whole=whole)


def read_member(
    strand: Strand, place: str, members: Mapping[str, Any], name: str, value: Json, *, whole: bool = True
) -> float | None:
    """Return such a number of a member of a field, which is at a place in the state."""
    kind = "an integer" if whole else "a float"
    if members.get(f"{name}Path") is not None:
        path = members[f"{name}Path"]
        found = read_path(path, strand.scope(value), field=f"{name}Path")
        fault = StateFault(
            RUNTIME,
            f"The {name}Path parameter does not reference {kind} value: {path} == {dump(found)}"
            if name in _PARAMETERS
            else f"The {name}Path field refers to value {dump(found)} which is not a valid {kind.split()[1]}: {path}",
        )
    elif name in members:
        found = members[name]
        place = f"{place}/{name}" if place else name
        expression = found
        if isinstance(found, str):
            found = evaluate(strand, place, found, value)
        fault = wrong_type(place, expression, "number", found)
    else:
        return None
    if isinstance(found, bool) or not isinstance(found, int | float) or found < 0:
        raise fault
    if found == int(found):
        return int(found)
    if whole:
        raise fault
    return float(found)


def wrong_type(place: str, expression: Json, expected: str, found: Json) -> StateFault:
    """Return the fault of a JSONata expression whose value is of another type than its field needs."""
    text = str(expression)
    shown = text[2:-2].strip() if text.startswith("{%") else text
    actual = next((name for kind, name in _JSON_TYPES if isinstance(found, kind)), "null")
    return StateFault(
        QUERY_EVALUATION,
        f"The JSONata expression '{shown}' specified for the field '{place}' returned an unexpected result type."
        f" Expected '{expected}', but was '{actual}' for value: {dump(found)}",
        place,
    )


def _assign(strand: Strand, fields: Mapping[str, Any], name: str, value: Json, **more: Json) -> dict[str, Json]:
    if "Assign" not in fields:
        return {}
    assigned: dict[str, Json] = evaluate(strand, name, fields["Assign"], value, **more)
    return assigned


def _combine(fields: Mapping[str, Any], raw: Json, result: Json) -> Json:
    path = fields.get("ResultPath", "$")
    if path is None:
        return raw
    return result if path == "$" else place(path, raw, result)


def _at_path(strand: Strand, name: str, value: Json) -> Json:
    if is_jsonata(strand):
        return value
    path = strand.fields.get(name, "$")
    if path is None:
        return {}
    return value if path == "$" else read_path(path, strand.scope(value), field=name)
