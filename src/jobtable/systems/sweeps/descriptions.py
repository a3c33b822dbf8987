"""What the description of the API says of a sweep's parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def told_apart_by(member: str) -> Callable[[dict[str, Any]], None]:
    """For `json_schema_extra`: in JSON the member must be given, although in Python the class itself says it."""

    def require(schema: dict[str, Any]) -> None:
        schema["required"] = [member, *(name for name in schema.get("required", ()) if name != member)]

    return require
