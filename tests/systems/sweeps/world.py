"""A sweep that has ended, for the tests of pages."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.web.world import TASKS

from jobtable.app import Services
from jobtable.systems.sweeps.parameters import Choice, FloatRange
from jobtable.systems.sweeps.service import Sweeps
from jobtable.systems.sweeps.sweep import Sweep

MISSING = ["/sweeps/x"]
"""Pages of what does not exist."""


def fill(services: Services, folder: Path) -> None:
    """Submit what the worker of the world then runs."""
    space: dict[str, Any] = {"x": FloatRange(low=-2, high=2), "kind": Choice(values=["a", "b"])}
    sweep = Sweep(name="bowl", task=f"{TASKS}:bowl", space=space, trials=12, objective="loss")
    services.get(Sweeps).submit(sweep, user="ada")


def made(services: Services) -> dict[str, str]:
    """The ids of what was made, by name."""
    (sweep,) = services.get(Sweeps).list_sweeps()
    return {"sweep": sweep.job_id}


def paths(made: Mapping[str, str]) -> list[str]:
    """Every page, with something on it."""
    return ["/sweeps", f"/sweeps/{made['sweep']}"]


def tables(made: Mapping[str, str]) -> list[str]:
    """Pages with tables that fit every width."""
    return ["/sweeps"]


def owners(made: Mapping[str, str]) -> dict[str, set[str | None]]:
    """Where the pages of the jobs lead, by the type of the job."""
    page: set[str | None] = {f"/sweeps/{made['sweep']}"}
    return {"sweep": page, "training": page, "planning": page}
