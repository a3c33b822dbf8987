"""A store in which something of everything is: made by the real services and a real worker, with markup in texts."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

from tests.running import run_jobs
from tests.systems.journeys.access_patterns import journey
from tests.systems.receipts.pictures import CORNERS, NOON, PICTURE, PLACED

from jobtable.app import Services, open_jobs
from jobtable.jobs.stored.entities import Instance
from jobtable.jobs.submit.definition import DependsOn, NewJob, ParentWaits
from jobtable.jobs.worker.worker import Worker
from jobtable.systems.albums.example import PATHS
from jobtable.systems.albums.executions import Executions
from jobtable.systems.albums.service import AlbumWorkflows
from jobtable.systems.conversations.runs import ConversationRuns
from jobtable.systems.journeys.example.catalogue import create_catalogue
from jobtable.systems.journeys.example.rule_book import example_rules
from jobtable.systems.journeys.journey_template import DEFAULT_TEMPLATE
from jobtable.systems.journeys.runner import JourneyRunner
from jobtable.systems.journeys.service import Journeys
from jobtable.systems.receipts.analyses import AnalysisService
from jobtable.systems.receipts.entities import (
    Image,
    LineItem,
    Price,
    Receipt,
    ReceiptLine,
    ReceiptLineItemAnalysis,
    ReceiptWord,
    ReceiptWordLabel,
    ResultType,
)
from jobtable.systems.receipts.labels import LabelService
from jobtable.systems.receipts.ocr import OcrResult, OcrService
from jobtable.systems.receipts.validation import Finding, ValidationService
from jobtable.systems.sweeps.parameters import Choice, FloatRange
from jobtable.systems.sweeps.service import Sweeps
from jobtable.systems.sweeps.sweep import Sweep

MARKUP = "<img src=x onerror=alert(1)><script>alert(2)</script>"
"""Must be shown as text wherever it stands."""
IMAGE_ID = "3f52804b-2fad-4e00-92c8-b593da3a8ed3"
TASKS = "tests.web.tasks"


@dataclass(frozen=True)
class World:
    """What was made, by its id."""

    url: str
    completed_job: str
    failed_job: str
    waiting_job: str
    group: str
    sweep: str
    journey: str
    journey_job: str
    worker: str
    execution: str
    task: str
    conversation: str


def make_world(folder: Path) -> World:
    """Fill a new store in a folder."""
    url = f"file:{folder / 'world.db'}"
    with Services.open(url) as services:
        jobs = _submit_jobs(services)
        sweep = services.get(Sweeps).submit(_sweep(), user="ada")
        _start_journey(services, folder)
        services.get(ConversationRuns).start("bg2018", *_export(), user="grace")
        albums = f"Radiohead - OK Computer (1997)\nBj\u00f6rk - {MARKUP} (1995)\n".encode()
        execution = services.get(Executions).start(next(iter(PATHS.values())), albums, "shelf.txt", user="ada")
        _store_receipt(services)
        Worker(partial(open_jobs, url), ["default", "gpu"], mode="inline", until_empty=True).run()
        for queue in ("journeys", "conversations", "albums"):
            run_jobs(services.jobs, queue)
        waiting = services.jobs.submit(NewJob(name="waits", task=f"{TASKS}:work", queue="paused", user="ada"))
        services.jobs.pause_queue("paused")
        task = next(iter(services.get(AlbumWorkflows).list_pending_tasks()))
        return World(
            url=url,
            completed_job=jobs["completed"],
            failed_job=jobs["failed"],
            waiting_job=waiting.job_id,
            group=jobs["group"],
            sweep=sweep.job_id,
            journey="J1",
            journey_job=next(iter(services.get(Journeys).list_executions("J1"))).job_id,
            worker=next(iter(services.store.query(Instance.by_type()))).instance_id,
            execution=execution.execution_id,
            task=task.task_id,
            conversation="bg2018",
        )


def _submit_jobs(services: Services) -> dict[str, str]:
    jobs = services.jobs
    new = partial(NewJob, user="ada", queue="gpu")
    tags = frozenset({"nightly", MARKUP})
    completed = jobs.submit(new(name=f"train {MARKUP}", task=f"{TASKS}:work", params={"text": MARKUP}, tags=tags))
    failed = jobs.submit(new(name="read the catalogue", task=f"{TASKS}:fail", params={"text": MARKUP}))
    group = jobs.open_group(new(name="a group"))
    for number in range(3):
        child = new(
            name=f"child {number}",
            task=f"{TASKS}:work",
            params={"text": "x"},
            parent_job_id=group.job_id,
            parent_waits=ParentWaits(),
            depends_on=(DependsOn(completed.job_id),),
        )
        jobs.submit(child)
    jobs.seal(group.job_id)
    return {"completed": completed.job_id, "failed": failed.job_id, "group": group.job_id}


def _sweep() -> Sweep:
    space: dict[str, Any] = {"x": FloatRange(low=-2, high=2), "kind": Choice(values=["a", "b"])}
    return Sweep(name="bowl", task=f"{TASKS}:bowl", space=space, trials=12, objective="loss")


def _start_journey(services: Services, folder: Path) -> None:
    create_catalogue(folder / "catalogue.db", products=20)
    now = services.store.clock.now()
    created = journey("J1").replace(name=f"Catalogue {MARKUP}", parameters={"source": str(folder / "catalogue.db")})
    services.get(Journeys).create_journey(created, DEFAULT_TEMPLATE.stages("J1", now), example_rules("J1", "ada", now))
    services.get(JourneyRunner).run("J1")


def _export() -> tuple[bytes, bytes]:
    topics = ["the park needs more trees", "buses should run at night", "schools want new roofs"]
    comments = ["comment-id,comment-body,moderated"]
    comments += [f'{n},"{topics[n % 3]} {n} {MARKUP if n == 5 else ""}",1' for n in range(30)]
    votes = ["comment-id,voter-id,vote"]
    votes += [f"{n},{voter},{1 if (n + voter) % 3 else -1}" for n in range(30) for voter in range(20)]
    return "\n".join(comments).encode(), "\n".join(votes).encode()


def _store_receipt(services: Services) -> None:
    picture = {**PICTURE, "s3_key": "receipts/a.png"}
    services.objects.put("receipts/a.png", _white_png(100, 200))
    receipt = Receipt(image_id=IMAGE_ID, receipt_id=1, **picture, **CORNERS)
    words = [("MILK", 1), ("2.50", 2), (MARKUP, 3)]
    OcrService(services.store).store(
        OcrResult(
            image=Image(image_id=IMAGE_ID, **picture),
            receipts=[receipt],
            receipt_lines=[
                ReceiptLine(image_id=IMAGE_ID, receipt_id=1, line_id=n, text=text, **PLACED) for text, n in words
            ],
            receipt_words=[
                ReceiptWord(image_id=IMAGE_ID, receipt_id=1, line_id=n, word_id=1, text=text, **PLACED)
                for text, n in words
            ],
        )
    )
    here: dict[str, Any] = {"image_id": IMAGE_ID, "receipt_id": 1}
    LabelService(services.store).add(
        [ReceiptWordLabel(**here, line_id=2, word_id=1, label="TOTAL", timestamp_added=NOON, reasoning=MARKUP)]
    )
    item = LineItem(description=f"Milk {MARKUP}", price=Price(extended_price=Decimal("2.50")))
    AnalysisService(services.store).keep(
        ReceiptLineItemAnalysis(
            **here, items=[item], total=Decimal("2.50"), total_found=True, timestamp_added=NOON, version="1"
        )
    )
    validation = ValidationService(services.store)
    validation.start(IMAGE_ID, 1, version="1")
    validation.add_findings(IMAGE_ID, 1, "total", [Finding(ResultType.WARNING, MARKUP)])


def _white_png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\x00" + b"\xff" * width for _ in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
