"""Forms that work without scripts: read from a request, and made from the JSON schema of what they ask."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias
from urllib.parse import parse_qs

from fastapi import Request

from jobtable.errors import ValueRefusedError
from jobtable.model import Json
from jobtable.web.problems import Refusal

Form: TypeAlias = Mapping[str, list[str]]
Kind: TypeAlias = Literal["text", "long", "number", "choice", "json", "group"]
_DEEPEST = 3
_LONG = 200
_COMBINED = {"$ref", "allOf", "anyOf", "oneOf", "not", "if", "patternProperties"}
"""Members of schemas for which a form has no fields; what they describe is written as JSON."""


async def read_form(request: Request, most_bytes: int) -> dict[str, list[str]]:
    """Return the fields of a submitted form, or raise Refusal with 413 if it is too large."""
    read = b""
    async for chunk in request.stream():
        read += chunk
        if len(read) > most_bytes:
            raise Refusal(413, f"this form may have at most {most_bytes:,} bytes")
    return parse_qs(read.decode("latin-1"), keep_blank_values=True)


@dataclass(frozen=True)
class FormField:
    """One field of a form, or a group of fields."""

    name: str
    label: str
    kind: Kind
    schema: Mapping[str, Any]
    is_required: bool = True
    choices: Sequence[tuple[str, str]] = ()
    """The JSON text of each value that may be chosen, and what people read."""
    fields: Sequence[FormField] = field(default=())

    @property
    def note(self) -> str:
        """What the schema says about the value."""
        return str(self.schema.get("description", ""))


def field_of(
    schema: Json, name: str = "answer", label: str = "Answer", *, is_required: bool = True, depth: int = 0
) -> FormField:
    """Return the field for a value that a schema describes."""
    about: Mapping[str, Any] = schema if isinstance(schema, Mapping) else {}
    label = str(about.get("title") or label)
    if "enum" in about or "const" in about or about.get("type") == "boolean":
        values = about.get("enum", [about["const"]] if "const" in about else [True, False])
        choices = [(json.dumps(value), _words(value)) for value in values]
        return FormField(name, label, "choice", about, is_required, choices)
    if _COMBINED & about.keys():
        return FormField(name, label, "json", about, is_required)
    match _type_of(about):
        case "object" if about.get("properties") and depth < _DEEPEST:
            needed = set(about.get("required", ()))
            inner = [
                field_of(each, f"{name}.{member}", member, is_required=member in needed, depth=depth + 1)
                for member, each in about["properties"].items()
            ]
            return FormField(name, label, "group", about, is_required, fields=inner)
        case "integer" | "number":
            return FormField(name, label, "number", about, is_required)
        case "string":
            is_short = depth > 0 or "pattern" in about or about.get("maxLength", _LONG + 1) <= _LONG
            return FormField(name, label, "text" if is_short else "long", about, is_required)
    return FormField(name, label, "json", about, is_required)


def value_in(asked: FormField, form: Form) -> Json:
    """Return the value that a form has for a field; None if it was left out. ValueRefusedError for invalid JSON."""
    if asked.kind == "group":
        members = {each.name.rpartition(".")[2]: value_in(each, form) for each in asked.fields}
        return {name: value for name, value in members.items() if value is not None}
    text = form.get(asked.name, [""])[0].replace("\r\n", "\n")
    if not text and not (asked.is_required and asked.kind in ("text", "long")):
        return None
    match asked.kind:
        case "number":
            return _number(text)
        case "choice" | "json":
            try:
                return json.loads(text)
            except (ValueError, RecursionError) as error:
                raise ValueRefusedError(f"{asked.label} is not JSON: {error}") from error
    return text


def _type_of(schema: Mapping[str, Any]) -> str | None:
    kind = schema.get("type")
    if isinstance(kind, list):
        return next((each for each in kind if each != "null"), None)
    return kind


def _number(text: str) -> Json:
    """Return a number, or the text as it is, which the check of the schema then names."""
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text


def _words(value: Json) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
