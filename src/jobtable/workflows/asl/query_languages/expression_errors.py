"""How the evaluation of an expression fails."""

from __future__ import annotations

import json
from typing import Any

MOST_CHARACTERS = 32_768
"""The longest expression: reading a longer one takes seconds."""
RUNTIME = "States.Runtime"
INTRINSIC_FAILURE = "States.IntrinsicFailure"
QUERY_EVALUATION_ERROR = "States.QueryEvaluationError"
RESULT_PATH_MATCH_FAILURE = "States.ResultPathMatchFailure"
REFERENCE_PATH_CONFLICT = "States.ReferencePathConflict"


class ExpressionSyntaxError(ValueError):
    """The text of a path or an intrinsic function is malformed."""


def to_text(value: Any) -> str:
    """Return a value as the compact JSON that causes quote."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
