"""How far groups and sweeps are while they run."""

from __future__ import annotations

from typing import Any

import httpx
from tests.sweeps.driving import Driver
from tests.web.conftest import Served

from jobtable.embedded import EmbeddedBackend
from jobtable.jobs.definition import NewJob, ParentWaits
from jobtable.jobs.leases import Outcome
from jobtable.jobs.records import Status
from jobtable.store import Store
from jobtable.sweeps.group_progress import GroupProgress, read_group_progress
from jobtable.sweeps.parameters import FloatRange
from jobtable.sweeps.service import Sweeps
from jobtable.sweeps.sweep import Sweep


def test_a_group_shows_how_many_of_its_jobs_have_ended_on_every_page_that_shows_it() -> None:
    served = Served()
    jobs = served.services.jobs
    group = jobs.open_group(NewJob(name="a group"))
    waits = ParentWaits()
    jobs.submit_many(NewJob(name="n", task="a:b", parent_job_id=group.job_id, parent_waits=waits) for _ in range(4))
    for lease in jobs.claim("default", limit=1, instance_id="here", lease_seconds=30):
        jobs.finish(lease, Outcome("completed"))
    client = served.client(Accept="text/html")
    for page in ("/", "/jobs", f"/jobs/{group.job_id}"):
        assert _shown(client, page) == ("25%", "1 of 4"), page
    served.stop()


def _shown(client: httpx.Client, page: str) -> tuple[str, str]:
    behind = client.get(page).text.partition('aria-label="Jobs under a group that have ended"')[2]
    percent = behind.partition('"progress-value">')[2].partition("<")[0]
    return percent, behind.partition('class="muted">')[2].partition("<")[0]


def test_a_sweep_counts_trials_and_not_its_planning() -> None:
    with Store(EmbeddedBackend(None)) as store:
        driver = Driver.on(store)
        sweeps = Sweeps(driver.jobs)
        space: dict[str, Any] = {"x": FloatRange(low=0, high=1), "y": FloatRange(low=0, high=1)}
        sweep = Sweep(name="s", task="tests.sweeps.sweep_tasks:bowl", space=space, trials=6, objective="loss")
        job = sweeps.submit(sweep)
        seen = set()
        while (progress := sweeps.get_progress(job.job_id)).status is not Status.COMPLETED:
            told = read_group_progress(store, [driver.jobs.queries.get_job(job.job_id)])[job.job_id]
            assert told == GroupProgress(progress.made - progress.open, 6)
            seen.add(told.ended)
            assert driver.run(most=1)
        assert max(seen) > 0
        assert read_group_progress(store, [driver.jobs.queries.get_job(job.job_id)]) == {}
