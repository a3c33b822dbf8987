"""How far sweeps are while they run."""

from __future__ import annotations

from typing import Any

from tests.systems.sweeps.driving import Driver

from jobtable.embedded import EmbeddedBackend
from jobtable.jobs.read.progress import GroupProgress, read_group_progress
from jobtable.jobs.stored.field_types import Status
from jobtable.store import Store
from jobtable.systems.sweeps.parameters import FloatRange
from jobtable.systems.sweeps.service import Sweeps
from jobtable.systems.sweeps.sweep import Sweep


def test_a_sweep_counts_trials_and_not_its_planning() -> None:
    with Store(EmbeddedBackend(None)) as store:
        driver = Driver.on(store)
        sweeps = Sweeps(driver.jobs)
        space: dict[str, Any] = {"x": FloatRange(low=0, high=1), "y": FloatRange(low=0, high=1)}
        sweep = Sweep(name="s", task="tests.systems.sweeps.sweep_tasks:bowl", space=space, trials=6, objective="loss")
        job = sweeps.submit(sweep)
        seen = set()
        while (progress := sweeps.get_progress(job.job_id)).status is not Status.COMPLETED:
            told = read_group_progress(store, [driver.jobs.queries.get_job(job.job_id)])[job.job_id]
            assert told == GroupProgress(progress.made - progress.open, 6)
            seen.add(told.ended)
            assert driver.run(most=1)
        assert max(seen) > 0
        assert read_group_progress(store, [driver.jobs.queries.get_job(job.job_id)]) == {}
