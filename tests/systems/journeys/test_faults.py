"""A small version of the fault experiments of journeys; `make faults` runs the long ones."""

from __future__ import annotations

from tests.experiments import experiment


def test_a_killed_journey_goes_on() -> None:
    outcome = experiment("journeys", 2)
    assert (outcome["trials"], outcome["violations"]) == (2, 0)


def test_damaged_files_are_refused() -> None:
    outcome = experiment("journey_files", 100)
    assert (outcome["trials"], outcome["violations"]) == (100, 0)
