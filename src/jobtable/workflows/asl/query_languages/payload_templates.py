"""Fills the payload templates of JSONPath states: Parameters, ResultSelector, ItemSelector, Assign and so on."""

from __future__ import annotations

from typing import Any

from jobtable.workflows.asl.query_languages.path_expressions import read_path
from jobtable.workflows.asl.query_languages.scope import Scope

DYNAMIC = ".$"


def fill_payload(template: Any, scope: Scope) -> Any:
    """Return a template with the values of the members whose names end in `.$`."""
    if isinstance(template, dict):
        return dict(_fill_member(name, member, scope) for name, member in template.items())
    if isinstance(template, list):
        return [fill_payload(element, scope) for element in template]
    return template


def _fill_member(name: str, member: Any, scope: Scope) -> tuple[str, Any]:
    if name.endswith(DYNAMIC) and isinstance(member, str):
        return name.removesuffix(DYNAMIC), read_path(member, scope, field=name)
    return name, fill_payload(member, scope)
