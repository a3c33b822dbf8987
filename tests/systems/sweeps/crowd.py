"""Sweeps with many trials, and many of them."""

from __future__ import annotations

from jobtable.app import Services
from jobtable.jobs.stored.entities import (
    JobMetric,
)
from jobtable.systems.sweeps.parameters import FloatRange
from jobtable.systems.sweeps.planner import Planner
from jobtable.systems.sweeps.service import Sweeps
from jobtable.systems.sweeps.sweep import Sweep
from jobtable.systems.sweeps.trials import final_name, recorded_at, trial_id

IDS = {"sweep_id": "sweep"}
"""What paths of routes say, by the name of the parameter."""
ASKED: dict[str, list[str]] = {}
"""Queries of routes, beside what their paths say."""
WHOLE: dict[str, str] = {}
"""What is asked for as a whole, and is as large as it is."""


def fill(services: Services, count: int) -> None:
    """Write so many of everything."""
    _sweep(services, count)


def _sweep(services: Services, count: int) -> None:
    sweep = Sweep(
        name="sweep", task="tests.web.tasks:bowl", space={"x": FloatRange(low=0, high=1)}, trials=count, objective="o"
    )
    parent = services.get(Sweeps).submit(sweep, sweep_id="sweep")
    for generation in range(sweep.generation_count()):
        Planner(services.engine).plan("sweep", generation, is_inline=True)
    services.store.batch_put(
        JobMetric(
            job_id="sweep",
            metric_name=name,
            timestamp=recorded_at(parent.created_at, n),
            value=float(n),
            child_job_id=trial_id("sweep", n),
            epoch=0,
        )
        for n in range(count)
        for name in ("o", final_name("o"))
    )
    for n in range(25):  # the list has 20 on a page
        services.get(Sweeps).submit(sweep, sweep_id=f"sweep-{n}")
