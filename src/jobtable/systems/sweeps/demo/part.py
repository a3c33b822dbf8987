"""The sweep of the demonstration."""

from __future__ import annotations

from pathlib import Path

from jobtable.app import Services
from jobtable.demo import USER, DemoPart, DemoState
from jobtable.jobs.stored.field_types import FINAL
from jobtable.systems.sweeps.parameters import Choice, FloatRange, IntRange
from jobtable.systems.sweeps.service import Sweeps
from jobtable.systems.sweeps.stoppers import Asha
from jobtable.systems.sweeps.sweep import Sweep

_SWEEP = "demo-sweep"


def _start_sweep(services: Services, folder: Path) -> None:
    sweep = Sweep(
        name="digits",
        task="jobtable.systems.sweeps.demo.training:train",
        space={
            "learning_rate": FloatRange(low=0.0003, high=0.1, log=True),
            "hidden": IntRange(low=8, high=64),
            "alpha": FloatRange(low=1e-5, high=1e-1, log=True),
            "activation": Choice(values=["relu", "tanh"]),
        },
        objective="val_loss",
        sampler="tpe",
        stopper=Asha(first_epoch=3),
        trials=16,
        generation_size=4,
        seed=7,
    )
    services.get(Sweeps).submit(sweep, sweep_id=_SWEEP, user=USER)


def _look_at_sweep(services: Services) -> DemoState:
    progress = services.get(Sweeps).get_progress(_SWEEP)
    ended = progress.made - progress.open
    best = "" if progress.best is None else f", best loss {progress.best.value:.4f}"
    detail = f"{ended} of {progress.total} trials, {progress.stopped} stopped early{best}"
    return DemoState(progress.status, 100 * ended / progress.total, detail, progress.status in FINAL)


PART = DemoPart(
    "Sweep",
    f"/sweeps/{_SWEEP}",
    _start_sweep,
    _look_at_sweep,
    ("jobtable.systems.sweeps.demo.training", "jobtable.systems.sweeps.optuna_samplers"),
)
