"""The names that users of sweeps import."""

from __future__ import annotations

from tests.test_exports import check_exports

from jobtable.systems import sweeps


def test_what_sweeps_export() -> None:
    check_exports(
        sweeps,
        "Asha EndedTrial Grid Median Optuna OwnSampler Proposal RandomChoice SamplerClass Sweep Sweeps TrialRequest "
        "choice float_range int_range",
    )
