"""The reference of the REST API as a Markdown page, generated from its description."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from fastapi import FastAPI

from jobtable.web.api import openapi_of

_BEGINNING = """# REST API

Every operation with the roles that may use it. `make reference` generates this page. The server describes itself as
OpenAPI, with schemas and examples, at `/api/v1/openapi.json`; [the guide](../guides/api.md) explains how to use it.
"""


def render_page(app: FastAPI) -> str:
    """Return the page with all operations by group."""
    groups: dict[str, list[str]] = defaultdict(list)
    for path, operations in openapi_of(app)["paths"].items():
        for method, operation in operations.items():
            groups[operation["tags"][0]].append(_row(method, path, operation))
    lines = [_BEGINNING]
    for name, rows in groups.items():
        lines += [
            f"## {name.capitalize()}",
            "",
            "| operation | what it does | roles |",
            "| --- | --- | --- |",
            *rows,
            "",
        ]
    return "\n".join(lines).rstrip() + "\n"


def _row(method: str, path: str, operation: dict[str, Any]) -> str:
    does = operation["description"].partition("\n\n")[0].replace("\n", " ")
    return f"| `{method.upper()} {path}` | {does} | {', '.join(operation['x-roles'])} |"
