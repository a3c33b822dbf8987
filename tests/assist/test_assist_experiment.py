"""A short run of `python -m faults assist`."""

from __future__ import annotations

from tests.experiments import experiment


def test_killed_workers_pay_for_no_answer_twice() -> None:
    assert experiment("assist", trials=2)["calls"] >= 6 * 3
