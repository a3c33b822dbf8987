"""How much all variables of an execution may hold together."""

from __future__ import annotations

from typing import Any

import pytest
from tests.workflows.asl.case_files import Case
from tests.workflows.asl.memory_runner import run_case

PART = 250_000
"""Bytes of one variable: less than the 256 KB that one assignment may have."""


def assigning(count: int) -> dict[str, Any]:
    """Return a machine that assigns its input to so many variables."""
    states: dict[str, Any] = {
        f"S{number}": {"Type": "Pass", "Assign": {f"v{number}.$": "$"}, "Next": f"S{number + 1}"}
        for number in range(count)
    }
    return {"StartAt": "S0", "States": {**states, f"S{count}": {"Type": "Pass", "Result": "done", "End": True}}}


@pytest.mark.parametrize(("count", "error"), [(41, None), (42, "States.DataLimitExceeded")])
def test_all_variables_together_have_at_most_ten_megabytes(count: int, error: str | None) -> None:
    _, ended = run_case(Case("limits", "variables", assigning(count), {}, "x" * PART))

    assert ended.error == error
