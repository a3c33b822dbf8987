"""A receipt with long words, labels and keys."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from tests.access_patterns.jobs import START
from tests.systems.receipts.pictures import ocr_result

from jobtable.app import Services
from jobtable.systems.receipts.entities import ReceiptWordLabel
from jobtable.systems.receipts.ocr import OcrService

PATHS = ["/receipts/image"]
"""The pages that show them."""


def fill(services: Services, long: str) -> None:
    """Store something with this name wherever a name is."""
    found = ocr_result("image", lines=1, words=1)
    words = [each.replace(text=long) for each in found.receipt_words]
    receipts = [each.replace(s3_key=f"scans/{long}.png") for each in found.receipts]  # whose image is not there
    OcrService(services.store).store(replace(found, receipts=receipts, receipt_words=words))
    word: dict[str, Any] = {"image_id": "image", "receipt_id": 1, "line_id": 1, "word_id": 1}
    at = START + timedelta(days=1)
    services.store.put(
        ReceiptWordLabel(
            **word, label=long, timestamp_added=at, reasoning="why " * 100 + long, validation_status="NEEDS_REVIEW"
        )
    )
