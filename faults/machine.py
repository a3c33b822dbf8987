"""Random sequences of everything that can happen to jobs, many and long, with what must hold after each step."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.jobs.test_engine_machine import JobsMachine

_STEPS_IN_A_SEQUENCE = 40


def run(trials: int = 1000) -> Iterator[dict[str, object]]:
    """Run that many sequences; the shortest that breaks something is shown on stderr."""
    yield run_machine("machine", JobsMachine, trials)


def run_machine(fault: str, machine: type[JobsMachine], trials: int) -> dict[str, object]:
    """Run that many sequences of a machine; gives what came of it."""
    chosen = settings(
        max_examples=trials,
        stateful_step_count=_STEPS_IN_A_SEQUENCE,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    violations = 0
    try:
        run_state_machine_as_test(machine, settings=chosen)
    except Exception:
        traceback.print_exc(file=sys.stderr)
        violations = 1
    return {"fault": fault, "trials": trials, "steps": _STEPS_IN_A_SEQUENCE, "violations": violations}
