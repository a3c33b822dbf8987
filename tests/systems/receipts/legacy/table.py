"""A legacy table of any size, for the tests. `python -m tests.systems.receipts.legacy.table PATH` migrates one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.systems.receipts.pictures import CORNERS, NOON, PICTURE, PLACED

from jobtable.embedded import EmbeddedBackend
from jobtable.jobs.stored.entities import main
from jobtable.jobs.stored.field_types import Status
from jobtable.model import Entity
from jobtable.store import Store
from jobtable.systems.receipts.legacy.entities import (
    GPTInitialTagging,
    GPTValidation,
    Image,
    Job,
    JobMetric,
    Letter,
    Line,
    QueueJob,
    Receipt,
    ReceiptLetter,
    ReceiptLine,
    ReceiptWord,
    ReceiptWordTag,
    Word,
    WordTag,
    legacy,
)
from jobtable.systems.receipts.legacy.migration import Migration, MigrationReport

ITEMS_AN_IMAGE = 4 + 2 * 8 + 3


def legacy_items(images: int) -> Iterator[Entity]:
    """Images with everything under them, and a job with its records for each: ITEMS_AN_IMAGE items."""
    for number in range(images):
        yield from _image(f"image-{number:05d}")
        job_id = f"job-{number:05d}"
        yield Job(job_id=job_id, name="train", created_at=NOON, created_by="ada", status=Status.COMPLETED)
        yield JobMetric(job_id=job_id, metric_name="loss", timestamp=NOON, value=number / 7)
        yield QueueJob(queue_name="gpu", job_id=job_id, enqueued_at=NOON)


def _image(image_id: str) -> Iterator[Entity]:
    here: dict[str, Any] = {"image_id": image_id, **PLACED}
    yield Image(image_id=image_id, **PICTURE)
    yield Receipt(image_id=image_id, receipt_id=1, **PICTURE, **CORNERS)
    yield Line(**here, line_id=1, text="milk 2.90")
    yield ReceiptLine(**here, receipt_id=1, line_id=1, text="milk 2.90")
    for word_id in (1, 2):
        word: dict[str, Any] = {"image_id": image_id, "line_id": 1, "word_id": word_id}
        yield Word(**here, line_id=1, word_id=word_id, text="milk", tags=["FOOD"])
        yield WordTag(**word, tag_name="FOOD", timestamp_added=NOON)
        yield Letter(**here, line_id=1, word_id=word_id, letter_id=1, text="m")
        yield ReceiptWord(**here, receipt_id=1, line_id=1, word_id=word_id, text="milk", tags=["FOOD"])
        yield ReceiptWordTag(**word, receipt_id=1, tag_name="FOOD", timestamp_added=NOON)
        yield ReceiptLetter(**here, receipt_id=1, line_id=1, word_id=word_id, letter_id=1, text="m")
        about: dict[str, Any] = {**word, "receipt_id": 1, "tag": "FOOD", "timestamp_added": NOON}
        yield GPTInitialTagging(**about, query="Which tags?", response="FOOD")
        yield GPTValidation(**about, query="Is it FOOD?", response="yes")


def open_store(path: Path | None) -> Store:
    """A store with both tables."""
    store = Store(EmbeddedBackend(path, durability="normal"))  # survives kill -9, and saves the tests some time
    store.tables.create(legacy, main)
    return store


def _migrate(path: Path) -> None:
    def tell(report: MigrationReport) -> None:
        print(report.read, flush=True)

    with open_store(path) as store:
        Migration(store, store).run(tell)


if __name__ == "__main__":
    _migrate(Path(sys.argv[1]))
