"""Names of any length, without a space to break them at, leave every page in its shape."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from playwright.sync_api import Browser
from tests.systems.albums import access_patterns as albums
from tests.systems.journeys import access_patterns as journeys
from tests.systems.receipts.pictures import ocr_result
from tests.web.browsing import Watched
from tests.web.conftest import Served

from jobtable.app import Services
from jobtable.jobs.stored.entities import Instance, JobCheckpoint, JobStatus
from jobtable.jobs.stored.fields import InstanceStatus, Status
from jobtable.jobs.submit.definition import NewJob
from jobtable.systems.albums.entities import WorkflowType
from jobtable.systems.albums.service import AlbumWorkflows
from jobtable.systems.journeys.default_stages import default_stages
from jobtable.systems.journeys.service import Journeys
from jobtable.systems.receipts.entities import ReceiptWordLabel
from jobtable.systems.receipts.ocr import OcrService
from jobtable.systems.sweeps.parameters import FloatRange
from jobtable.systems.sweeps.service import Sweeps
from jobtable.systems.sweeps.sweep import Sweep

LONG = "x" * 200
HIDDEN = "[0, ...[...document.querySelectorAll('.scroll')].map(each => each.scrollWidth - each.clientWidth)]"
"""How much of each table has to be scrolled to."""


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    server = Served()
    for fill in (_fill_jobs, _fill_systems, _fill_receipt):
        fill(server.services)
    yield server
    server.stop()


def _fill_jobs(services: Services) -> None:
    store = services.store
    job = services.jobs.submit(NewJob(name=LONG, task="m:f", queue="q", job_id="job"))
    at = job.created_at
    store.put(JobStatus(job_id="job", status=Status.PENDING, updated_at=at, updated_by=LONG, message=LONG))
    where: dict[str, Any] = {"s3_bucket": "b", "s3_key": "k", "size_bytes": 10**9}
    store.put(JobCheckpoint(job_id="job", timestamp=at, step=10**6, epoch=9, metrics={LONG: 1e-12}, **where))
    worker: dict[str, Any] = {"instance_type": LONG, "launched_at": at, "status": InstanceStatus.RUNNING}
    store.put(Instance(instance_id=LONG, queues=[LONG] * 20, **worker))
    space: Any = {"x": FloatRange(low=0, high=1)}
    services.get(Sweeps).submit(Sweep(name=LONG, task="m:f", space=space, trials=2, objective=LONG[:100]), sweep_id="s")


def _fill_systems(services: Services) -> None:
    _ = services.get(AlbumWorkflows), services.get(Journeys)  # with their tables
    store = services.store
    store.put(journeys.journey("J").replace(name=LONG))
    for stage in default_stages("J", journeys.START):
        store.put(stage.replace(name=LONG))
    store.put(albums.execution("e", WorkflowType.STEP_FUNCTIONS, 0))
    named = {"album_name": LONG, "artist": LONG}
    store.put(albums.album("e", 1).replace(**named, year_original=1950, year_validated=True, price_estimate=1000))
    task = albums.task("t", WorkflowType.STEP_FUNCTIONS, 0)
    store.put(task.replace(albums=[each.replace(**named) for each in task.albums]))


def _fill_receipt(services: Services) -> None:
    found = ocr_result("image", lines=1, words=1)
    words = [each.replace(text=LONG) for each in found.receipt_words]
    receipts = [each.replace(s3_key=f"scans/{LONG}.png") for each in found.receipts]  # whose image is not there
    OcrService(services.store).store(replace(found, receipts=receipts, receipt_words=words))
    word: dict[str, Any] = {"image_id": "image", "receipt_id": 1, "line_id": 1, "word_id": 1}
    at = journeys.START + timedelta(days=1)
    services.store.put(
        ReceiptWordLabel(
            **word, label=LONG, timestamp_added=at, reasoning="why " * 100 + LONG, validation_status="NEEDS_REVIEW"
        )
    )


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_cut_or_covers_anything_else(browser: Browser, served: Served, width: int) -> None:
    shown = Watched(browser, served, width)
    page = shown.page
    for path in (
        "/",
        "/jobs/job",
        "/queues",
        f"/workers/{LONG}",
        "/sweeps",
        "/journeys/J",
        "/executions/e",
        "/executions/tasks",
        "/receipts/image",
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
