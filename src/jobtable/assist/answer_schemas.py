"""JSON schemas of answers: in the form that services enforce, or as words for those that enforce none."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, TypeAlias

Schema: TypeAlias = Mapping[str, Any]

WRAPPED = "answer"
"""The property that holds an answer whose schema is not that of an object."""
_DROPPED = frozenset(("default", "discriminator", "maxLength", "minLength", "title", "uniqueItems", "examples"))
"""What services do not enforce. Every answer is checked against its class afterwards."""
_FORMATS = frozenset(("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"))
_FENCED = re.compile(r"\s*```(?:json)?\s*\n((?:(?!```).)*)\n\s*```\s*", re.DOTALL)


def as_object(schema: Schema) -> Schema:
    """Return the schema of an object, because services take no other: what is none becomes a property of one."""
    if _is_object(schema):
        return schema
    inner = {name: part for name, part in schema.items() if name != "$defs"}
    wrapped = {"type": "object", "properties": {WRAPPED: inner}, "required": [WRAPPED]}
    return {**wrapped, "$defs": schema["$defs"]} if "$defs" in schema else wrapped


def unwrapped(text: str, schema: Schema) -> str:
    """Return the text of an answer without the object that `as_object` put around it."""
    if _is_object(schema):
        return text
    try:
        found = json.loads(text)
    except ValueError:
        return text
    return json.dumps(found[WRAPPED], ensure_ascii=False) if isinstance(found, dict) and WRAPPED in found else text


def _is_object(schema: Schema) -> bool:
    return schema.get("type") == "object" and "$ref" not in schema


def strict_schema(schema: Schema) -> dict[str, Any] | None:
    """Return a schema that a service can enforce to the letter; None if it is too free for that.

    All properties become required: a model that means a default has to say so.
    """
    try:
        return _strict(schema)
    except _TooFreeError:
        return None


class _TooFreeError(Exception):
    """A part allows what strict schemas cannot express."""


def _strict(schema: Schema) -> dict[str, Any]:
    if "$ref" in schema:
        return {"$ref": schema["$ref"], **_strict_parts(schema, "$defs")}
    made = {name: part for name, part in schema.items() if name not in _DROPPED}
    if made.get("format", "date") not in _FORMATS:
        del made["format"]
    made |= _strict_parts(schema, "$defs") | _strict_parts(schema, "properties")
    if isinstance(schema.get("items"), Mapping):
        made["items"] = _strict(schema["items"])
    choices = made.pop("oneOf", made.get("anyOf"))
    if choices is not None:
        made["anyOf"] = [_strict(each) for each in choices]
    _check_strict(made)
    if made.get("type") == "object":
        made |= {"required": list(made["properties"]), "additionalProperties": False}
    return made


def _strict_parts(schema: Schema, holder: str) -> dict[str, Any]:
    return {holder: {name: _strict(part) for name, part in schema[holder].items()}} if holder in schema else {}


def _check_strict(made: Schema) -> None:
    is_typed = any(name in made for name in ("type", "anyOf", "enum", "const"))
    is_open = made.get("type") == "object" and (not made.get("properties") or made.get("additionalProperties"))
    has_open_items = made.get("type") == "array" and "items" not in made
    if not is_typed or is_open or has_open_items or {"allOf", "not", "prefixItems", "patternProperties"} & made.keys():
        raise _TooFreeError


def instruction(schema: Schema) -> str:
    """Ask for JSON in words."""
    return (
        "Answer with a single JSON value and no other text. It must be valid under this JSON schema:\n"
        f"{json.dumps(schema, ensure_ascii=False, sort_keys=True)}"
    )


def unfenced(text: str) -> str:
    """Return JSON without the fence of code that models put around it."""
    found = _FENCED.fullmatch(text)
    return found[1] if found else text
