"""Fills templates in the query language of their state."""

from __future__ import annotations

from typing import Any

from jobtable.workflows.asl.machine import Language
from jobtable.workflows.asl.query_languages.jsonata_evaluation import fill_jsonata
from jobtable.workflows.asl.query_languages.payload_templates import fill_payload
from jobtable.workflows.asl.query_languages.scope import Scope


def fill(template: Any, scope: Scope, language: Language, field: str = "") -> Any:
    """Return a template with the values of its expressions: Parameters, Arguments, Output, Assign, or one string.

    JSONPath: members whose names end in `.$` are paths or intrinsic functions. JSONata: strings `{% ... %}` are
    expressions. `field` is the template's place in the state, as in `Output` or `Choices[1]/Assign`, for the cause and
    the location.

    Raises StateFault: "States.Runtime" for a path that finds nothing, "States.IntrinsicFailure", or
    "States.QueryEvaluationError".
    """
    if language is Language.JSONATA:
        return fill_jsonata(template, scope, field)
    return fill_payload(template, scope)
