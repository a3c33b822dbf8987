"""Names of any length, without a space to break them at, leave every page in its shape."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser
from tests.contributions import contributions
from tests.web.browsing import Watched
from tests.web.conftest import Served

from jobtable.app import Services
from jobtable.jobs.stored.entities import Instance, JobCheckpoint, JobStatus
from jobtable.jobs.stored.field_types import InstanceStatus, Status
from jobtable.jobs.submit.definition import NewJob

LONG = "x" * 200
HIDDEN = "[0, ...[...document.querySelectorAll('.scroll')].map(each => each.scrollWidth - each.clientWidth)]"
"""How much of each table has to be scrolled to."""


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    server = Served()
    _fill_jobs(server.services)
    for system in contributions("long_names"):
        system.fill(server.services, LONG)
    yield server
    server.stop()


def _fill_jobs(services: Services) -> None:
    store = services.store
    job = services.engine.submit(NewJob(name=LONG, task="m:f", queue="q", job_id="job"))
    at = job.created_at
    store.put(JobStatus(job_id="job", status=Status.PENDING, updated_at=at, updated_by=LONG, message=LONG))
    where: dict[str, Any] = {"s3_bucket": "b", "s3_key": "k", "size_bytes": 10**9}
    store.put(JobCheckpoint(job_id="job", timestamp=at, step=10**6, epoch=9, metrics={LONG: 1e-12}, **where))
    worker: dict[str, Any] = {"instance_type": LONG, "launched_at": at, "status": InstanceStatus.RUNNING}
    store.put(Instance(instance_id=LONG, queues=[LONG] * 20, **worker))


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_cut_or_covers_anything_else(browser: Browser, served: Served, width: int) -> None:
    shown = Watched(browser, served, width)
    page = shown.page
    for path in (
        "/",
        "/jobs/job",
        "/queues",
        f"/workers/{LONG}",
        *(path for system in contributions("long_names") for path in system.PATHS),
    ):
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        assert max(page.evaluate(HIDDEN)) <= 0, path
    page.goto("/jobs/job")
    texts = page.locator(".timeline li > span:first-child").evaluate_all("all => all.map(each => each.clientWidth)")
    assert min(texts) > 100, "the history can be read beside a long name of who has changed it"
    page.goto("/")
    workers = page.locator("section", has=page.get_by_role("heading", name="Workers")).locator("li")
    assert workers.evaluate("one => one.clientHeight") < 150
    shown.close()
