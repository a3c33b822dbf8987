"""Executions that wait hold nothing: the short version of the experiment with 10,000 of them."""

from __future__ import annotations

from tests.experiments import experiment


def test_waiting_executions_hold_no_worker_and_are_found_in_time() -> None:
    experiment("callbacks", 60)
