"""Batches for completion and embedding, and their results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TypeVar

from jobtable.clock import Clock
from jobtable.model import Condition, Entity
from jobtable.model.conditions import AttributeIs
from jobtable.store import Query, Store
from jobtable.store.patterns import access_pattern
from jobtable.store.transactions import packed
from jobtable.systems.receipts.entities import BatchResult, BatchSummary, CompletionBatchResult, EmbeddingBatchResult

R = TypeVar("R", bound=BatchResult)

PENDING, SUBMITTED, COMPLETED, FAILED = "PENDING", "SUBMITTED", "COMPLETED", "FAILED"
_RESULTS_A_STEP = 25


class BatchService:
    """Batches and their results."""

    def __init__(self, store: Store, clock: Clock | None = None) -> None:
        self._store = store
        self._clock = clock or store.clock

    def create(self, batch: BatchSummary) -> None:
        """Store a new batch, or raise AlreadyExistsError."""
        self._store.add(batch)

    @access_pattern("Get a batch")
    def get(self, batch_id: str) -> BatchSummary:
        """Return a batch, or raise NotFoundError."""
        return self._store.get(BatchSummary.key(batch_id=batch_id))

    @access_pattern("A batch with its results")
    def list_under_batch(self, batch_id: str) -> Query[Entity]:
        """List the results of a batch by receipt, line and word, followed by the batch itself."""
        return self._store.collection(BatchSummary.key(batch_id=batch_id))

    def submit(self, batch_id: str, openai_batch_id: str, *, at: datetime | None = None) -> BatchSummary:
        """Mark a pending batch as submitted to the model's provider.

        Repeating the call changes nothing; ConditionFailedError if the batch was submitted under another id.
        """
        batch = self.get(batch_id)
        if (batch.status, batch.openai_batch_id) == (SUBMITTED, openai_batch_id):
            return batch
        return self._store.update(
            batch,
            BatchSummary.status.set(SUBMITTED),
            BatchSummary.openai_batch_id.set(openai_batch_id),
            BatchSummary.submitted_at.set(at or self._clock.now()),
            when=BatchSummary.status == PENDING,
        )

    def record(self, results: Iterable[BatchResult]) -> int:
        """Store results of batches and return their number. If a result is repeated, the last one stays.

        The key of a result does not name its image, so TransactionFailedError is raised if a batch has a result for the
        same receipt, line, word and label of another image, or of the other type. Then nothing of that step is written:
        up to 25 results with 2 MB in total.
        """
        count = 0
        for step in _steps(results):
            for some in packed({_key_of(result): result for result in step}.values(), _RESULTS_A_STEP):
                with self._store.transaction() as transaction:
                    for result in some:
                        transaction.put(result, when=type(result).status.missing() | _is_of_image(result))
            count += len(step)
        return count

    def complete(self, batch_id: str, result_file_id: str | None = None) -> BatchSummary:
        """Complete a submitted batch; repeating the call changes nothing."""
        batch = self.get(batch_id)
        if (batch.status, batch.result_file_id) == (COMPLETED, result_file_id):
            return batch
        changes = [BatchSummary.status.set(COMPLETED)]
        if result_file_id is not None:
            changes.append(BatchSummary.result_file_id.set(result_file_id))
        return self._store.update(batch, *changes, when=BatchSummary.status == SUBMITTED)

    def fail(self, batch_id: str) -> BatchSummary:
        """Fail a batch that has not completed; repeating the call changes nothing."""
        batch = self.get(batch_id)
        if batch.status == FAILED:
            return batch
        is_open = BatchSummary.status.is_in(PENDING, SUBMITTED)
        return self._store.update(batch, BatchSummary.status.set(FAILED), when=is_open)

    @access_pattern("List batches by status", index="GSI1")
    def list_by_status(self, status: str, batch_type: str | None = None) -> Query[BatchSummary]:
        """List the batches in a status, optionally of one type."""
        if batch_type is None:
            return self._store.query(BatchSummary.by_status(status=status))
        return self._store.query(BatchSummary.by_status(status=status, batch_type=batch_type))

    @access_pattern("List the completions of a batch", index="GSI2")
    def list_completions(self, batch_id: str, status: str | None = None) -> Query[CompletionBatchResult]:
        """List the results of a completion batch, optionally in one status."""
        return self._list(CompletionBatchResult, batch_id, status)

    @access_pattern("List the embeddings of a batch", index="GSI2")
    def list_embeddings(self, batch_id: str, status: str | None = None) -> Query[EmbeddingBatchResult]:
        """List the results of an embedding batch, optionally in one status."""
        return self._list(EmbeddingBatchResult, batch_id, status)

    @access_pattern("List completions by label target", index="GSI1")
    def list_by_target(self, label_target: str, status: str | None = None) -> Query[CompletionBatchResult]:
        """List the completions for a label target, optionally in one status."""
        if status is None:
            return self._store.query(CompletionBatchResult.by_target(label_target=label_target))
        return self._store.query(CompletionBatchResult.by_target(label_target=label_target, status=status))

    @access_pattern("List the completions for a receipt", index="GSI3")
    def list_completions_of_receipt(self, image_id: str, receipt_id: int) -> Query[CompletionBatchResult]:
        """List the completions for a receipt's words."""
        return self._store.query(CompletionBatchResult.by_receipt(image_id=image_id, receipt_id=receipt_id))

    @access_pattern("List the embeddings of a receipt", index="GSI3")
    def list_embeddings_of_receipt(self, image_id: str, receipt_id: int) -> Query[EmbeddingBatchResult]:
        """List the embeddings of a receipt's words."""
        return self._store.query(EmbeddingBatchResult.by_receipt(image_id=image_id, receipt_id=receipt_id))

    def _list(self, kind: type[R], batch_id: str, status: str | None) -> Query[R]:
        if status is None:
            return self._store.query(kind.by_batch(batch_id=batch_id))
        return self._store.query(kind.by_batch(batch_id=batch_id, status=status))


def _steps(results: Iterable[BatchResult]) -> Iterator[list[BatchResult]]:
    """Yield the results in steps of distinct ones for one transaction each, with their repetitions."""
    step: list[BatchResult] = []
    known: dict[str, BatchResult] = {}
    for result in results:
        key = _key_of(result)
        before = known.get(key, result)
        # A result that collides with another one goes into the next step, whose condition refuses it.
        is_other = (type(before), before.image_id) != (type(result), result.image_id)
        if is_other or (key not in known and len(known) == _RESULTS_A_STEP):
            yield step
            step, known = [], {}
        step.append(result)
        known[key] = result
    if step:
        yield step


def _key_of(result: BatchResult) -> str:
    key = type(result).__schema__.codec.key_of(result)
    return f"{key['PK']['S']} {key['SK']['S']}"


def _is_of_image(result: BatchResult) -> Condition:
    """Require that the stored result is of the same image, by its attribute or, if that is missing, its index key."""
    selection = type(result).by_receipt(image_id=result.image_id, receipt_id=result.receipt_id)
    ((attribute, value),) = selection.equal.items()
    return (type(result).image_id == result.image_id) | AttributeIs((attribute,), value)
