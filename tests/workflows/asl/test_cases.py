"""Every case of `cases/` comes out as it says, and is not changed by an interruption after each transition."""

from __future__ import annotations

from typing import Any
from unittest.mock import ANY

import pytest
from tests.workflows.asl.case_files import Case, expected_end, find_faults, read_cases
from tests.workflows.asl.memory_runner import run_case

from jobtable.workflows.asl.run import Event

CASES = list(read_cases())


def details_of(event: Event) -> dict[str, Any]:
    """Return the members of an event's details."""
    return dict(next(iter(event.details.values()), {}))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_case_comes_out_as_it_says(case: Case) -> None:
    runner, ended = run_case(case)

    assert [ended.status, ended.error, ended.cause, ended.output] == expected_end(case)
    history = [(each.event_id, each.previous_id, each.type, details_of(each)) for each in runner.history]
    assert find_faults(case, history) == []
    assert (runner.instant - runner.began).total_seconds() == case.expect.get("seconds", ANY)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_interruptions_change_nothing(case: Case) -> None:
    smooth, _ = run_case(case)
    interrupted, ended = run_case(case, interrupts=True)

    assert smooth.run.ended == ended
    assert smooth.history == interrupted.history
    assert smooth.stored == interrupted.stored


def test_names_of_cases_are_unique() -> None:
    assert len({str(case) for case in CASES}) == len(CASES)
