"""Batches from creation to results."""

from __future__ import annotations

import pytest
from tests.systems.receipts.pictures import NOON

from jobtable.errors import (
    AlreadyExistsError,
    BackendUnavailable,
    ConditionFailedError,
    TransactionFailedError,
    ValueRefusedError,
)
from jobtable.jobs.stored.entities import Instance, Job, JobStatus, main
from jobtable.jobs.stored.field_types import InstanceStatus, Status
from jobtable.store import Store
from jobtable.systems.receipts.entities import BatchSummary, CompletionBatchResult, EmbeddingBatchResult
from jobtable.systems.receipts.model_batches import BatchService
from jobtable.testing import FakeClock, Faults, FaultyBackend


def completion(word_id: int, image_id: str = "a", status: str = "VALID") -> CompletionBatchResult:
    return CompletionBatchResult(
        batch_id="b",
        image_id=image_id,
        receipt_id=1,
        line_id=1,
        word_id=word_id,
        original_label="TOTAL",
        label_changed=False,
        status=status,
        validated_at=NOON,
        label_target="currency",
    )


def embedding(word_id: int, batch_id: str = "e") -> EmbeddingBatchResult:
    return EmbeddingBatchResult(
        batch_id=batch_id,
        image_id="a",
        receipt_id=1,
        line_id=1,
        word_id=word_id,
        label="TOTAL",
        pinecone_id=f"p-{word_id}",
        text="12.90",
        status="SUCCESS",
    )


def test_results_with_long_prompts_and_responses_are_recorded(store: Store) -> None:
    service = BatchService(store, FakeClock())
    long = [completion(word).replace(raw_prompt="p" * 90_000, raw_response="r" * 90_000) for word in range(25)]
    assert service.record(long) == 25
    assert sorted(service.list_completions("b"), key=lambda result: result.word_id) == long


def test_a_batch_goes_from_pending_to_completed(store: Store) -> None:
    service = BatchService(store, FakeClock())
    batch = BatchSummary(batch_id="b", batch_type="COMPLETION", status="PENDING", word_count=3)
    service.create(batch)
    with pytest.raises(AlreadyExistsError):
        service.create(batch)
    with pytest.raises(ConditionFailedError):
        service.complete("b")
    submitted = service.submit("b", "batch_1")
    assert submitted.openai_batch_id == "batch_1"
    assert submitted.submitted_at is not None
    with pytest.raises(ConditionFailedError):
        service.submit("b", "batch_2")
    assert list(service.list_by_status("PENDING")) == []
    assert list(service.list_by_status("SUBMITTED")) == [submitted]
    assert service.complete("b", "file_1").result_file_id == "file_1"
    assert service.get("b").status == "COMPLETED"
    with pytest.raises(ConditionFailedError):
        service.fail("b")


def test_what_is_noted_again_after_a_lost_answer_changes_nothing(store: Store) -> None:
    service = BatchService(store)
    losing = BatchService(Store(FaultyBackend(store.backend, Faults(lost_response=1), seed=1), prefix=store.prefix))
    for number, verbs in enumerate([("submit", "complete"), ("submit", "fail"), ("fail",)]):
        batch_id = str(number)
        service.create(BatchSummary(batch_id=batch_id, batch_type="COMPLETION", status="PENDING", word_count=3))
        for verb in verbs:
            arguments = [batch_id] if verb == "fail" else [batch_id, "given"]
            with pytest.raises(BackendUnavailable):
                getattr(losing, verb)(*arguments)
            noted = service.get(batch_id)
            assert getattr(service, verb)(*arguments) == noted == service.get(batch_id)
        assert service.get(batch_id).status == {"complete": "COMPLETED", "fail": "FAILED"}[verbs[-1]]


def test_a_shared_status_partition_gives_only_batches_in_full_pages(store: Store) -> None:
    service = BatchService(store)
    for number in range(40):
        name = f"{number:02d}"
        store.put(Job(job_id=name, name="j", created_at=NOON, created_by="u", status=Status.PENDING))
        store.put(JobStatus(job_id=name, status=Status.PENDING, updated_at=NOON))
        store.put(Instance(instance_id=name, instance_type="t", launched_at=NOON, status=InstanceStatus.PENDING))
        service.create(BatchSummary(batch_id=name, batch_type=("A", "B")[number % 2], status="PENDING"))
    query = service.list_by_status("PENDING")
    first = query.page(size=15)
    second = query.page(first.cursor, size=15)
    third = query.page(second.cursor, size=15)
    assert [len(page.items) for page in (first, second, third)] == [15, 15, 10]
    assert third.cursor is None
    assert [batch.batch_type for batch in query] == ["A"] * 20 + ["B"] * 20
    assert len(list(service.list_by_status("PENDING", "B"))) == 20


def test_results_are_listed_by_batch_receipt_and_target(store: Store) -> None:
    service = BatchService(store)
    results = [completion(word, status="VALID" if word % 2 else "INVALID") for word in range(1, 61)]
    assert service.record([*results, embedding(1), embedding(2)]) == 62
    assert service.record(results[:3]) == 3
    assert len(list(service.list_completions("b"))) == 60
    assert len(list(service.list_completions("b", "VALID"))) == 30
    assert list(service.list_embeddings("b")) == []
    assert [each.word_id for each in service.list_embeddings("e", "SUCCESS")] == [1, 2]
    assert len(list(service.list_by_target("currency", "INVALID"))) == 30
    assert len(list(service.list_by_target("currency"))) == 60
    assert len(list(service.list_completions_of_receipt("a", 1))) == 60
    assert len(list(service.list_embeddings_of_receipt("a", 1))) == 2


def test_of_results_that_come_twice_the_last_one_stays(store: Store) -> None:
    service = BatchService(store)
    first, again = completion(1, status="INVALID"), completion(1, status="VALID")
    assert service.record([first, completion(2), first, again]) == 4
    assert [each.status for each in service.list_completions("b")] == ["VALID", "VALID"]
    many = [completion(word, status=status) for status in ("INVALID", "VALID") for word in range(1, 31)]
    assert service.record(iter(many)) == 60
    assert len(list(service.list_completions("b", "VALID"))) == 30
    with pytest.raises(TransactionFailedError, match="put CompletionBatchResult"):
        service.record([completion(40), completion(40, image_id="other")])
    with pytest.raises(TransactionFailedError, match="put EmbeddingBatchResult"):
        service.record([completion(41), embedding(41, batch_id="b")])


def test_a_result_never_overwrites_one_of_another_image_or_type(store: Store) -> None:
    service = BatchService(store)
    service.record([completion(1)])
    with pytest.raises(TransactionFailedError, match="put CompletionBatchResult"):
        service.record([completion(2), completion(1, image_id="other")])
    with pytest.raises(TransactionFailedError, match="EmbeddingBatchResult"):
        service.record([embedding(1, batch_id="b")])
    service.record([embedding(1, batch_id="e")])
    with pytest.raises(TransactionFailedError, match="CompletionBatchResult"):
        service.record([completion(1).replace(batch_id="e")])
    assert [each.word_id for each in service.list_completions("b")] == [1]
    with pytest.raises(ValueRefusedError, match="shares its keys"):
        store.batch_put([completion(3)])


def test_a_result_without_the_attribute_of_its_image_is_known_by_its_index_key(store: Store) -> None:
    item = CompletionBatchResult.__schema__.codec.encode(completion(1, image_id="scan#1", status="INVALID"))
    del item["image_id"]
    store.backend.execute("PutItem", {"TableName": store.table_name(main), "Item": item})
    with pytest.raises(TransactionFailedError, match="put CompletionBatchResult"):
        BatchService(store).record([completion(1, image_id="other")])
    BatchService(store).record([completion(1, image_id="scan#1")])
    assert [each.status for each in BatchService(store).list_completions("b")] == ["VALID"]
