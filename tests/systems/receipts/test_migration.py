"""The migration from the legacy table: complete, resumable, harmless when repeated."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.jobs.engines import engine
from tests.systems.receipts.legacy.table import ITEMS_AN_IMAGE, legacy_items, open_store
from tests.systems.receipts.pictures import NOON, PLACED

from jobtable.jobs.lifecycle.leases import Outcome
from jobtable.jobs.stored.entities import Job, JobMetric, main
from jobtable.jobs.stored.field_types import Status
from jobtable.model import Entity, Table
from jobtable.store import Item, Store
from jobtable.systems.receipts.entities import Image, ReceiptWordLabel, Word
from jobtable.systems.receipts.legacy.entities import Job as LegacyJob
from jobtable.systems.receipts.legacy.entities import JobDependency as LegacyDependency
from jobtable.systems.receipts.legacy.entities import JobMetric as LegacyMetric
from jobtable.systems.receipts.legacy.entities import Queue as LegacyQueue
from jobtable.systems.receipts.legacy.entities import QueueJob as LegacyQueueJob
from jobtable.systems.receipts.legacy.entities import ReceiptWord, ReceiptWordTag, legacy
from jobtable.systems.receipts.legacy.migration import Migration, MigrationCheckpoint, migrations
from jobtable.systems.receipts.ocr import OcrService

_REPOSITORY = Path(__file__).parents[3]


def items_of(store: Store, table: Table) -> list[Item]:
    found: list[Item] = []
    request: dict[str, Any] = {"TableName": store.table_name(table)}
    while True:
        response = store.backend.execute("Scan", request)
        found += response["Items"]
        if "LastEvaluatedKey" not in response:
            return sorted(found, key=lambda item: (item["PK"]["S"], item["SK"]["S"]))
        request["ExclusiveStartKey"] = response["LastEvaluatedKey"]


@pytest.fixture
def store(each_store: Store) -> Store:
    each_store.tables.create(legacy, main)
    return each_store


def test_everything_that_has_a_place_is_migrated(store: Store) -> None:
    store.batch_put(legacy_items(3))
    before = items_of(store, legacy)
    report = Migration(store, store).run()
    assert report.finished
    assert report.read == 3 * ITEMS_AN_IMAGE
    assert {kind: tally.unmapped for kind, tally in report.kinds.items() if tally.unmapped} == {
        "WORD_TAG": 6,
        "GPT_VALIDATION": 6,
        "GPT_INITIAL_TAGGING": 6,
        "QUEUE_JOB": 3,
    }
    assert sum(tally.migrated for tally in report.kinds.values()) == 3 * ITEMS_AN_IMAGE - 21
    assert sum(problem.count for problem in report.problems.values()) == 21
    assert all(len(problem.examples) <= 10 for problem in report.problems.values())
    contents = OcrService(store).read_image("image-00001")
    assert [label.label for label in contents.receipts[1].labels] == ["FOOD", "FOOD"]
    assert contents.receipts[1].labels[0].label_proposed_by == "LEGACY_TAG"
    assert "tags" not in next(item for item in items_of(store, main) if item["TYPE"]["S"] == "WORD")
    assert len(list(store.query(JobMetric.by_name(metric_name="loss")))) == 3
    assert store.get(Job.key(job_id="job-00002")).status == "COMPLETED"
    assert items_of(store, legacy) == before


def test_a_dry_run_reports_the_same_and_writes_nothing(store: Store) -> None:
    store.batch_put(legacy_items(2))
    dry = Migration(store, store).run(dry_run=True)
    assert items_of(store, main) == []
    assert store.table_name(migrations) not in store.backend.execute("ListTables", {})["TableNames"]
    assert Migration(store, store).run() == dry


def test_running_again_changes_nothing_and_keeps_what_has_changed_since(store: Store) -> None:
    store.batch_put(legacy_items(2))
    first = Migration(store, store).run()
    label = next(iter(store.query(ReceiptWordLabel.by_label(label="FOOD"))))
    store.update(label, ReceiptWordLabel.validation_status.set("VALID"))
    before = items_of(store, main)
    second = Migration(store, store).run()
    assert items_of(store, main) == before
    assert second.kinds["RECEIPT_WORD_TAG"].kept == 1
    assert second.kinds["IMAGE"] == first.kinds["IMAGE"]
    dry = Migration(store, store).run(dry_run=True)
    assert dry == second


def test_what_stands_in_the_main_table_in_any_shape_stays(store: Store) -> None:
    store.batch_put(legacy_items(1))
    item: Item = {"PK": {"S": "IMAGE#image-00000"}, "SK": {"S": "IMAGE"}, "TYPE": {"S": "IMAGE"}}
    store.backend.execute("PutItem", {"TableName": store.table_name(main), "Item": item})
    report = Migration(store, store).run()
    assert report.kinds["IMAGE"].kept == 1
    assert item in items_of(store, main)


def _encoded(entity: Entity) -> Item:
    return type(entity).__schema__.codec.encode(entity)


def test_items_of_another_make_are_read_or_reported(store: Store) -> None:
    (image, *_) = legacy_items(1)
    item = _encoded(image)
    typeless = {name: value for name, value in item.items() if name != "TYPE"}
    table = {"TableName": store.table_name(legacy)}
    foreign = {"bounding_box": {"M": {"x": {"N": "1"}}}, "GSI3PK": {"S": "stale"}}
    store.backend.execute("PutItem", {**table, "Item": {**typeless, **foreign}})
    odd: list[Item] = [
        {"PK": {"S": "IMAGE#b"}, "SK": {"S": "IMAGE"}, "TYPE": {"S": "IMAGE"}, "width": {"N": "-1"}},
        {"PK": {"S": "IMAGE#b"}, "SK": {"S": "LINE#1"}, "TYPE": {"S": "LINE"}},
        _encoded(LegacyMetric(job_id="j" * 1100, metric_name="m" * 90, timestamp=NOON, value=1.0)),
        {"PK": {"S": "X"}, "SK": {"S": "Y"}},
        {"PK": {"S": "X"}, "SK": {"S": "Z"}, "TYPE": {"S": "OTHER"}},
    ]
    for each in odd:
        store.backend.execute("PutItem", {**table, "Item": each})
    report = Migration(store, store).run()
    migrated = store.get(Image.key(image_id="image-00000"))
    assert migrated.timestamp_added == NOON
    (stored,) = items_of(store, main)
    assert stored["bounding_box"] == foreign["bounding_box"]
    assert "GSI3PK" not in stored
    assert {kind: (tally.migrated, tally.unmapped) for kind, tally in report.kinds.items()} == {
        "IMAGE": (1, 1),
        "LINE": (0, 1),
        "JOB_METRIC": (0, 1),
        "UNKNOWN": (0, 1),
        "OTHER": (0, 1),
    }
    assert {reason: problem.count for reason, problem in report.problems.items()} == {
        "the item does not have the shape of its kind": 2,
        "the kind of the item is unknown": 2,
        "the main table rejects one of its values": 1,
    }


def test_a_tag_without_an_item_is_reported(store: Store) -> None:
    store.put(ReceiptWord(image_id="a", receipt_id=1, line_id=1, word_id=1, text="x", tags=["FOOD", "SUM"], **PLACED))
    tag = ReceiptWordTag(image_id="a", receipt_id=1, line_id=1, word_id=1, tag_name="FOOD", timestamp_added=NOON)
    store.put(tag)
    report = Migration(store, store).run()
    assert report.kinds["RECEIPT_WORD"].migrated == 1
    (problem,) = report.problems.values()
    assert "no tag item" in problem.reason
    assert problem.examples == ["IMAGE#a RECEIPT#00001#LINE#00001#WORD#00001"]


WAITING: dict[str, Any] = {"name": "train", "created_at": NOON, "created_by": "ada"}


def put_waiting(store: Store, job_id: str, *queues: str, **values: Any) -> None:
    store.put(LegacyJob(job_id=job_id, **{**WAITING, "job_config": {"task": "training:train"}, **values}))
    for queue in queues:
        store.put(LegacyQueueJob(queue_name=queue, job_id=job_id, enqueued_at=NOON, priority=600))


def test_jobs_that_wait_run_and_leave_their_queue_after_the_migration(store: Store) -> None:
    jobs = engine(store)
    jobs.create_queue("gpu", description="was here first")
    store.put(LegacyQueue(queue_name="gpu", created_at=NOON, job_count=7))
    store.put(LegacyQueue(queue_name="cpu", created_at=NOON, job_count=7, max_concurrent_jobs=2))
    put_waiting(store, "runs", "gpu")
    put_waiting(store, "cancelled", "cpu")
    put_waiting(store, "over", "cpu", status=Status.FAILED)
    dry = Migration(store, store).run(dry_run=True)
    report = Migration(store, store).run()
    assert report == dry == Migration(store, store).run()
    assert (report.kinds["QUEUE"].migrated, report.kinds["QUEUE"].kept) == (1, 1)
    assert [(queue.queue_name, queue.job_count) for queue in jobs.queries.list_queues()] == [("cpu", 1), ("gpu", 1)]
    (lease,) = jobs.claim("gpu", limit=5, instance_id="i", lease_seconds=30)
    assert lease.job.job_id == "runs"
    jobs.finish(lease, Outcome.completed())
    jobs.cancel("cancelled")
    jobs.delete("cancelled")
    assert [queue.job_count for queue in jobs.queries.list_queues()] == [0, 0]
    assert list(jobs.queries.list_jobs_of_queue("cpu")) == []
    store.delete(LegacyJob.key(job_id="cancelled"))
    again = Migration(store, store).run()
    assert again.problems["its job has changed in the main table since an earlier run"].examples == [
        "QUEUE#gpu JOB#runs"
    ]
    assert [queue.job_count for queue in jobs.queries.list_queues()] == [0, 0]
    assert jobs.retry("over").status is Status.PENDING
    assert [place.job_id for place in jobs.queries.list_ready("cpu")] == ["over"]


def test_jobs_that_no_worker_will_take_are_reported(store: Store) -> None:
    jobs = engine(store)
    put_waiting(store, "nowhere")
    put_waiting(store, "twice", "cpu", "gpu")
    put_waiting(store, "idle", "cpu", job_config=["train"])
    put_waiting(store, "behind", "cpu")
    store.put(LegacyDependency(job_id="behind", dependency_job_id="idle", type="after", created_at=NOON))
    store.put(LegacyQueueJob(queue_name="cpu", job_id="gone", enqueued_at=NOON))
    report = Migration(store, store).run()
    assert {problem.reason: problem.examples for problem in report.problems.values()} == {
        "it waits but is in no queue, so no worker claims it": ["JOB#nowhere JOB"],
        "its job is also in another queue, and the main table has one per job": ["QUEUE#gpu JOB#twice"],
        "the configuration of its job names no task, so no worker claims it": ["QUEUE#cpu JOB#idle"],
        "its job has dependencies in the legacy table, so no worker claims it until it is retried": [
            "QUEUE#cpu JOB#behind"
        ],
        "the job of the queue entry does not exist": ["QUEUE#cpu JOB#gone"],
    }
    assert [place.job_id for place in jobs.queries.list_ready("cpu")] == ["twice"]
    jobs.cancel("behind")
    jobs.retry("behind")
    assert {place.job_id for place in jobs.queries.list_ready("cpu")} == {"behind", "twice"}
    assert [queue.job_count for queue in jobs.queries.list_queues()] == [3]


def test_a_migration_that_is_killed_is_finished_by_the_next(tmp_path: Path) -> None:
    images = -(-10_000 // ITEMS_AN_IMAGE)
    path, whole = tmp_path / "killed.db", tmp_path / "whole.db"
    with open_store(path) as store:
        store.batch_put(legacy_items(images))
    shutil.copy(path, whole)
    with open_store(whole) as store:
        expected_report = Migration(store, store).run()
        expected = items_of(store, main)
    reached = _kill_in_the_middle(path, after_items=4_000)
    with open_store(path) as store:
        checkpoint = store.get(MigrationCheckpoint.key(name="receipts-001-to-000"))
        assert not checkpoint.finished
        assert sum(tally.read for tally in checkpoint.kinds.values()) >= reached
        pages = []
        report = Migration(store, store).run(lambda report: pages.append(report.read))
        assert pages[0] > reached, "it went on from the checkpoint"
        assert report == expected_report
        assert report.read == images * ITEMS_AN_IMAGE
        assert items_of(store, main) == expected
        assert store.find(Word.key(image_id="image-00000", line_id=1, word_id=1)) is not None


def _kill_in_the_middle(path: Path, after_items: int) -> int:
    """Kill -9 a migrating process; gives how many items it had told of."""
    command = [sys.executable, "-m", "tests.systems.receipts.legacy.table", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=_REPOSITORY, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if int(line) >= after_items:
                os.kill(process.pid, signal.SIGKILL)
                return int(line)
    raise AssertionError("it ended before it was killed")
