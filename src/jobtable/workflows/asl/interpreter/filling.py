"""Templates in both query languages."""

from __future__ import annotations

from jobtable.workflows.asl import expressions
from jobtable.workflows.asl.expressions.payload_templates import fill_payload
from jobtable.workflows.asl.expressions.scope import Scope
from jobtable.workflows.asl.machine import Language
from jobtable.workflows.asl.run import Json


def fill(template: Json, scope: Scope, language: Language, field: str = "") -> Json:
    """Return a template with the values of its expressions; the field is for messages."""
    if language is Language.JSONPATH:
        return fill_payload(template, scope)
    return expressions.fill(template, scope, language, field)
