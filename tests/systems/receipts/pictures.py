"""OCR results of any size, for the tests."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from jobtable.systems.receipts.entities import (
    Image,
    Letter,
    Line,
    Receipt,
    ReceiptLetter,
    ReceiptLine,
    ReceiptWord,
    Word,
)
from jobtable.systems.receipts.ocr import OcrResult

NOON = datetime(2025, 3, 14, 12, tzinfo=UTC)
PICTURE: dict[str, Any] = {
    "width": 100,
    "height": 200,
    "timestamp_added": NOON,
    "s3_bucket": "raw",
    "s3_key": "scans/a.png",
    "sha256": "00ff",
}
CORNERS: dict[str, Any] = {
    "top_left": {"x": 0.1, "y": 0.9},
    "top_right": {"x": 0.4, "y": 0.9},
    "bottom_left": {"x": 0.1, "y": 0.8},
    "bottom_right": {"x": 0.4, "y": 0.8},
}
PLACED: dict[str, Any] = {**CORNERS, "angle_degrees": 1.0, "angle_radians": 0.017453, "confidence": 0.9}


def ocr_result(image_id: str, *, lines: int = 2, words: int = 2, letters: int = 3, receipts: int = 1) -> OcrResult:
    """An image with as many lines, words a line and letters a word, and the same on each of its receipts."""
    line_ids = range(1, lines + 1)
    word_ids = [(line, word) for line in line_ids for word in range(1, words + 1)]
    letter_ids = [(line, word, letter) for line, word in word_ids for letter in range(1, letters + 1)]
    here: dict[str, Any] = {"image_id": image_id, **PLACED}
    numbers = range(1, receipts + 1)
    return OcrResult(
        image=Image(image_id=image_id, **PICTURE),
        lines=[Line(**here, line_id=line, text=f"line {line}") for line in line_ids],
        words=[Word(**here, line_id=line, word_id=word, text=f"w{word}") for line, word in word_ids],
        letters=[Letter(**here, line_id=a, word_id=b, letter_id=c, text="x") for a, b, c in letter_ids],
        receipts=[Receipt(image_id=image_id, receipt_id=number, **PICTURE, **CORNERS) for number in numbers],
        receipt_lines=[ReceiptLine(**here, receipt_id=n, line_id=line, text="l") for n in numbers for line in line_ids],
        receipt_words=[
            ReceiptWord(**here, receipt_id=n, line_id=line, word_id=word, text=f"w{word}")
            for n in numbers
            for line, word in word_ids
        ],
        receipt_letters=[
            ReceiptLetter(**here, receipt_id=n, line_id=a, word_id=b, letter_id=c, text="x")
            for n in numbers
            for a, b, c in letter_ids
        ],
    )
