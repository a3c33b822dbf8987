"""Every case of `cases/` comes out as it says, and is not changed by an interruption after each transition."""

from __future__ import annotations

from typing import Any

import pytest
from tests.workflows.asl.case_files import Case, find_differences, read_cases
from tests.workflows.asl.memory_runner import MemoryRunner, run_case

CASES = list(read_cases())


def _events(runner: MemoryRunner) -> list[tuple[str, dict[str, Any]]]:
    return [(event.type, dict(next(iter(event.details.values()), {}))) for event in runner.history]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_case_comes_out_as_it_says(case: Case) -> None:
    runner, ended = run_case(case)

    expect = case.expect
    assert (ended.status, ended.error, ended.cause, ended.output) == (
        expect["status"],
        expect.get("error"),
        expect.get("cause"),
        expect.get("output"),
    )
    if "events" in expect:
        assert find_differences(expect["events"], _events(runner)[1:]) == []
    if "previous" in expect:
        assert [event.previous_id for event in runner.history[1:]] == expect["previous"]
    if "count" in expect:
        assert len(runner.history) == expect["count"]
    if "seconds" in expect:
        assert (runner.instant - runner.began).total_seconds() == expect["seconds"]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_interruptions_change_nothing(case: Case) -> None:
    smooth, _ = run_case(case)
    interrupted, ended = run_case(case, interrupts=True)

    assert smooth.run.ended == ended
    assert smooth.history == interrupted.history
    assert smooth.stored == interrupted.stored


def test_names_of_cases_are_unique() -> None:
    assert len({str(case) for case in CASES}) == len(CASES)
