"""The random sequences of `machine` on a store that throttles, loses answers, collides and lags behind."""

from __future__ import annotations

from collections.abc import Iterator

from faults.machine import run_machine
from tests.jobs.test_cloud_machine import CloudJobsMachine


def run(trials: int = 500) -> Iterator[dict[str, object]]:
    """Run that many sequences; the shortest that breaks something is shown on stderr."""
    yield run_machine("cloud", CloudJobsMachine, trials)
