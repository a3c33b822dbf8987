"""The receipts of the demonstration: read from drawings, labelled by rules, validated."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from hashlib import sha256
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobtable.demo import USER, DemoPart, DemoState
from jobtable.errors import AlreadyExistsError
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.submit.definition import NewJob
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

if TYPE_CHECKING:
    from jobtable.app import Services

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
    """Read `count` receipts and store each with its words, labels, line items and validation."""
    wrong = 0
    for number in range(count):
        image_id = f"demo-receipt-{number + 1:03d}"
        is_right = _read(job, image_id, draw(number))
        wrong += not is_right
        job.log(f"{image_id} {'adds up' if is_right else 'does not add up'}", "INFO" if is_right else "WARNING")
        job.progress(100 * (number + 1) / count)
    return {"receipts": count, "with wrong totals": wrong}


def _read(job: JobContext, image_id: str, drawing: Drawing) -> bool:
    """Store a receipt and return whether its total is correct."""
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
            reasoning="the form of the word and the first word of its line",
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
    lines, words = list[dict[str, Any]](), list[dict[str, Any]]()
    for number, group in groupby(drawing.words, attrgetter("line")):
        of_line = list(group)
        first, last = of_line[0], of_line[-1]
        box = _box(first.left, first.top, last.right, last.bottom, drawing)
        lines.append({**box, "line_id": number, "text": " ".join(word.text for word in of_line)})
        for word in of_line:
            box = _box(word.left, word.top, word.right, word.bottom, drawing)
            words.append({**box, "line_id": number, "word_id": word.number, "text": word.text})
    here: dict[str, Any] = {"image_id": image_id, "angle_degrees": 0, "angle_radians": 0, "confidence": 0.98}
    on_receipt = {**here, "receipt_id": _RECEIPT_ID}
    whole = _box(0, 0, drawing.width, drawing.height, drawing)
    return OcrResult(
        image=Image(**picture),
        lines=[Line(**here, **each) for each in lines],
        words=[Word(**here, **each) for each in words],
        receipts=[Receipt(**picture, receipt_id=_RECEIPT_ID, **whole)],
        receipt_lines=[ReceiptLine(**on_receipt, **each) for each in lines],
        receipt_words=[ReceiptWord(**on_receipt, **each) for each in words],
    )


def _box(left: float, top: float, right: float, bottom: float, drawing: Drawing) -> dict[str, Any]:
    """Return corners as fractions of the picture from its lower left corner, as OCR programs do."""
    x0, x1 = left / drawing.width, right / drawing.width
    y0, y1 = 1 - bottom / drawing.height, 1 - top / drawing.height
    return {
        "top_left": {"x": x0, "y": y1},
        "top_right": {"x": x1, "y": y1},
        "bottom_left": {"x": x0, "y": y0},
        "bottom_right": {"x": x1, "y": y0},
    }


def _labels(drawing: Drawing) -> Iterator[tuple[DrawnWord, str]]:
    """Yield the words that match a rule, with their labels."""
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
        discrepancies=[f"the total exceeds the sum of subtotal and tax, {expected}, by {off}"] if off else [],
        reasoning="the lines above the subtotal that end with an amount",
        timestamp_added=now,
        version="1.0",
    )


def _validate(job: JobContext, analysis: ReceiptLineItemAnalysis) -> None:
    """Store the validation, unless an earlier attempt of the job did."""
    service = ValidationService(job.jobs.store, job.jobs.clock)
    try:
        service.start(analysis.image_id, _RECEIPT_ID, version="1.0")
    except AlreadyExistsError:
        return
    wrong = [Finding(ResultType.ERROR, text, field="total") for text in analysis.discrepancies]
    right = Finding(ResultType.SUCCESS, "subtotal and tax add up to the total", field="total")
    count = len(analysis.items)
    priced = Finding(ResultType.SUCCESS, f"each of the {count} line items has a price", field="line_items")
    for name, category, findings in (("total", "sums", wrong or [right]), ("line_items", "items", [priced])):
        service.add_findings(analysis.image_id, _RECEIPT_ID, name, findings, field_category=category)


# --- the demonstration ----------------------------------------------------------------------------------------------

_JOB_ID = "demo-receipts"
_RECEIPT_COUNT = 9


def _start(services: Services, _folder: Path) -> None:
    new = NewJob(
        name="read receipts",
        task=f"{__name__}:read_receipts",
        params={"count": _RECEIPT_COUNT},
        job_id=_JOB_ID,
        job_type="receipts",
        user=USER,
        tags=frozenset({"demo"}),
    )
    services.jobs.submit(new)


def _look(services: Services) -> DemoState:
    job = services.jobs.queries.get_job(_JOB_ID)
    return DemoState(job.status, job.progress, f"{_RECEIPT_COUNT} receipts", job.is_final)


PART = DemoPart("Receipts", "/receipts", _start, _look, (__name__,))
