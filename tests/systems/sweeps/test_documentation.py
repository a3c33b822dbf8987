"""The page about sweeps is true."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from jobtable import open_jobs
from jobtable.jobs import JobContext, NewJob
from jobtable.systems.sweeps.sweep import Sweep
from jobtable.systems.sweeps.sweep_file import parse_sweep

PAGE = (Path(__file__).parents[3] / "docs" / "systems" / "sweeps.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_examples_run() -> None:
    namespace: dict[str, Any] = {"__name__": "sweep_examples"}
    for block in blocks("python"):
        exec(compile(block, "docs/systems/sweeps.md", "exec", dont_inherit=True), namespace)
    assert (namespace["progress"].total, namespace["best"]) == (30, None)
    assert namespace["newest"].job_id == "first-try"
    (text,) = blocks("yaml")
    assert parse_sweep(text, "docs/systems/sweeps.md", name="-") == namespace["sweep"]


def test_a_trial_that_had_saved_its_last_epoch_is_done() -> None:
    namespace: dict[str, Any] = {"__name__": "sweep_examples"}
    exec(compile(blocks("python")[0], "docs/systems/sweeps.md", "exec", dont_inherit=True), namespace)
    jobs = open_jobs("memory:")
    trial = jobs.submit(NewJob(name="trial", task="sweep_examples:train"))
    (lease,) = jobs.claim("default", limit=1, instance_id="by-hand", lease_seconds=60)
    with JobContext(jobs, lease) as job:
        for _ in ("before the worker died", "again"):
            namespace["train"](job, learning_rate=0.1, layers=2)
    assert len(list(jobs.queries.list_metric(trial.job_id, "val_loss"))) == 9
    jobs.store.close()


def test_every_member_of_a_definition_is_documented() -> None:
    missing = [name for name in Sweep.model_fields if f"`{name}`" not in PAGE and name != "name"]
    assert missing == []
