"""Pass and Fail."""

from __future__ import annotations

from jobtable.workflows.asl.interpreter.dataflow import (
    RUNTIME,
    Leaving,
    effective_input,
    is_jsonata,
    leave_in_jsonata,
    leave_with_result,
    payload,
    wrong_type,
)
from jobtable.workflows.asl.interpreter.filling import fill
from jobtable.workflows.asl.interpreter.strand import Strand
from jobtable.workflows.asl.machine import Language, StateFault
from jobtable.workflows.asl.query_languages import read_path


class DeclaredFailure(StateFault):
    """A Fail state failed as it is meant to."""


def leave_pass(strand: Strand) -> Leaving:
    """Leave a Pass state."""
    if is_jsonata(strand):
        return leave_in_jsonata(strand, strand.fields, strand.state.next, strand.memory["input"])
    if "Result" in strand.fields:
        return leave_with_result(strand, strand.fields["Result"])
    return leave_with_result(strand, payload(strand, effective_input(strand)))


def leave_fail(strand: Strand) -> Leaving:
    """Fail with the error and the cause of the state."""
    raise DeclaredFailure(_text(strand, "Error") or "", _text(strand, "Cause") or "")


def _text(strand: Strand, name: str) -> str | None:
    fields = strand.fields
    scope = strand.scope(strand.memory["input"])
    if f"{name}Path" in fields:
        found = read_path(fields[f"{name}Path"], scope, field=f"{name}Path")
    elif name in fields and is_jsonata(strand):
        found = fill(fields[name], scope, Language.JSONATA, name)
        if not isinstance(found, str):
            raise wrong_type(name, fields[name], "string", found)
    else:
        found = fields.get(name)
    if found is not None and not isinstance(found, str):
        raise StateFault(RUNTIME, f"The {name} of a Fail state must be a string")
    return found
