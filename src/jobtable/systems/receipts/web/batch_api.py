"""Batches of words for completion or embedding by models."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from fastapi import Body as JsonBody
from fastapi import Query
from pydantic import Field

from jobtable.errors import ValueRefusedError
from jobtable.systems.receipts.entities import BatchResult, BatchSummary, CompletionBatchResult, EmbeddingBatchResult
from jobtable.systems.receipts.model_batches import BatchService
from jobtable.systems.receipts.web.api import RECEIPT, RECEIPT_PATH, on_store
from jobtable.web.api.route_parts import Body, Written, api_router
from jobtable.web.api.verb_routes import add_verbs
from jobtable.web.guard import WRITE, allow
from jobtable.web.idempotency import CreationRoute
from jobtable.web.injection import path_id

router = api_router("batches")
creation = api_router("batches", CreationRoute)

BatchId = Annotated[str, path_id("batch-7")]
TheBatches = Annotated[BatchService, on_store(BatchService)]


class SubmitBody(Body):
    """The provider's id of a batch, and when it was submitted."""

    openai_batch_id: str = Field(min_length=1, max_length=200, examples=["batch_abc123"])
    submitted_at: datetime | None = None


class CompleteBody(Body):
    """The provider's file with the results of a batch."""

    result_file_id: str | None = Field(None, min_length=1, max_length=200)


@creation.post("/batches", status_code=201)
@allow(WRITE)
def create_batch(batch: BatchSummary, batches: TheBatches) -> BatchSummary:
    """Store a new batch."""
    batches.create(batch)
    return batch


@router.post("/batches/{batch_id}/submit")
@allow(WRITE)
def submit_batch(batch_id: BatchId, body: SubmitBody, batches: TheBatches) -> BatchSummary:
    """Mark a pending batch as submitted to the model's provider."""
    return batches.submit(batch_id, body.openai_batch_id, at=body.submitted_at)


@router.put("/batches/{batch_id}/completions")
@allow(WRITE)
def record_completions(
    batch_id: BatchId, results: Annotated[list[CompletionBatchResult], JsonBody(max_length=1000)], batches: TheBatches
) -> Written:
    """Store a model's opinions of labels and replace earlier ones."""
    return _record(batches, batch_id, results)


@router.put("/batches/{batch_id}/embeddings")
@allow(WRITE)
def record_embeddings(
    batch_id: BatchId, results: Annotated[list[EmbeddingBatchResult], JsonBody(max_length=1000)], batches: TheBatches
) -> Written:
    """Store where embeddings are and replace earlier results."""
    return _record(batches, batch_id, results)


def _record(batches: BatchService, batch_id: str, results: Sequence[BatchResult]) -> Written:
    for result in results:
        if result.batch_id != batch_id:
            raise ValueRefusedError(f"a result names batch {result.batch_id}, not {batch_id}")
    return Written(count=batches.record(results))


_STATUS = Query(min_length=1, max_length=200, description="Only in this status.", examples=["PENDING"])
add_verbs(
    router,
    TheBatches,
    {"status": Annotated[str, _STATUS], "batch_type": Annotated[str | None, Query(min_length=1, max_length=200)]},
    ("list_batches", "GET /batches", BatchService.list_by_status),
)
add_verbs(
    router,
    TheBatches,
    RECEIPT
    | {
        "batch_id": BatchId,
        "label_target": Annotated[str, path_id("merchant")],
        "status": Annotated[str | None, _STATUS],
    },
    ("get_batch", "GET /batches/{batch_id}", BatchService.get),
    ("complete_batch", "POST /batches/{batch_id}/complete", BatchService.complete, CompleteBody),
    ("fail_batch", "POST /batches/{batch_id}/fail", BatchService.fail),
    ("list_completions", "GET /batches/{batch_id}/completions", BatchService.list_completions),
    ("list_embeddings", "GET /batches/{batch_id}/embeddings", BatchService.list_embeddings),
    ("list_completions_of_target", "GET /completions/{label_target}", BatchService.list_by_target),
    ("list_completions_of_receipt", f"GET {RECEIPT_PATH}/completions", BatchService.list_completions_of_receipt),
    ("list_embeddings_of_receipt", f"GET {RECEIPT_PATH}/embeddings", BatchService.list_embeddings_of_receipt),
)
