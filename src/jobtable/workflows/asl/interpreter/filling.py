"""Templates in both query languages."""

from __future__ import annotations

from jobtable.workflows.asl import query_languages
from jobtable.workflows.asl.machine import Language
from jobtable.workflows.asl.query_languages.payload_templates import fill_payload
from jobtable.workflows.asl.query_languages.scope import Scope
from jobtable.workflows.asl.run import Json


def fill(template: Json, scope: Scope, language: Language, field: str = "") -> Json:
    """Return a template with the values of its expressions; the field is for messages."""
    if language is Language.JSONPATH:
        return fill_payload(template, scope)
    return query_languages.fill(template, scope, language, field)
