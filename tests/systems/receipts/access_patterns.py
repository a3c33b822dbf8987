"""Two images with receipts, labels, analyses, validations, places and batches."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.access_patterns import Question, World
from tests.systems.receipts.pictures import ocr_result

from jobtable.jobs.stored.entities import Job, main
from jobtable.model import Entity
from jobtable.store import Store
from jobtable.systems.receipts.analyses import AnalysisService
from jobtable.systems.receipts.entities import (
    BatchSummary,
    CompletionBatchResult,
    EmbeddingBatchResult,
    FieldWord,
    LabelHygieneResult,
    LabelMetadata,
    PlacesCache,
    ReceiptChatGPTValidation,
    ReceiptField,
    ReceiptLabelAnalysis,
    ReceiptMetadata,
    ReceiptStructureAnalysis,
    ReceiptValidationCategory,
    ReceiptValidationResult,
    ReceiptValidationSummary,
    ReceiptWordLabel,
    ResultType,
)
from jobtable.systems.receipts.labels import LabelHygieneService, LabelService
from jobtable.systems.receipts.model_batches import BatchService
from jobtable.systems.receipts.ocr import OcrService
from jobtable.systems.receipts.places import PlacesService
from jobtable.systems.receipts.validation import ValidationService

START = datetime(2025, 3, 14, 12, tzinfo=UTC)


def _at(minute: int) -> datetime:
    return START + timedelta(minutes=minute)


def items() -> Iterator[Entity]:
    """The world: images A and B, each with a receipt of one line, two words and four letters."""
    for number, image_id in enumerate("AB"):
        result = ocr_result(image_id, lines=1, words=2, letters=2)
        yield from result.under_the_image()
        yield result.image
        yield from _findings(image_id, number)
    yield Job(job_id="J", name="not asked for", created_at=START, created_by="u")
    yield LabelMetadata(label="TOTAL", status="ACTIVE", last_updated=START, label_target="currency")
    for alias in ("SUM", "AMOUNT"):
        yield LabelHygieneResult(
            hygiene_id=alias, alias=alias, canonical_label="TOTAL", gpt_agreed=True, timestamp=START
        )
    for number, value in enumerate(["b", "a"]):
        yield PlacesCache(
            search_type="PHONE", search_value=value, place_id="P", places_response=None, last_updated=_at(number)
        )
    for batch_id, kind in (("C", "COMPLETION"), ("E", "EMBEDDING")):
        yield BatchSummary(batch_id=batch_id, batch_type=kind, status="PENDING")


def _findings(image_id: str, number: int) -> Iterator[Entity]:
    receipt: dict[str, Any] = {"image_id": image_id, "receipt_id": 1}
    word: dict[str, Any] = {**receipt, "line_id": 1, "word_id": number + 1}
    for label, status in (("TOTAL", "VALID"), ("DATE", "NONE")):
        yield ReceiptWordLabel(**word, label=label, validation_status=status, timestamp_added=START)
    yield ReceiptMetadata(**receipt, merchant_name="Shop", match_confidence=1 - number / 2, timestamp=START)
    field_word = FieldWord(word_id=1, line_id=1, label="DATE")
    yield ReceiptField(**receipt, field_type="DATE", words=[field_word], timestamp_added=START)
    yield ReceiptLabelAnalysis(**receipt, labels=[], version="1", timestamp_added=_at(-number))
    yield ReceiptStructureAnalysis(**receipt, sections=[], version="1", timestamp_added=START)
    yield ReceiptValidationSummary(**receipt, overall_status="VALID", version="1", validation_timestamp=_at(-number))
    validated: dict[str, Any] = {**receipt, "field_name": "date", "validation_timestamp": _at(-number)}
    yield ReceiptValidationCategory(**validated, field_category="Date", status="VALID")
    yield ReceiptValidationResult(**validated, result_index=0, type=ResultType.SUCCESS, message=f"fine {image_id}")
    yield ReceiptChatGPTValidation(**receipt, timestamp=_at(-number), original_status="INVALID", revised_status="VALID")
    yield CompletionBatchResult(
        **word,
        batch_id="C",
        original_label="TOTAL",
        label_changed=False,
        status="DONE",
        validated_at=START,
        label_target="currency",
    )
    yield EmbeddingBatchResult(**word, batch_id="E", label="TOTAL", pinecone_id=image_id, text="w", status="DONE")


def _image(store: Store) -> list[int]:
    found = OcrService(store).read_image("A")
    receipt = found.receipts[1]
    counts = [len(found.lines), len(found.words), len(found.letters), len(receipt.words), len(receipt.letters)]
    return [*counts, len(receipt.labels), len(receipt.analyses)]


def _receipt(store: Store) -> list[Any]:
    found = OcrService(store).read_receipt("B", 1)
    merchant = found.metadata.merchant_name if found.metadata else None
    return [len(found.lines), len(found.words), len(found.letters), len(found.labels), len(found.analyses), merchant]


def _places(word: Any) -> str:
    return f"{word.image_id}{word.line_id}{word.word_id}"


_SEED = "receipts"
WORLD = World(
    name="receipts",
    tables=(main,),
    items=items,
    questions={
        (_SEED, "Get an image with everything under it"): Question(_image, [1, 2, 4, 2, 4, 2, 6]),
        (_SEED, "Get a receipt with everything under it"): Question(_receipt, [1, 2, 4, 2, 6, "Shop"]),
        (_SEED, "List all images"): Question(
            lambda s: sorted(i.image_id for i in OcrService(s).list_images()), ["A", "B"]
        ),
        (_SEED, "List the lines of an image"): Question(
            lambda s: [e.line_id for e in OcrService(s).list_lines("A")], [1]
        ),
        (_SEED, "List the words of a line"): Question(
            lambda s: [e.word_id for e in OcrService(s).list_words("A", 1)], [1, 2]
        ),
        (_SEED, "List the letters of a word"): Question(
            lambda s: [e.letter_id for e in OcrService(s).list_letters("A", 1, 2)], [1, 2]
        ),
        (_SEED, "List the receipts of an image"): Question(
            lambda s: [e.receipt_id for e in OcrService(s).list_receipts("B")], [1]
        ),
        (_SEED, "List the lines of a receipt"): Question(
            lambda s: [e.line_id for e in OcrService(s).list_receipt_lines("A", 1)], [1]
        ),
        (_SEED, "List the words of a line of a receipt"): Question(
            lambda s: [_places(e) for e in OcrService(s).list_words_of_receipt("A", 1, 1)], ["A11", "A12"]
        ),
        (_SEED, "List the letters of a word of a receipt"): Question(
            lambda s: [e.letter_id for e in OcrService(s).list_letters_of_receipt("A", 1, 1, 2)], [1, 2]
        ),
        (_SEED, "List an image with its lines, receipts and fields"): Question(
            lambda s: [type(e).__name__ for e in OcrService(s).list_outline("A")],
            ["Image", "Line", "Receipt", "ReceiptField"],
        ),
        (_SEED, "List the receipts of an image with their words"): Question(
            lambda s: [type(e).__name__ for e in OcrService(s).list_receipts_with_words("B")],
            ["Receipt", "ReceiptWord", "ReceiptWord"],
        ),
        (_SEED, "List all receipts"): Question(
            lambda s: [e.image_id for e in OcrService(s).list_all_receipts()], ["A", "B"]
        ),
        (_SEED, "List the words of all receipts"): Question(
            lambda s: [_places(e) for e in OcrService(s).list_all_receipt_words()], ["A11", "A12", "B11", "B12"]
        ),
        (_SEED, "List the receipt words of an image"): Question(
            lambda s: [_places(e) for e in OcrService(s).list_receipt_words("B")], ["B11", "B12"]
        ),
        (_SEED, "List the words with a label"): Question(
            lambda s: [_places(e) for e in LabelService(s).list_by_label("TOTAL")], ["A11", "B12"]
        ),
        (_SEED, "List labels by validation status"): Question(
            lambda s: [f"{_places(e)} {e.label}" for e in LabelService(s).list_by_status("VALID")],
            ["A11 TOTAL", "B12 TOTAL"],
        ),
        (_SEED, "List the labels of a receipt"): Question(
            lambda s: [e.label for e in LabelService(s).list_by_receipt("A", 1)], ["DATE", "TOTAL"]
        ),
        (_SEED, "List the labels of all receipts"): Question(
            lambda s: sorted(f"{e.image_id} {e.label}" for e in LabelService(s).list_everywhere()),
            ["A DATE", "A TOTAL", "B DATE", "B TOTAL"],
        ),
        (_SEED, "List a field over all receipts"): Question(
            lambda s: [e.image_id for e in LabelService(s).list_by_field("DATE")], ["A", "B"]
        ),
        (_SEED, "List the fields of a receipt"): Question(
            lambda s: [e.field_type for e in LabelService(s).list_fields("A", 1)], ["DATE"]
        ),
        (_SEED, "List the receipts of a merchant"): Question(
            lambda s: [e.image_id for e in LabelService(s).list_by_merchant("Shop")], ["A", "B"]
        ),
        (_SEED, "List merchants by confidence"): Question(
            lambda s: [e.match_confidence for e in LabelService(s).list_by_confidence()], [0.5, 1.0]
        ),
        (_SEED, "Get the description of a label"): Question(
            lambda s: [d.status for d in [LabelHygieneService(s).find_description("TOTAL")] if d], ["ACTIVE"]
        ),
        (_SEED, "List the labels of a target"): Question(
            lambda s: [e.label for e in LabelHygieneService(s).list_by_target("currency")], ["TOTAL"]
        ),
        (_SEED, "Get a label with its words and description"): Question(
            lambda s: [type(e).__name__ for e in LabelHygieneService(s).list_under_label("TOTAL")],
            ["ReceiptWordLabel", "ReceiptWordLabel", "LabelMetadata"],
        ),
        (_SEED, "List the findings under an id"): Question(
            lambda s: [e.alias for e in LabelHygieneService(s).list_by_id("SUM")], ["SUM"]
        ),
        (_SEED, "List the findings about an alias"): Question(
            lambda s: [e.canonical_label for e in LabelHygieneService(s).list_by_alias("SUM")], ["TOTAL"]
        ),
        (_SEED, "List the aliases of a label"): Question(
            lambda s: [e.alias for e in LabelHygieneService(s).list_aliases("TOTAL")], ["AMOUNT", "SUM"]
        ),
        (_SEED, "Get a cached place"): Question(
            lambda s: [p.place_id for p in [PlacesService(s).find("PHONE", "a")] if p], ["P"]
        ),
        (_SEED, "List the cached answers for a place"): Question(
            lambda s: sorted(e.search_value for e in PlacesService(s).list_by_place("P")), ["a", "b"]
        ),
        (_SEED, "List the cached answers of a search type"): Question(
            lambda s: [e.search_value for e in PlacesService(s).list_by_type("PHONE")], ["a", "b"]
        ),
        (_SEED, "List the least recently used answers"): Question(
            lambda s: [e.search_value for e in PlacesService(s).list_least_recently_used()], ["b", "a"]
        ),
        (_SEED, "Get a batch"): Question(lambda s: [BatchService(s).get("C").batch_type], ["COMPLETION"]),
        (_SEED, "A batch with its results"): Question(
            lambda s: [type(e).__name__ for e in BatchService(s).list_under_batch("E")],
            ["EmbeddingBatchResult", "EmbeddingBatchResult", "BatchSummary"],
        ),
        (_SEED, "List batches by status"): Question(
            lambda s: [e.batch_id for e in BatchService(s).list_by_status("PENDING")], ["C", "E"]
        ),
        (_SEED, "List the completions of a batch"): Question(
            lambda s: sorted(_places(e) for e in BatchService(s).list_completions("C")), ["A11", "B12"]
        ),
        (_SEED, "List the embeddings of a batch"): Question(
            lambda s: sorted(e.pinecone_id for e in BatchService(s).list_embeddings("E")), ["A", "B"]
        ),
        (_SEED, "List completions by label target"): Question(
            lambda s: sorted(_places(e) for e in BatchService(s).list_by_target("currency")), ["A11", "B12"]
        ),
        (_SEED, "List the completions for a receipt"): Question(
            lambda s: [_places(e) for e in BatchService(s).list_completions_of_receipt("A", 1)], ["A11"]
        ),
        (_SEED, "List the embeddings of a receipt"): Question(
            lambda s: [_places(e) for e in BatchService(s).list_embeddings_of_receipt("B", 1)], ["B12"]
        ),
        (_SEED, "Get an analysis of a receipt"): Question(
            lambda s: [AnalysisService(s).get(ReceiptLabelAnalysis, "A", 1).image_id], ["A"]
        ),
        (_SEED, "List analyses of a kind by time"): Question(
            lambda s: [e.image_id for e in AnalysisService(s).list_by_time(ReceiptLabelAnalysis)], ["B", "A"]
        ),
        (_SEED, "List the analyses of a receipt"): Question(
            lambda s: [type(e).__name__ for e in AnalysisService(s).list_of_receipt("A", 1)],
            [
                "ReceiptLabelAnalysis",
                "ReceiptStructureAnalysis",
                "ReceiptValidationSummary",
                "ReceiptValidationCategory",
                "ReceiptValidationResult",
                "ReceiptChatGPTValidation",
            ],
        ),
        (_SEED, "List the categories of a validation"): Question(
            lambda s: [e.field_name for e in ValidationService(s).list_categories("A", 1)], ["date"]
        ),
        (_SEED, "List the results of a category"): Question(
            lambda s: [e.message for e in ValidationService(s).list_results("A", 1, "date")], ["fine A"]
        ),
        (_SEED, "List the second passes over a validation"): Question(
            lambda s: [e.image_id for e in ValidationService(s).list_second_passes("B", 1)], ["B"]
        ),
        (_SEED, "List validations by status"): Question(
            lambda s: [e.image_id for e in ValidationService(s).list_by_status("VALID")], ["B", "A"]
        ),
        (_SEED, "List second passes by revised status"): Question(
            lambda s: [e.image_id for e in ValidationService(s).list_second_passes_by_status("VALID")], ["B", "A"]
        ),
        (_SEED, "List the categories of a field by status"): Question(
            lambda s: [e.image_id for e in ValidationService(s).list_by_field_status("date", "VALID")], ["A", "B"]
        ),
        (_SEED, "List results by type"): Question(
            lambda s: [e.message for e in ValidationService(s).list_by_result_type(ResultType.SUCCESS)],
            ["fine A", "fine B"],
        ),
    },
)
