"""How the evaluation of an expression fails."""

from __future__ import annotations

import json
from typing import Any

from jobtable.workflows.asl.machine import StateFault

RUNTIME = "States.Runtime"
INTRINSIC_FAILURE = "States.IntrinsicFailure"
QUERY_EVALUATION_ERROR = "States.QueryEvaluationError"
RESULT_PATH_MATCH_FAILURE = "States.ResultPathMatchFailure"
REFERENCE_PATH_CONFLICT = "States.ReferencePathConflict"


class ExpressionFault(StateFault):
    """An expression failed. `location` is its place below the state, as in `Output/total`, where one is known."""

    def __init__(self, error: str, cause: str, location: str = "") -> None:
        super().__init__(error, cause)
        self.location = location


class ExpressionSyntaxError(ValueError):
    """The text of a path or an intrinsic function is malformed."""


def to_text(value: Any) -> str:
    """Return a value as the compact JSON that causes quote."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
