"""How far groups are while they run."""

from __future__ import annotations

import httpx
from tests.web.conftest import Served

from jobtable.jobs.lifecycle.leases import Outcome
from jobtable.jobs.submit.definition import EdgeCondition, NewJob, ParentWaits


def test_a_group_shows_how_many_of_its_jobs_have_ended_on_every_page_that_shows_it() -> None:
    served = Served()
    jobs = served.services.engine
    group = jobs.open_group(NewJob(name="a group"))
    waits = ParentWaits()
    jobs.submit_many(NewJob(name="n", task="a:b", parent_job_id=group.job_id, parent_waits=waits) for _ in range(4))
    for lease in jobs.claim("default", limit=1, instance_id="here", lease_seconds=30):
        jobs.finish(lease, Outcome("completed"))
    client = served.client(Accept="text/html")
    for page in ("/", "/jobs", f"/jobs/{group.job_id}"):
        assert _shown(client, page) == ("25%", "1 of 4"), page
    served.stop()


def test_the_api_tells_how_far_a_group_is_and_any_other_job() -> None:
    served = Served()
    jobs = served.services.engine
    jobs.open_group(NewJob(name="a group", job_id="group"))
    waits = ParentWaits(condition=EdgeCondition.FINISHED)
    jobs.submit_many(NewJob(name="n", task="a:b", parent_job_id="group", parent_waits=waits) for _ in range(4))
    failing, running = jobs.claim("default", limit=2, instance_id="here", lease_seconds=30)
    jobs.finish(failing, Outcome.failed("poison"))
    jobs.report(running, progress=60)
    client = served.client()
    told = client.get("/api/v1/jobs/group/progress").json()
    assert (told["percent"], told["group"]) == (25, {"ended": 1, "total": 4, "failed": 1})
    assert told["timing"]["elapsed_seconds"] >= 0
    told = client.get(f"/api/v1/jobs/{running.job.job_id}/progress").json()
    assert (told["percent"], told["group"]) == (60, None)
    ended = client.get(f"/api/v1/jobs/{failing.job.job_id}/progress").json()
    assert ended == {"percent": 0, "group": None, "timing": None}
    assert client.get("/api/v1/jobs/none/progress").status_code == 404
    served.stop()


def _shown(client: httpx.Client, page: str) -> tuple[str, str]:
    behind = client.get(page).text.partition('aria-label="Ended descendants of a group"')[2]
    percent = behind.partition('"progress-value">')[2].partition("<")[0]
    return percent, behind.partition('class="muted">')[2].partition("<")[0]
