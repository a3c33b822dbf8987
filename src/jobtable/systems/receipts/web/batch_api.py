"""Batches of words that models complete or embed."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import Body as JsonBody
from fastapi import Depends, Query
from pydantic import Field

from jobtable.errors import ValueRefusedError
from jobtable.systems.receipts.batches import BatchService
from jobtable.systems.receipts.entities import BatchSummary, CompletionBatchResult, EmbeddingBatchResult
from jobtable.systems.receipts.web.api import ImageId, Number
from jobtable.web.api.parts import Body, Written, api_router
from jobtable.web.dependencies import PageOf, Paging, TheStore, path_id
from jobtable.web.guard import READ, WRITE, allow
from jobtable.web.idempotency import CreationRoute

router = api_router("batches")
creation = api_router("batches", CreationRoute)

BatchId = Annotated[str, path_id("batch-7")]
Status = Annotated[str | None, Query(min_length=1, max_length=200, description="Only in this status.")]


async def _batches(store: TheStore) -> BatchService:
    return BatchService(store, store.clock)


TheBatches = Annotated[BatchService, Depends(_batches)]


class SubmitBody(Body):
    """What the model's provider calls the batch, and when it got it."""

    openai_batch_id: str = Field(min_length=1, max_length=200, examples=["batch_abc123"])
    submitted_at: datetime | None = None


class CompleteBody(Body):
    """Where the results of a batch are."""

    result_file_id: str | None = Field(None, min_length=1, max_length=200)


@creation.post("/batches", status_code=201)
@allow(WRITE)
def create_batch(batch: BatchSummary, batches: TheBatches) -> BatchSummary:
    """Store a new batch."""
    batches.create(batch)
    return batch


@router.get("/batches")
@allow(READ)
def list_batches(
    status: Annotated[str, Query(min_length=1, max_length=200, examples=["PENDING"])],
    batches: TheBatches,
    paging: Paging,
    batch_type: Annotated[str | None, Query(min_length=1, max_length=200)] = None,
) -> PageOf[BatchSummary]:
    """The batches in a status, of one type if it is given."""
    return paging.page(batches.list_by_status(status, batch_type))


@router.get("/batches/{batch_id}")
@allow(READ)
def get_batch(batch_id: BatchId, batches: TheBatches) -> BatchSummary:
    """One batch."""
    return batches.get(batch_id)


@router.post("/batches/{batch_id}/submit")
@allow(WRITE)
def submit_batch(batch_id: BatchId, body: SubmitBody, batches: TheBatches) -> BatchSummary:
    """Note that a pending batch has been handed to the model's provider."""
    return batches.submit(batch_id, body.openai_batch_id, at=body.submitted_at)


@router.post("/batches/{batch_id}/complete")
@allow(WRITE)
def complete_batch(batch_id: BatchId, body: CompleteBody, batches: TheBatches) -> BatchSummary:
    """Close a submitted batch whose results are there."""
    return batches.complete(batch_id, body.result_file_id)


@router.post("/batches/{batch_id}/fail")
@allow(WRITE)
def fail_batch(batch_id: BatchId, batches: TheBatches) -> BatchSummary:
    """Close a batch that came to nothing."""
    return batches.fail(batch_id)


@router.put("/batches/{batch_id}/completions")
@allow(WRITE)
def record_completions(
    batch_id: BatchId, results: Annotated[list[CompletionBatchResult], JsonBody(max_length=1000)], batches: TheBatches
) -> Written:
    """Store what a model says of labels; the same result may come again and is replaced."""
    _refuse_strangers(batch_id, results)
    return Written(count=batches.record(results))


@router.put("/batches/{batch_id}/embeddings")
@allow(WRITE)
def record_embeddings(
    batch_id: BatchId, results: Annotated[list[EmbeddingBatchResult], JsonBody(max_length=1000)], batches: TheBatches
) -> Written:
    """Store where embeddings went; the same result may come again and is replaced."""
    _refuse_strangers(batch_id, results)
    return Written(count=batches.record(results))


@router.get("/batches/{batch_id}/completions")
@allow(READ)
def list_completions(
    batch_id: BatchId, batches: TheBatches, paging: Paging, status: Status = None
) -> PageOf[CompletionBatchResult]:
    """The results of a completion batch."""
    return paging.page(batches.list_completions(batch_id, status))


@router.get("/batches/{batch_id}/embeddings")
@allow(READ)
def list_embeddings(
    batch_id: BatchId, batches: TheBatches, paging: Paging, status: Status = None
) -> PageOf[EmbeddingBatchResult]:
    """The results of an embedding batch."""
    return paging.page(batches.list_embeddings(batch_id, status))


@router.get("/completions/{label_target}")
@allow(READ)
def list_completions_of_target(
    label_target: Annotated[str, path_id("merchant")], batches: TheBatches, paging: Paging, status: Status = None
) -> PageOf[CompletionBatchResult]:
    """The completions for a label target."""
    return paging.page(batches.list_by_target(label_target, status))


@router.get("/images/{image_id}/receipts/{receipt_id}/completions")
@allow(READ)
def list_completions_of_receipt(
    image_id: ImageId, receipt_id: Number, batches: TheBatches, paging: Paging
) -> PageOf[CompletionBatchResult]:
    """What completion batches have said of a receipt."""
    return paging.page(batches.list_completions_of_receipt(image_id, receipt_id))


@router.get("/images/{image_id}/receipts/{receipt_id}/embeddings")
@allow(READ)
def list_embeddings_of_receipt(
    image_id: ImageId, receipt_id: Number, batches: TheBatches, paging: Paging
) -> PageOf[EmbeddingBatchResult]:
    """What embedding batches have made of a receipt."""
    return paging.page(batches.list_embeddings_of_receipt(image_id, receipt_id))


def _refuse_strangers(batch_id: str, results: list[CompletionBatchResult] | list[EmbeddingBatchResult]) -> None:
    for result in results:
        if result.batch_id != batch_id:
            raise ValueRefusedError(f"a result of batch {result.batch_id} is not one of {batch_id}")
