"""Sweeps on a store whose indexes lag: nothing is lost, nothing is done twice."""

from __future__ import annotations

from random import Random

import pytest
from tests.late_indexes import A_MOMENT, SEEDS, behind, check_once, work
from tests.running import run_jobs
from tests.systems.sweeps import sweep_tasks

from jobtable.jobs.stored.field_types import Status
from jobtable.systems.sweeps.parameters import float_range
from jobtable.systems.sweeps.service import Sweeps
from jobtable.systems.sweeps.sweep import Sweep


@pytest.mark.parametrize("seed", SEEDS)
def test_a_sweep_makes_and_runs_each_trial_once_and_finds_the_best(seed: int) -> None:
    with behind(seed) as (jobs, clock):
        sweeps = Sweeps(jobs)
        space = {"x": float_range(-5, 5), "y": float_range(-5, 5)}
        sweep = Sweep(name="plane", task=sweep_tasks.bowl, space=space, trials=20, sampler="tpe", target=-1.0)
        sweeps.submit(sweep, sweep_id="s")
        work(jobs, clock, "default")
        sweeps.extend("s", total=24)
        work(jobs, clock, "default")
        progress = sweeps.get_progress("s")
        assert (progress.status, progress.completed, progress.made) == (Status.COMPLETED, 24, 24)
        values = {trial.number: trial.value for trial in sweeps.list_trials("s")}
        assert len(values) == 24
        assert progress.best is not None
        assert progress.best.value == min(value for value in values.values() if value is not None)
        check_once(jobs, but="planning")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_sweep_that_is_stopped_and_resumed_comes_to_its_end(seed: int) -> None:
    random = Random(seed)
    with behind(seed) as (jobs, clock):
        sweeps = Sweeps(jobs)
        space = {"x": float_range(-5, 5), "y": float_range(-5, 5)}
        sweeps.submit(Sweep(name="plane", task=sweep_tasks.bowl, space=space, trials=20), sweep_id="s")
        for _ in range(4):
            run_jobs(jobs, "default", most=random.randint(0, 4))
            sweeps.stop("s")
            clock.advance(A_MOMENT)
            sweeps.resume("s")
        work(jobs, clock, "default")
        progress = sweeps.get_progress("s")
        assert (progress.status, progress.completed, progress.made) == (Status.COMPLETED, 20, 20)
