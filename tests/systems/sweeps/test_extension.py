"""Sweeps that get more trials: what they come to is what one comes to that was so large from the beginning."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from tests.jobs.engines import DisturbedBackend, check_records
from tests.systems.sweeps import sweep_tasks
from tests.systems.sweeps.driving import Driver, finish
from tests.systems.sweeps.test_sweeps import ASHA, TPE, plane

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import ConflictError, JobStateError, ValueRefusedError
from jobtable.jobs.stored.field_types import Status
from jobtable.store import Store
from jobtable.systems.sweeps import sweep as definitions
from jobtable.systems.sweeps.parameters import int_range
from jobtable.systems.sweeps.service import Sweeps
from jobtable.systems.sweeps.sweep import Sweep

GRID = {"x": int_range(1, 5), "y": int_range(1, 6)}
KINDS: dict[str, dict[str, Any]] = {
    "random": {"task": sweep_tasks.bowl},
    "grid": {"task": sweep_tasks.bowl, "sampler": "grid", "space": GRID},
    "QMC": {"task": sweep_tasks.bowl, "sampler": "qmc"},
    "TPE": {"task": sweep_tasks.fail_below, "sampler": TPE, "begin_with": [{"x": 1, "y": 2}]},
    "TPE with ASHA": {"sampler": TPE, "stopper": ASHA},
    "CMA-ES": {"task": sweep_tasks.bowl, "sampler": "cmaes"},
    "NSGA-II": {"task": sweep_tasks.bowl, "sampler": {"name": "nsgaii", "options": {"population_size": 6}}},
    "QMC with the median": {"sampler": "qmc", "stopper": {"name": "median", "fewest_peers": 4, "every": 3}},
}


def decided(sweeps: Sweeps) -> list[Any]:
    return [(t.number, t.params, t.status, t.value) for t in sweeps.list_trials("s")]


def undisturbed(sweep: Sweep) -> list[Any]:
    with Store(EmbeddedBackend(None)) as store:
        driver = Driver.on(store)
        finish(driver, sweep)
        return decided(Sweeps(driver.jobs))


@pytest.mark.parametrize("kind", KINDS)
def test_an_extended_sweep_comes_to_what_a_larger_one_comes_to(kind: str) -> None:
    """It is extended while it runs, in the middle of a generation, and when it has ended."""
    expected = undisturbed(plane(**{**KINDS[kind], "trials": 21}))
    with Store(EmbeddedBackend(None)) as store:
        driver = Driver.on(store)
        sweeps = Sweeps(driver.jobs)
        sweeps.submit(plane(**{**KINDS[kind], "trials": 8}), sweep_id="s")
        driver.run(most=7)
        assert sweeps.extend("s", trials=3) == 11
        driver.run(random=Random(1), deaths=0.2)
        assert sweeps.extend("s", total=21) == 21
        assert sweeps.extend("s", total=21) == 21
        progress = sweeps.get_progress("s")
        assert (progress.status, progress.total, progress.made) == (Status.RUNNING, 21, 11)
        driver.run()
        assert decided(sweeps) == expected
        progress = sweeps.get_progress("s")
        assert (progress.status, progress.total, progress.made) == (Status.COMPLETED, 21, 21)
        assert sweeps.extend("s", total=21) == 21
        assert driver.run() == 0
        check_records(driver.jobs)


def test_parts_that_grow_with_the_sweep_are_all_planned_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(definitions, "_PART", 4)
    monkeypatch.setattr(definitions, "_MOST_PARTS", 4)
    with Store(EmbeddedBackend(None)) as store:
        driver = Driver.on(store)
        sweeps = Sweeps(driver.jobs)
        sweeps.submit(plane(sweep_tasks.bowl, trials=9), sweep_id="s")
        driver.run(most=3)
        for total in (10, 40, 41, 60):
            sweeps.extend("s", total=total)
            driver.run()
            assert [trial.number for trial in sweeps.list_trials("s")] == list(range(total))
        check_records(driver.jobs)


@pytest.mark.parametrize("act", ["work", "extend"])
@pytest.mark.parametrize("writes", range(0, 12, 2))
def test_whatever_happens_to_the_planning_meanwhile_all_trials_are_made(writes: int, act: str) -> None:
    """The planning that knew of fewer trials ends, or someone else extends the sweep, between any two writes."""
    backend = DisturbedBackend(EmbeddedBackend(None))
    with Store(backend) as store:
        driver = Driver.on(store)
        sweeps = Sweeps(driver.jobs)
        sweeps.submit(plane(sweep_tasks.bowl, trials=6, sampler=TPE, generation_size=4), sweep_id="s")
        driver.run(most=6)
        others = {"work": driver.run, "extend": lambda: sweeps.extend("s", trials=2)}
        backend.disturb(others[act], writes=writes)
        sweeps.extend("s", trials=5)
        backend.disturb(None)
        driver.run()
        progress = sweeps.get_progress("s")
        assert (progress.status, progress.made) == (Status.COMPLETED, progress.total)
        check_records(driver.jobs)


class CutOffError(Exception):
    """The process is gone."""


@pytest.mark.parametrize("writes", range(1, 8))
def test_an_extension_that_was_interrupted_is_finished_by_the_same_one_or_by_a_resumption(
    writes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store(EmbeddedBackend(None)) as store:
        driver = Driver.on(store)
        sweeps = Sweeps(driver.jobs)
        finish(driver, plane(sweep_tasks.bowl, trials=6))
        left = iter(range(writes))
        commit = type(store.transaction()).commit

        def cut_off(tx: Any) -> None:
            if next(left, None) is None:
                raise CutOffError
            commit(tx)

        with monkeypatch.context() as patch:
            patch.setattr(type(store.transaction()), "commit", cut_off)
            try:
                sweeps.extend("s", total=9)
            except CutOffError:
                assert sweeps.get_progress("s").total == 9
        driver.run()
        if writes % 2:
            sweeps.resume("s")
        else:
            sweeps.extend("s", total=9)
        driver.run()
        assert sweeps.get_progress("s").completed == 9
        check_records(driver.jobs)


def test_a_sweep_is_not_extended_while_a_worker_plans_it() -> None:
    with Store(EmbeddedBackend(None)) as store:
        driver = Driver.on(store)
        sweeps = Sweeps(driver.jobs)
        sweeps.submit(plane(sweep_tasks.bowl, trials=6), sweep_id="s")
        driver.jobs.claim("default", limit=1, instance_id="a", lease_seconds=300)
        with pytest.raises(ConflictError, match="could not extend sweep s: its trials are being planned; try again"):
            sweeps.extend("s", trials=1)
        assert sweeps.get_progress("s").total == 6


def test_what_cannot_be_extended_is_said() -> None:
    with Store(EmbeddedBackend(None)) as store:
        driver = Driver.on(store)
        sweeps = Sweeps(driver.jobs)
        finish(driver, plane(sweep_tasks.bowl, trials=7, sampler="grid", space=GRID))
        refused: list[tuple[dict[str, Any], str]] = [
            ({}, "give either a positive number of trials, or a total"),
            ({"trials": 0}, "give either a positive number of trials, or a total"),
            ({"trials": 2, "total": 9}, "give either a positive number of trials, or a total"),
            ({"total": 6}, "sweep s already has 7 trials and cannot have 6"),
            ({"total": 2_000_000}, "sweep s can have at most 1,000,000 trials, not 2,000,000"),
            ({"total": 31}, "the grid of sweep s has only 30 points, not 31"),
        ]
        for given, problem in refused:
            with pytest.raises(ValueRefusedError, match=problem):
                sweeps.extend("s", **given)
        sweeps.submit(plane(sweep_tasks.bowl, trials=None, sampler="grid", space=GRID), sweep_id="whole")
        with pytest.raises(ValueRefusedError, match="the grid of sweep whole has only 30 points, not 31"):
            sweeps.extend("whole", trials=1)
        sweeps.stop("whole")
        with pytest.raises(JobStateError, match="sweep whole is STOPPED; resume it before you extend it"):
            sweeps.extend("whole", trials=1)
        sweeps.extend("s", trials=1)
        with pytest.raises(ConflictError, match="sweep s has 8 trials, not 7; extend it instead"):
            sweeps.submit(plane(sweep_tasks.bowl, trials=7, sampler="grid", space=GRID), sweep_id="s")
