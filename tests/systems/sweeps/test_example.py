"""The example: a real model, whose trials go on from their checkpoints to the very same values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.jobs.engines import LEASE_SECONDS
from tests.systems.sweeps.driving import Driver, finish
from tests.systems.sweeps.sweep_tasks import Killed

from jobtable.embedded import EmbeddedBackend
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.stored.field_types import Status
from jobtable.store import Store
from jobtable.systems.sweeps.service import Sweeps, TrialResult
from jobtable.systems.sweeps.sweep import Sweep
from jobtable.systems.sweeps.sweep_file import read_sweep

FOLDER = Path(__file__).parents[3] / "examples" / "sweeps"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Sweep:
    """The sweep of the example, with fewer and shorter trials."""
    monkeypatch.syspath_prepend(FOLDER)
    changes = {"trials": 6, "generation_size": 3, "params": {"epochs": 4}}
    whole = read_sweep(FOLDER / "gradient_boosting.yaml").model_dump()
    return Sweep.model_validate({**whole, **changes, "stopper": {"name": "asha", "factor": 2, "last_epoch": 4}})


def decisions(trials: list[TrialResult]) -> list[Any]:
    return [(trial.params, trial.status, trial.value) for trial in trials]


def test_trials_that_are_cut_off_come_to_the_same(example: Sweep, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store(EmbeddedBackend(None)) as store:
        expected = finish(Driver.on(store), example)
    assert {trial.status for trial in expected.trials} == {Status.COMPLETED, Status.STOPPED}
    keep = JobContext.checkpoint

    def keep_and_die(context: JobContext, *arguments: Any, **options: Any) -> Any:
        kept = keep(context, *arguments, **options)
        if options["epoch"] == 2:
            raise Killed
        return kept

    with Store(EmbeddedBackend(None)) as store:
        driver = Driver.on(store)
        sweeps = Sweeps(driver.jobs)
        sweeps.submit(example, sweep_id="s")
        driver.run(most=1)
        with monkeypatch.context() as patch:
            patch.setattr(JobContext, "checkpoint", keep_and_die)
            for lease in driver.jobs.claim("default", limit=3, instance_id="a", lease_seconds=LEASE_SECONDS):
                driver.run_one(lease, dies_after=10**6)
        assert sweeps.get_progress("s").open == 3
        driver.run()
        assert decisions(list(sweeps.list_trials("s"))) == decisions(expected.trials)
        assert "continuing with epoch 3" in {line.message for line in driver.jobs.queries.list_logs("s-000000")}
