"""Every case comes out on the real engine as it says, with the history of the interpreter in memory."""

from __future__ import annotations

import pytest
from tests.workflows.asl.case_files import Case, find_differences, read_cases
from tests.workflows.asl.execution.store_runner import StoreRunner

CASES = list(read_cases())


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_case_comes_out_as_it_says(case: Case) -> None:
    runner = StoreRunner(case)
    runner.run()

    expect = case.expect
    assert runner.plain(runner.front.outcome()) == [
        expect["status"],
        expect.get("error"),
        expect.get("cause"),
        expect.get("output"),
    ]
    history = runner.plain(runner.front.history())
    assert (history == []) == (case.type == "EXPRESS")
    if history and "events" in expect:
        assert find_differences(expect["events"], [(kind, details) for _, _, kind, details in history[1:]]) == []
    if history and "previous" in expect:
        assert [previous for _, previous, _, _ in history[1:]] == expect["previous"]
    if history and "count" in expect:
        assert len(history) == expect["count"]
    if "seconds" in expect:
        assert runner.seconds() == pytest.approx(expect["seconds"], abs=0.01)
    assert runner.leftovers() == []
