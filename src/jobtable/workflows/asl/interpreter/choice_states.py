"""Choice: which rule decides what comes next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobtable.workflows.asl.interpreter.choice_rules import holds
from jobtable.workflows.asl.interpreter.dataflow import (
    RUNTIME,
    Leaving,
    effective_input,
    evaluate,
    is_jsonata,
    leave_by_rule,
    wrong_type,
)
from jobtable.workflows.asl.interpreter.strand import Strand
from jobtable.workflows.asl.machine import StateFault


def leave_choice(strand: Strand) -> Leaving:
    """Leave a Choice state by the first rule that holds, or by its default."""
    fields = strand.fields
    for position, rule in enumerate(fields["Choices"]):
        if _holds(strand, rule, position):
            return leave_by_rule(strand, rule, rule["Next"], f"Choices[{position}]/")
    if "Default" in fields:
        return leave_by_rule(strand, fields, fields["Default"], "")
    raise StateFault(RUNTIME, "Failed to transition out of the state. The state does not point to a next state.")


def _holds(strand: Strand, rule: Mapping[str, Any], position: int) -> bool:
    if not is_jsonata(strand):
        return holds(rule, strand.scope(effective_input(strand)))
    place = f"Choices[{position}]/Condition"
    found = evaluate(strand, place, rule["Condition"], strand.memory["input"])
    if not isinstance(found, bool):
        raise wrong_type(place, rule["Condition"], "boolean", found)
    return found
