"""The receipts of the demonstration: read from drawings, their words labelled by rules, their sums checked."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from hashlib import sha256
from typing import Any

from jobtable.errors import AlreadyExistsError
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.tasks import task
from jobtable.objects import object_key
from jobtable.systems.receipts.analyses import AnalysisService
from jobtable.systems.receipts.demo.drawings import Drawing, DrawnWord, draw
from jobtable.systems.receipts.entities import (
    Image,
    Line,
    LineItem,
    Price,
    Receipt,
    ReceiptLine,
    ReceiptLineItemAnalysis,
    ReceiptMetadata,
    ReceiptWord,
    ReceiptWordLabel,
    ResultType,
    ValidationStatus,
    Word,
)
from jobtable.systems.receipts.labels import LabelService
from jobtable.systems.receipts.ocr import OcrResult, OcrService
from jobtable.systems.receipts.validation import Finding, ValidationService

_RULES = (
    ("DATE", re.compile(r"\d{4}-\d\d-\d\d")),
    ("TIME", re.compile(r"\d\d?:\d\d")),
    ("PHONE_NUMBER", re.compile(r"\d{3}-\d{4}")),
    ("AMOUNT", re.compile(r"\d+\.\d\d")),
)
_SUMS = {"Subtotal": "SUBTOTAL", "Tax": "TAX", "TOTAL": "GRAND_TOTAL"}
_RECEIPT_ID = 1


@task
def read_receipts(job: JobContext, count: int) -> dict[str, int]:
    """Read `count` receipts; each one is stored with its words, labels, line items and validation."""
    wrong = 0
    for number in range(count):
        image_id = f"demo-receipt-{number + 1:03d}"
        is_right = _read(job, image_id, draw(number))
        wrong += not is_right
        job.log(f"{image_id} {'adds up' if is_right else 'does not add up'}", "INFO" if is_right else "WARNING")
        job.progress(100 * (number + 1) / count)
    return {"receipts": count, "that do not add up": wrong}


def _read(job: JobContext, image_id: str, drawing: Drawing) -> bool:
    """Store what is on a receipt; says whether it adds up."""
    store, now = job.jobs.store, job.jobs.clock.now()
    picture = _picture(job, image_id, drawing, now)
    labels = dict(_labels(drawing))
    OcrService(store).store(_ocr_result(image_id, drawing, picture))
    LabelService(store).add(
        ReceiptWordLabel(
            image_id=image_id,
            receipt_id=_RECEIPT_ID,
            line_id=word.line,
            word_id=word.number,
            label=label,
            reasoning="the word's form, and what stands before it",
            timestamp_added=now,
            validation_status=ValidationStatus.PENDING,
            label_proposed_by="rules",
        )
        for word, label in labels.items()
    )
    analysis = _line_items(image_id, drawing, labels, now)
    AnalysisService(store).keep(analysis)
    store.put(
        ReceiptMetadata(
            image_id=image_id,
            receipt_id=_RECEIPT_ID,
            merchant_name=drawing.merchant.title(),
            match_confidence=0.97,
            matched_fields=["name"],
            timestamp=now,
        )
    )
    _validate(job, analysis)
    return not analysis.discrepancies


def _picture(job: JobContext, image_id: str, drawing: Drawing, now: datetime) -> dict[str, Any]:
    content = drawing.svg()
    key = object_key("receipts", f"{image_id}.svg")
    job.jobs.objects.put(key, content)
    return {
        "image_id": image_id,
        "width": drawing.width,
        "height": drawing.height,
        "timestamp_added": now,
        "s3_bucket": "objects",
        "s3_key": key,
        "sha256": sha256(content).hexdigest(),
    }


def _ocr_result(image_id: str, drawing: Drawing, picture: dict[str, Any]) -> OcrResult:
    whole = _box(0, 0, drawing.width, drawing.height, drawing)
    by_line: dict[int, list[DrawnWord]] = defaultdict(list)
    for word in drawing.words:
        by_line[word.line].append(word)
    lines = [
        (number, _line(words, drawing), " ".join(each.text for each in words)) for number, words in by_line.items()
    ]
    words = [(word, _box(word.left, word.top, word.right, word.bottom, drawing)) for word in drawing.words]
    here: dict[str, Any] = {"image_id": image_id, "angle_degrees": 0, "angle_radians": 0, "confidence": 0.98}
    on_receipt = {**here, "receipt_id": _RECEIPT_ID}
    return OcrResult(
        image=Image(**picture),
        lines=[Line(**here, **box, line_id=number, text=text) for number, box, text in lines],
        words=[Word(**here, **box, line_id=w.line, word_id=w.number, text=w.text) for w, box in words],
        receipts=[Receipt(**picture, receipt_id=_RECEIPT_ID, **whole)],
        receipt_lines=[ReceiptLine(**on_receipt, **box, line_id=number, text=text) for number, box, text in lines],
        receipt_words=[
            ReceiptWord(**on_receipt, **box, line_id=w.line, word_id=w.number, text=w.text) for w, box in words
        ],
    )


def _line(words: list[DrawnWord], drawing: Drawing) -> dict[str, Any]:
    return _box(words[0].left, words[0].top, words[-1].right, words[0].bottom, drawing)


def _box(left: float, top: float, right: float, bottom: float, drawing: Drawing) -> dict[str, Any]:
    """Corners as OCR tells them: fractions of the picture, counted from its lower left corner."""
    x0, x1 = left / drawing.width, right / drawing.width
    y0, y1 = 1 - bottom / drawing.height, 1 - top / drawing.height
    return {
        "top_left": {"x": x0, "y": y1},
        "top_right": {"x": x1, "y": y1},
        "bottom_left": {"x": x0, "y": y0},
        "bottom_right": {"x": x1, "y": y0},
    }


def _labels(drawing: Drawing) -> Iterator[tuple[DrawnWord, str]]:
    """The label of each word that a rule knows."""
    first_of_line: dict[int, str] = {}
    for word in drawing.words:
        first = first_of_line.setdefault(word.line, word.text)
        if word.line == 1:
            yield word, "MERCHANT_NAME"
            continue
        form = next((label for label, rule in _RULES if rule.fullmatch(word.text)), None)
        if form == "AMOUNT":
            yield word, _SUMS.get(first, "LINE_TOTAL")
        elif form is not None:
            yield word, form


def _line_items(
    image_id: str, drawing: Drawing, labels: dict[DrawnWord, str], now: datetime
) -> ReceiptLineItemAnalysis:
    amounts = {label: Decimal(word.text) for word, label in labels.items() if label in _SUMS.values()}
    prices = [(word.line, Decimal(word.text)) for word, label in labels.items() if label == "LINE_TOTAL"]
    items = [
        LineItem(
            description=" ".join(w.text for w in drawing.words if w.line == line and w not in labels),
            price=Price(extended_price=price),
            line_ids=[line],
        )
        for line, price in prices
    ]
    expected = amounts["SUBTOTAL"] + amounts["TAX"]
    off = amounts["GRAND_TOTAL"] - expected
    return ReceiptLineItemAnalysis(
        image_id=image_id,
        receipt_id=_RECEIPT_ID,
        items=items,
        subtotal=amounts["SUBTOTAL"],
        tax=amounts["TAX"],
        total=amounts["GRAND_TOTAL"],
        total_found=True,
        discrepancies=[f"the total is {off} more than subtotal and tax, {expected}"] if off else [],
        reasoning="every line that ends with an amount, above the subtotal",
        timestamp_added=now,
        version="1.0",
    )


def _validate(job: JobContext, analysis: ReceiptLineItemAnalysis) -> None:
    """Say what was checked, once: a second run of the job finds that it is there."""
    service = ValidationService(job.jobs.store, job.jobs.clock)
    try:
        service.start(analysis.image_id, _RECEIPT_ID, version="1.0")
    except AlreadyExistsError:
        return
    sums = [Finding(ResultType.ERROR, text, field="total") for text in analysis.discrepancies]
    service.add_findings(
        analysis.image_id,
        _RECEIPT_ID,
        "total",
        sums or [Finding(ResultType.SUCCESS, "subtotal and tax make up the total", field="total")],
        field_category="sums",
    )
    count = len(analysis.items)
    service.add_findings(
        analysis.image_id,
        _RECEIPT_ID,
        "line_items",
        [Finding(ResultType.SUCCESS, f"{count} line items with a price each", field="line_items")],
        field_category="items",
    )
