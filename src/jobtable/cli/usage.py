"""A command that is written wrongly: one line says what is wrong, what was given and what is possible."""

from __future__ import annotations

from typing import Any

import typer
from pydantic import ValidationError

from jobtable.cli.output import visible


def tell_in_one_line(error: typer.BadParameter) -> None:
    """Let an error about an option or an argument say what it has to say in one line, without pydantic's words."""
    if isinstance(error.__cause__, ValidationError):
        error.message = _told(error.__cause__.errors()[0])
    line = visible(" ".join(error.format_message().split()))
    error.format_message = lambda: line  # type: ignore[method-assign]  # of one that is missing it is made each time


def _told(problem: Any) -> str:
    given, bounds = f"{problem['input']!r:.100}", problem.get("ctx", {})
    match problem["type"]:
        case "value_error":
            return str(bounds["error"])
        case "int_parsing" | "int_from_float" | "int_parsing_size":
            return f"{given} is no whole number"
        case "float_parsing":
            return f"{given} is no number"
        case "greater_than_equal":
            return f"{given} is too small: {bounds['ge']} is the least"
        case "less_than_equal":
            return f"{given} is too large: {bounds['le']} is the most"
        case _:
            return f"{given}: {problem['msg']}"
