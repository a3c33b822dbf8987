"""A receipt with its labels and validations, for the tests of pages."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.systems.receipts.pictures import CORNERS, NOON, PICTURE, PLACED
from tests.web.world import MARKUP

from jobtable.app import Services
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

IMAGE_ID = "3f52804b-2fad-4e00-92c8-b593da3a8ed3"
MISSING = ["/receipts/none"]
"""Pages of what does not exist."""


def fill(services: Services, folder: Path) -> None:
    """Store one with words, a label, an analysis and a validation."""
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


def made(services: Services) -> dict[str, str]:
    """The ids of what was made, by name."""
    return {"image": IMAGE_ID}


def paths(made: Mapping[str, str]) -> list[str]:
    """Every page, with something on it."""
    return ["/receipts", f"/receipts/{made['image']}"]


def tables(made: Mapping[str, str]) -> list[str]:
    """Pages with tables that fit every width."""
    return paths(made)


def owners(made: Mapping[str, str]) -> dict[str, set[str | None]]:
    """Where the pages of the jobs lead, by the type of the job."""
    return {}
