"""Reads definitions of the States Language, and finds all their faults at once."""

from __future__ import annotations

from functools import lru_cache

from jobtable.workflows.asl.entities import MachineType
from jobtable.workflows.asl.machine import Diagnostic, InvalidDefinitionError, Machine
from jobtable.workflows.asl.machine_definition.building import build_machine
from jobtable.workflows.asl.machine_definition.document import read_document
from jobtable.workflows.asl.machine_definition.findings import ERROR, Findings
from jobtable.workflows.asl.machine_definition.machine_checks import check_document

_REMEMBERED = 32


@lru_cache(maxsize=_REMEMBERED)
def read_definition(text: str) -> Machine:
    """Return the machine of a definition that was checked, or raise InvalidDefinitionError if it is no JSON object.

    Recent texts are remembered: callers share the machine and must not change its fields.
    """
    findings = Findings()
    document = read_document(text, findings)
    if document is None:
        raise InvalidDefinitionError(tuple(findings.diagnostics))
    return build_machine(document)


def diagnose(text: str, machine_type: MachineType) -> list[Diagnostic]:
    """Return the errors and warnings of a definition for machines of a type.

    Of each severity the first thousand are returned. Every text has an answer: nothing is raised.
    """
    findings = Findings()
    document = read_document(text, findings)
    if document is not None:
        check_document(document, machine_type, findings)
    return findings.diagnostics


def check_definition(text: str, machine_type: MachineType) -> None:
    """Raise InvalidDefinitionError if a definition has errors for machines of a type."""
    errors = tuple(each for each in diagnose(text, machine_type) if each.severity == ERROR)
    if errors:
        raise InvalidDefinitionError(errors)
