"""A sweep with a long name."""

from __future__ import annotations

from typing import Any

from jobtable.app import Services
from jobtable.systems.sweeps.parameters import FloatRange
from jobtable.systems.sweeps.service import Sweeps
from jobtable.systems.sweeps.sweep import Sweep

PATHS = ["/sweeps"]
"""The pages that show them."""


def fill(services: Services, long: str) -> None:
    """Store something with this name wherever a name is."""
    space: Any = {"x": FloatRange(low=0, high=1)}
    services.get(Sweeps).submit(Sweep(name=long, task="m:f", space=space, trials=2, objective=long[:100]), sweep_id="s")
