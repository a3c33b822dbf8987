"""Every case comes out on the real engine as it says, with the history of the interpreter in memory."""

from __future__ import annotations

import pytest
from tests.workflows.asl.case_files import Case, expected_end, find_faults, read_cases
from tests.workflows.asl.execution.store_runner import StoreRunner

CASES = list(read_cases())


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_case_comes_out_as_it_says(case: Case) -> None:
    runner = StoreRunner(case)
    runner.run()

    assert runner.plain(runner.front.outcome()) == expected_end(case)
    history = runner.plain(runner.front.history())
    assert (history == []) == (case.type == "EXPRESS")
    assert not history or find_faults(case, history) == []
    if "seconds" in case.expect:
        assert runner.seconds() == pytest.approx(case.expect["seconds"], abs=0.01)
    assert runner.leftovers() == []
