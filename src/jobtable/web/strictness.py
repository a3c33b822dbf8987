"""Bodies are taken at their word: a text is no number, and neither is a truth value.

Pydantic would turn "5" and true into numbers, which the API's description does not allow. So the types of a body are
compared with those that the description gives, before anything is made of it.
"""

from __future__ import annotations

from typing import Any

_TYPE_OF: dict[type, tuple[str, ...]] = {
    bool: ("boolean",),
    int: ("integer", "number"),
    str: ("string",),
    list: ("array",),
    dict: ("object",),
    type(None): ("null",),
}


def mistyped(value: Any, schema: dict[str, Any], definitions: dict[str, Any]) -> str | None:
    """Where a value has a type that the schema does not allow, as a path; None where it has not."""
    return _find(value, schema, definitions, "body")


def is_deeper(value: Any, levels: int) -> bool:
    """Whether lists and objects stand within each other on more than so many levels."""
    if not isinstance(value, dict | list):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(is_deeper(each, levels - 1) for each in inner)


def _find(value: Any, schema: dict[str, Any], definitions: dict[str, Any], path: str) -> str | None:
    reference = schema.get("$ref")
    if reference is not None:
        return _find(value, definitions[reference.rpartition("/")[2]], definitions, path)
    choices = schema.get("anyOf") or schema.get("oneOf")
    if choices is not None:
        found = [_find(value, choice, definitions, path) for choice in choices]
        # Of several that do not fit, the one that fits the furthest says the most.
        return None if None in found else max((each or "" for each in found), key=len)
    told = schema.get("type")
    if told is not None and told not in _types_of(value):
        return path
    return _find_within(value, schema, definitions, path)


def _find_within(value: Any, schema: dict[str, Any], definitions: dict[str, Any], path: str) -> str | None:
    if isinstance(value, dict):
        properties, others = schema.get("properties", {}), schema.get("additionalProperties")
        for name, inner in value.items():
            of_name = properties.get(name, others)
            found = _find(inner, of_name, definitions, f"{path}.{name}") if isinstance(of_name, dict) else None
            if found:
                return found
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for number, inner in enumerate(value):
            found = _find(inner, schema["items"], definitions, f"{path}[{number}]")
            if found:
                return found
    return None


def _types_of(value: Any) -> tuple[str, ...]:
    if isinstance(value, float):
        return ("number", "integer") if value.is_integer() else ("number",)
    return _TYPE_OF.get(type(value), ())
