"""Reads the JSON text of a definition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from jobtable.workflows.asl.json_text import DEEPEST, MOST_LEVELS, JsonTextFault, depth_of, is_too_deep, read_json
from jobtable.workflows.asl.machine_definition.findings import ERROR, SCHEMA, Findings

INVALID_JSON = "INVALID_JSON_DESCRIPTION"
TOO_DEEP = "TOO_DEEPLY_NESTED"
MOST_CHARACTERS = 1_048_576


class Members(dict[str, Any]):
    """An object of a definition that has names more than once."""

    repeated: tuple[str, ...] = ()


def read_document(text: str, findings: Findings) -> dict[str, Any] | None:
    """Return the object of a text, or None with what is wrong with it."""
    fault = _fault_of(text)
    if fault is not None:
        findings.add(ERROR, *fault)
        return None
    try:
        document = read_json(text, _pairs)
    except JsonTextFault as error:
        at = f"\n at {error.source}" if error.source else ""
        findings.add(ERROR, INVALID_JSON, f"{error}{at}", error.source)
        return None
    if isinstance(document, dict):
        return document
    findings.add(ERROR, SCHEMA, "Definition must be a valid JSON object", "")
    return None


def find_repeated(document: Any) -> Iterator[tuple[str, str]]:
    """Yield the place of each object with a name more than once, and the name."""
    todo = [("", document)]
    while todo:
        path, value = todo.pop()
        if isinstance(value, Members):
            yield from ((path, name) for name in value.repeated)
        if isinstance(value, dict):
            todo += [(f"{path}/{name}", member) for name, member in value.items()]
        elif isinstance(value, list):
            todo += [(f"{path}[{index}]", element) for index, element in enumerate(value)]


def levels_of(value: Any) -> int:
    """Return how deep arrays and objects are nested in a value."""
    levels = 0
    layer = [value]
    while layer := [each for each in layer if isinstance(each, dict | list)]:
        levels += 1
        layer = [member for each in layer for member in (each.values() if isinstance(each, dict) else each)]
    return levels


def _fault_of(text: str) -> tuple[str, str, str] | None:
    """Return the code, the message and the location for a text that is not worth reading."""
    if not text.strip():
        return "MISSING_DESCRIPTION", "Received a null or empty workflow input", ""
    if len(text) > MOST_CHARACTERS:
        return SCHEMA, f"Definition has {len(text)} characters; at most {MOST_CHARACTERS} are allowed", ""
    if not text.isascii() and any("\ud800" <= each <= "\udfff" for each in text):
        return INVALID_JSON, "Definition has unpaired surrogates, which UTF-8 cannot represent", ""
    if not is_too_deep(text):
        return None
    levels = depth_of(text)
    if levels > DEEPEST:
        return INVALID_JSON, f"Document nesting depth ({levels}) exceeds the maximum allowed ({DEEPEST})", ""
    return TOO_DEEP, f"Definition is nested {levels} levels deep; at most {MOST_LEVELS} are allowed", ""


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) == len(pairs):
        return members
    repeating = Members(members)
    repeating.repeated = tuple(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
    return repeating
