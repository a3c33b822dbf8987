"""Batches of words for completion or embedding by models, and their results."""

from __future__ import annotations

from jobtable.jobs.stored.entities import main
from jobtable.jobs.stored.field_types import Count
from jobtable.model import Attr, Entity, Key, Stored, Timestamp, default
from jobtable.systems.receipts.entities.labels import ReceiptRef
from jobtable.systems.receipts.entities.record_bases import Confidence, Number


class BatchSummary(Entity, table=main, type="BATCH_SUMMARY"):
    """A batch, its contents and its status."""

    key = Key("BATCH#{batch_id}", "STATUS")
    by_status = Key("STATUS#{status}", "BATCH_TYPE#{batch_type}#BATCH_ID#{batch_id}", index="GSI1")

    batch_id: str
    batch_type: str
    openai_batch_id: Attr[str | None] = default(None)
    submitted_at: Attr[Timestamp | None] = default(None)
    status: Attr[str]
    word_count: Attr[Count] = default(0)
    result_file_id: Attr[str | None] = default(None)
    receipt_refs: list[ReceiptRef] = []


class BatchResult(Entity):
    """The fields that every result of a batch shares. The key does not name the image; see BatchService.record."""

    by_batch = Key("BATCH#{batch_id}", "STATUS#{status}", index="GSI2")
    by_receipt = Key("IMAGE#{image_id}#RECEIPT#{receipt_id:05d}", "BATCH#{batch_id}#STATUS#{status}", index="GSI3")

    batch_id: str
    image_id: Attr[str]
    receipt_id: Number
    line_id: Number
    word_id: Number
    status: Attr[str]


class CompletionBatchResult(BatchResult, table=main, type="COMPLETION_BATCH_RESULT"):
    """A model's opinion of the label of one word."""

    key = Key(
        "BATCH#{batch_id}",
        "RESULT#RECEIPT#{receipt_id:05d}#LINE#{line_id:05d}#WORD#{word_id:05d}#LABEL#{original_label}",
    )
    by_target = Key("LABEL_TARGET#{label_target}", "STATUS#{status}", index="GSI1")

    original_label: Stored[str]
    gpt_suggested_label: str | None = None
    label_confidence: Confidence | None = None
    label_changed: bool
    validated_at: Timestamp
    reasoning: str | None = None
    raw_prompt: str | None = None
    raw_response: str | None = None
    label_target: Attr[str | None] = default(None)


class EmbeddingBatchResult(
    BatchResult, table=main, type="EMBEDDING_BATCH_RESULT", shares_keys_with=(CompletionBatchResult,)
):
    """Where the embedding of one word is stored. Its keys look like a completion's; no batch has both types."""

    key = Key("BATCH#{batch_id}", "RESULT#RECEIPT#{receipt_id:05d}#LINE#{line_id:05d}#WORD#{word_id:05d}#LABEL#{label}")

    label: Stored[str]
    pinecone_id: str
    text: str
    error_message: Attr[str | None] = default(None)
