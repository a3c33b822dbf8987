"""Words and their labels go to a model in batches, and the results get the records of the receipts' table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.assist.batch_runs import configure, run_to_end
from tests.systems.receipts.pictures import ocr_result

from jobtable.embedded import EmbeddedBackend
from jobtable.jobs.engine import Jobs
from jobtable.jobs.stored.entities import main
from jobtable.jobs.stored.field_types import Status
from jobtable.objects.memory import MemoryObjectStore
from jobtable.store import Store
from jobtable.systems.receipts.entities import ReceiptWordLabel
from jobtable.systems.receipts.label_batches import LabelBatches
from jobtable.systems.receipts.labels import LabelService
from jobtable.systems.receipts.model_batches import BatchService
from jobtable.systems.receipts.ocr import OcrService
from jobtable.testing import FakeClock
from jobtable.testing.assist import AssistServer, Question, Reply

_OPINION = {"label": "DATE", "confidence": 0.9, "reasoning": "It has the form of a date."}


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    clock = FakeClock()
    with Store(EmbeddedBackend(None, clock=clock), clock=clock) as store:
        store.tables.create(main)
        yield Jobs(store, MemoryObjectStore(clock), clock=clock)


@pytest.fixture
def labels(jobs: Jobs) -> list[ReceiptWordLabel]:
    """Two labels of words of one receipt."""
    OcrService(jobs.store).store(ocr_result("a"))
    place: dict[str, Any] = {"image_id": "a", "receipt_id": 1, "line_id": 1, "timestamp_added": jobs.clock.now()}
    made = [ReceiptWordLabel(**place, word_id=1, label="DATE"), ReceiptWordLabel(**place, word_id=2, label="TIME")]
    LabelService(jobs.store).add(made)
    return made


def _opinion(question: Question) -> Reply:
    return Reply(text=json.dumps(_OPINION))


def test_a_model_says_what_it_thinks_of_labels(
    jobs: Jobs, labels: list[ReceiptWordLabel], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each label gets a result with the opinion, the prompt and the answer; the batch has its summary."""
    monkeypatch.chdir(tmp_path)
    with AssistServer(_opinion) as server:
        configure(server, tmp_path)
        job = LabelBatches(jobs).submit_completions(labels)
        assert run_to_end(jobs).status is Status.COMPLETED
        assert all("w1" in question.prompt for question in server.questions)
    batch_id = f"{job.job_id}-1"
    service = BatchService(jobs.store)
    summary = service.get(batch_id)
    assert (summary.batch_type, summary.status, summary.word_count) == ("COMPLETION", "COMPLETED", 2)
    assert summary.openai_batch_id == "batch_000001"
    assert [(ref.image_id, ref.receipt_id) for ref in summary.receipt_refs] == [("a", 1)]
    found = {result.original_label: result for result in service.list_completions(batch_id)}
    assert {label: result.label_changed for label, result in found.items()} == {"DATE": False, "TIME": True}
    assert found["TIME"].gpt_suggested_label == "DATE"
    assert found["TIME"].reasoning == _OPINION["reasoning"]
    assert json.loads(str(found["TIME"].raw_response)) == _OPINION
    assert "Label: TIME" in str(found["TIME"].raw_prompt)


def test_what_the_model_cannot_judge_is_recorded_as_failed(
    jobs: Jobs, labels: list[ReceiptWordLabel], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A label without a valid opinion keeps the reason, and no invented label."""
    monkeypatch.chdir(tmp_path)
    with AssistServer(lambda question: Reply(text="perhaps")) as server:
        configure(server, tmp_path)
        job = LabelBatches(jobs).submit_completions(labels, most_rounds=1)
        assert run_to_end(jobs).status is Status.FAILED
    for result in BatchService(jobs.store).list_completions(f"{job.job_id}-1"):
        assert (result.status, result.gpt_suggested_label, result.label_changed) == ("FAILED", None, False)
        assert "not JSON" in str(result.reasoning)


def test_words_are_embedded(
    jobs: Jobs, labels: list[ReceiptWordLabel], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each labelled word gets a result that names its vector."""
    monkeypatch.chdir(tmp_path)
    with AssistServer() as server:
        configure(server, tmp_path)
        job = LabelBatches(jobs).submit_embeddings(labels)
        assert run_to_end(jobs).status is Status.COMPLETED
    found = list(BatchService(jobs.store).list_embeddings(f"{job.job_id}-1"))
    assert sorted((result.label, result.text, result.status) for result in found) == [
        ("DATE", "w1", "COMPLETED"),
        ("TIME", "w2", "COMPLETED"),
    ]
    assert {result.pinecone_id for result in found} == {"a#00001#00001#00001#DATE", "a#00001#00001#00002#TIME"}
