"""Reads the JSON text of a definition."""

from __future__ import annotations

import json
from typing import Any

from jobtable.workflows.asl.machine import Diagnostic, InvalidDefinitionError


def read_document(text: str) -> Any:
    """Return what a text says, or raise InvalidDefinitionError."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidDefinitionError((Diagnostic("ERROR", "INVALID_JSON_DESCRIPTION", str(error), ""),)) from error
