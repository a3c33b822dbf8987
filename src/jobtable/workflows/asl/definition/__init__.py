"""Reads definitions of the States Language, and finds all their faults at once."""

from __future__ import annotations

from functools import lru_cache

from jobtable.workflows.asl.definition.building import build_machine
from jobtable.workflows.asl.definition.document import read_document
from jobtable.workflows.asl.entities import MachineType
from jobtable.workflows.asl.machine import Diagnostic, InvalidDefinitionError, Machine

_REMEMBERED = 32


@lru_cache(maxsize=_REMEMBERED)
def read_definition(text: str) -> Machine:
    """Return the machine of a definition, or raise InvalidDefinitionError with all faults.

    Recent texts are remembered: callers share the machine and must not change its fields.
    """
    return build_machine(read_document(text))


def diagnose(text: str, machine_type: MachineType) -> list[Diagnostic]:
    """Return the errors and warnings of a definition for machines of a type."""
    try:
        read_definition(text)
    except InvalidDefinitionError as error:
        return list(error.diagnostics)
    return []


def check_definition(text: str, machine_type: MachineType) -> None:
    """Raise InvalidDefinitionError if a definition has errors for machines of a type."""
    errors = tuple(each for each in diagnose(text, machine_type) if each.severity == "ERROR")
    if errors:
        raise InvalidDefinitionError(errors)
