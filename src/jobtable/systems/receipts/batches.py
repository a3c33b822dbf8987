"""Batches for completion and embedding: created, submitted, answered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TypeVar

from jobtable.clock import SYSTEM_CLOCK, Clock
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

    def __init__(self, store: Store, clock: Clock = SYSTEM_CLOCK) -> None:
        self._store = store
        self._clock = clock

    def create(self, batch: BatchSummary) -> None:
        """Store a new batch, or raise AlreadyExistsError."""
        self._store.add(batch)

    @access_pattern("Get a batch")
    def get(self, batch_id: str) -> BatchSummary:
        """A batch, or NotFoundError."""
        return self._store.get(BatchSummary.key(batch_id=batch_id))

    @access_pattern("A batch with its results")
    def list_under_batch(self, batch_id: str) -> Query[Entity]:
        """The results of a batch by receipt, line and word, and behind them the batch, each as what it is."""
        return self._store.collection(BatchSummary.key(batch_id=batch_id))

    def submit(self, batch_id: str, openai_batch_id: str, *, at: datetime | None = None) -> BatchSummary:
        """Note that a pending batch has been handed to the model's provider; ConditionFailedError if it was before.

        The same note again changes nothing: whoever made it may not have got the answer.
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
        """Store results of batches; gives their number. The same result may come again: the last one stays.

        The key of a result does not name its image. TransactionFailedError where a batch has a result for the same
        receipt, line, word and label of another image, or of the other type: nothing of that step is written, which has
        up to 25 results, of 2 MB together.
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
        """Close a submitted batch whose results are there; once it is closed so, this changes nothing."""
        batch = self.get(batch_id)
        if (batch.status, batch.result_file_id) == (COMPLETED, result_file_id):
            return batch
        changes = [BatchSummary.status.set(COMPLETED)]
        if result_file_id is not None:
            changes.append(BatchSummary.result_file_id.set(result_file_id))
        return self._store.update(batch, *changes, when=BatchSummary.status == SUBMITTED)

    def fail(self, batch_id: str) -> BatchSummary:
        """Close a batch that came to nothing; once it is closed so, this changes nothing."""
        batch = self.get(batch_id)
        if batch.status == FAILED:
            return batch
        is_open = BatchSummary.status.is_in(PENDING, SUBMITTED)
        return self._store.update(batch, BatchSummary.status.set(FAILED), when=is_open)

    @access_pattern("List batches by status", index="GSI1")
    def list_by_status(self, status: str, batch_type: str | None = None) -> Query[BatchSummary]:
        """The batches in a status, of one type if it is given."""
        if batch_type is None:
            return self._store.query(BatchSummary.by_status(status=status))
        return self._store.query(BatchSummary.by_status(status=status, batch_type=batch_type))

    @access_pattern("List the completions of a batch", index="GSI2")
    def list_completions(self, batch_id: str, status: str | None = None) -> Query[CompletionBatchResult]:
        """The results of a completion batch, of one status if it is given."""
        return self._list(CompletionBatchResult, batch_id, status)

    @access_pattern("List the embeddings of a batch", index="GSI2")
    def list_embeddings(self, batch_id: str, status: str | None = None) -> Query[EmbeddingBatchResult]:
        """The results of an embedding batch, of one status if it is given."""
        return self._list(EmbeddingBatchResult, batch_id, status)

    @access_pattern("List completions by label target", index="GSI1")
    def list_by_target(self, label_target: str, status: str | None = None) -> Query[CompletionBatchResult]:
        """The completions for a label target, of one status if it is given."""
        if status is None:
            return self._store.query(CompletionBatchResult.by_target(label_target=label_target))
        return self._store.query(CompletionBatchResult.by_target(label_target=label_target, status=status))

    @access_pattern("List the completions for a receipt", index="GSI3")
    def list_completions_of_receipt(self, image_id: str, receipt_id: int) -> Query[CompletionBatchResult]:
        """What completion batches have said of a receipt."""
        return self._store.query(CompletionBatchResult.by_receipt(image_id=image_id, receipt_id=receipt_id))

    @access_pattern("List the embeddings of a receipt", index="GSI3")
    def list_embeddings_of_receipt(self, image_id: str, receipt_id: int) -> Query[EmbeddingBatchResult]:
        """What embedding batches have made of a receipt."""
        return self._store.query(EmbeddingBatchResult.by_receipt(image_id=image_id, receipt_id=receipt_id))

    def _list(self, kind: type[R], batch_id: str, status: str | None) -> Query[R]:
        if status is None:
            return self._store.query(kind.by_batch(batch_id=batch_id))
        return self._store.query(kind.by_batch(batch_id=batch_id, status=status))


def _steps(results: Iterable[BatchResult]) -> Iterator[list[BatchResult]]:
    """The results in steps that one transaction can write, where a result that comes again is written once."""
    step: list[BatchResult] = []
    known: dict[str, BatchResult] = {}
    for result in results:
        key = _key_of(result)
        before = known.get(key)
        # One that is in the way of another goes into the next step, whose condition refuses it.
        if (len(known) == _RESULTS_A_STEP) if before is None else not _is_same(before, result):
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
    """That what is stored is of the same image: by its attribute or, where there is none, by its index key."""
    selection = type(result).by_receipt(image_id=result.image_id, receipt_id=result.receipt_id)
    ((attribute, value),) = selection.equal.items()
    return (type(result).image_id == result.image_id) | AttributeIs((attribute,), value)


def _is_same(one: BatchResult, other: BatchResult) -> bool:
    return type(one) is type(other) and one.image_id == other.image_id
