"""Images with many receipts, large receipts, and many batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.systems.receipts.pictures import CORNERS, PICTURE, ocr_result
from tests.web.crowd import at

from jobtable.app import Services
from jobtable.model import Entity
from jobtable.systems.receipts.entities import (
    BatchSummary,
    CompletionBatchResult,
    EmbeddingBatchResult,
    LabelHygieneResult,
    LabelMetadata,
    PlacesCache,
    Receipt,
    ReceiptChatGPTValidation,
    ReceiptField,
    ReceiptLabelAnalysis,
    ReceiptLineItemAnalysis,
    ReceiptMetadata,
    ReceiptStructureAnalysis,
    ReceiptValidationCategory,
    ReceiptValidationResult,
    ReceiptValidationSummary,
    ReceiptWordLabel,
    ResultType,
)

IDS = {
    "alias": "A1",
    "batch_id": "batch",
    "field_name": "total",
    "field_type": "DATE",
    "image_id": "image",
    "canonical_label": "TOTAL",
    "label": "TOTAL",
    "label_target": "merchant",
    "line_id": "1",
    "merchant_name": "Shop",
    "place_id": "P",
    "receipt_id": "1",
    "result_type": "warning",
    "search_type": "ADDRESS",
    "word_id": "1",
}
"""What paths of routes say, by the name of the parameter."""
ASKED: dict[str, list[str]] = {
    "/api/v1/images/{image_id}/receipt-words": ["", "most_confidence=0.1"],
    "/api/v1/labels": ["", "label=TOTAL", "status=VALID"],
    "/api/v1/validations": ["status=NEEDS_REVIEW"],
    "/api/v1/validations/second-passes": ["status=VALID"],
    "/api/v1/validations/fields/{field_name}": ["status=VALID"],
    "/api/v1/batches": ["status=PENDING"],
    "/api/v1/places/{search_type}/answer": ["search_value=1"],
}
"""Queries of routes, beside what their paths say."""
WHOLE: dict[str, str] = {
    "/api/v1/images/{image_id}/contents": "everything under an image",
    "/api/v1/images/{image_id}/receipts/{receipt_id}": "everything under a receipt",
    "/api/v1/images/{image_id}/receipts/{receipt_id}/analyses": "as above",
}
"""What is asked for as a whole, and is as large as it is."""


def fill(services: Services, count: int) -> None:
    """Write so many of everything."""
    for part in (_receipts, _images, _batches):
        services.store.batch_put(part(count))
    for entity in _batch_results(count):
        services.store.put(entity)  # kinds that share their keys are put one by one


def _receipts(count: int) -> Iterator[Entity]:
    """One image with one large receipt."""
    result = ocr_result("image", lines=1, words=count, letters=1)
    yield from result.under_the_image()
    yield result.image
    here: dict[str, Any] = {"image_id": "image", "receipt_id": 1}
    for n in range(count):
        yield ReceiptWordLabel(
            **here, line_id=1, word_id=n, label="TOTAL", validation_status="VALID", timestamp_added=at(n)
        )
        yield ReceiptField(**here, field_type=f"F{n}", words=[], timestamp_added=at(n))
        field: dict[str, Any] = {**here, "field_name": f"f{n}", "validation_timestamp": at(0)}
        yield ReceiptValidationCategory(**field, field_category="Date", status="VALID")
        yield ReceiptValidationResult(
            **{**field, "field_name": "total"}, result_index=n, type=ResultType.SUCCESS, message="fine"
        )
        yield ReceiptChatGPTValidation(**here, timestamp=at(n), original_status="INVALID", revised_status="VALID")


def _batch_results(count: int) -> Iterator[Entity]:
    for n in range(count):
        word: dict[str, Any] = {"image_id": "image", "receipt_id": 1, "line_id": 1, "word_id": n, "status": "DONE"}
        yield CompletionBatchResult(
            **word,
            batch_id="batch",
            original_label="TOTAL",
            label_changed=False,
            validated_at=at(0),
            label_target="merchant",
        )
        yield EmbeddingBatchResult(**word, batch_id="batch-e", label="TOTAL", pinecone_id="p", text="w")


def _images(count: int) -> Iterator[Entity]:
    """Many images with a small receipt each."""
    for n in range(count):
        image_id = f"image-{n}"
        result = ocr_result(image_id, lines=1, words=1, letters=1)
        yield from result.under_the_image()
        yield result.image
        yield Receipt(image_id="image", receipt_id=n + 2, **PICTURE, **CORNERS)
        here: dict[str, Any] = {"image_id": image_id, "receipt_id": 1}
        yield ReceiptMetadata(**here, merchant_name="Shop", match_confidence=0.5, timestamp=at(n))
        yield ReceiptField(**here, field_type="DATE", words=[], timestamp_added=at(n))
        yield ReceiptLabelAnalysis(**here, labels=[], version="1", timestamp_added=at(n))
        yield ReceiptStructureAnalysis(**here, sections=[], version="1", timestamp_added=at(n))
        yield ReceiptLineItemAnalysis(**here, items=[], total_found=False, version="1", timestamp_added=at(n))
        yield ReceiptValidationSummary(**here, overall_status="NEEDS_REVIEW", version="1", validation_timestamp=at(n))
        field: dict[str, Any] = {**here, "field_name": "total", "validation_timestamp": at(n)}
        yield ReceiptValidationCategory(**field, field_category="Date", status="VALID")
        yield ReceiptValidationResult(**field, result_index=0, type=ResultType.WARNING, message="fine")


def _batches(count: int) -> Iterator[Entity]:
    yield LabelMetadata(label="TOTAL", status="ACTIVE", last_updated=at(0), label_target="merchant")
    yield BatchSummary(batch_id="batch", batch_type="COMPLETION", status="PENDING")
    for n in range(count):
        yield BatchSummary(batch_id=f"b{n}", batch_type="COMPLETION", status="PENDING")
        yield LabelMetadata(label=f"L{n}", status="ACTIVE", last_updated=at(0), label_target="merchant")
        found: dict[str, Any] = {"gpt_agreed": False, "timestamp": at(n)}
        yield LabelHygieneResult(hygiene_id=f"a{n}", alias="STORE", canonical_label=f"L{n}", **found)
        yield LabelHygieneResult(hygiene_id=f"b{n}", alias=f"A{n}", canonical_label="TOTAL", **found)
        yield PlacesCache(
            search_type="ADDRESS", search_value=f"{n}", place_id="P", places_response=None, last_updated=at(n)
        )
