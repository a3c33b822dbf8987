"""Hyperparameter sweeps on the job engine: a parent job, a child job for each trial, and the rules in between."""

from typing import TYPE_CHECKING

from jobtable.lazy_exports import offer

if TYPE_CHECKING:
    from jobtable.systems.sweeps.parameters import choice, float_range, int_range
    from jobtable.systems.sweeps.samplers import (
        EndedTrial,
        Grid,
        Optuna,
        OwnSampler,
        Proposal,
        RandomChoice,
        SamplerClass,
        TrialRequest,
    )
    from jobtable.systems.sweeps.service import Sweeps
    from jobtable.systems.sweeps.stoppers import Asha, Median
    from jobtable.systems.sweeps.sweep import Sweep

__all__ = [
    "Asha",
    "EndedTrial",
    "Grid",
    "Median",
    "Optuna",
    "OwnSampler",
    "Proposal",
    "RandomChoice",
    "SamplerClass",
    "Sweep",
    "Sweeps",
    "TrialRequest",
    "choice",
    "float_range",
    "int_range",
]

if not TYPE_CHECKING:  # a definition needs no job engine
    __getattr__, __dir__ = offer(__name__, __all__, ["parameters", "samplers", "stoppers", "sweep", "service"])
